"""Attempts to get in that failed: counted by kind, and slowed down by the address that they come from.

A right token or code is never refused: it has 256 random bits, so that guessing is hopeless at any rate, and nobody who floods
the login from the same address, or from many, can lock its owner out. Limits bound the work and the log that wrong ones cause.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.web.security._addresses import network_of

if TYPE_CHECKING:
    from collections.abc import Callable

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

        Args:
            kind: as in `count`.
            address: of the client.
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
