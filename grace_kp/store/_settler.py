"""Settling: ended runs become records that wait for the store, one at a time and in order.

An interrupt such as Ctrl-C may end a settling anywhere, because a thread that flushes settles runs itself. So a run leaves the queue when
nothing is left to do for it, and an interrupted run is settled again.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from grace_kp.background import PoliteLock, haste, is_mine, may_wait
from grace_kp.store._backlog import Mark
from grace_kp.store._pending import MAX_BATCH
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from grace_kp.store._backlog import Backlog
    from grace_kp.store._outage import Outage
    from grace_kp.store._pending import Pending
    from grace_kp.store._pipeline import Pipeline

POLITE_BACKLOG = 256
"""Up to so many waiting runs, other threads may take the interpreter after each run that is settled."""
MAX_INTERRUPTS = 10
"""How often a run is settled again. What ends each settling of it is no interrupt."""


class Settler:
    """Settles the runs of a backlog."""

    def __init__(self, pipeline: Pipeline, backlog: Backlog, pending: Pending, outage: Outage, max_bytes: int) -> None:
        """Settle nothing yet.

        Args:
            pipeline: turns a run into a record.
            backlog: the runs.
            pending: takes the records.
            outage: reports runs that cannot be settled.
            max_bytes: how many bytes of records may wait for the store.
        """
        self.lock = PoliteLock()
        self.settled = 0
        self.ended: list[str] = []
        """Runs whose journals are to be deleted when they are stored."""
        self._pipeline, self._backlog, self._pending, self._outage = pipeline, backlog, pending, outage
        self._queue = backlog.queue
        self._max_bytes = max_bytes
        self._interrupted: object = None
        self._interrupts = 0

    @property
    def is_full(self) -> bool:
        """Whether no more records may wait for the store."""
        return self._pending.bytes >= self._max_bytes

    def may_wait(self, *held: object) -> bool:
        """Return whether this thread may wait for the writer's, which needs these locks too.

        A finalizer or a signal handler may have interrupted its own thread while that held one.
        """
        held = (self.lock, self._pending.lock, *held)
        return may_wait() and not self._pipeline.is_mine and not any(map(is_mine, held))

    def settle(self, most: int | None = None, *, until: Mark | None = None, deadline: float | None = None) -> None:
        """Settle up to `most` runs, all by default, each on its own, so that a fork waits for one run at most.

        Args:
            most: how many runs and marks.
            until: the mark to stop at.
            deadline: the time of `time.monotonic` to stop at, after some runs.
        """
        if self.lock.is_mine:
            return
        # A writer that lags behind gets shorter turns of all threads: it releases the interpreter several times for each run.
        with haste if len(self._queue) > POLITE_BACKLOG else nullcontext():
            self._settle_each(most, until, deadline)

    def _settle_each(self, most: int | None, until: Mark | None, deadline: float | None) -> None:
        for number in range(most or len(self._queue)):
            if deadline is not None and number >= MAX_BATCH and time.monotonic() > deadline:
                return
            with self.lock:
                if self.is_full or not self._queue:
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
            self.lock.step_back()
            if until is None and len(self._queue) < POLITE_BACKLOG:
                time.sleep(0)

    def _settle_one(self, item: object) -> None:
        events = len(getattr(item, "events", ()))
        try:
            record, follows = self._pipeline.settle(item)
        except BaseException as error:
            if not isinstance(error, Exception) and self._may_settle_again(item):
                raise
            message = redact_text(f"a run could not be finished: {type(error).__name__}: {error}", identifiers=False)
            self._outage.report(message)
            self._backlog.lose(1, message)
            return
        self.settled += 1
        self.end_journal(item)
        if record is not None:
            self._pending.add(record, follows, item)
            self._backlog.take_up(self._pending.bytes, len(record.data), events)
        elif follows is not None:
            self._pipeline.follow((follows,))

    def _may_settle_again(self, item: object) -> bool:
        self._interrupts = self._interrupts + 1 if self._interrupted is item else 1
        self._interrupted = item
        return self._interrupts <= MAX_INTERRUPTS

    def end_journal(self, item: object) -> None:
        """Have the journal of a run deleted, if it has one."""
        run_id = getattr(item, "journaled_id", None)
        if run_id is not None:
            self.ended.append(run_id)
