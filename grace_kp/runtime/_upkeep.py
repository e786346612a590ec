"""The upkeep of the writer's store: the journal of open runs, outages, leases, retention, reports.

A user's store may lack methods for some of these; each is called where it exists.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.runtime._pipeline import Lost
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from grace_kp.runtime._backlog import Backlog
    from grace_kp.runtime._pipeline import Pipeline
    from grace_kp.store import JournalEntry, Store


RECOVER_SECONDS = 30.0
RETENTION_SECONDS = 3_600.0
RETRY_SECONDS = (0.1, 5.0)
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_log = logging.getLogger("grace_kp.store")
MAX_ENDED = 10_000


class Upkeep:
    """The upkeep of one store by one writer."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        retention_days: float,
        wake: Callable[[], object],
        backlog: Callable[[], Backlog],
    ) -> None:
        """Do nothing yet. `wake` has the backlog settled; `backlog` returns another one after a fork."""
        self._store: Any = store
        self._pipeline = pipeline
        self._retention_days, self._wake, self._backlog = retention_days, wake, backlog
        self._recover_at = self._retain_at = 0.0
        self._parts: frozenset[str] = frozenset()
        """Parts that the pipeline could add when it was asked last. It may choose models later."""

    def _offers(self, method: str) -> bool:
        return callable(getattr(self._store, method, None))

    def recover(self) -> None:
        """Take over what dead processes have left."""
        self._recover_at = time.monotonic() + RECOVER_SECONDS
        self._parts = self._pipeline.parts
        if self._offers("recover"):
            # Not settled here: the store's lock is held, and a hook that asks for the store would wait for it.
            runs = [Lost(rows) for rows in self._store.recover()]
            if runs:
                self._backlog().queue.extend(runs)
                self._wake()
        if self._offers("incomplete") and self._parts:
            found = self._store.incomplete(self._parts)
            self._pipeline.completer.adopt(found)
            if found:
                self._recover_at = 0.0  # there may be more

    def do_what_is_due(self) -> None:
        """Renew the lease of this process, take over from dead ones, and delete what is too old, each when it is due."""
        if self._offers("renew_lease") and (self._pipeline.has_open_runs or self._pipeline.completer.is_busy):
            self._store.renew_lease()
        now = time.monotonic()
        if now >= self._recover_at or not self._pipeline.parts <= self._parts:
            self.recover()
        if self._retention_days and now >= self._retain_at and self._offers("retain"):
            self._retain_at = now + RETENTION_SECONDS
            self._store.retain(self._retention_days)

    def report(self, backlog: Backlog) -> None:
        """Store what this process could not record, if that is news."""
        report = backlog.take_report(self._pipeline) if self._offers("report") else None
        if report is not None:
            self._store.report(*report)
            backlog.unstored_report = None


class Outage:
    """Whether the store fails, since when, and when to try again."""

    def __init__(self) -> None:
        self.errors = 0
        self.last_error: str | None = None
        self.is_on = False
        """Whether the last attempt failed."""
        self.is_busy = False
        """Whether it failed because another process keeps the store locked."""
        self.rescue: Callable[..., Path] | None = None
        """Keeps records next to a store that could not be opened."""
        self._retry_at, self._pause = 0.0, RETRY_SECONDS[0]

    @property
    def is_pausing(self) -> bool:
        """Whether the store is to be left alone for now."""
        return self.is_on and time.monotonic() < self._retry_at

    def begin(self, error: BaseException) -> None:
        """Note a failure, and report one that is not known yet."""
        self.errors += 1
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, RETRY_SECONDS[1])
        self.rescue = getattr(error, "rescue", self.rescue)
        self.is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
        what = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        message = redact_text(f"the store cannot write: {what}", identifiers=False)
        if message != self.last_error or not self.is_on:
            self.report(message)
        self.is_on = True

    def end(self) -> None:
        """Note that the store writes."""
        if self.is_on:
            self.is_on, self._pause = False, RETRY_SECONDS[0]
            _log.warning("the store writes again")

    def report(self, message: str) -> None:
        self.last_error = message
        _log.warning(message)


class Journal:
    """The journal of one writer. A row is collected once, so a failed write must not lose it."""

    def __init__(self) -> None:
        self._rows: list[JournalEntry] = []
        self._ended: dict[str, None] = {}

    def collect(self, runs: Iterator[Sequence[JournalEntry]], lock: AbstractContextManager[object]) -> None:
        """Add what has happened in each open run, one run at a time under `lock`."""
        while True:
            with lock:
                rows = next(runs, None)
                if rows is None:
                    return
                if rows and rows[0].seq == 0:  # a suspended run goes on under its id
                    self._ended.pop(rows[0].run_id, None)
                self._rows += rows

    @property
    def waits(self) -> bool:
        """Whether rows could not be written so far. No more are collected then, because an outage may last for hours."""
        return bool(self._rows)

    def write(self, store: Store) -> bool:
        """Write the rows; return False where there are none. Rows of ended runs are dropped, because nothing would delete them."""
        rows = [row for row in self._rows if row.run_id not in self._ended]
        journal = getattr(store, "journal", None)
        if rows and journal is not None:
            journal(rows)
        self._rows.clear()
        return bool(rows)

    def end(self, run_ids: Iterable[str]) -> None:
        """Note that the traces of these runs are stored, and their journals deleted."""
        self._ended.update(dict.fromkeys(run_ids))
        while len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
