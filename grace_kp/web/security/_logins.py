"""The logins of `grace-kp serve`: a one-time code for a store without accounts, else a token per person, sessions by cookie, and their pages.

Sessions live in the memory of the process. Only hashes are kept, so that a dump or a log of the memory does not reveal a session.
"""

from __future__ import annotations

import getpass
import logging
import os
import re
import threading
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from grace_kp.pages import printable
from grace_kp.web._site import Person, Right, Role, form_of, root_of, route, site_of
from grace_kp.web.security._accounts import Accounts
from grace_kp.web.security._refusals import Attempts
from grace_kp.web.security._visitor import Visitor, bearer_of, csrf_of, hash_of, new_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Tables
    from grace_kp.web._site import PageRoute
    from grace_kp.web.security._accounts import Account
    from grace_kp.web.security._gatekeeper import Addresses


IDLE_SECONDS = 12 * 3_600.0
"""A session ends after this time without a request."""
LONGEST_SECONDS = 7 * 86_400.0
"""A session ends at this age."""
AT_MOST_EACH = 20
"""Sessions of one owner; a further login ends the one that was used least recently."""
AT_MOST = 2_000
"""Sessions of all owners."""
CODE_SECONDS = 600.0
"""A one-time code expires after this time."""


@dataclass(slots=True)
class Session:
    owner: str
    """Id of the account; empty for the operating system's user."""
    fingerprint: str
    """Fingerprint of the account at the login (`Logins`); the session ends when it changes."""
    began: float
    used: float


class Sessions:
    """The sessions of one process by a monotonic clock. Several threads may use it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, owner: str, fingerprint: str) -> str:
        secret, now = new_secret(), self._clock()
        with self._lock:
            own = [key for key, session in self._sessions.items() if session.owner == owner]
            for key in own[: max(0, len(own) - AT_MOST_EACH + 1)]:
                del self._sessions[key]
            if len(self._sessions) >= AT_MOST:
                self._sessions.popitem(last=False)
            self._sessions[hash_of(secret)] = Session(owner, fingerprint, now, now)
        return secret

    def find(self, secret: str, *, touch: bool = True) -> Session | None:
        """Return the session with this secret; None if there is none, or it has expired."""
        key, now = hash_of(secret), self._clock()
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if now - session.used > IDLE_SECONDS or now - session.began > LONGEST_SECONDS:
                del self._sessions[key]
                return None
            if touch:
                session.used = now
                self._sessions.move_to_end(key)
            return session

    def end(self, secret: str) -> None:
        with self._lock:
            self._sessions.pop(hash_of(secret), None)

    def count(self) -> dict[str, int]:
        with self._lock:
            return Counter(session.owner for session in self._sessions.values())


AT_MOST_COOKIES = 4
"""Cookies of our name that are tried: another application on the same host can set more."""


class Logins:
    """The logins at one `grace-kp serve`.

    Args:
        root: path of the application, without a trailing slash.
        wall_clock: seconds since the epoch.
        clock: monotonic seconds.
    """

    has_login = True

    def __init__(
        self,
        tables: Tables,
        addresses: Addresses,
        *,
        root: str = "",
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.accounts = Accounts(tables, wall_clock)
        self.attempts = Attempts(clock)
        self.sessions = Sessions(clock)
        self._clock = clock
        self._codes: dict[str, float] = {}
        """Hashes of one-time codes, with the end of each."""
        self._addresses, self._root = addresses, root

    def code(self) -> str | None:
        """Return a one-time code that admits the operating system's user; None once there are accounts."""
        if self.code_is_needless:
            return None
        code = new_secret()
        self._codes[hash_of(code)] = self._clock() + CODE_SECONDS
        return code

    @property
    def code_is_needless(self) -> bool:
        """Whether people log in with tokens of accounts."""
        return bool(self.accounts.all())

    async def visitor(self, request: Request, *, touch: bool = True) -> Visitor | None:
        """Identify the sender of a request by the token in its header below `/api/`, else by its cookie."""
        if request.scope.get("grace_kp.is_api") and "authorization" in request.headers:
            return await run_in_threadpool(self._by_token, bearer_of(request) or "")
        for secret in self._cookies(request):
            session = self.sessions.find(secret, touch=touch)
            if session is not None:
                person = await run_in_threadpool(self._person, session.owner, session.fingerprint)
                if person is not None:
                    return Visitor(person=person, csrf=csrf_of(secret), is_session=True)
                self.sessions.end(secret)
        return None

    def enter(self, credential: str) -> str | None:
        """Exchange a one-time code or the token of a person for the secret of a new session; None if it is neither.

        Programs (role `agent`) have no sessions: their token is for the API.
        """
        if not self.code_is_needless:
            end = self._codes.pop(hash_of(credential), None)  # in one step, so that a code works once
            return None if end is None or self._clock() > end else self.sessions.begin("", "")
        account = self.accounts.of_token(credential)
        if account is None or account.role is Role.AGENT:
            return None
        self.accounts.note_use(account)
        return self.sessions.begin(account.id, _fingerprint(account))

    def leave(self, request: Request) -> None:
        """End the sessions of a request."""
        for secret in self._cookies(request):
            self.sessions.end(secret)

    def set_cookie(self, response: Response, secret: str) -> None:
        """Have the browser keep a session, or forget it if the secret is empty.

        Browsers send the cookie with links from other sites, which only show pages, but not with writes of other sites.
        """
        response.set_cookie(
            self.cookie,
            secret,
            max_age=int(LONGEST_SECONDS) if secret else 0,
            path=self._root or "/",
            secure=self._addresses.is_secure,
            httponly=True,
            samesite="lax",
        )

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies are shared by all ports of a host, so the name holds the port on loopback."""
        if self._addresses.is_secure:
            return "__Secure-grace_kp" if self._root else "__Host-grace_kp"
        return f"grace_kp_{self._addresses.port or 'session'}"

    def _cookies(self, request: Request) -> list[str]:
        pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
        return [value for name, _, value in pairs if name == self.cookie][:AT_MOST_COOKIES]

    def _by_token(self, token: str) -> Visitor | None:
        account = self.accounts.of_token(token)
        if account is None:
            return None
        self.accounts.note_use(account)
        return Visitor(person=account.person)

    def _person(self, owner: str, fingerprint: str) -> Person | None:
        """Return the current owner of a session; None if it has ended."""
        accounts = self.accounts.all()
        if not owner:
            return None if accounts else Person(name=os_user(), role=Role.ADMIN, authenticated=False)
        account = accounts.get(owner)
        return None if account is None or _fingerprint(account) != fingerprint else account.person


def os_user() -> str:
    """Return the name of the operating system's user, or its number if it has none, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"


def _fingerprint(account: Account) -> str:
    return hash_of(f"{account.role} {account.token_sha256} {account.created!r}")


_log = logging.getLogger("grace_kp.web")


def routes() -> list[PageRoute]:
    """Return the routes of `grace-kp serve` for logins and accounts. A mounted application has none of them."""
    return [
        route("/login", _login_page, Right.ANYBODY),
        route("/login", _enter, Right.ANYBODY, methods=["POST"]),
        route("/logout", _leave, Right.SEE, methods=["POST"]),
        route("/accounts", _accounts, Right.MANAGE),
    ]


def _logins(request: Request) -> Logins:
    return cast("Logins", request.app.state.identity_provider)


_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")


def local_path(text: str, otherwise: str = "/") -> str:
    """Return a string if it is a path of this application with an optional query, else another string. It cannot lead to another host."""
    return text if len(text) <= 2_000 and _LOCAL_PATH.fullmatch(text) else otherwise


def _login_page(request: Request, *, to: str | None = None, problem: str = "", status: int = 200) -> Response:
    params = request.query_params
    return site_of(request).page(
        request,
        "login.html",
        status=status,
        code=params.get("code", "")[:200],
        to=local_path(params.get("next", "") if to is None else to, ""),
        problem=problem,
        has_accounts=bool(_logins(request).accounts.all()),
    )


def _enter(request: Request) -> Response:
    logins, form = _logins(request), form_of(request)
    credential = (form.get("credential") or [""])[0].strip()
    to = local_path((form.get("next") or [""])[0])
    address = request.app.state.addresses.client(request.client.host if request.client else "", request.headers)
    secret = logins.enter(credential) if 0 < len(credential) <= 200 else None
    if secret is None:
        wait = logins.attempts.record_failure("wrong_login", address)
        if wait:
            raise HTTPException(429, f"Too many attempts. Wait {wait:.0f} seconds.", {"Retry-After": f"{wait:.0f}"})
        _log.warning("a login from %s was refused", printable(address)[:60])
        problem = (
            "This is not the token of an account that may log in. Tokens of the role agent work in the API only."
            if logins.accounts.all()
            else "This code is not valid. Codes work once, for ten minutes; start `grace-kp serve` again for a new one."
        )
        return _login_page(request, to=to, problem=problem, status=403)
    logins.attempts.forget_failures(address)
    logins.leave(request)
    response = RedirectResponse(f"{root_of(request)}{to}", 303)
    logins.set_cookie(response, secret)
    return response


def _leave(request: Request) -> Response:
    logins = _logins(request)
    logins.leave(request)
    response = RedirectResponse(f"{root_of(request)}/login", 303)
    logins.set_cookie(response, "")
    return response


def _accounts(request: Request) -> Response:
    logins = _logins(request)
    return site_of(request).page(
        request,
        "accounts.html",
        accounts=list(logins.accounts.all().values()),
        seen=logins.accounts.seen(),
        sessions=logins.sessions.count(),
        refused=request.app.state.refusals.counts(),
        attempts=logins.attempts.counts(),
    )
