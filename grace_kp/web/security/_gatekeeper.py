"""The gatekeeper checks every request before its handler, and refuses a request that it does not recognise.

It checks in this order: the Host header, the page that sent the request, the route and its right, the sender, whether the sender has the right,
and for writes the origin, the kind and size of the body, and the token of the form. Handlers find the person, the form and the body in the
request (`_site`). Every response leaves with `HEADERS`.

A browser that was led to this server by a foreign name (DNS rebinding) sends that name as Host. Headers of proxies are read only
from proxies that were configured, and only for the address of the client; the public URL states the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs, quote, urlsplit

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Match

from grace_kp.errors import SettingsError, brief
from grace_kp.pages import printable
from grace_kp.web._errors import answer, answer_unexpected
from grace_kp.web._site import PageRoute, Right, path_of, read_json, root_of
from grace_kp.web.security._refusals import SENT_TO_LOGIN, plain_address
from grace_kp.web.security._visitor import is_same

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from grace_kp.web.security._refusals import Refusals
    from grace_kp.web.security._visitor import IdentityProvider, Visitor


DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::([0-9]{1,5}))?")
_ASCII = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The names under which one application is reached: accepted Host headers, the origin of writes, and the address of a client."""

    public_url: str = ""
    """`https://host[:port]` under which browsers reach the application; empty for loopback."""
    port: int | None = None
    """The port of loopback addresses; None for any, where the application is mounted into another one."""
    trusted_proxies: frozenset[str] = frozenset()
    """Addresses of proxies whose `X-Forwarded-For` names the client."""

    def __post_init__(self) -> None:
        if self.public_url and not _is_origin(self.public_url):
            raise SettingsError(
                f"the public URL must be like https://grace.example.com, without a path; got {brief(self.public_url)}"
            )
        for proxy in self.trusted_proxies:
            if not plain_address(proxy):
                raise SettingsError(f"a trusted proxy must be an IP address, not {brief(proxy)}")

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the application over TLS."""
        return self.public_url.lower().startswith("https:")

    @property
    def is_loopback(self) -> bool:
        """Whether only browsers of this machine reach the application."""
        return not self.public_url or urlsplit(self.public_url).hostname in {"127.0.0.1", "localhost", "::1"}

    def accepts(self, host: str) -> bool:
        """Return whether a Host header names this application."""
        if self.public_url:
            return _origin(urlsplit(self.public_url).scheme, host) == self.origin(host, "")
        found = _LOOPBACK.fullmatch(host.lower())
        return found is not None and self.port in {None, int(found[1] or DEFAULT_PORTS["http"])}

    def origin(self, host: str, scheme: str) -> str:
        """Return the origin that pages of this application have when they are reached under an accepted Host header."""
        parts = urlsplit(self.public_url)
        return _origin(parts.scheme, parts.netloc) if self.public_url else _origin(scheme, host)

    def client(self, peer: str, headers: Headers) -> str:
        """Return the address of the client: the last one that a trusted proxy states, else that of the connection."""
        trusted = set(map(plain_address, self.trusted_proxies))
        if plain_address(peer) not in trusted:
            return peer
        # A proxy may add a separate header line below that of the client.
        for stated in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
            address = plain_address(stated.strip())
            if address not in trusted:
                return address or peer
        return peer


def _is_origin(url: str) -> bool:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 — raises for a port that is not a number
    except ValueError:
        return False
    return bool(
        parts.scheme in DEFAULT_PORTS
        and parts.hostname
        and not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
        and _ASCII.fullmatch(url)
    )


def _origin(scheme: str, host: str) -> str:
    return f"{scheme}://{host.lower().removesuffix(f':{DEFAULT_PORTS.get(scheme)}')}"


BODY_BYTES = 1 << 20
"""Largest body of a request by a known person."""
LOGIN_BYTES = 1 << 14
"""Largest body of a request that needs no login."""
READ_SECONDS = 15.0
"""A body must have arrived after this time."""
FIELDS = 5_000
"""Fields of a form at most."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


async def read_body(receive: Receive, limit: int, seconds: float = READ_SECONDS) -> bytes:
    """Return a body of at most `limit` bytes, whatever length the request states."""
    chunks, size = [], 0
    with anyio.move_on_after(seconds):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HTTPException(400, "The request ended before its body.")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise HTTPException(413, f"The request is larger than {limit:,} bytes.")
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)
    raise HTTPException(408, f"The request did not arrive within {seconds:g} seconds.")


def parse_form(body: bytes) -> dict[str, list[str]]:
    try:
        return parse_qs(
            body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        text = f"The form cannot be read: it must be UTF-8 and have at most {FIELDS:,} fields."
        raise HTTPException(400, text) from None


def parse_json(body: bytes) -> Any:
    try:
        return read_json(body.decode("utf-8")) if body else None
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body is not JSON in UTF-8 in which each name occurs once per object.") from None


POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()",
}


def protect_response(message: Message, *, may_keep: bool) -> Message:
    """Return the start of a response with these headers, whatever its handler has set."""
    headers = [(name.lower(), value) for name, value in message.get("headers", ()) if name.lower() not in HEADERS]
    if any(b"\r" in part or b"\n" in part or b"\0" in part for header in headers for part in header):
        raise ValueError("a header of a response holds a line break")
    if not may_keep or all(name != b"cache-control" for name, _ in headers):
        headers = [(name, value) for name, value in headers if name != b"cache-control"]
        headers.append((b"cache-control", b"no-store"))
    return {**message, "headers": [*headers, *HEADERS.items()]}


READS = frozenset({"GET", "HEAD"})
HEADER_BYTES = 32_768
"""Headers of one request at most."""
LONGEST_TARGET = 8_192
"""Bytes of path and query."""
REFUSED = frozenset({400, 403, 404, 408, 409, 413, 415, 422})
"""Statuses of an attempted decision that are recorded."""


class Gatekeeper:
    """ASGI middleware before all routes."""

    def __init__(
        self, app: ASGIApp, *, identity_provider: IdentityProvider, addresses: Addresses, refusals: Refusals
    ) -> None:
        self.app, self.identity_provider, self.addresses = app, identity_provider, addresses
        self.attempts, self.refusals = identity_provider.attempts, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            is_api = f"{path_of(scope)}/".startswith("/api/")
            scope = {**scope, "state": dict(scope.get("state") or {}), "grace_kp.is_api": is_api}
            await _Visit(self, Request(scope, receive), send).run()


class _Visit:
    def __init__(self, keeper: Gatekeeper, request: Request, send: Send) -> None:
        self._keeper, self._request, self._send = keeper, request, send
        self._right: Right | None = None
        self._visitor: Visitor | None = None
        self._reason = ""
        self._status = 0
        headers = request.headers
        self._has_unread_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def run(self) -> None:
        request = self._request
        try:
            await self._admit()
            await self._keeper.app(request.scope, request.receive, self._send_protected)
        except Exception as error:
            if self._status:
                answer_unexpected(request, error)
                raise  # the response has begun; the server ends the connection
            await answer(request, error)(request.scope, request.receive, self._send_protected)
        is_decision = self._right is Right.DECIDE and request.method not in READS
        if self._status in REFUSED and is_decision and self._visitor is not None:
            await run_in_threadpool(
                self._keeper.refusals.record,
                self._visitor.person,
                path=request.url.path,
                reason=self._reason or str(request.scope.get("grace_kp.error") or self._status),
                approval=request.path_params.get("id"),
            )

    async def _send_protected(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = protect_response(message, may_keep=self._right is Right.ANYBODY)
            self._status = message["status"]
            if self._has_unread_body:  # otherwise the client could keep sending it
                MutableHeaders(raw=message["headers"])["connection"] = "close"
        await self._send(message)

    async def _admit(self) -> None:
        """Check the request, and store the sender, form and body in its state."""
        request, state = self._request, self._request.state
        state.person, state.csrf, state.form, state.body, state.session = None, "", {}, None, False
        self._check_target()
        self._check_source()
        self._right = self._find_right()
        if self._right is not Right.ANYBODY:  # a request that needs no login must not wait for identification
            # Background requests of a page do not count as a use of the session.
            is_background = "x-background" in request.headers or request.headers.get("accept") == "text/event-stream"
            self._visitor = await self._keeper.identity_provider.visitor(request, touch=not is_background)
            if self._visitor is None:
                self._refuse_unknown()
            state.person, state.csrf = self._visitor.person, self._visitor.csrf
            state.session = self._visitor.is_session
            self._check_right(self._visitor)
        if request.method not in READS:
            self._check_origin()
            await self._read_body()

    def _refuse(self, status: int, text: str, *, kind: str = "", reason: str = "") -> NoReturn:
        """Refuse the request; count it as a kind of attempt, and give refused decisions a reason."""
        if kind:
            self._keeper.attempts.count(kind)
        self._reason = reason
        raise HTTPException(status, text)

    def _check_target(self) -> None:
        scope, headers = self._request.scope, self._request.headers
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._keeper.addresses.accepts(hosts[0]):
            stated = printable(", ".join(hosts)[:200]) or "a request without a host"
            own = _PRINTED if self._keeper.identity_provider.has_login else _MOUNTED
            self._refuse(421, f"This server does not answer to {stated}. {own}", kind="foreign_host")
        if sum(len(name) + len(value) for name, value in headers.raw) > HEADER_BYTES:
            self._refuse(431, f"The headers are larger than {HEADER_BYTES:,} bytes.")
        if "transfer-encoding" in headers and "content-length" in headers:
            self._refuse(400, "The request states two lengths.")
        if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > LONGEST_TARGET:
            self._refuse(414, f"The address is longer than {LONGEST_TARGET:,} bytes.")

    def _check_source(self) -> None:
        """Refuse requests by pages of other origins, such as images, frames and scripts, except for links."""
        headers = self._request.headers
        is_own = headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if self._request.method in READS and not is_own and not is_link:
            self._refuse(403, "Pages of other addresses may not load this.", kind="foreign_page")

    def _find_right(self) -> Right | None:
        """Return the right of the route of the request; None without a route or a right."""
        partial = None
        for route in self._request.app.routes:
            match, child = route.matches(self._request.scope)
            if match is Match.FULL:
                self._request.scope.update(child)
                return route.right if isinstance(route, PageRoute) else None
            if match is Match.PARTIAL:
                partial = partial or route
        return partial.right if isinstance(partial, PageRoute) else None

    def _refuse_unknown(self) -> NoReturn:
        """Refuse a request of an unknown person: lead browsers to the login, and slow down guesses of tokens."""
        request, keeper = self._request, self._keeper
        is_api, has_login = request.scope["grace_kp.is_api"], keeper.identity_provider.has_login
        if is_api and has_login and "authorization" in request.headers:
            peer = request.client.host if request.client else ""
            wait = keeper.attempts.record_failure("wrong_token", keeper.addresses.client(peer, request.headers))
            if wait:
                text = f"Too many attempts with wrong tokens. Wait {wait:.0f} seconds."
                raise HTTPException(429, text, {"Retry-After": f"{wait:.0f}"})
        if has_login and not is_api and request.method in READS:
            keeper.attempts.count(SENT_TO_LOGIN)
            wanted = path_of(request.scope) + (f"?{request.url.query}" if request.url.query else "")
            login = f"{root_of(request)}/login?next={quote(wanted[:1_500], safe='/')}"
            raise HTTPException(303, "Log in first.", {"Location": login})
        keeper.attempts.count("no_login")
        if is_api:
            text = "Send the token of an account: Authorization: Bearer gkp_…"
            raise HTTPException(401, text, {"WWW-Authenticate": 'Bearer realm="grace_kp"'})
        raise HTTPException(
            401, "Log in first." if has_login else "The application that serves these pages does not know you."
        )

    def _check_right(self, visitor: Visitor) -> None:
        if self._right is None:
            text = "No page has this address."
            if self._request.scope["grace_kp.is_api"]:
                text = f"No operation has this address. {root_of(self._request)}/api/openapi.json lists all of them."
            self._refuse(404, text)
        if not visitor.person.may(self._right):
            change = _CHANGE if self._keeper.identity_provider.has_login else ""
            text = f"The role {visitor.person.role} does not include this.{change}"
            self._refuse(403, text, kind="missing_right", reason="right")

    def _check_origin(self) -> None:
        request, headers = self._request, self._request.headers
        if self._visitor is not None and not self._visitor.csrf:
            return  # a program with a token in a header
        expected = self._keeper.addresses.origin(headers["host"], request.url.scheme)
        is_own = headers.getlist("origin") == [expected]
        if not is_own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            text = "A page of another address sent this request. Nothing was done."
            self._refuse(403, text, kind="foreign_origin", reason="origin")

    async def _read_body(self) -> None:
        request, state = self._request, self._request.state
        is_api = request.scope["grace_kp.is_api"]
        limit = LOGIN_BYTES if self._visitor is None else BODY_BYTES
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > limit:
            self._refuse(413, f"The request is larger than {limit:,} bytes.", reason="body")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        wanted = JSON if is_api else FORM
        body = await read_body(request.receive, limit)
        self._has_unread_body = False
        if kind != wanted and (body or kind):
            self._refuse(415, f"The body must be {wanted}.", reason="body")
        if not is_api:
            state.form = parse_form(body)
        # Programs and the login have no CSRF token; the login is protected by its origin.
        if self._visitor is not None and self._visitor.csrf:
            fields = state.form.get("csrf", [])
            stated = request.headers.get("x-csrf-token") or (fields[0] if len(fields) == 1 else "")
            if not is_same(stated, self._visitor.csrf):
                text = "This page is out of date, and nothing was done. Go back, reload it, and try again."
                self._refuse(403, text, kind="wrong_csrf", reason="csrf")
        if is_api:
            state.body = parse_json(body)


_PRINTED = "Open it at the address that `grace-kp serve` printed, or restart it with --public-url https://HOST."
_MOUNTED = "Open it at the address of the application, or pass another one to app() as public_url=."
_CHANGE = " Whoever runs this server can change it with `grace-kp serve users role`."


async def still_may(request: Request, right: Right) -> bool:
    """Return whether the sender of a request is still logged in, with an account whose role has a right.

    Event streams call it before each event. It does not count as a use of the session.
    """
    identity_provider: IdentityProvider = request.app.state.identity_provider
    visitor = await identity_provider.visitor(request, touch=False)
    return visitor is not None and visitor.person.may(right) and visitor.person.name == request.state.person.name
