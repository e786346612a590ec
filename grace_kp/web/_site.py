"""The context of every page: the runtime, the desk of its approvals, the catalog of its runs, and the templates."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from anyio import CapacityLimiter
from starlette.responses import HTMLResponse

from grace_kp.web._kept import Kept
from grace_kp.web._templates import templates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import ApprovalFigures, RequestStore, Tables
    from grace_kp.runtime import Grace
    from grace_kp.store import Catalog
    from grace_kp.web._person import Person


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One running application. Plain handlers run in a thread, so they may block."""

    grace: Grace
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
        return self.grace.approvals.inbox.requests

    @property
    def tables(self) -> Tables:
        """The tables of approvals, for reading."""
        return self.grace.approvals.inbox.tables

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a template as a page.

        Args:
            request: the request that is answered.
            template: file name below `templates/`, such as `inbox/list.html`.
            status: HTTP status.
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


def path_of(scope: Mapping[str, Any]) -> str:
    """Return the path of a request below the one that this application is mounted under."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else "" if root and path == root else path


def root_of(request: Request) -> str:
    """Return the path that this application is mounted under, without a slash at its end: links begin with it."""
    return str(request.scope.get("root_path", "")).rstrip("/")
