"""What all pages share: the context of one application, the templates, what a handler may read of a request, and the verbs on approvals.

Templates escape everything that they show and make invisible characters visible. They use these filters and functions beside Jinja's own: `when`
(a time), `duration`, `spaced`, `badge`, `meter`, `facts`, `fold`, `linked`, `count`. All but `spaced`, `duration` and `count` return HTML.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from anyio import CapacityLimiter
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.responses import HTMLResponse

from grace_kp.errors import ApprovalError
from grace_kp.pages import badge, count_text, duration_text, facts, fold, linked, meter, spaced, visible
from grace_kp.web._kept import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Actor, Approval, ApprovalFigures, Inbox, RequestStore, Tables
    from grace_kp.runtime import Grace
    from grace_kp.store import Catalog
    from grace_kp.web._access import Person


def templates() -> Environment:
    """Return the Jinja environment of the pages."""
    look = Environment(
        loader=PackageLoader("grace_kp.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_show_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    markup = {name: _as_markup(part) for name, part in _PARTS.items()}
    look.globals.update(markup)
    look.filters.update(markup)
    look.filters.update(when=when, duration=duration_text, spaced=spaced, count=count_text)
    return look


def when(seconds: float | None, otherwise: str = "never") -> Markup:
    """Return a time as HTML: the script of the pages shows it in the reader's time zone, and without script it is in UTC.

    Args:
        seconds: seconds since the epoch; None or infinite for never.
    """
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


def _as_markup(part: Callable[..., str]) -> Callable[..., Markup]:
    def markup(*args: Any, **kwargs: Any) -> Markup:
        return Markup(part(*args, **kwargs))  # noqa: S704 — the parts of pages escape every text

    return markup


_PARTS: dict[str, Callable[..., str]] = {
    "badge": badge,
    "meter": meter,
    "facts": facts,
    "fold": fold,
    "linked": linked,
}


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
    decisions: Kept[tuple[float, float], ApprovalFigures] = field(default_factory=Kept)
    """How approvals were decided, by period: for the page of figures and the API."""
    look: Any = field(default_factory=templates)
    """The Jinja environment."""
    own_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))
    """Threads for what must be answered while requests that wait occupy all others."""

    @property
    def desk(self) -> RequestStore:
        """The verbs on approvals."""
        return self.inbox.requests

    @property
    def tables(self) -> Tables:
        """The tables of approvals, for reading."""
        return self.inbox.tables

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a template as a page.

        Args:
            values: what the template shows. Texts are escaped, and invisible characters in them are made visible; HTML from `grace_kp.pages`
                must be passed as `markupsafe.Markup`.
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
    """Return the site that a request is for."""
    return cast("Site", request.app.state.site)


def person_of(request: Request) -> Person:
    """Return who sent a request; the gatekeeper has established it."""
    return cast("Person", request.state.person)


def form_of(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form that was posted; the gatekeeper has checked its origin and token, and bounded its size."""
    return cast("dict[str, list[str]]", request.state.form)


def body_of(request: Request) -> Any:
    """Return the JSON body of a request to the API; the gatekeeper has read, bounded and parsed it. None without a body."""
    return request.state.body


def whole_of(text: str) -> int | None:
    """Return the whole number from 0 that a text states in digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def path_of(scope: Mapping[str, Any]) -> str:
    """Return the path of a request below the one that this application is mounted under."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else "" if root and path == root else path


def root_of(request: Request) -> str:
    """Return the path that this application is mounted under, without a slash at its end: links begin with it."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def recording_lines(url: str | None) -> str:
    """Return lines that record a run."""
    return f"""{_runtime(url)}

@grace.agent
def answer(question): return "It takes 5 days."

answer("When do I get my money back?")"""


def asking_lines(url: str | None) -> str:
    """Return lines that ask for an approval, and wait for the decision."""
    return f"""{_runtime(url, "reviewer=gk.InboxReviewer()")}

@grace.gate(floor="confirm")
def refund(invoice: str, euros: int): return f"paid back {{euros}} euros for {{invoice}}"

print(refund("A-17", 40))"""


def _runtime(url: str | None, *options: str) -> str:
    store = () if url is None else ('store="sqlite:///app.db"',)
    comment = "" if url is None else "  # the store of this server"
    return f"import grace_kp as gk\n\ngrace = gk.Grace({', '.join([*store, *options])}){comment}"


VERBS = ("approve", "edit", "reject", "respond", "skip", "retry", "withdraw")
"""The verbs that `perform` knows."""


def perform(
    desk: RequestStore,
    verb: str,
    approval_id: str,
    *,
    actor: Actor,
    words: str = "",
    digest: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Approval:
    """Carry out a verb and return the approval as it is then."""
    if verb == "edit":
        return desk.edit(approval_id, changes or {}, by=actor, note=words, digest=digest, is_encoded=True)
    outcome = desk.decide_all(
        [approval_id], verb, by=actor, note=words, digests=None if digest is None else {approval_id: digest}
    )[approval_id]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def perform_several(
    request: Request, verb: str, digests: Mapping[str, str], *, words: str = ""
) -> dict[str, Approval | ApprovalError]:
    """Carry out a verb on several approvals for the person who sent a request, and return what came of each, by id.

    Refused ones are recorded in the audit trail, as the gatekeeper records a single one.
    """
    person = person_of(request)
    outcomes = site_of(request).desk.decide_all(list(digests), verb, by=person.actor, note=words, digests=digests)
    for approval_id, outcome in outcomes.items():
        if isinstance(outcome, ApprovalError):
            reason = type(outcome).__name__
            request.app.state.refusals.record(person, path=request.url.path, reason=reason, approval=approval_id)
    return outcomes
