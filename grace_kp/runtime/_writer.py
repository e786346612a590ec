"""The writer: the one thread that settles ended runs and stores them, so that the agent's own thread does neither.

A run is stored as soon as it has ended. Slower parts, such as its judgement, follow, and the run is stored again. When the store cannot
write, records wait in memory up to a bound. Every run that does not get into the store is counted and reported, except for what a kill
takes. `_pipeline` turns a run into a record, `_backlog` bounds what waits, `_upkeep` looks after the store.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.background import Latch, Lock, PoliteLock, Resident, Worker, is_mine, let_forks_go_first, may_wait, watch
from grace_kp.errors import GraceError
from grace_kp.runtime._backlog import (
    MAX_BATCH,
    PATIENCE_SECONDS,
    Backlog,
    Mark,
    WriterLimits,
    runs_event_loop,
)
from grace_kp.runtime._upkeep import Journal, Outage, Upkeep
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from grace_kp.record import Run
    from grace_kp.runtime._completion import Completion
    from grace_kp.runtime._pipeline import Lost, Pipeline
    from grace_kp.store import Record, Store

POLITE_BACKLOG = 256
"""Up to so many waiting runs, other threads may take the interpreter after each run that is settled."""
MAX_INTERRUPTS = 10
"""How often a run is settled again. An exception that ends each attempt is not an interrupt."""
GATHER_SECONDS = 0.01
STOP_SECONDS = 1.0
"""How long closing waits for the thread, and for a store that is being used."""
BOUND_SECONDS = 0.1
"""With the durability "bounded", how long after its end a run is stored."""


class Writer(Resident):
    """Settles and stores what is submitted, in order, in a thread that starts when it is first needed."""

    def __init__(self, opener: Callable[[], Store], pipeline: Pipeline, limits: WriterLimits | None = None) -> None:
        """Open nothing yet: `opener` opens the store when it is first used."""
        self._opener, self.pipeline = opener, pipeline
        self._limits = limits or WriterLimits()
        self._store: Store | None = None
        self._upkeep: Upkeep
        self._closed = self._has_exited = False
        self._begin()
        # A thread that writes must not wait for the writer, because it would wait for itself.
        self._worker = Worker(self._round, name="writer", may_wait=False)
        watch(self)

    def _begin(self) -> None:
        self._backlog = Backlog(self._limits.max_pending_bytes, has_marks=self._limits.durability != "fast")
        self._queue = self._backlog.queue
        self._pending = Pending()
        self._outage, self._journal = Outage(), Journal()
        self._settling, self._writing = PoliteLock(), PoliteLock()
        self._settled, self._interrupts = 0, 0
        self._interrupted: object = None
        self._ended: list[str] = []
        """Runs whose journals are to be deleted when they are stored."""
        self._idle, self._urgent = True, Latch()
        self._written, self._is_writing = 0, False

    def import_locks(self) -> Sequence[Lock]:
        return (self._settling,)

    def fork_locks(self) -> Iterator[Lock]:
        """Yield what is held during a fork, so that nothing is half written then."""
        yield self._writing
        lock = getattr(self._store, "lock", None)
        if lock is not None:
            yield lock

    def after_fork(self) -> None:
        """Forget in the child what was queued: the parent writes it."""
        self._begin()
        getattr(self._store, "after_fork", lambda: None)()

    def submit(self, item: object, *, can_await: bool = False) -> Awaitable[None] | None:
        """Take a run that has ended. With the durability "fast" this costs an append."""
        queue = self._queue
        if len(queue) >= self._backlog.most and not (
            self._backlog.has_room()
            or (self._limits.overflow == "wait" and self._may_wait() and self._backlog.wait_for_room(self._wake))
        ):
            self._end_journal(item)
            self._backlog.drop()
            return None
        queue.append(item)
        let_forks_go_first()
        try:
            if self._idle:
                self._wake()
            if self._closed:
                self.write_now()
            elif self._limits.durability != "fast":
                return self._until_stored(can_await=can_await)
        except RecursionError:  # the stack is full; whoever ends the run once more must not submit it twice
            self._idle = True
        return None

    def _until_stored(self, *, can_await: bool) -> Mark | None:
        """Wait until what was submitted is stored, if the durability asks for it, or return what the caller awaits."""
        mark = Mark()
        lag = self._backlog.add_mark(mark)
        waits = self._limits.durability == "every_run" or lag > BOUND_SECONDS / 2
        can_await = can_await and runs_event_loop()  # that blocks no thread, whatever the thread holds
        if not waits or self._outage.is_on or not (can_await or self._may_wait()):
            return None
        self._urgent.open()
        if not self._wake():
            self.write_now()
        elif can_await:
            return mark
        elif self._limits.durability == "every_run" or not runs_event_loop():
            while not mark.wait(0.1) and not self._outage.is_on and time.monotonic() - mark.at < PATIENCE_SECONDS:
                self._wake()
        return None

    def store_soon(self, seconds: float) -> None:
        """Wait until what was submitted so far is stored, but no longer than this, and not for a store that fails."""
        self._backlog.add_mark(mark := Mark())
        self._urgent.open()
        if not self._wake():
            self.write_now()
        elif not self._outage.is_on and self._may_wait():
            mark.wait(seconds)

    def _may_wait(self) -> bool:
        """Return whether this thread may wait for the writer's, which needs these locks too.

        A finalizer or a signal handler may have interrupted its own thread while that held one.
        """
        store_lock = getattr(self._store, "lock", None)
        held = (self._settling, self._pending.lock, self._writing, self._worker, store_lock)
        return may_wait() and not self.pipeline.is_mine and not any(map(is_mine, held))

    @property
    def _is_full(self) -> bool:
        return self._pending.bytes >= self._limits.max_pending_bytes

    def start_journal(self) -> None:
        """Journal from now on: a run has begun."""
        if self._idle:
            self._wake()

    def _wake(self) -> bool:
        self._idle = False
        return self._worker.wake()

    def put_later(self, record: Record) -> None:
        """Store a record soon: that of a stored run that is complete now."""
        # Without the writer's lock: a fork holds it while it waits for a lock that the caller has.
        if not (self._outage.is_on and self._pending.replace(record)):
            self._pending.add(record, None)
        if self._idle:
            self._wake()

    def _round(self) -> float | None:
        """Do one round of work; return when the next is due."""
        try:
            return self._work()
        except BaseException as error:  # noqa: BLE001 — such as a MemoryError while another error is reported
            with suppress(BaseException):
                self._outage.begin(error)
            return self._limits.journal_interval

    def _work(self) -> float | None:
        self._idle = False
        if self._store is None and not self._outage.is_on:
            with suppress(Exception):  # whatever needs it fails again, and reports it
                with self._settling:  # a fork waits, as a module that is half imported stays so in the child
                    self.pipeline.prepare()
                self.store()
        self._urgent.wait(GATHER_SECONDS)
        self._write_journal()
        self.settle(MAX_BATCH)
        self.write_pending()
        while self._queue and not self._is_full and not self._outage.is_on:
            self.settle(MAX_BATCH)
            self.write_pending()
        # Idle is set first and the queue read afterwards, so that whatever comes meanwhile is seen here or wakes the worker.
        self._idle = True
        if self._queue and not self._is_full:
            return 0.0
        is_due = self.pipeline.has_open_runs or self.pipeline.completer.is_busy or self._pending or self._queue
        return self._limits.journal_interval if is_due else None

    def settle(self, most: int | None = None, *, until: Mark | None = None, deadline: float | None = None) -> None:
        """Turn up to `most` ended runs into records that wait for the store, all by default, each on its own: a fork waits for one at most.

        An interrupt such as Ctrl-C may end this anywhere, because a thread that flushes settles runs itself. So a run leaves the queue when
        nothing is left to do for it, and an interrupted run is settled again.
        """
        if self._settling.is_mine:
            return
        for number in range(most or len(self._queue)):
            if deadline is not None and number >= MAX_BATCH and time.monotonic() > deadline:
                return
            with self._settling:
                if self._is_full or not self._queue:
                    return
                item = self._queue[0]
                if type(item) is Mark:
                    self._pending.add_mark(item)
                elif item is not self._pending.newest:
                    self._settle_one(item)
                self._queue.popleft()
                self._pending.newest = None
                if item is until:
                    return
                del item  # a run that is settled is not kept while other threads go first
            self._settling.step_back()
            if until is None and len(self._queue) < POLITE_BACKLOG:
                time.sleep(0)

    def _settle_one(self, item: Run | Lost) -> None:
        events = len(getattr(item, "events", ()))
        try:
            record, follows = self.pipeline.settle(item)
        except BaseException as error:
            self._interrupts = self._interrupts + 1 if self._interrupted is item else 1
            self._interrupted = item
            if not isinstance(error, Exception) and self._interrupts <= MAX_INTERRUPTS:
                raise
            message = redact_text(f"a run could not be finished: {type(error).__name__}: {error}", identifiers=False)
            self._outage.report(message)
            self._backlog.lose(1, message)
            return
        self._settled += 1
        self._end_journal(item)
        if record is not None:
            self._pending.add(record, follows, item)
            self._backlog.take_up(self._pending.bytes, len(record.data), events)
        elif follows is not None:
            self.pipeline.completer.add((follows,))

    def _end_journal(self, item: object) -> None:
        run_id = getattr(item, "journaled_id", None)
        if run_id is not None:
            self._ended.append(run_id)

    def put_now(self, records: Callable[[], Sequence[Record]], timeout: float = 1.0) -> bool:
        """Store records before this returns, in place of their runs' journals; False where others are busy, or the store fails."""
        if self._outage.is_on or not self._settling.acquire(timeout=timeout):
            return False
        try:
            found = records()
            with self._writing:
                self.store().put(found, ended=(ids := [record.id for record in found]))
                self._journal.end(ids)
        except Exception as error:  # noqa: BLE001
            self._outage.begin(error)
            return False
        finally:
            self._settling.release()
        return True

    def store(self) -> Store:
        """The store, opened when it is not open yet."""
        with self._writing:
            if self._store is None:
                store = self._opener()
                if self._limits.durability == "every_run" and hasattr(store, "sync_writes"):
                    store.sync_writes()
                days = self._limits.retention_days
                self._upkeep = Upkeep(store, self.pipeline, days, self._wake, lambda: self._backlog)
                self._store = store
                self._upkeep.recover()
            return self._store

    def _write_journal(self) -> None:
        if not self.pipeline.has_open_runs or self._outage.is_pausing:
            return
        try:
            if not self._journal.waits:
                self._journal.collect(self.pipeline.journal(), self._settling)
            with self._writing:
                if self._journal.write(self.store()):
                    self._outage.end()
        except Exception as error:  # noqa: BLE001
            with self._writing:  # a fork waits for this lock, and reporting may import modules
                self._outage.begin(error)

    def write_now(self) -> None:
        """Settle and write what waits, in this thread, unless it was interrupted while it does just that."""
        if self._settling.is_mine or self._writing.is_mine:
            return
        deadline = time.monotonic() + PATIENCE_SECONDS
        self.settle(deadline=deadline)
        self.write_pending(force=True, deadline=deadline)
        self.pipeline.completer.complete(0.0)
        self.write_pending(force=True, deadline=deadline)
        if self._has_exited and self.waiting:
            self._leave()

    def write_pending(self, *, force: bool = False, deadline: float | None = None) -> None:
        """Write what is settled; with `force` also while a store that failed is left alone for a moment."""
        while force or not self._outage.is_pausing:
            if self._is_writing and self._writing.is_mine:
                return  # a finalizer or a signal handler has interrupted this very thread
            left = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._writing.acquire(timeout=left):
                return
            try:
                self._is_writing = True
                if self._write_some(force=force):
                    return
            except Exception as error:  # noqa: BLE001
                self._pending.keep_batch()
                self._outage.begin(error)
                break
            finally:
                self._is_writing = False
                self._writing.release()
            self._writing.step_back()
            if deadline is not None and time.monotonic() > deadline:
                return
        if self._outage.is_on and self._pending:
            self._follow_unwritten()

    def _write_some(self, *, force: bool) -> bool:
        """Write one batch; return whether nothing is left to write."""
        store, upkeep = self.store(), self._upkeep
        if self._pending or self._ended or force:
            self._write_batch(store)
            self._outage.end()
        if self._pending or self._ended:
            return False
        upkeep.report(self._backlog)
        upkeep.do_what_is_due()
        return True

    def _write_batch(self, store: Store) -> None:
        records, entries = self._pending.batch()
        ended = list(self._ended)
        if records or ended:
            store.put(records, ended=ended)
            self._journal.end(ended)
            del self._ended[: len(ended)]
        self._written += sum(not record.completes for record in records)
        follows, marks = self._pending.take_written(entries)
        self._backlog.take_up(self._pending.bytes)
        if follows:
            self.pipeline.completer.add(follows)
        for mark in marks:  # last, because whoever waits goes on to wait for what follows
            mark.let_go()

    def _follow_unwritten(self) -> None:
        """Complete runs that the store cannot take for now, so that callers who wait for them go on."""
        with self._writing:
            follows = self._pending.detach()
        if follows:
            self.pipeline.completer.add(follows)

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Settle, write and complete all that was submitted, in this thread."""
        if self._settling.is_mine or self._writing.is_mine:
            return False
        timeout = timeout if may_wait() else 0.0
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            if not self._write_through(deadline):
                return False
            is_complete = self.pipeline.completer.complete(deadline)
            is_stored = not self._pending or self._write_through(deadline)
        except BaseException:
            for lock in (self._settling, self._writing):
                lock.let_go()  # an interrupt may come right after a lock is taken
            raise
        return is_stored and is_complete and not self._backlog.has_losses

    def _write_through(self, deadline: float | None) -> bool:
        """Write everything submitted so far; what ends meanwhile is not waited for, as there would be no end of it."""
        mark = Mark()
        self._queue.append(mark)
        while True:
            self.settle(until=mark, deadline=deadline)
            self.write_pending(force=True, deadline=deadline)
            if mark.is_passed:
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            mark.wait(0.05 if self._outage.is_on else 0.001)

    def close(self, timeout: float | None = 5.0) -> None:
        """Flush, end the thread, close the store. Later runs are settled and written at once."""
        self.flush(timeout)
        self.pipeline.completer.give_up()  # also for later runs, as no thread will wait for them
        self._closed = True  # whoever ends a run now stores it, so that what waits only gets less
        ends = time.monotonic() + PATIENCE_SECONDS
        while True:
            waiting = self.waiting
            self.flush(0.0 if self._outage.is_on else 1.0)
            if self.waiting in {0, waiting} or self._outage.is_on or time.monotonic() > ends:
                break
        if self.pipeline.has_open_runs and not self._outage.is_on and self._may_wait():
            self._worker.finish_call(STOP_SECONDS)  # this writes what they have done so far
        self._worker.stop(STOP_SECONDS)
        if self.waiting:
            self.write_now()
        if self._writing.acquire(timeout=STOP_SECONDS):  # a store that hangs stays as it is
            try:
                if self._store is not None:
                    getattr(self._store, "close", lambda: None)()
            finally:
                self._writing.release()

    def at_exit(self) -> None:
        """Write what waits, close, keep in a rescue file what the store does not take, and report losses."""
        try:
            if not self._closed or self.waiting:
                self.flush(self._limits.exit_seconds)
                if self._outage.is_on and self._outage.is_busy:
                    self.flush(self._limits.busy_exit_seconds)
                self.close(0.0)
        finally:
            self._has_exited = True
            self._leave()

    def _leave(self) -> None:
        keep, ends = getattr(self._store, "rescue", self._outage.rescue), time.monotonic() + PATIENCE_SECONDS
        while keep is not None and (self.waiting or self._ended or self._backlog.unstored_report):
            self.settle(deadline=ends)
            if not self._writing.acquire(timeout=STOP_SECONDS):
                break  # the store hangs
            try:
                self._follow_unwritten()
                if not self._rescue_pending(keep):
                    break
            finally:
                self._writing.release()
        self._backlog.report_total(self.waiting, self._outage.last_error)

    def _rescue_pending(self, keep: Callable[..., Path]) -> bool:
        """Keep the records that wait, and take them off the list; return whether there were any and it worked."""
        backlog, outage = self._backlog, self._outage
        records, entries = self._pending.batch(None)
        ended = list(self._ended)
        if not records and not ended and backlog.unstored_report is None:
            return False
        try:
            place = keep(records, ended, report=backlog.take_report(self.pipeline))
        except (OSError, sqlite3.Error, GraceError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            self._pending.keep_batch()
            outage.report(f"{outage.last_error}; and no file next to it can be written: {error}")
            return False
        # Counted before a flush that waits goes on.
        backlog.rescue(len({record.id for record in records}), place, outage.last_error)
        backlog.unstored_report = None
        for mark in self._pending.take_written(entries)[1]:
            mark.let_go()
        del self._ended[: len(ended)]
        return True

    @property
    def waiting(self) -> int:
        """How many runs were submitted and are not written."""
        return self._backlog.count() + self._pending.count()

    def stats(self) -> dict[str, Any]:
        """Return counts since the beginning: runs that memory had no room for (`dropped`), that could not be finished (`lost`), and that wait
        next to the store (`rescued`) or in memory (`pending`).
        """
        backlog, outage = self._backlog, self._outage
        return {
            "settled": self._settled,
            "written": self._written,
            "dropped": backlog.dropped,
            "lost": backlog.lost,
            "rescued": backlog.rescued,
            "pending": self.waiting,
            "pending_bytes": self._pending.bytes,
            "errors": outage.errors,
            "last_error": outage.last_error,
        }


class Pending:
    """Records in the order in which they are written, and marks between them. Runs are added while others are written."""

    def __init__(self) -> None:
        self._entries: deque[tuple[Record, Completion | None] | Mark] = deque()
        self.lock = threading.RLock()
        self._in_batch = 0
        """Entries that are being written."""
        self.bytes = 0
        self.newest: object = None
        """The run of the record that was added last."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, record: Record, follows: Completion | None, run: object = None) -> None:
        """Add the record of a run, with what follows once it is stored."""
        with self.lock:
            self.bytes += len(record.data)
            self.newest = run  # right before the next line, so that no interrupt comes between the two
            self._entries.append((record, follows))

    def add_mark(self, mark: Mark) -> None:
        """Add a mark, which is passed when everything before it is stored."""
        with self.lock:
            self._entries.append(mark)

    def replace(self, record: Record) -> bool:
        """Replace the version of a record that still waits and is not being written; return whether there is one."""
        with self.lock:
            for number, entry in enumerate(self._entries):
                if number >= self._in_batch and not isinstance(entry, Mark) and entry[0].id == record.id:
                    self.bytes += len(record.data) - len(entry[0].data)
                    self._entries[number] = (replace(record, completes=entry[0].completes), entry[1])
                    return True
        return False

    def batch(self, most: int | None = MAX_BATCH) -> tuple[list[Record], int]:
        """Return the records that are written next, or all for None, and how many entries these are with the marks between them."""
        with self.lock:
            entries = list(islice(self._entries, most))
            self._in_batch = len(entries)
        records = [entry[0] for entry in entries if not isinstance(entry, Mark)]
        return records, len(entries)

    def take_written(self, entries: int) -> tuple[list[Completion], list[Mark]]:
        """Remove the batch that was written; return what follows, and the marks between them."""
        with self.lock:
            done = [self._entries.popleft() for _ in range(entries)]
            self._in_batch = 0
            self.bytes -= sum(len(entry[0].data) for entry in done if not isinstance(entry, Mark))
        follows = [entry[1] for entry in done if not isinstance(entry, Mark) and entry[1] is not None]
        return follows, [entry for entry in done if isinstance(entry, Mark)]

    def keep_batch(self) -> None:
        """Take note that the batch was not written."""
        self._in_batch = 0

    def detach(self) -> list[Completion]:
        """Return what follows for all records, although they are not stored; nothing follows for them later."""
        follows = []
        with self.lock:
            for number, entry in enumerate(self._entries):
                if not isinstance(entry, Mark) and entry[1] is not None:
                    follows.append(entry[1])
                    self._entries[number] = (entry[0], None)
        return follows

    def count(self) -> int:
        with self.lock:
            return sum(not isinstance(entry, Mark) for entry in self._entries)
