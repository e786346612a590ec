"""The logins of `grace-kp serve`: a one-time code while there are no accounts, a token per person afterwards, and sessions by cookie."""

from __future__ import annotations

import getpass
import time
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from grace_kp.web._person import Person, Role
from grace_kp.web.security._accounts import Accounts
from grace_kp.web.security._attempts import Attempts
from grace_kp.web.security._sessions import LONGEST_SECONDS, Codes, Sessions
from grace_kp.web.security._token import csrf_of, hash_of
from grace_kp.web.security._visitor import Visitor, bearer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Tables
    from grace_kp.web.security._accounts import Account
    from grace_kp.web.security._addresses import Addresses

AT_MOST_COOKIES = 4
"""Cookies of our name that are tried: another application on the same host can set further ones."""


class Logins:
    """Who is logged in at one `grace-kp serve`.

    Args:
        tables: the tables of approvals, which hold the accounts.
        addresses: the addresses of the application.
        root: path that the application is served under, without a slash at its end.
        wall_clock: seconds since the epoch.
        clock: seconds that only grow.
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
        self._codes = Codes(clock)
        self._addresses, self._root = addresses, root

    def code(self) -> str | None:
        """Return a one-time code that admits the operating system's user; None once there are accounts."""
        return None if self.accounts.all() else self._codes.issue()

    @property
    def code_is_needless(self) -> bool:
        """Whether people log in with tokens of accounts."""
        return bool(self.accounts.all())

    async def visitor(self, request: Request, *, touch: bool = True) -> Visitor | None:
        """Return who has sent a request, by the token in its header below `/api/`, else by its cookie."""
        if request.scope.get("grace_kp.is_api") and "authorization" in request.headers:
            return await run_in_threadpool(self._by_token, bearer_of(request) or "")
        for secret in self._cookies(request):
            session = self.sessions.find(secret, touch=touch)
            if session is not None:
                person = await run_in_threadpool(self._person, session.owner, session.mark)
                if person is not None:
                    return Visitor(person=person, csrf=csrf_of(secret), is_session=True)
                self.sessions.end(secret)
        return None

    def enter(self, credential: str) -> str | None:
        """Exchange a one-time code or the token of a person for the secret of a new session; None if it is neither.

        Programs (role `agent`) have no sessions: their token is for the API.
        """
        if not self.accounts.all():
            return self.sessions.begin("", "") if self._codes.redeem(credential) else None
        account = self.accounts.of_token(credential)
        if account is None or account.role is Role.AGENT:
            return None
        self.accounts.note_use(account)
        return self.sessions.begin(account.id, _mark(account))

    def leave(self, request: Request) -> None:
        """End the sessions of a request."""
        for secret in self._cookies(request):
            self.sessions.end(secret)

    def set_cookie(self, response: Response, secret: str) -> None:
        """Have the browser keep a session. It comes along with links from other sites, which only show pages, and with no write of theirs."""
        response.set_cookie(
            self.cookie,
            secret,
            max_age=int(LONGEST_SECONDS),
            path=self._root or "/",
            secure=self._addresses.is_secure,
            httponly=True,
            samesite="lax",
        )

    def delete_cookie(self, response: Response) -> None:
        """Have the browser forget its session."""
        response.delete_cookie(
            self.cookie, path=self._root or "/", secure=self._addresses.is_secure, httponly=True, samesite="lax"
        )

    @property
    def cookie(self) -> str:
        """Name of the cookie. Cookies are shared by all ports of a host, so that the name holds the port on loopback."""
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

    def _person(self, owner: str, mark: str) -> Person | None:
        """Return whom a session belongs to now; None if it has ended."""
        accounts = self.accounts.all()
        if not owner:
            return None if accounts else Person(name=os_user(), role=Role.ADMIN, authenticated=False)
        account = accounts.get(owner)
        if account is None or _mark(account) != mark:
            return None
        return account.person


def os_user() -> str:
    """Return the name of the operating system's user; a number where there is no name, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        import os

        return f"user {os.getuid()}"


def _mark(account: Account) -> str:
    """Return what a login holds for: another role, a new token or a new account of this name end it."""
    return hash_of(f"{account.role} {account.token_sha256} {account.created!r}")
