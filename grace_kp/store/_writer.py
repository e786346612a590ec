"""The one background thread that finishes runs and stores them, so that the agent's own thread does neither.

Settling (turning a run into a record) is computation and never loses anything: when too much waits for it, the thread that
brings more helps. Writing may fail: then records wait in memory up to a bound, and what does not fit is counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, Worker, may_wait, watch
from grace_kp.errors import StoreError
from grace_kp.store._journaling import Journaling
from grace_kp.store._stats import WriterStats
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.store._store import JournalEntry, Record, Store

GATHER_SECONDS = 0.01
MAX_BATCH = 500
WARM_BATCH = 64
RETRY_SECONDS = (0.1, 5.0)
RETENTION_SECONDS = 3_600.0
_log = logging.getLogger("grace_kp.store")


class Writer(Resident):
    """Settles and stores what is submitted, in order, on a daemon thread that is started when it is first needed."""

    def __init__(
        self,
        opener: Callable[[], Store],
        *,
        settle: Callable[[Any], Record | None],
        ready: Callable[[Any], bool] | None = None,
        warm: Callable[[Sequence[Any]], Any] | None = None,
        stage: Callable[[Any], bool] | None = None,
        give_up: Callable[[], Any] = lambda: None,
        uses_models: Callable[[], bool] = lambda: False,
        journal: Callable[[], Sequence[JournalEntry]] = lambda: (),
        has_open_runs: Callable[[], bool] = lambda: False,
        recovered: Callable[[list[JournalEntry]], Any] | None = None,
        report: Callable[[], tuple[str, bytes] | None] = lambda: None,
        retention_days: float = 0.0,
        journal_interval: float = 0.05,
        max_pending_bytes: int = 256 << 20,
        max_backlog: int = 512,
        exit_seconds: float = 2.0,
    ) -> None:
        """`ready` says whether an item can be settled yet, and sets going what it waits for; items are settled in order all the same.
        `warm` is told which items are settled next; `stage`, called in order once they are ready, sets going what is to be waited for
        after that; `give_up` is told that nothing is to be waited for any longer.
        """
        self._opener = opener
        self._settle, self._ready, self._warm, self._stage = settle, ready, warm, stage
        self._give_up = give_up
        self._uses_models = uses_models
        self.exit_seconds = exit_seconds
        self._journaling, self._has_open_runs = Journaling(journal), has_open_runs
        self._recovered, self._report_now = recovered, report
        self._interval, self._retention_days = journal_interval, retention_days
        self._max_pending, self._max_backlog = max_pending_bytes, max_backlog
        self._store: Store | None = None
        self._closed = False
        self._fresh()
        self._worker = Worker(self._round, name="writer")
        watch(self)

    def _fresh(self) -> None:
        self._backlog, self._waiting, self._staged = deque[Any](), deque[Any](), 0
        self._landed = threading.Event()
        self._pending, self._pending_bytes = deque[Any](), 0
        self._ended: list[str] = []
        self._settling, self._writing = threading.RLock(), threading.RLock()
        self._busy: int | None = None
        self._idle = True
        self._done = self._settled = self._written = self._dropped = self._errors = self._helped = 0
        self._last_error: str | None = None
        self._failing, self._retry_at, self._pause = False, 0.0, RETRY_SECONDS[0]
        self._retain_at = 0.0
        self._journaling.fresh()

    def fork_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork, so that nothing is half settled or half written then."""
        lock = getattr(self._store, "lock", None)
        return [self._settling, self._writing, *([] if lock is None else [lock])]

    def after_fork(self) -> None:
        """Forget in the child what was queued: the parent writes it."""
        self._fresh()
        forked = getattr(self._store, "after_fork", None)
        if forked is not None:
            forked()

    def submit(self, item: Any) -> None:
        """Hand over what has ended. Costs an append; beyond the backlog's bound the caller settles some of it itself."""
        self._backlog.append(item)
        if self._idle:
            self._wake()
        if len(self._backlog) > self._max_backlog or self._closed:
            self._helped += 1
            self.drain(help_only=not self._closed and self._uses_models())
            if self._closed:
                self.write_pending(force=True)

    def opened(self) -> None:
        """Something was opened that has to be journaled from now on."""
        if self._idle:
            self._wake()

    def _wake(self) -> None:
        self._idle = False
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
        return self._interval if self._has_open_runs() or self._pending or self._waiting else None

    def landed(self) -> None:
        """What an item has waited for is there."""
        self._landed.set()
        self._worker.wake()

    def drain(self, timeout: float = 0.0, *, help_only: bool = False) -> None:
        """Settle what was submitted and is ready, waiting up to `timeout` seconds; nothing when called from inside a settling.

        With `help_only`, what is settled by models is only set going: no agent's thread is to do, or wait for, that.
        """
        if self._busy == threading.get_ident():
            return
        deadline = time.monotonic() + (timeout if may_wait() else 0.0)
        while True:
            self._landed.clear()
            with self._settling:
                self._busy = threading.get_ident()
                try:
                    self._settle_ready(help_only=help_only)
                finally:
                    self._busy = None
            left = deadline - time.monotonic()
            if not self._waiting or left <= 0:
                return
            self._landed.wait(min(left, 0.1))

    def _settle_ready(self, *, help_only: bool) -> None:
        if self._ready is None:
            for _ in range(len(self._backlog)):
                try:
                    item = self._backlog.popleft()
                except IndexError:
                    return
                self._settle_one(item)
            return
        for _ in range(len(self._backlog)):
            item = self._backlog.popleft()
            self._prepared(item)
            self._waiting.append(item)
        while self._waiting and not help_only:
            batch: list[Any] = []
            for item in self._waiting:
                if len(batch) == WARM_BATCH or not self._prepared(item):
                    break
                batch.append(item)
            new = batch[self._staged :]
            if self._warm is not None and len(new) > 1:
                self._warm(new)
            ready = len(batch) if self._stage is None else self._through(batch)
            for _ in range(ready):
                self._staged = max(0, self._staged - 1)
                self._settle_one(self._waiting.popleft())
            if not ready or ready < len(batch):
                return

    def _through(self, batch: Sequence[Any]) -> int:
        """How many of the first items are through what they were staged for; those that are new are staged."""
        told = [self._asked(self._stage, item) for item in batch]
        self._staged = max(self._staged, len(batch))
        return told.index(False) if False in told else len(told)

    def _prepared(self, item: Any) -> bool:
        return self._asked(self._ready, item)

    def _asked(self, ask: Callable[[Any], bool] | None, item: Any) -> bool:
        try:
            return ask is None or ask(item)
        except Exception:  # noqa: BLE001 — settling it will say what is wrong with it
            return True

    def _settle_one(self, item: Any) -> None:
        self._done += 1
        try:
            record = self._settle(item)
        except Exception as error:  # noqa: BLE001
            self._report(f"a run could not be finished: {type(error).__name__}: {error}")
            return
        self._settled += 1
        run_id = getattr(item, "journaled_id", None)
        if run_id is not None:
            self._ended.append(run_id)
        if record is None:
            return
        if self._pending_bytes + len(record.data) > self._max_pending:
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
                self._journaling.end(record.id for record in found)
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
        if recover is None or self._recovered is None:
            return
        # Not settled here: the store's lock is held, and a hook that asks for the store would wait for it.
        self._backlog.extend(self._recovered(rows) for rows in recover())

    def _write_journal(self) -> None:
        if not self._has_open_runs() or (self._failing and time.monotonic() < self._retry_at):
            return
        try:
            with self._settling:
                self._journaling.collect()
            with self._writing:
                if self._journaling.write(self.store()):
                    self._recover_from_failure()
        except Exception as error:  # noqa: BLE001
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
        report = self._report_now() if keep is not None else None
        if keep is not None and report is not None:
            keep(*report)

    def _delete_expired(self, store: Store) -> None:
        retain = getattr(store, "retain", None)
        if self._retention_days and retain is not None and time.monotonic() >= self._retain_at:
            self._retain_at = time.monotonic() + RETENTION_SECONDS
            retain(self._retention_days)

    def _write_batch(self, store: Store) -> None:
        batch = [self._pending[number] for number in range(min(len(self._pending), MAX_BATCH))]
        ended = list(self._ended)
        store.put(batch, ended=ended)
        self._journaling.end(ended)
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
        through = self.flush(timeout)
        self._give_up()  # also for what ends later: nobody would be there to wait for it
        if not through and self._waiting:
            self.flush(2.0)
        self._closed = True
        self._worker.stop(1.0)
        with self._writing:
            if self._store is not None:
                self._store.close()

    def at_exit(self) -> None:
        """Close, unless that was done before."""
        if not self._closed:
            self.close(self.exit_seconds)

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
