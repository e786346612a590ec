"""The backlog of the writer: ended runs that wait to be settled, and marks between them.

Memory for both is bounded. The queue of runs is a deque that no lock guards: a run may end in a finalizer, while the same thread is just
adding another run.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.background import Latch, report_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from grace_kp.runtime._pipeline import Pipeline


PATIENCE_SECONDS = 60.0
"""How long a thread waits for a store that cannot write, before it goes on and its run is counted as not stored."""
MIN_WAITING = 16
"""Runs that may wait however large they are."""
LIVE_FACTOR = 1.25
"""How much larger a live run is than its JSON, at most; runs with texts of their own take 0.6 to 1 times as much."""
SAMPLE = 16
"""How many of the waiting runs are looked at to estimate their size."""
FIRST_GUESS = 2_048
"""Bytes of a run as JSON, before the first was seen."""
MAX_BATCH = 128
"""Records that are written at a time. A fork waits for one batch at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """How much a writer keeps in memory, how long it takes, and what it promises."""

    journal_interval: float = 0.05
    """Seconds between two journals of open runs."""
    max_pending_bytes: int = 256 << 20
    """Memory for runs that have ended and wait for the store."""
    retention_days: float = 0.0
    """Days that runs are kept; 0 keeps them without limit."""
    exit_seconds: float = 2.0
    """How long the exit of the interpreter waits for judgements, and for a store that cannot write."""
    busy_exit_seconds: float = 10.0
    """How long it waits for a store that another process keeps busy."""
    durability: str = "fast"
    """`fast`, `bounded` or `every_run`: whether a thread that ends a run waits until it is stored never, where the writer lags behind,
    or always."""
    overflow: str = "drop"
    """`drop` or `wait`: what happens to a run that memory has no room for. In an event loop it is dropped either way."""


def runs_event_loop() -> bool:
    """Return whether an event loop runs in this thread, which nothing here may block."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


class Mark:
    """A place in the queue. It is passed when everything before it is stored, or counted as lost."""

    __slots__ = ("_latch", "_listeners", "at", "is_passed")

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.is_passed = False
        """Whether everything before it is stored or counted as lost."""
        self._latch = Latch()
        self._listeners: deque[Callable[[], object]] = deque()

    def let_go(self) -> None:
        self.is_passed = True
        self._latch.open()
        with suppress(IndexError):
            while True:
                self._listeners.popleft()()

    def wait(self, seconds: float) -> bool:
        """Wait until it is passed, in one thread; return whether it is."""
        return self.is_passed or self._latch.wait(seconds)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait in an event loop, without blocking it, for at most `PATIENCE_SECONDS`."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def notify() -> None:
            with suppress(RuntimeError):  # the loop is closed, so no task waits
                loop.call_soon_threadsafe(resolve)

        self._listeners.append(notify)
        timer = loop.call_later(PATIENCE_SECONDS, resolve)
        if self.is_passed:
            resolve()
        try:
            yield from future
        finally:
            timer.cancel()


class Backlog:
    """Ended runs that wait to be settled, and marks between them.

    How many may wait follows from the bytes that the last runs took, so that adding a run computes nothing.
    """

    def __init__(self, max_bytes: int, *, has_marks: bool = False) -> None:
        self.queue: deque[Any] = deque()
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._marks: deque[Mark] = deque()
        """Marks behind runs whose threads may have to wait, the oldest first."""
        self._entries_per_run = 2 if has_marks else 1
        self._size = self._piece = float(FIRST_GUESS)
        self._pending_bytes = 0
        self._has_patience = True
        self.most = 0
        self.dropped = 0
        self.lost = 0
        self.rescued = 0
        self.unstored_report: tuple[str, bytes] | None = None
        """The report of losses that the store does not hold yet."""
        self.take_up(0)

    def take_up(self, pending_bytes: int, last: int | None = None, events: int = 0) -> None:
        """Compute how many runs may wait, from the bytes that already wait as JSON, and from the last run: its size and events."""
        self._pending_bytes = pending_bytes
        if last is None:
            self._has_patience = True
        else:
            piece = last / (events + 1)
            self._size = max(last, self._size + (last - self._size) / 32)
            self._piece = max(piece, self._piece + (piece - self._piece) / 32)
        runs = int((self._max_bytes - pending_bytes) / (LIVE_FACTOR * self._size))
        self.most = max(MIN_WAITING, runs) * self._entries_per_run

    def has_room(self) -> bool:
        """Return whether more than `most` runs may wait, because the waiting ones are smaller than the last that was settled."""
        waiting = len(self.queue)
        try:
            places = {waiting * number // SAMPLE for number in range(SAMPLE)}
            events = [len(getattr(self.queue[place], "events", ())) + 1 for place in places]
        except IndexError:  # it has become shorter meanwhile
            return len(self.queue) < self.most
        size = self._piece * sum(events) / len(events)
        return (waiting + 1) * LIVE_FACTOR * size <= self._max_bytes - self._pending_bytes

    def add_mark(self, mark: Mark) -> float:
        """Add a mark; return for how many seconds the oldest run with a mark has waited."""
        self.queue.append(mark)
        self._marks.append(mark)
        with suppress(IndexError):
            while self._marks[0].is_passed:
                self._marks.popleft()
            return mark.at - self._marks[0].at
        return 0.0

    def wait_for_room(self, wake: Callable[[], object]) -> bool:
        """Wait until another run may be added; False where this thread may not wait, or has waited long enough."""
        if not self._has_patience or runs_event_loop():
            return False
        ends = time.monotonic() + PATIENCE_SECONDS
        while len(self.queue) >= self.most and not self.has_room():
            if time.monotonic() > ends:
                self._has_patience = False  # until something is written
            if not self._has_patience:
                return False
            wake()
            time.sleep(0.005)
        return True

    def drop(self) -> None:
        """Count a run that is dropped; the first is reported at once."""
        with self._lock:
            self.dropped += 1
            is_first = self.dropped == 1
        if is_first:
            report_loss(
                f"a run was dropped, and more may follow: the store is behind by {self._max_bytes / (1 << 20):g} MB of runs (max_pending_mb)"
            )

    def lose(self, runs: int, why: str) -> None:
        """Count runs that are not in the store for another reason, and report them at once."""
        with self._lock:
            self.lost += runs
        report_loss(f"{runs:,} {'run is' if runs == 1 else 'runs are'} not in the store: {why}")

    def rescue(self, runs: int, place: object, error: str | None) -> None:
        """Count runs that are kept next to the store as the process ends, and report the place."""
        self.rescued += runs
        if runs:
            what = "1 run waits" if runs == 1 else f"{runs:,} runs wait"
            why = f"; {error}" if error else ""
            report_loss(f"{what} in {place} and will be stored when the store is next opened{why}")

    def report_total(self, waiting: int, error: str | None) -> None:
        """Report how many runs are not in the store as the process ends, `waiting` because they were never written; nothing if none."""
        parts = {"dropped": self.dropped, "lost": self.lost, "never written": waiting}
        counts = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        if counts:
            why = f"; {error}" if waiting and error else ""
            report_loss(f"runs of this process that are not in the store: {counts}{why}")

    def take_report(self, pipeline: Pipeline) -> tuple[str, bytes] | None:
        """Return the name of this process and what it could not record; None where the store has that already."""
        self.unstored_report = pipeline.report(self.dropped, self.lost) or self.unstored_report
        return self.unstored_report

    @property
    def has_losses(self) -> bool:
        """Whether any run is not in the store that should be."""
        return bool(self.dropped or self.lost or self.rescued)

    def count(self) -> int:
        while True:
            with suppress(RuntimeError):  # changed meanwhile
                return sum(type(item) is not Mark for item in self.queue)
