"""The parts that all pages share: people and their rights, routes, the context of an application, templates, and access to a checked request.

Templates escape every value and make invisible characters visible. They use these filters and functions beside Jinja's own: `when`
(a time), `duration`, `spaced`, `badge`, `meter`, `facts`, `fold`, `linked`, `count`. All but `spaced`, `duration` and `count` return HTML.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from anyio import CapacityLimiter
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.responses import HTMLResponse
from starlette.routing import Route

from grace_kp.approvals import Actor
from grace_kp.background import DeadlineExceeded, call_within
from grace_kp.errors import ApprovalError, GraceError
from grace_kp.pages import badge, count_text, duration_text, facts, fold, linked, meter, spaced, visible
from grace_kp.trace import object_without_duplicates, redacted_error, refuse_constant
from grace_kp.web._errors import explain_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval, Inbox, RequestStore, Tables
    from grace_kp.runtime import Grace
    from grace_kp.store import Catalog


class Right(StrEnum):
    """A right that a route requires."""

    ANYBODY = "anybody"
    """Without a login: the login itself, style sheets, `/healthz`."""
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
        ValueError: the role is unknown.
    """

    name: str
    role: Role
    authenticated: bool = True
    """Whether a login established the name; False for the operating system's user of a store without accounts."""
    account: str = ""
    """Identifies the account of `grace-kp serve`, whose removal ends consent. Leave it empty for identities of your application."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))

    def may(self, right: Right) -> bool:
        """Return whether the role has a right."""
        return right in RIGHTS[self.role]

    @property
    def is_program(self) -> bool:
        """Whether this is a program. Labels of people replace its labels."""
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
    stated = PageRoute(path, handler, methods=list(methods), name=f"{methods[0]} {path}")
    stated.right = right
    return stated


def templates() -> Environment:
    look = Environment(
        loader=PackageLoader("grace_kp.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_show_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    markup = {part.__name__: _as_markup(part) for part in (badge, meter, facts, fold, linked)}
    look.globals.update(markup)
    look.filters.update(markup)
    look.filters.update(when=when, duration=duration_text, spaced=spaced, count=count_text)
    return look


def when(seconds: float | None, otherwise: str = "never") -> Markup:
    """Return seconds since the epoch, None or infinite for never, as HTML: a script shows the reader's time zone, and without script it is in UTC."""
    if seconds is None or not math.isfinite(seconds):
        return Markup.escape(otherwise)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return Markup.escape(otherwise)
    return Markup('<time datetime="{0}">{1}</time>').format(
        moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def _show_value(value: object) -> object:
    if isinstance(value, Markup):
        return value
    return "" if value is None else visible(str(value), lines=True)


def trust_html(part: str) -> Markup:
    """Mark HTML as safe: the parts of `grace_kp.pages` and `grace_kp.trace.html` escape every string."""
    return Markup(part)  # noqa: S704


def _as_markup(part: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *args, **kwargs: trust_html(part(*args, **kwargs))


_log = logging.getLogger("grace_kp.web")
FRESH_SECONDS = 60.0
LARGEST_SHARE = 0.05
"""The largest share of the time that the computation of one value takes: a slow value is kept for longer."""
PATIENCE = 0.5
"""Seconds that a reader waits for a first value. After that, the page says that it is being computed, and the next view shows it."""
MAX_KEPT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedValue:
    value: Any = None
    problem: str = ""
    at: float = 0.0
    """When it was asked for, in seconds since the epoch."""
    fresh_seconds: float = FRESH_SECONDS


class ValueCache:
    """Values that take too long to compute for each view of a page: at most once a minute, in a background thread, one at a time."""

    def __init__(self) -> None:
        self._computing = threading.Lock()
        self._values: OrderedDict[Hashable, CachedValue] = OrderedDict()

    def get(self, key: Hashable, now: float, compute: Callable[[], Any]) -> CachedValue | None:
        """Return a value that is recent `now`; the previous one, or None, if the computation takes longer than a reader waits."""
        before = self._values.get(key)
        if before is not None and 0 <= now - before.at < before.fresh_seconds:
            return before
        patience = PATIENCE if before is None else 0
        if self._computing.acquire(timeout=patience):
            if self._values.get(key) is not before:  # computed while this reader waited
                self._computing.release()
            else:
                with contextlib.suppress(DeadlineExceeded):
                    call_within(patience, lambda: self._compute(key, now, compute), name="figures", or_inline=True)
        return self._values.get(key)

    def _compute(self, key: Hashable, now: float, compute: Callable[[], Any]) -> None:
        """Compute and keep a value, and release the lock that the reader took: it may have stopped waiting."""
        started = time.monotonic()
        found = CachedValue(problem="the computation failed. The log of the server has the reason", at=now)
        try:
            found = CachedValue(value=compute(), at=now)
        except (GraceError, ValueError) as error:
            found = CachedValue(problem=explain_error(error, "computing figures"), at=now)
        except Exception as error:  # noqa: BLE001 — the other figures of the page are shown
            _log.error("figures cannot be computed: %s", redacted_error(error))
        finally:
            fresh = max(FRESH_SECONDS, (time.monotonic() - started) / LARGEST_SHARE)
            self._values[key] = replace(found, fresh_seconds=fresh)
            self._values.move_to_end(key)
            if len(self._values) > MAX_KEPT:
                self._values.popitem(last=False)
            self._computing.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One running application. Plain handlers run in a thread, so they may block."""

    grace: Grace
    inbox: Inbox
    """The inbox of the runtime, which stays the same, as its store does."""
    catalog: Catalog
    """The index of the runs: lists, search and figures."""
    clock: Callable[[], float] = time.time
    """The wall clock, in seconds since the epoch."""
    figures: ValueCache = field(default_factory=ValueCache)
    """Slow values of the page of figures and the API."""
    look: Any = field(default_factory=templates)
    """The Jinja environment."""
    own_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))
    """Threads for requests that must be answered even if waiting requests occupy all other threads."""

    @property
    def requests(self) -> RequestStore:
        return self.inbox.requests

    @property
    def tables(self) -> Tables:
        return self.inbox.tables

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a template as a page.

        Strings are escaped, and their invisible characters are made visible; pass HTML from `grace_kp.pages` as `markupsafe.Markup`.
        """
        text = self.look.get_template(template).render(
            request=request,
            person=getattr(request.state, "person", None),
            csrf=getattr(request.state, "csrf", ""),
            can_log_out=getattr(request.state, "session", False),
            root=root_of(request),
            now=self.clock(),
            **values,
        )
        return HTMLResponse(text, status)


def site_of(request: Request) -> Site:
    return cast("Site", request.app.state.site)


def person_of(request: Request) -> Person:
    """Return the sender of a request, whom the gatekeeper has identified."""
    return cast("Person", request.state.person)


def form_of(request: Request) -> dict[str, list[str]]:
    """Return the fields of a posted form, whose origin, token and size the gatekeeper has checked."""
    return cast("dict[str, list[str]]", request.state.form)


def body_of(request: Request) -> Any:
    """Return the JSON body of a request to the API, which the gatekeeper has parsed; None without a body."""
    return request.state.body


def whole_of(text: str) -> int | None:
    """Parse a non-negative integer in digits; return None for any other string."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def read_json(text: str) -> Any:
    """Parse JSON.

    Raises:
        ValueError, RecursionError: the string is not JSON, is nested too deeply, or has an object with a repeated name.
    """
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=object_without_duplicates)


def path_of(scope: Mapping[str, Any]) -> str:
    """Return the path of a request below the mount path of this application."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else "" if root and path == root else path


def root_of(request: Request) -> str:
    """Return the mount path of this application, without a trailing slash. Links begin with it."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def recording_lines(url: str | None) -> str:
    return f"""{_runtime(url)}

@grace.agent
def answer(question): return "It takes 5 days."

answer("When do I get my money back?")"""


def asking_lines(url: str | None) -> str:
    return f"""{_runtime(url, "reviewer=gk.InboxReviewer()")}

@grace.gate(floor="confirm")
def refund(invoice: str, euros: int): return f"paid back {{euros}} euros for {{invoice}}"

print(refund("A-17", 40))"""


def _runtime(url: str | None, *options: str) -> str:
    store = () if url is None else ('store="sqlite:///app.db"',)
    comment = "" if url is None else "  # the store of this server"
    return f"import grace_kp as gk\n\ngrace = gk.Grace({', '.join([*store, *options])}){comment}"


def perform(
    requests: RequestStore,
    verb: str,
    approval_id: str,
    *,
    actor: Actor,
    words: str = "",
    digest: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Approval:
    if verb == "edit":
        return requests.edit(approval_id, changes or {}, by=actor, note=words, digest=digest, is_encoded=True)
    outcome = requests.decide_all(
        [approval_id], verb, by=actor, note=words, digests=None if digest is None else {approval_id: digest}
    )[approval_id]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def perform_several(
    request: Request, verb: str, digests: Mapping[str, str], *, words: str = ""
) -> dict[str, Approval | ApprovalError]:
    """Carry out a verb on several approvals for the sender of a request, and return the outcomes by id.

    The audit trail records refused ones, as the gatekeeper records a single one.
    """
    person = person_of(request)
    outcomes = site_of(request).requests.decide_all(list(digests), verb, by=person.actor, note=words, digests=digests)
    for approval_id, outcome in outcomes.items():
        if isinstance(outcome, ApprovalError):
            reason = type(outcome).__name__
            request.app.state.refusals.record(person, path=request.url.path, reason=reason, approval=approval_id)
    return outcomes
