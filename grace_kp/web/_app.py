"""The application: its routes, its middleware, and its start and end."""

from __future__ import annotations

import contextlib
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse, Response

from grace_kp.errors import GraceError, SettingsError
from grace_kp.pages import style
from grace_kp.store import open_catalog
from grace_kp.web import api, figures, inbox, runs, security
from grace_kp.web._errors import answer
from grace_kp.web._site import PageRoute, Right, Site, root_of, route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from grace_kp.runtime import Grace
    from grace_kp.store import Catalog
    from grace_kp.web.security import Addresses, IdentityProvider


def app(grace: Grace, *, auth: Callable[[Request], Any] | None = None, public_url: str = "") -> Starlette:
    """Return the pages and the API of a runtime as an ASGI application, to be mounted into another one.

    Args:
        grace: the runtime, whose store is shown.
        auth: called with each request; returns the `Person` who sends it, or None for an unknown sender. Plain functions run in a thread,
            coroutine functions on the loop. An exception refuses the request. People log in to the host application; there is no login page.
        public_url: `https://host[:port]` under which browsers reach the application, without a path. Requests with another Host header
            and writes from another origin are refused. When empty, only names of this machine are accepted: `localhost`, `127.0.0.1`
            and `[::1]`, with any port.

    Raises:
        SettingsError: `auth` is missing, or the public URL cannot be used.
    """
    if not callable(auth):
        raise SettingsError(
            "app() needs auth=: a function from the request to a grace_kp.web.Person, or to None for an unknown sender; `grace-kp serve` has its own logins"
        )
    identity_provider = security.HostIdentityProvider(auth, grace.approvals.inbox.tables)
    return application(grace, identity_provider, security.Addresses(public_url=public_url))


def application(grace: Grace, identity_provider: IdentityProvider, addresses: Addresses) -> Starlette:
    site = Site(grace=grace, inbox=grace.approvals.inbox, catalog=open_catalog(grace.store))
    site.look.globals["words"] = inbox.WORDS
    following = CatalogFollower(site.catalog)
    refusals = security.Refusals(site.tables, site.clock)
    built = Starlette(
        routes=[
            route("/", lambda request: RedirectResponse(f"{root_of(request)}/inbox", 303), Right.SEE),
            *_static_routes(),
            *(security.routes() if identity_provider.has_login else ()),
            *inbox.routes(),
            *runs.routes(),
            route("/figures", figures.figures_page, Right.SEE),
            *api.routes(),
        ],
        middleware=[
            Middleware(
                security.Gatekeeper, identity_provider=identity_provider, addresses=addresses, refusals=refusals
            ),
            Middleware(following.before),  # behind the gatekeeper, who answers for a store that cannot be used
        ],
        exception_handlers={HTTPException: answer, GraceError: answer, ValueError: answer},
        lifespan=following.lifespan,
    )
    built.router.redirect_slashes = False
    built.state.site, built.state.identity_provider, built.state.addresses = site, identity_provider, addresses
    built.state.refusals = refusals
    return built


class CatalogFollower:
    """Starts the catalog: when the application starts, or at the first request of a mounted application, which receives no start event."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self._follows = catalog, False

    def begin(self) -> None:
        """Follow the store, once; after an error, the next request tries again."""
        if not self._follows:
            self._catalog.follow()
            self._follows = True

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return an application that follows the store before its first answer."""

        async def follow_first(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.begin()
            await app(scope, receive, send)

        return follow_first

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Follow the store until the application ends."""
        del app
        self.begin()
        try:
            yield
        finally:
            await run_in_threadpool(self._catalog.close)


SHEETS = ("site.css", "inbox.css", "runs.css", "figures.css")
"""The style sheets of the pages, sent as one after the style that all pages share."""
SCRIPTS = ("site.js", "runs.js")
"""The script of all pages, and the one for the search inside a run."""


def _static_routes() -> list[PageRoute]:
    """Return the routes of the style sheet and the scripts. They need no login, and read the files only once."""
    folder = files("grace_kp.web").joinpath("static")
    content = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in (*SHEETS, *SCRIPTS)}
    sheet = "\n".join([style(), *(content[name] for name in SHEETS)])
    return [_static_route("site.css", sheet), *(_static_route(name, content[name]) for name in SCRIPTS)]


def _static_route(name: str, content: str) -> PageRoute:
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    tag = f'"{hashlib.sha256(content.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    def send(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return route(f"/static/{name}", send, Right.ANYBODY)
