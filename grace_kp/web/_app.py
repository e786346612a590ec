"""The application: its routes and what stands before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from grace_kp.web._gatekeeper import Gatekeeper
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
            route("/healthz", _health, Right.ANYBODY),
            Mount("/static", StaticFiles(packages=[("grace_kp.web", "static")])),
        ],
        middleware=[Middleware(Gatekeeper)],
    )
    application.state.site = Site(grace=grace)
    return application


def _home(request: Request) -> Response:
    return RedirectResponse(f"{root_of(request)}/inbox", 303)


def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})
