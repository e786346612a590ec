"""What was refused: decisions of known people in the audit trail, and failed attempts to get in, which are counted and slowed down by address.

Both are bounded, because their author may be an attacker. Attempts beyond the bound of the audit trail are counted in its next entry. A right token
or code is never refused: it has 256 random bits, so guessing is hopeless at any rate, and a flood of wrong ones cannot lock its owner out.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.approvals import append, person
from grace_kp.errors import GraceError
from grace_kp.pages import printable
from grace_kp.web.security._addresses import network_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.approvals import Tables
    from grace_kp.web._access import Person


_log = logging.getLogger("grace_kp.web")
EACH_MINUTE = 20
"""Entries per person."""
EACH_DAY = 500
"""Entries of all people."""
EACH_DAY_PER_PERSON = 100
"""Entries of one person, so that nobody uses up those of all others."""
AT_MOST_PEOPLE = 1_000


@dataclass(slots=True)
class _Window:
    began: float
    written: int = 0
    left_out: int = 0


class Refusals:
    """Writes refused attempts. Several threads may use it.

    Args:
        tables: the tables of approvals.
        clock: the wall clock, in seconds since the epoch.
    """

    def __init__(self, tables: Tables, clock: Callable[[], float]) -> None:
        self._tables, self._clock, self._lock = tables, clock, threading.Lock()
        self._people: OrderedDict[str, _Window] = OrderedDict()
        self._day = _Window(clock())
        self._shares: Counter[str] = Counter()
        """Entries of the day by person."""
        self._counts: dict[str, int] = {}

    def counts(self) -> dict[str, int]:
        """Return the number of refused attempts since the process began, by id of the person."""
        with self._lock:
            return dict(self._counts)

    def record(self, who: Person, *, path: str, reason: str, approval: str | None = None) -> bool:
        """Record a refused attempt, and return whether it is in the audit trail; otherwise it is only counted."""
        left_out = self._may_write(person(who.name))
        if left_out is None:
            return False
        facts = {
            "path": printable(path[:200]),
            "reason": reason,
            "role": who.role.value,
            **({"not_recorded": left_out} if left_out else {}),
        }
        try:
            with self._tables.transaction() as writes:
                row = writes.row(approval) if approval is not None and len(approval) <= 200 else None
                append(
                    writes,
                    "refused",
                    at=self._clock(),
                    approval=None if row is None else row.id,
                    revision=None if row is None else row.revision,
                    actor=who.actor,
                    facts=facts,
                )
        except (GraceError, sqlite3.Error) as error:
            _log.error("a refused attempt of %s could not be recorded: %s", printable(who.name), printable(str(error)))
            return False
        return True

    def _may_write(self, name: str) -> int | None:
        """Return the number of attempts that were left out since the last entry of a person; None if this one is left out, too."""
        now = self._clock()
        with self._lock:
            if name in self._counts or len(self._counts) < AT_MOST_PEOPLE:
                self._counts[name] = self._counts.get(name, 0) + 1
            if not 0 <= now - self._day.began < 86_400:
                self._day = _Window(now)
                self._shares.clear()
            window = self._people.pop(name, None) or _Window(now)
            if not 0 <= now - window.began < 60:
                window = _Window(now, left_out=window.left_out)
            self._people[name] = window
            while len(self._people) > AT_MOST_PEOPLE:
                self._people.popitem(last=False)
            is_used_up = self._day.written >= EACH_DAY or self._shares[name] >= EACH_DAY_PER_PERSON
            if window.written >= EACH_MINUTE or is_used_up:
                window.left_out += 1
                return None
            window.written += 1
            self._day.written += 1
            self._shares[name] += 1
            left_out, window.left_out = window.left_out, 0
            return left_out


FREE = 5
"""Failures of an address that cost no wait."""
LONGEST_WAIT = 300.0
FORGET_SECONDS = 3_600.0
AT_MOST_ADDRESSES = 10_000
SENT_TO_LOGIN = "sent_to_login"
"""The kind of an attempt to open a page without a login, which is also how everybody begins."""
EVERYWHERE = 300
"""Failures of all addresses in a minute; then every further failure is asked to wait, whatever its address."""


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class Attempts:
    """Counts failed attempts. Several threads may use it.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._failures: OrderedDict[str, _Failures] = OrderedDict()
        self._kinds: Counter[str] = Counter()
        self._minute, self._in_minute = 0.0, 0

    def count(self, kind: str) -> None:
        """Count an attempt of a kind, such as `foreign_host`. Kinds are words of this package, never of a client."""
        with self._lock:
            self._kinds[kind] += 1

    def counts(self) -> dict[str, int]:
        """Return the counts since the process began, by kind."""
        with self._lock:
            return dict(sorted(self._kinds.items()))

    def refusals(self) -> dict[str, int]:
        """Return the counts without browsers that were only sent to the login page."""
        return {kind: number for kind, number in self.counts().items() if kind != SENT_TO_LOGIN}

    def failed(self, kind: str, address: str) -> float:
        """Count a failed login, and return for how many seconds its client has to wait; 0 for not at all.

        The wait doubles with each failure after the fifth, up to five minutes, and is forgotten an hour after the last one.
        """
        now, network = self._clock(), network_of(address)
        with self._lock:
            self._kinds[kind] += 1
            if now - self._minute >= 60:
                self._minute, self._in_minute = now, 0
            self._in_minute += 1
            known = self._failures.pop(network, None)
            if known is None or now - known.last > FORGET_SECONDS:
                known = _Failures(0, now)
            known.count, known.last = known.count + 1, now
            self._failures[network] = known
            while len(self._failures) > AT_MOST_ADDRESSES:
                self._failures.popitem(last=False)
            wait = 0.0 if known.count <= FREE else min(LONGEST_WAIT, 2.0 ** min(known.count - FREE - 1, 20))
            return max(wait, 60.0 if self._in_minute > EVERYWHERE else 0.0)

    def succeeded(self, address: str) -> None:
        """Forget the failures of an address."""
        with self._lock:
            self._failures.pop(network_of(address), None)
