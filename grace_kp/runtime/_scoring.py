"""The thread in which scorers look at finished runs, and what happens when one does not come back.

Runs are scored one after the other, in their order. Whoever waits for a run asks now and then whether it is done; a scorer that takes too long
is left to itself then, with its thread, and another thread goes on with the next scorer.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.trace import ReasoningTrace

ENDED = "the process ended first, or the runtime was closed"
IDLE_SECONDS = 5.0
MAX_NAME = 200


class Scoring:
    """What scorers say of one run, or will."""

    __slots__ = ("clean", "done", "found", "number", "trace")

    def __init__(self, trace: ReasoningTrace, clean: Callable[[str], str]) -> None:
        self.trace = trace
        self.clean = clean
        self.found: list[dict[str, Any]] = []
        self.number = 0
        """The scorer that is asked next."""
        self.done = False


class _Call:
    """A scorer at work on a run."""

    __slots__ = ("ended", "number", "start")

    def __init__(self, number: int) -> None:
        self.number = number
        self.start = time.monotonic()
        self.ended = False
        """Set as soon as the scorer has come back, whatever else its thread still does."""


class _Worker(threading.Thread):
    never_waits = True
    """A scorer that flushes would wait for itself."""
    call: _Call | None = None


class TraceScorers:
    """All scorers of a runtime, in their order."""

    def __init__(self, scorers: Sequence[Any], seconds: float, landed: Callable[[], Any]) -> None:
        """Take the scorers.

        Args:
            scorers: each has a `name` and `score(trace, clean)`.
            seconds: how long each may take for a run.
            landed: a method, told when a run is done; its object is not kept alive.
        """
        self._scorers = list(scorers)
        self._seconds = seconds
        self._landed = weakref.WeakMethod(landed)
        self._given_up = ""
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child the thread is not there, and what it was at is the parent's."""
        self._changed = threading.Condition()
        self._queue: deque[Scoring] = deque()
        self._worker: _Worker | None = None
        self._away: dict[int, _Call] = {}
        self._own: set[str] = set()

    def expect(self, run_id: str) -> None:
        """A run has ended. The thread is started now, as none can be when the interpreter exits; runs of a scorer's own are not scored."""
        if isinstance(threading.current_thread(), _Worker):
            self._own.add(run_id)
        elif self._worker is None and not self._given_up:
            with self._changed:
                self._start()

    def is_own(self, run_id: str) -> bool:
        """Whether a run was one that a scorer made itself."""
        if run_id not in self._own:
            return False
        self._own.discard(run_id)
        return True

    def begin(self, trace: ReasoningTrace, clean: Callable[[str], str]) -> Scoring:
        """Set the scoring of a run going.

        Args:
            trace: the run.
            clean: how texts are cleaned before they stand in a trace.
        """
        scoring = Scoring(trace, clean)
        with self._changed:
            self._queue.append(scoring)
            if self._given_up:
                self._skip_all(self._given_up)
            else:
                self._start()
                self._changed.notify()
        return scoring

    def is_done(self, scoring: Scoring) -> bool:
        """Whether a run is done; a scorer that has taken too long is left to itself."""
        if scoring.done:
            return True
        with self._changed:
            worker = self._worker
            call = None if worker is None else worker.call
            if call is not None and not call.ended and time.monotonic() - call.start > self._seconds:
                self._leave(call)
                self._advance(
                    [_failed(self._scorers[call.number], f"TimeoutError: it took longer than {self._seconds:g} s")]
                )
                self._start()
        return scoring.done

    def skip(self, why: str) -> None:
        """Ask no scorer of the runs that wait now."""
        with self._changed:
            self._skip_all(why)

    def give_up(self) -> None:
        """Wait for none of them any longer, now and for runs that end later."""
        with self._changed:
            self._given_up = ENDED
            self._skip_all(ENDED)

    def _leave(self, call: _Call) -> None:
        self._away[call.number] = call
        self._worker = None

    def _skip_all(self, why: str) -> None:
        worker = self._worker
        if worker is not None and worker.call is not None:
            self._leave(worker.call)
        while self._queue:
            scoring = self._queue[0]
            name = self._scorers[scoring.number].name
            self._advance([{"name": name[:MAX_NAME], "score": None, "skipped": why}])
        self._changed.notify_all()

    def _start(self) -> None:
        if self._worker is not None or not (self._queue or not self._given_up):
            return
        worker = _Worker(target=_work, args=(weakref.ref(self),), name="grace_kp scorer", daemon=True)
        self._worker = worker
        try:
            worker.start()
        except RuntimeError:  # none can be started any more when the interpreter exits
            self._worker = None
            self._skip_all(ENDED)

    def _advance(self, told: list[dict[str, Any]]) -> None:
        """The next scorer of the run that is being scored, or the next run."""
        scoring = self._queue[0]
        scoring.found += [{**one, "name": one["name"][:MAX_NAME]} for one in told]
        scoring.number += 1
        if scoring.number == len(self._scorers):
            scoring.done = True
            self._queue.popleft()
            landed = self._landed()
            if landed is not None:
                landed()

    def _round(self, worker: _Worker) -> bool:
        """Ask one scorer about one run; whether the thread goes on."""
        with self._changed:
            if self._worker is worker and not self._queue:
                self._changed.wait(IDLE_SECONDS)
            if self._worker is not worker:
                return False
            if not self._queue:
                self._worker = None
                return False
            scoring = self._queue[0]
            number = scoring.number
            call = worker.call = _Call(number)
            away = self._away.get(number)
        one = self._scorers[number]
        if away is not None and not away.ended:
            told = [_failed(one, "TimeoutError: its call for an earlier run has not ended yet")]
        else:
            try:
                told = one.score(scoring.trace, scoring.clean)
            except BaseException as error:  # noqa: BLE001 — a scorer of the user's may raise anything
                told = [_failed(one, ": ".join(describe_error(error, 300)))]
        call.ended = True
        with self._changed:
            if self._worker is not worker:
                return False
            worker.call = None
            self._advance(told)
        return True


def _failed(one: Any, error: str) -> dict[str, Any]:
    return {"name": one.name, "score": None, "error": error}


def _work(reference: weakref.ref[TraceScorers]) -> None:
    worker = threading.current_thread()
    assert isinstance(worker, _Worker)  # noqa: S101
    while True:
        scorers = reference()
        if scorers is None or not scorers._round(worker):
            return
