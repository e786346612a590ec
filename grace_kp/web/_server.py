"""The server of `grace-kp serve`: its address, its logins, and uvicorn with narrow limits.

Clients that send their headers slowly, or read nothing, are left to a proxy: here they hold a connection until they disconnect.
"""

from __future__ import annotations

import errno
import re
import socket
from typing import TYPE_CHECKING

from grace_kp.errors import GraceError, MissingExtra, SettingsError, brief
from grace_kp.web._app import application
from grace_kp.web.inbox import stop_events
from grace_kp.web.security import HEADER_BYTES, Addresses, Logins

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    import uvicorn
    from starlette.applications import Starlette

    from grace_kp.runtime import Grace

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
                stop_events(served)

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
    is_local = _is_loopback(host)
    if is_local and addresses.is_loopback:
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
            raise GraceError(
                f"port {port} of {host} is taken; --port names another, and --port 0 takes a free one"
            ) from None
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
