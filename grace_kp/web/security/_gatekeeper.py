"""The gatekeeper: every request passes it before any handler, and what it does not recognise goes no further.

In this order: the Host header, where the request comes from, the route and the right it states, who sends it, whether this person has the right,
and for writes the origin, the kind and size of the body, and the token of the form. Handlers find the person, the form and the body in the
request (`_site`). Every response leaves with `HEADERS`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs, quote

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Match

from grace_kp.pages import printable
from grace_kp.trace import object_without_duplicates
from grace_kp.web._access import PageRoute, Right
from grace_kp.web._errors import answer, answer_unexpected
from grace_kp.web._site import path_of, root_of
from grace_kp.web.security._refusals import SENT_TO_LOGIN
from grace_kp.web.security._visitor import is_same

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from grace_kp.web.security._addresses import Addresses
    from grace_kp.web.security._refusals import Attempts, Refusals
    from grace_kp.web.security._visitor import IdentityProvider, Visitor


BODY_BYTES = 1 << 20
"""Largest body of a request by somebody who is known."""
LOGIN_BYTES = 1 << 14
"""Largest body of a request that needs no login."""
READ_SECONDS = 15.0
"""A body must have arrived after this time."""
FIELDS = 5_000
"""Fields of a form at most."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


async def read_body(receive: Receive, limit: int, seconds: float = READ_SECONDS) -> bytes:
    """Return a body.

    Args:
        limit: size at most, in bytes, whatever length the request states.
        seconds: time at most.
    """
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
    """Return the fields of a form."""
    try:
        return parse_qs(
            body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        raise HTTPException(
            400, f"The form cannot be read: it must be UTF-8 and have at most {FIELDS:,} fields."
        ) from None


def parse_json(body: bytes) -> Any:
    """Return JSON; None without a body."""
    if not body:
        return None
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=object_without_duplicates)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body is not JSON in UTF-8, in which each name stands once.") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


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
    """ASGI middleware before all routes.

    Args:
        app: the application.
        identity_provider: establishes who sends a request.
        addresses: the names under which the application is reached.
        attempts: counts what is refused.
        refusals: records refused decisions.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        identity_provider: IdentityProvider,
        addresses: Addresses,
        attempts: Attempts,
        refusals: Refusals,
    ) -> None:
        self._app, self._identity_provider, self._addresses = app, identity_provider, addresses
        self._attempts, self._refusals = attempts, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            path = path_of(scope)
            scope = {
                **scope,
                "state": dict(scope.get("state") or {}),
                "grace_kp.is_api": path == "/api" or path.startswith("/api/"),
            }
            await _Visit(self, Request(scope, receive), send).run()


class _Visit:
    """One request on its way."""

    def __init__(self, keeper: Gatekeeper, request: Request, send: Send) -> None:
        self._keeper, self._request, self._send = keeper, request, send
        self._route: PageRoute | None = None
        self._visitor: Visitor | None = None
        self._reason = ""
        self._status = 0
        headers = request.headers
        self._has_unread_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def run(self) -> None:
        """Answer the request, or pass it on."""
        request = self._request
        try:
            await self._admit()
            await self._keeper._app(request.scope, request.receive, self._send_protected)
        except Exception as error:  # noqa: BLE001 — nothing that goes wrong may end in a traceback or in a response without its headers
            await self._answer(error)
        if self._status in REFUSED and self._is_decision() and self._visitor is not None:
            reason = self._reason or str(request.scope.get("grace_kp.error") or self._status)
            await run_in_threadpool(
                self._keeper._refusals.record,
                self._visitor.person,
                path=request.url.path,
                reason=reason,
                approval=request.path_params.get("id"),
            )

    @property
    def _right(self) -> Right | None:
        return None if self._route is None else getattr(self._route, "right", None)

    def _is_decision(self) -> bool:
        return self._right is Right.DECIDE and self._request.method not in READS

    async def _answer(self, error: Exception) -> None:
        if self._status:
            answer_unexpected(self._request, error)
            raise error  # the response has begun; the server ends the connection
        response = (
            self._to_login() if isinstance(error, _Unknown) and error.may_log_in else answer(self._request, error)
        )
        await response(self._request.scope, self._request.receive, self._send_protected)

    async def _send_protected(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = protect_response(message, may_keep=self._right is Right.ANYBODY)
            self._status = message["status"]
            if self._has_unread_body:  # otherwise the client could send the rest of it for ever
                MutableHeaders(raw=message["headers"])["connection"] = "close"
        await self._send(message)

    async def _admit(self) -> None:
        """Check the request, and put what handlers need into its state."""
        request, state = self._request, self._request.state
        state.person, state.csrf, state.form, state.body, state.session = None, "", {}, None, False
        self._check_target()
        self._check_source()
        self._route = self._match_route()
        if self._right is not Right.ANYBODY:  # what needs no login must not wait for finding out who asks
            self._visitor = await self._keeper._identity_provider.visitor(request, touch=not _is_background(request))
        if self._visitor is not None:
            state.person, state.csrf = self._visitor.person, self._visitor.csrf
            state.session = self._visitor.is_session
        self._check_right()
        if request.method not in READS:
            self._check_origin()
            await self._read_body()

    def _check_target(self) -> None:
        hosts = self._request.headers.getlist("host")
        if len(hosts) != 1 or not self._keeper._addresses.accepts(hosts[0]):
            self._keeper._attempts.count("foreign_host")
            own = _PRINTED if self._keeper._identity_provider.has_login else _MOUNTED
            raise HTTPException(
                421, _HOST.format(printable(", ".join(hosts)[:200]) or "a request without a host") + own
            )
        scope, headers = self._request.scope, self._request.headers
        if sum(len(name) + len(value) for name, value in headers.raw) > HEADER_BYTES:
            raise HTTPException(431, f"The headers are larger than {HEADER_BYTES:,} bytes.")
        if "transfer-encoding" in headers and "content-length" in headers:
            raise HTTPException(400, "The request states two lengths.")
        if len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"]) > LONGEST_TARGET:
            raise HTTPException(414, f"The address is longer than {LONGEST_TARGET:,} bytes.")

    def _check_source(self) -> None:
        """Refuse what pages of other origins load, such as images, frames and scripts; only links lead here from outside."""
        headers = self._request.headers
        if headers.get("sec-fetch-site", "none") in {"same-origin", "none"}:
            return
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if self._request.method in READS and not is_link:
            self._keeper._attempts.count("foreign_page")
            raise HTTPException(403, "Pages of other addresses may not load this.")

    def _match_route(self) -> PageRoute | None:
        """Return the route that will answer; None where there is none, or one that states no right."""
        partial = None
        for route in self._request.app.routes:
            match, child = route.matches(self._request.scope)
            if match is Match.NONE:
                continue
            if match is Match.FULL:
                self._request.scope.update(child)
                return route if isinstance(route, PageRoute) else None
            partial = partial or route
        return partial if isinstance(partial, PageRoute) else None

    def _check_right(self) -> None:
        right = self._right
        if right is Right.ANYBODY:
            return
        if self._visitor is None:
            self._check_token()
            unknown = _Unknown(self._request, has_login=self._keeper._identity_provider.has_login)
            self._keeper._attempts.count(SENT_TO_LOGIN if unknown.may_log_in else "no_login")
            raise unknown
        if right is None:
            text = "There is no page at this address."
            if self._request.scope["grace_kp.is_api"]:
                text = f"There is no operation at this address. {root_of(self._request)}/api/openapi.json lists all of them."
            raise HTTPException(404, text)
        if not self._visitor.person.may(right):
            self._keeper._attempts.count("missing_right")
            self._reason = "right"
            raise HTTPException(
                403,
                _ROLE.format(self._visitor.person.role)
                + (_CHANGE if self._keeper._identity_provider.has_login else ""),
            )

    def _check_token(self) -> None:
        """Slow down who tries tokens."""
        request, keeper = self._request, self._keeper
        if not (
            keeper._identity_provider.has_login
            and request.scope["grace_kp.is_api"]
            and "authorization" in request.headers
        ):
            return
        peer = request.client.host if request.client else ""
        wait = keeper._attempts.failed("wrong_token", keeper._addresses.client(peer, request.headers))
        if wait:
            text = f"Too many attempts with wrong tokens. Wait {wait:.0f} seconds."
            raise HTTPException(429, text, {"Retry-After": f"{wait:.0f}"})

    def _check_origin(self) -> None:
        request, headers = self._request, self._request.headers
        if self._visitor is not None and not self._visitor.csrf:
            return  # a program with a token in a header
        expected = self._keeper._addresses.origin(headers["host"], request.url.scheme)
        stated = headers.getlist("origin")
        if stated != [expected] or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            self._keeper._attempts.count("foreign_origin")
            self._reason = "origin"
            raise HTTPException(403, "This was not sent by a page of this address, and was not done.")

    async def _read_body(self) -> None:
        request, state = self._request, self._request.state
        is_api = request.scope["grace_kp.is_api"]
        limit = LOGIN_BYTES if self._visitor is None else BODY_BYTES
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > limit:
            self._reason = "body"
            raise HTTPException(413, f"The request is larger than {limit:,} bytes.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        wanted = JSON if is_api else FORM
        body = await read_body(request.receive, limit)
        self._has_unread_body = False
        if kind != wanted and (body or kind):
            self._reason = "body"
            raise HTTPException(415, f"The body must be {wanted}.")
        if not is_api:
            state.form = parse_form(body)
        if self._visitor is not None:
            self._check_csrf(self._visitor.csrf)
        if is_api:
            state.body = parse_json(body)

    def _check_csrf(self, expected: str) -> None:
        if not expected or self._right is Right.ANYBODY:
            return  # a program, or the login itself, which the origin protects
        fields = self._request.state.form.get("csrf", [])
        stated = self._request.headers.get("x-csrf-token") or (fields[0] if len(fields) == 1 else "")
        if not is_same(stated, expected):
            self._keeper._attempts.count("wrong_csrf")
            self._reason = "csrf"
            raise HTTPException(
                403, "This page is out of date, and nothing was done. Go back, reload it, and try again."
            )

    def _to_login(self) -> RedirectResponse:
        request = self._request
        query = request.url.query
        wanted = path_of(request.scope) + (f"?{query}" if query else "")
        return RedirectResponse(f"{root_of(request)}/login?next={quote(wanted[:1_500], safe='/')}", 303)


class _Unknown(HTTPException):
    """Nobody is logged in."""

    def __init__(self, request: Request, *, has_login: bool) -> None:
        is_api = request.scope["grace_kp.is_api"]
        self.may_log_in = has_login and not is_api and request.method in READS
        text = "Log in first." if has_login else "The application that serves these pages does not know you."
        if is_api:
            text = "Send the token of an account: Authorization: Bearer gkp_…"
        super().__init__(401, text, {"WWW-Authenticate": 'Bearer realm="grace_kp"'} if is_api else None)


_HOST = "This server does not answer to {}. "
_PRINTED = "Open it at the address that `grace-kp serve` printed, or restart it with --public-url https://HOST."
_MOUNTED = "Open it at the address of the application, or pass another one to app() as public_url=."
_ROLE = "The role {} does not include this."
_CHANGE = " Whoever runs this server can change it with `grace-kp serve users role`."


def _is_background(request: Request) -> bool:
    """Return whether a page reads this by itself, so that it is no use of the session: an event stream, or what the script of the pages polls."""
    headers = request.headers
    return "x-background" in headers or headers.get("accept") == "text/event-stream"


async def still_may(request: Request, right: Right) -> bool:
    """Return whether who sent a request may still do something: logged in, with an account, and with a role that has the right.

    Event streams call it before each event. It does not count as a use of the session.
    """
    identity_provider: IdentityProvider = request.app.state.identity_provider
    visitor = await identity_provider.visitor(request, touch=False)
    before = request.state.person
    return visitor is not None and visitor.person.may(right) and visitor.person.name == before.name
