"""The sender of a request, for all kinds of login: the secrets that prove an identity, and the identities of a host application."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from starlette.concurrency import run_in_threadpool

from grace_kp.approvals import Actor
from grace_kp.pages import printable
from grace_kp.trace import redacted_error
from grace_kp.web._site import Person, Right
from grace_kp.web.security._refusals import Attempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from grace_kp.approvals import Tables


PREFIX = "gkp_"
"""Prefix of every token of a person, so that people and scanners recognise it."""


def new_token() -> str:
    """Return a new token of a person: the prefix and 256 random bits in base64url."""
    return PREFIX + new_secret()


def new_secret() -> str:
    """Return 256 random bits in base64url, for sessions and one-time codes."""
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """Return the SHA-256 of a secret in hexadecimal digits. Secrets have 256 random bits, so that no salt and no slow hash is needed."""
    return hashlib.sha256(_bytes(secret)).hexdigest()


def csrf_of(secret: str, name: str = "") -> str:
    """Return the token of the forms of a session: derived from the session's secret, without revealing it."""
    return hmac.new(_bytes(secret), b"grace_kp csrf\0" + _bytes(name), hashlib.sha256).hexdigest()


def is_same(text: str, other: str) -> bool:
    """Compare two strings in a time that does not depend on where they differ."""
    return hmac.compare_digest(_bytes(text), _bytes(other))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A person whose identity is established for one request."""

    person: Person
    csrf: str = ""
    """The token that forms of this person carry; empty for a program with a token in a header, which no foreign page can send."""
    is_session: bool = False
    """Whether our cookie has established it, so that the person can log out."""


class IdentityProvider(Protocol):
    """A way of establishing who sends a request."""

    has_login: bool
    """Whether there is a login page."""
    attempts: Attempts
    """Counts what is refused."""

    async def visitor(self, request: Request, *, touch: bool = True) -> Visitor | None:
        """Return the sender of a request; None for an unknown person."""
        ...


def bearer_of(request: Request) -> str | None:
    """Return the token that a request to the API states in its header; None without one.

    Pages of other origins cannot send this header without a permission that is never granted here.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


_log = logging.getLogger("grace_kp.web")
KEY = "web_key"
"""Kind of the document with the key that CSRF tokens are computed with, so that all processes of an application accept the same tokens."""


class HostIdentityProvider:
    """Asks the `auth` function of the host application for the sender of a request. The tables hold the key of CSRF tokens."""

    has_login = False

    def __init__(self, auth: Callable[[Request], Any], tables: Tables) -> None:
        self._auth, self._tables, self._key = auth, tables, ""
        self.attempts = Attempts(time.monotonic)

    async def visitor(self, request: Request, *, touch: bool = True) -> Visitor | None:
        """Return the person that `auth` returns. An exception refuses the request."""
        del touch  # the host keeps its sessions
        try:
            person = await run_in_threadpool(self._auth, request)
            if inspect.isawaitable(person):
                person = await person
            if person is None:
                return None
            if not isinstance(person, Person):
                raise TypeError(f"auth must return a Person or None, not {type(person).__name__}")
            person.may(Right.SEE)
            Actor.here(person.name)
        except Exception as error:  # noqa: BLE001 — any exception of the application must refuse the request
            _log.error("auth failed, and the request was refused: %s", printable(redacted_error(error)))
            return None
        if bearer_of(request) is not None and request.scope.get("grace_kp.is_api"):
            return Visitor(person=person)
        return Visitor(person=person, csrf=csrf_of(await run_in_threadpool(self._csrf_key), person.name))

    def _csrf_key(self) -> str:
        if not self._key:
            data = self._tables.document(KEY, "csrf")
            if not data:
                with self._tables.transaction() as writes:
                    data = writes.document(KEY, "csrf")
                    if not data:
                        data = new_secret().encode()
                        writes.put_document(KEY, "csrf", data)
            self._key = data.decode()
        return self._key
