"""The one background thread that finishes runs and stores them, so that the agent's own thread does neither.

Settling (turning a run into a record) is computation and never loses anything: when too much waits for it, the thread that
brings more helps. Writing may fail: then records wait in memory up to a bound, and what does not fit is counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, Worker, may_wait, watch
from grace_kp.errors import StoreError
from grace_kp.store._journal import Journal
from grace_kp.store._record import Record
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.store._pipeline import Pipeline
    from grace_kp.store._store import Store

GATHER_SECONDS = 0.01
MAX_BATCH = 500
WARM_BATCH = 64
RETRY_SECONDS = (0.1, 5.0)
RETENTION_SECONDS = 3_600.0
_log = logging.getLogger("grace_kp.store")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """How much a writer keeps in memory, and how long it takes."""

    journal_interval: float = 0.05
    """Seconds between two journals of open runs."""
    max_pending_bytes: int = 256 << 20
    """Records that wait for a store which cannot write; more are dropped."""
    max_backlog: int = 512
    """Ended runs that wait; beyond it the thread that ends another run helps."""
    retention_days: float = 0.0
    """How long runs are kept; 0 for ever."""
    exit_seconds: float = 2.0
    """How long the exit of the interpreter waits."""


@dataclass(frozen=True, slots=True)
class WriterStats:
    """Counts of a writer, for monitoring and for `grace-kp doctor`."""

    settled: int
    written: int
    dropped: int
    pending: int
    pending_bytes: int
    errors: int
    last_error: str | None
    helped: int


class Writer(Resident):
    """Settles and stores what is submitted, in order, in a thread that starts when it is first needed."""

    def __init__(self, opener: Callable[[], Store], pipeline: Pipeline, limits: WriterLimits | None = None) -> None:
        """Open nothing yet.

        Args:
            opener: opens the store when it is first used.
            pipeline: settles the runs.
            limits: bounds in memory and time.
        """
        self._opener = opener
        self._pipeline = pipeline
        self._limits = limits or WriterLimits()
        self._journal = Journal(pipeline.journal)
        self._store: Store | None = None
        self._closed = False
        self._fresh()
        self._worker = Worker(self._round, name="writer")
        watch(self)

    def _fresh(self) -> None:
        self._backlog, self._waiting, self._staged = deque[Any](), deque[Any](), 0
        self._landed = threading.Event()
        self._pending, self._pending_bytes = deque[Record](), 0
        self._ended: list[str] = []
        self._settling, self._writing = threading.RLock(), threading.RLock()
        self._busy: int | None = None
        self._idle = True
        self._done = self._settled = self._written = self._dropped = self._errors = self._helped = 0
        self._last_error: str | None = None
        self._failing, self._retry_at, self._pause = False, 0.0, RETRY_SECONDS[0]
        self._retain_at = 0.0
        self._journal.clear()

    def fork_locks(self) -> Iterator[Lock]:
        """Yield what is held during a fork, so that nothing is half settled or half written then."""
        yield self._settling
        yield self._writing
        lock = getattr(self._store, "lock", None)
        if lock is not None:
            yield lock

    def after_fork(self) -> None:
        """Forget in the child what was queued: the parent writes it."""
        self._fresh()
        forked = getattr(self._store, "after_fork", None)
        if forked is not None:
            forked()

    def submit(self, item: object) -> None:
        """Take a run that has ended. This costs an append; beyond the bound of the backlog the caller settles some of it."""
        self._backlog.append(item)
        if self._idle:
            self._wake()
        if len(self._backlog) > self._limits.max_backlog or self._closed:
            self._helped += 1
            self.drain(start_only=not self._closed and self._pipeline.uses_models)
            if self._closed:
                self.write_pending(force=True)

    def opened(self) -> None:
        """Journal from now on: a run has begun."""
        if self._idle:
            self._wake()

    def _wake(self) -> None:
        self._idle = False
        self._worker.wake()

    def landed(self) -> None:
        """Go on: a judgement or a score that a run waits for is there."""
        self._landed.set()
        self._worker.wake()

    def _round(self) -> float | None:
        """Do one round of work; return when the next is due."""
        self._idle = False
        time.sleep(GATHER_SECONDS)
        self.drain()
        self._write_journal()
        self.write_pending()
        # Idle is set first and the queue read afterwards, so that whatever comes meanwhile is seen here or wakes the worker.
        self._idle = True
        if self._backlog:
            return 0.0
        is_due = self._pipeline.has_open_runs or self._pending or self._waiting
        return self._limits.journal_interval if is_due else None

    def drain(self, timeout: float = 0.0, *, start_only: bool = False) -> None:
        """Settle the submitted runs that are ready, waiting up to `timeout` seconds; do nothing inside a settling.

        With `start_only`, judgements and the like are only started: no agent's thread settles runs, or waits, where models are used.
        """
        if self._busy == threading.get_ident():
            return
        deadline = time.monotonic() + (timeout if may_wait() else 0.0)
        while True:
            self._landed.clear()
            with self._settling:
                self._busy = threading.get_ident()
                try:
                    self._settle_ready(start_only=start_only)
                finally:
                    self._busy = None
            left = deadline - time.monotonic()
            if not self._waiting or left <= 0:
                return
            self._landed.wait(min(left, 0.1))

    def _settle_ready(self, *, start_only: bool) -> None:
        for _ in range(len(self._backlog)):
            item = self._backlog.popleft()
            self._holds(self._pipeline.is_ready, item)
            self._waiting.append(item)
        while self._waiting and not start_only:
            batch: list[Any] = []
            for item in self._waiting:
                if len(batch) == WARM_BATCH or not self._holds(self._pipeline.is_ready, item):
                    break
                batch.append(item)
            new = batch[self._staged :]
            if len(new) > 1:
                self._pipeline.warm(new)
            scored = [self._holds(self._pipeline.is_scored, item) for item in batch]
            self._staged = max(self._staged, len(batch))
            finished = [*scored, False].index(False)
            for _ in range(finished):
                self._staged = max(0, self._staged - 1)
                self._settle_one(self._waiting.popleft())
            if not finished or finished < len(batch):
                return

    def _holds(self, condition: Callable[[Any], bool], item: object) -> bool:
        try:
            return condition(item)
        except Exception:  # noqa: BLE001 — settling the run fails in the same manner, and is reported
            return True

    def _settle_one(self, item: object) -> None:
        self._done += 1
        try:
            record = self._pipeline.settle(item)
        except Exception as error:  # noqa: BLE001
            self._report(f"a run could not be finished: {type(error).__name__}: {error}")
            return
        self._settled += 1
        run_id = getattr(item, "journaled_id", None)
        if run_id is not None:
            self._ended.append(run_id)
        if record is None:
            return
        if self._pending_bytes + len(record.data) > self._limits.max_pending_bytes:
            self._dropped += 1
            return
        self._pending_bytes += len(record.data)
        self._pending.append(record)

    def put_now(self, records: Callable[[], Sequence[Record]], timeout: float = 1.0) -> bool:
        """Store records before this returns, in place of their runs' journals; False where others are busy, or the store fails."""
        if self._failing or not self._settling.acquire(timeout=timeout):
            return False
        try:
            found = records()
            with self._writing:
                self.store().put(found, ended=[record.id for record in found])
                self._journal.end(record.id for record in found)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
            return False
        finally:
            self._settling.release()
        return True

    def store(self) -> Store:
        """The store, opened when it is not open yet.

        Raises:
            StoreError: it cannot be opened.
        """
        with self._writing:
            if self._store is None:
                self._store = self._opener()
                self._recover(self._store)
            return self._store

    def _recover(self, store: Store) -> None:
        recover = getattr(store, "recover", None)
        if recover is not None:
            # Not settled here: the store's lock is held, and a hook that asks for the store would wait for it.
            self._backlog.extend(self._pipeline.lost(rows) for rows in recover())

    def _write_journal(self) -> None:
        if not self._pipeline.has_open_runs or (self._failing and time.monotonic() < self._retry_at):
            return
        try:
            with self._settling:
                self._journal.collect()
            with self._writing:
                if self._journal.write(self.store()):
                    self._recover_from_failure()
        except Exception as error:  # noqa: BLE001
            with self._writing:  # a fork waits for this lock, and reporting may import modules
                self._failed(error)

    def write_pending(self, *, force: bool = False) -> None:
        """Write what is settled."""
        if not force and self._failing and time.monotonic() < self._retry_at:
            return
        with self._writing:
            try:
                if (self._pending or self._ended) or self._store is None:
                    store = self.store()
                    while self._pending or self._ended:
                        self._write_batch(store)
                    self._recover_from_failure()
                    self._write_report(store)
                    self._delete_expired(store)
            except Exception as error:  # noqa: BLE001
                self._failed(error)

    def _write_report(self, store: Store) -> None:
        keep = getattr(store, "report", None)
        report = self._pipeline.report(self._dropped) if keep is not None else None
        if keep is not None and report is not None:
            keep(*report)

    def _delete_expired(self, store: Store) -> None:
        retain = getattr(store, "retain", None)
        if self._limits.retention_days and retain is not None and time.monotonic() >= self._retain_at:
            self._retain_at = time.monotonic() + RETENTION_SECONDS
            retain(self._limits.retention_days)

    def _write_batch(self, store: Store) -> None:
        batch = [self._pending[number] for number in range(min(len(self._pending), MAX_BATCH))]
        ended = list(self._ended)
        store.put(batch, ended=ended)
        self._journal.end(ended)
        del self._ended[: len(ended)]
        for record in batch:
            self._pending.popleft()
            self._pending_bytes -= len(record.data)
        self._written += len(batch)

    def _failed(self, error: Exception) -> None:
        self._errors += 1
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, RETRY_SECONDS[1])
        what = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
        message = redact_text(f"the store cannot write: {what}", identifiers=False)
        if message != self._last_error or not self._failing:
            self._report(message)
        self._last_error, self._failing = message, True

    def _recover_from_failure(self) -> None:
        if self._failing:
            self._failing, self._pause = False, RETRY_SECONDS[0]
            _log.warning("the store writes again")

    def _report(self, message: str) -> None:
        self._last_error = message
        _log.warning(message)

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Settle and write all that was submitted, in this thread; False where that could not be done in time."""
        if self._busy == threading.get_ident():
            return False
        timeout = timeout if may_wait() else 0.0
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._settling:
            goal = self._done + self.waiting
        while True:
            self.drain(0.0 if deadline is None else min(1.0, max(0.0, deadline - time.monotonic())))
            reached = self._done >= goal
            left = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._writing.acquire(timeout=left):
                return False
            try:
                self.write_pending(force=True)
            finally:
                self._writing.release()
            # What ends meanwhile is not waited for, or there would be no end where runs end all the time.
            if (reached and not self._failing and not (self._pending or self._ended)) or not (
                self._pending or self._ended or self._backlog or self._waiting
            ):
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(0.05)

    def close(self, timeout: float | None = 5.0) -> None:
        """Flush, end the thread, close the store. What is submitted later is settled and written at once."""
        flushed = self.flush(timeout)
        self._pipeline.give_up()  # also for what ends later: nobody would be there to wait for it
        if not flushed and self._waiting:
            self.flush(2.0)
        self._closed = True
        self._worker.stop(1.0)
        with self._writing:
            if self._store is not None:
                self._store.close()

    def at_exit(self) -> None:
        """Close, unless that was done before."""
        if not self._closed:
            self.close(self._limits.exit_seconds)

    @property
    def waiting(self) -> int:
        """How many items were submitted and are not settled."""
        return len(self._backlog) + len(self._waiting)

    def stats(self) -> WriterStats:
        """Counts since the beginning; what is pending is settled and waits for the store."""
        return WriterStats(
            self._settled,
            self._written,
            self._dropped,
            len(self._pending) + len(self._waiting),
            self._pending_bytes,
            self._errors,
            self._last_error,
            self._helped,
        )
