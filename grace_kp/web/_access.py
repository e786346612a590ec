"""Who looks at a page or calls the API, what this person may do, and routes that state the right they need; there is no other kind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from starlette.routing import Route

from grace_kp.approvals import Actor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response


class Right(StrEnum):
    """A right that a route requires."""

    ANYBODY = "anybody"
    """Also without a login: the login itself, style sheets, `/healthz`."""
    SEE = "see"
    LABEL = "label"
    """Add feedback to runs."""
    DECIDE = "decide"
    """Decide requests for approval. Groups and quorums of a request still apply."""
    MANAGE = "manage"
    """Manage accounts."""


class Role(StrEnum):
    """The role of an account."""

    VIEWER = "viewer"
    APPROVER = "approver"
    ADMIN = "admin"
    AGENT = "agent"
    """A program: it sees runs and requests and adds feedback through the API, and never decides. Labels of people replace its labels."""


RIGHTS = {
    Role.VIEWER: frozenset({Right.ANYBODY, Right.SEE}),
    Role.APPROVER: frozenset({Right.ANYBODY, Right.SEE, Right.LABEL, Right.DECIDE}),
    Role.ADMIN: frozenset({Right.ANYBODY, Right.SEE, Right.LABEL, Right.DECIDE, Right.MANAGE}),
    Role.AGENT: frozenset({Right.ANYBODY, Right.SEE, Right.LABEL}),
}
"""The rights of each role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person, or a program with the role `agent`, whose identity a login, a token or the host application has established.

    Return one from the `auth=` of `app` to use the identities of your own application.

    Raises:
        ValueError: there is no such role.
    """

    name: str
    role: Role
    authenticated: bool = True
    """Whether a login established the name; False for the operating system's user while there are no accounts."""
    account: str = ""
    """Mark of the account of `grace-kp serve`, with which consent ends. Leave it empty for identities of your own application."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))

    def may(self, right: Right) -> bool:
        """Return whether the role has a right."""
        return right in RIGHTS[self.role]

    @property
    def is_program(self) -> bool:
        """Whether this is a program, whose labels count behind those of people."""
        return self.role is Role.AGENT

    @property
    def actor(self) -> Actor:
        """The author of this person's decisions, for the audit trail."""
        return Actor.here(self.name, channel="web", authenticated=self.authenticated, account=self.account)


class PageRoute(Route):
    """A route with the right that a person needs for it. The gatekeeper checks the right before the handler is called."""

    right: Right


def route(
    path: str,
    handler: Callable[[Request], Response] | Callable[[Request], Awaitable[Response]],
    right: Right,
    *,
    methods: Sequence[str] = ("GET",),
) -> PageRoute:
    """Return a route whose handler is called only for people with a right."""
    stated = PageRoute(path, handler, methods=list(methods), name=f"{methods[0]} {path}")
    stated.right = right
    return stated
