"""Who has sent a request, and how that was established: what every way of logging in returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from starlette.requests import Request

    from grace_kp.web._person import Person
    from grace_kp.web.security._attempts import Attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A person whose identity is established for one request."""

    person: Person
    csrf: str = ""
    """The token that forms of this person carry; empty for a program with a token in a header, which no foreign page can send."""
    is_session: bool = False
    """Whether a cookie of ours has established it, so that there is something to log out of."""


class Entrance(Protocol):
    """A way of establishing who sends a request."""

    has_login: bool
    """Whether there is a login page."""
    attempts: Attempts
    """Counts what is refused."""

    async def visitor(self, request: Request, *, touch: bool = True) -> Visitor | None:
        """Return who has sent a request; None for nobody who is known.

        Args:
            request: the request.
            touch: whether this counts as a use of the session. Open event streams do not.
        """
        ...


def bearer_of(request: Request) -> str | None:
    """Return the token that a request to the API states in its header; None without one.

    Pages of other origins cannot send this header without a permission that is never granted here.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
