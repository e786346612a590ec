"""The scorers of a runtime at work on its finished runs, and what happens when one hangs.

Runs are scored one after the other, in order, by a worker. Whoever waits for a run asks now and then whether it is scored. A scorer that
takes too long by then is abandoned with its thread, and another thread goes on with the next scorer.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from grace_kp.background import Resident, Worker, may_wait, watch
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grace_kp.runtime._trace_scorer import TraceScorer
    from grace_kp.trace import ReasoningTrace

ENDED = "the process ended first, or the runtime was closed"
MAX_NAME = 200


class Scoring:
    """The scores of one run, as they come."""

    __slots__ = ("clean", "entries", "is_done", "next_scorer", "trace")

    def __init__(self, trace: ReasoningTrace, clean: Callable[[str], str]) -> None:
        self.trace = trace
        self.clean = clean
        self.entries: list[dict[str, Any]] = []
        self.next_scorer = 0
        self.is_done = False


class _Call:
    """A scorer at work on a run."""

    __slots__ = ("has_ended", "scorer", "started")

    def __init__(self, scorer: int) -> None:
        self.scorer = scorer
        self.started = time.monotonic()
        self.has_ended = False
        """Set as soon as the scorer has returned, whatever else its thread still does."""


class TraceScorers(Resident):
    """All scorers of a runtime, in order."""

    def __init__(self, scorers: Sequence[TraceScorer], seconds: float, on_scored: Callable[[], object]) -> None:
        """Start no thread yet.

        Args:
            scorers: the scorers.
            seconds: how long each may take for a run.
            on_scored: called when a run is scored.
        """
        self._scorers = list(scorers)
        self._seconds = seconds
        self._on_scored = on_scored
        self._given_up = ""
        self.after_fork()
        # A scorer that flushes would wait for itself.
        self._worker = Worker(self._score_next, name="scorer", may_wait=False)
        watch(self)

    def after_fork(self) -> None:
        """Forget in the child what waited: the parent scores it."""
        self._lock = threading.Lock()
        self._queue: deque[Scoring] = deque()
        self._call: _Call | None = None
        self._abandoned: dict[int, _Call] = {}
        self._own: set[str] = set()

    def expect(self, run_id: str) -> None:
        """Prepare for a run that has ended: start the thread, as none starts at exit. A run that a scorer made is not scored."""
        if not may_wait():
            self._own.add(run_id)
        elif not self._given_up and not self._worker.is_running:
            self._worker.wake()

    def is_own(self, run_id: str) -> bool:
        """Return whether a scorer made this run itself. It answers once."""
        if run_id not in self._own:
            return False
        self._own.discard(run_id)
        return True

    def begin(self, trace: ReasoningTrace, clean: Callable[[str], str]) -> Scoring:
        """Start scoring a run.

        Args:
            trace: the run.
            clean: cleans a text as the trace's texts were cleaned.
        """
        scoring = Scoring(trace, clean)
        with self._lock:
            self._queue.append(scoring)
            if self._given_up:
                self._skip_all(self._given_up)
            else:
                self._go_on()
        return scoring

    def is_done(self, scoring: Scoring) -> bool:
        """Return whether a run is scored, after abandoning a scorer that has taken too long."""
        if scoring.is_done:
            return True
        with self._lock:
            call = self._call
            if call is not None and not call.has_ended and time.monotonic() - call.started > self._seconds:
                self._abandon(call)
                scorer = self._scorers[call.scorer]
                self._advance([_failure(scorer, f"TimeoutError: it took longer than {self._seconds:g} s")])
                self._go_on()
        return scoring.is_done

    def skip(self, reason: str) -> None:
        """Leave the runs that wait now without scores."""
        with self._lock:
            self._skip_all(reason)

    def give_up(self) -> None:
        """Leave all runs without scores, those that end later too."""
        with self._lock:
            self._given_up = ENDED
            self._skip_all(ENDED)

    def _go_on(self) -> None:
        if self._queue and not self._worker.wake():
            self._skip_all(ENDED)

    def _abandon(self, call: _Call) -> None:
        self._abandoned[call.scorer] = call
        self._call = None
        self._worker.abandon()

    def _skip_all(self, reason: str) -> None:
        if self._call is not None:
            self._abandon(self._call)
        while self._queue:
            scorer = self._scorers[self._queue[0].next_scorer]
            self._advance([{"name": scorer.name, "score": None, "skipped": reason}])

    def _advance(self, entries: list[dict[str, Any]]) -> None:
        """Go on to the next scorer of the first run, or to the next run."""
        scoring = self._queue[0]
        scoring.entries += [{**entry, "name": entry["name"][:MAX_NAME]} for entry in entries]
        scoring.next_scorer += 1
        if scoring.next_scorer == len(self._scorers):
            scoring.is_done = True
            self._queue.popleft()
            self._on_scored()

    def _score_next(self) -> float | None:
        """Ask one scorer about one run."""
        with self._lock:
            if not self._queue:
                return None
            scoring = self._queue[0]
            call = self._call = _Call(scoring.next_scorer)
            earlier = self._abandoned.get(call.scorer)
        scorer = self._scorers[call.scorer]
        if earlier is not None and not earlier.has_ended:
            entries = [_failure(scorer, "TimeoutError: its call for an earlier run has not ended yet")]
        else:
            try:
                entries = scorer.score(scoring.trace, scoring.clean)
            except BaseException as error:  # noqa: BLE001 — a user's scorer may raise anything
                entries = [_failure(scorer, ": ".join(describe_error(error, 300)))]
        call.has_ended = True
        with self._lock:
            if self._call is not call:
                return None  # abandoned meanwhile
            self._call = None
            self._advance(entries)
        return 0.0


def _failure(scorer: TraceScorer, error: str) -> dict[str, Any]:
    return {"name": scorer.name, "score": None, "error": error}
