"""The application with its routes and middleware, and the server of `grace-kp serve`: its address, its logins, and uvicorn with narrow limits.

Clients that send their headers slowly, or read nothing, are left to a proxy: here they hold a connection until they disconnect.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import socket
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse, Response

from grace_kp.errors import GraceError, MissingExtra, SettingsError, brief
from grace_kp.pages import style
from grace_kp.store import open_catalog
from grace_kp.web import api, figures, inbox, runs, security
from grace_kp.web._errors import answer
from grace_kp.web._site import PageRoute, Right, Site, root_of, route
from grace_kp.web.security import HEADER_BYTES, Addresses, Logins

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import FrameType

    import uvicorn
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from grace_kp.runtime import Grace
    from grace_kp.store import Catalog
    from grace_kp.web.security import IdentityProvider


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
    return application(grace, identity_provider, Addresses(public_url=public_url))


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
        async def follow_first(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.begin()
            await app(scope, receive, send)

        return follow_first

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
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


BACKLOG = 256
HINT = (
    "The server answers requests for 127.0.0.1 and localhost only, and has no protection against slow clients. "
    "To let others open it, put a proxy in front and add --public-url https://HOST."
)


class Server:
    """A server that is bound to its address and not started yet.

    Args:
        app: the application.
        logins: the logins of the application.
        listener: the bound socket.
        url: the address that people open, without a slash at its end.
        root: the path in it.
        hint: advice about the address for the operator, or an empty string.
    """

    def __init__(
        self, app: Starlette, logins: Logins, listener: socket.socket, *, url: str, root: str, hint: str = ""
    ) -> None:
        self.app, self.logins, self.listener, self.url, self.hint = app, logins, listener, url, hint
        self._root = root
        self._uvicorn: uvicorn.Server | None = None

    def address(self) -> str:
        """Return the address to open, with a one-time code if the store has no accounts."""
        code = self.logins.code()
        return f"{self.url}/" if code is None else f"{self.url}/login?code={code}"

    def run(self) -> None:
        """Serve until `end`, or until SIGINT or SIGTERM if this is the main thread."""
        import uvicorn

        served = self.app

        class Ending(uvicorn.Server):
            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                # Does not record the signal: uvicorn would raise it again after an orderly end.
                del sig, frame
                self.force_exit, self.should_exit = self.should_exit, True
                inbox.stop_events(served)

        config = uvicorn.Config(
            self.app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            root_path=self._root,
            limit_concurrency=1_024,
            backlog=BACKLOG,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        self._uvicorn = Ending(config)
        try:
            self._uvicorn.run(sockets=[self.listener])
        finally:
            self.listener.close()

    def end(self) -> None:
        """End `run`, from any thread. Requests in progress have one second to finish; event streams end."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True


def serving(
    grace: Grace,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    public_url: str = "",
    trusted_proxies: Sequence[str] = (),
    root: str = "",
) -> Server:
    """Return a server for the store of a runtime, bound to its address.

    Args:
        grace: the runtime.
        host: an address of this machine. Other addresses than loopback need accounts. Without a public URL, the server answers to the names
            of this machine only, whatever address it listens on: as in a container whose port is published on its host.
        port: a port; 0 for any free one.
        public_url: `https://host[:port]` under which a proxy offers the pages. It needs accounts.
        trusted_proxies: addresses of proxies whose `X-Forwarded-For` names the client.
        root: the path that the proxy offers the pages under, such as `/grace`, and removes from requests.

    Raises:
        SettingsError: an address, a URL or a path cannot be used.
        GraceError: the address needs accounts, or cannot be bound.
        MissingExtra: the extra `web` is not installed.
    """
    try:
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("grace-kp serve", "web") from None
    root = _check_root(root)
    addresses = Addresses(public_url=public_url.rstrip("/"), trusted_proxies=frozenset(trusted_proxies))
    _check_open(grace, host, addresses)
    listener = _bind(host, port)
    number = listener.getsockname()[1]
    if not public_url:
        addresses = Addresses(port=number, trusted_proxies=addresses.trusted_proxies)
    try:
        logins = Logins(grace.approvals.inbox.tables, addresses, root=root)
        app = application(grace, logins, addresses)
    except BaseException:
        listener.close()
        raise
    reached = host if _is_loopback(host) else "127.0.0.1"
    name = f"[{reached}]" if ":" in reached else reached
    url = f"{addresses.public_url or f'http://{name}:{number}'}{root}"
    return Server(app, logins, listener, url=url, root=root, hint="" if public_url or _is_loopback(host) else HINT)


def _check_open(grace: Grace, host: str, addresses: Addresses) -> None:
    if _is_loopback(host) and addresses.is_loopback:
        return
    if not addresses.is_loopback and not addresses.is_secure:
        raise GraceError(
            f"--public-url {brief(addresses.public_url)} must begin with https://, because logins would otherwise travel "
            "unencrypted; http:// is allowed for localhost and 127.0.0.1 only"
        )
    if not grace.approvals.inbox.tables.documents("account"):
        raise GraceError(
            f"Others can reach {addresses.public_url or host}, so it needs an account. "
            "Run `grace-kp serve users add NAME --role admin` with the same --store, then start again."
        )


def _is_loopback(host: str) -> bool:
    return host == "localhost" or re.fullmatch(r"127(\.[0-9]{1,3}){3}|::1", host) is not None


def _bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that people can open the address as soon as it is printed."""
    is_v6 = ":" in host
    try:
        return socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_v6 else socket.AF_INET,
            backlog=BACKLOG,
            dualstack_ipv6=is_v6 and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            others = "--port names another, and --port 0 takes a free one"
            raise GraceError(f"port {port} of {host} is taken; {others}") from None
        raise GraceError(
            f"{host}:{port} cannot be used ({error.strerror}); use --host 127.0.0.1 for this machine only, "
            "or --host 0.0.0.0 for all its addresses"
        ) from None


def _check_root(root: str) -> str:
    parts = root.strip("/").split("/")
    if parts == [""]:
        return ""
    if not all(re.fullmatch(r"[._-]*[A-Za-z0-9][A-Za-z0-9._-]*", part) for part in parts):
        raise SettingsError(
            f"the root path must be like /grace, of letters, digits, dots, - and _, without . or .. as a part; got {brief(root)}"
        )
    return f"/{'/'.join(parts)}"
