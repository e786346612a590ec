"""Values that take too long for each view of a page: computed in the background, at most once a minute, and kept for those who look next."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from grace_kp.background import Worker
from grace_kp.errors import GraceError
from grace_kp.trace import redacted_error
from grace_kp.web._errors import explain_error

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")
FRESH_SECONDS = 60.0
PATIENCE = 0.15
"""Seconds that a reader waits for a value that nobody has computed before; a page must be fast, and the next view shows it."""
SHARE_OF_TIME = 0.05
"""The largest part of the time in which one value may be computed."""
KEPT = 16
WAITING = 8
"""Values that may wait to be computed: each address with another period asks for one."""
_TOO_MANY = "too many other periods are waiting to be computed. Reload the page in a minute"
_UNEXPECTED = "something went wrong here. It is in the log of the server"
_log = logging.getLogger("grace_kp.web")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValue(Generic[V]):
    """A value, or why there is none."""

    value: V | None = None
    problem: str = ""
    at: float = 0.0
    """When it was asked for, in seconds since the epoch."""


class _Entry(Generic[V]):
    """A result that is computed, or was, with the one before."""

    def __init__(self, at: float, before: KeptValue[V] | None) -> None:
        self.at, self.before, self.ended = at, before, threading.Event()
        self.seconds = 0.0
        self.result: KeptValue[V] | None = None

    @property
    def latest(self) -> KeptValue[V] | None:
        return self.result or self.before

    def is_due(self, now: float) -> bool:
        """Return whether the value is too old; one that takes long is kept for longer."""
        return self.ended.is_set() and not 0 <= now - self.at < max(FRESH_SECONDS, self.seconds / SHARE_OF_TIME)


class Kept(Generic[K, V]):
    """The values of one site, by key: those that were asked for last. Several threads may ask."""

    def __init__(self, *, patience: float = PATIENCE, limit: int = KEPT, waiting: int = WAITING) -> None:
        """Keep nothing yet.

        Args:
            patience: seconds to wait for a first value.
        """
        self._patience, self._limit, self._most_waiting = patience, limit, waiting
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._waiting: OrderedDict[K, tuple[_Entry[V], Callable[[], V]]] = OrderedDict()
        self._worker = Worker(self._compute_next, name="figures")

    def get(
        self, key: K, now: float, compute: Callable[[], V], *, patience: float | None = None
    ) -> KeptValue[V] | None:
        """Return a value of the last minute, else the one before while another is computed; None while there is none.

        Args:
            now: seconds since the epoch.
            patience: seconds to wait for a first value; None for those of all readers.
        """
        with self._lock:
            entry = self._entries.get(key)
            is_new = (entry is None or entry.is_due(now)) and len(self._waiting) < self._most_waiting
            if is_new:
                entry = self._entries[key] = _Entry(now, None if entry is None else entry.latest)
                self._waiting[key] = entry, compute
            if entry is None:
                return KeptValue(problem=_TOO_MANY, at=now)
            self._entries.move_to_end(key)
            if len(self._entries) > self._limit:
                forgotten, _ = self._entries.popitem(last=False)
                self._waiting.pop(forgotten, None)
        if is_new and not self._worker.wake():
            entry.ended.set()
        patience = self._patience if patience is None else patience
        entry.ended.wait(patience if entry.before is None else 0)
        return entry.latest

    def _compute_next(self) -> float | None:
        with self._lock:
            if not self._waiting:
                return None
            _, (entry, compute) = self._waiting.popitem(last=False)
        began = time.perf_counter()
        try:
            entry.result = KeptValue(value=compute(), at=entry.at)
        except (GraceError, ValueError) as error:
            entry.result = KeptValue(problem=explain_error(error, "computing figures"), at=entry.at)
        except Exception as error:  # noqa: BLE001 — the worker goes on with the next value
            _log.error("figures cannot be computed: %s", redacted_error(error))
            entry.result = KeptValue(problem=_UNEXPECTED, at=entry.at)
        entry.seconds = time.perf_counter() - began
        entry.ended.set()
        return 0
