"""Refusals: decisions of known people go into the audit trail; failed logins are counted and slowed down by address.

Both are bounded, because their author may be an attacker. The next entry of the audit trail counts attempts beyond its bound. A correct token or
code is never refused: its 256 random bits cannot be guessed, and a flood of wrong ones must not lock its owner out.
"""

from __future__ import annotations

import ipaddress
import logging
import sqlite3
import threading
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

from grace_kp.approvals import append, person
from grace_kp.errors import GraceError
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.approvals import Tables
    from grace_kp.web._site import Person


_log = logging.getLogger("grace_kp.web")
EACH_DAY = 500
"""Entries of all people."""
EACH_DAY_PER_PERSON = 100
"""Entries of one person, so that one person cannot use up the entries of all."""


class Refusals:
    """Records refused attempts. Several threads may use it."""

    def __init__(self, tables: Tables, clock: Callable[[], float]) -> None:
        self._tables, self._clock, self._lock = tables, clock, threading.Lock()
        self._day_began = clock()
        self._written: Counter[str] = Counter()
        """Entries of the day by person."""
        self._left_out: Counter[str] = Counter()
        """Attempts since the last entry of a person."""
        self._counts: Counter[str] = Counter()

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
        """Return the number of unrecorded attempts since the last entry of a person; None if this attempt is not recorded either."""
        now = self._clock()
        with self._lock:
            self._counts[name] += 1
            if not 0 <= now - self._day_began < 86_400:
                self._day_began = now
                self._written.clear()
            if self._written[name] >= EACH_DAY_PER_PERSON or self._written.total() >= EACH_DAY:
                self._left_out[name] += 1
                return None
            self._written[name] += 1
            return self._left_out.pop(name, 0)


def plain_address(address: str) -> str:
    """Return an IP address in its usual form, an IPv4 address that IPv6 has mapped (`::ffff:192.0.2.7`) as such; an empty string if it is invalid."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def network_of(address: str) -> str:
    """Return the network that limits count by: an IPv4 address, or the /64 network of an IPv6 address."""
    plain = plain_address(address)
    return str(ipaddress.ip_network((plain, 64), strict=False)) if ":" in plain else plain or "unknown"


FREE = 5
"""Failures of an address that cost no wait."""
LONGEST_WAIT = 300.0
FORGET_SECONDS = 3_600.0
AT_MOST_ADDRESSES = 10_000
SENT_TO_LOGIN = "sent_to_login"
"""The kind of an attempt to open a page without a login, as every first visit is."""
EVERYWHERE = 300
"""Failures of all addresses in a minute; then every further failure is asked to wait, whatever its address."""


class Attempts:
    """Counts failed attempts by a monotonic clock. Several threads may use it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """Number of failures and time of the last one, by network."""
        self._kinds: Counter[str] = Counter()
        self._minute, self._in_minute = 0.0, 0

    def count(self, kind: str) -> None:
        """Count an attempt of a kind, such as `foreign_host`. Kinds are words of this package, never of a client."""
        with self._lock:
            self._kinds[kind] += 1

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(sorted(self._kinds.items()))

    def refusals(self) -> dict[str, int]:
        """Return the counts without browsers that were only sent to the login page."""
        return {kind: number for kind, number in self.counts().items() if kind != SENT_TO_LOGIN}

    def record_failure(self, kind: str, address: str) -> float:
        """Count a failed login, and return for how many seconds its client has to wait; 0 for not at all.

        The wait doubles with each failure after the fifth, up to five minutes, and is forgotten an hour after the last one.
        """
        now, network = self._clock(), network_of(address)
        with self._lock:
            self._kinds[kind] += 1
            if now - self._minute >= 60:
                self._minute, self._in_minute = now, 0
            self._in_minute += 1
            count, last = self._failures.pop(network, (0, now))
            count = 1 if now - last > FORGET_SECONDS else count + 1
            self._failures[network] = count, now
            if len(self._failures) > AT_MOST_ADDRESSES:
                self._failures.popitem(last=False)
            wait = 0.0 if count <= FREE else min(LONGEST_WAIT, 2.0 ** min(count - FREE - 1, 20))
            return max(wait, 60.0 if self._in_minute > EVERYWHERE else 0.0)

    def forget_failures(self, address: str) -> None:
        with self._lock:
            self._failures.pop(network_of(address), None)
