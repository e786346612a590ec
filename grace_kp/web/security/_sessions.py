"""Sessions of people who logged in, in the memory of the process; and the one-time codes that `serve` prints.

Only hashes are kept, so that a dump of the memory or a log of it gives no session away.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.web.security._token import hash_of, is_same, new_secret

if TYPE_CHECKING:
    from collections.abc import Callable

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
AT_MOST_CODES = 10


@dataclass(slots=True)
class Session:
    """One login."""

    owner: str
    """Id of the account; empty for the operating system's user."""
    mark: str
    """Fingerprint of the account at the login (`Logins`); the session ends when it changes."""
    began: float
    used: float


class Sessions:
    """The sessions of one process. Several threads may use it.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, owner: str, mark: str) -> str:
        """Begin a session under a new id, and return its secret."""
        secret, now = new_secret(), self._clock()
        with self._lock:
            own = [key for key, session in self._sessions.items() if session.owner == owner]
            for key in own[: max(0, len(own) - AT_MOST_EACH + 1)]:
                del self._sessions[key]
            if len(self._sessions) >= AT_MOST:
                self._sessions.popitem(last=False)
            self._sessions[hash_of(secret)] = Session(owner, mark, now, now)
        return secret

    def find(self, secret: str, *, touch: bool = True) -> Session | None:
        """Return the session with this secret; None if there is none, or it has expired.

        Args:
            secret: what the cookie holds.
            touch: whether this counts as a use. Open event streams do not.
        """
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
        """End the session with this secret."""
        with self._lock:
            self._sessions.pop(hash_of(secret), None)

    def count(self) -> dict[str, int]:
        """Return the number of sessions by owner."""
        with self._lock:
            owners = [session.owner for session in self._sessions.values()]
        return {owner: owners.count(owner) for owner in set(owners)}


class Codes:
    """One-time codes that are exchanged for a session.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._codes: OrderedDict[str, float] = OrderedDict()

    def issue(self) -> str:
        """Return a new code."""
        code = new_secret()
        with self._lock:
            while len(self._codes) >= AT_MOST_CODES:
                self._codes.popitem(last=False)
            self._codes[hash_of(code)] = self._clock() + CODE_SECONDS
        return code

    def redeem(self, code: str) -> bool:
        """Return whether a code is valid, and make it invalid."""
        wanted, now = hash_of(code), self._clock()
        with self._lock:
            for key in [key for key, until in self._codes.items() if until < now]:
                del self._codes[key]
            found = [key for key in self._codes if is_same(key, wanted)]
            for key in found:
                del self._codes[key]
        return bool(found)
