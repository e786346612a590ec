"""The application: its routes, and the gatekeeper before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse

from grace_kp.store import open_catalog
from grace_kp.web import _static, api, figures, inbox, runs, security
from grace_kp.web._person import Right
from grace_kp.web._route import route
from grace_kp.web._site import Site, root_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.runtime import Grace


def app(grace: Grace) -> Starlette:
    """Return the pages and the API of a runtime as an ASGI application."""
    application = Starlette(
        routes=[
            route("/", _home, Right.SEE),
            *_static.routes(),
            *security.routes(),
            *inbox.routes(),
            *runs.routes(),
            *figures.routes(),
            *api.routes(),
        ],
        middleware=[Middleware(security.Gatekeeper)],
    )
    application.state.site = Site(grace=grace, catalog=open_catalog(grace.store))
    return application


def _home(request: Request) -> Response:
    return RedirectResponse(f"{root_of(request)}/inbox", 303)
