"""The user's scorers of finished runs: what `Grace(scorers=…)` may hold, and the thread that calls them, in order, with a deadline."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from grace_kp.background import DeadlineExceeded, Resident, Worker, call_within, finish, may_wait, watch
from grace_kp.errors import SettingsError, brief, is_unit
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace

    Answer = float | bool | Mapping[str, float | bool] | None

ENDED = "the process ended first, or the runtime was closed"
MAX_NAME = 200


class TraceScorer(Protocol):
    """A scorer of finished runs. `grace_kp.scorers.OnTraces` is one."""

    @property
    def name(self) -> str:
        """The name that its entries are found by."""

    def score(self, trace: ReasoningTrace, clean: Callable[[str], str], /) -> list[dict[str, Any]]:
        """Return the entries to store with the trace; `clean` cleans a string like the strings of the trace."""


class CallableScorer:
    """A user's callable from a trace to a score, or to several by name."""

    def __init__(self, call: Callable[[ReasoningTrace], Answer]) -> None:
        self._call = call
        self.name = str(getattr(call, "__name__", type(call).__name__))

    def score(self, trace: ReasoningTrace, clean: Callable[[str], str] | None = None, /) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return the entries to store; none where the callable returns None."""
        answer = self._call(trace)
        scores = finish(answer) if inspect.isawaitable(answer) else answer
        named = scores if isinstance(scores, Mapping) else {self.name: scores}
        return [_entry(str(name), score) for name, score in named.items() if score is not None]


def _entry(name: str, score: Any) -> dict[str, Any]:
    if type(score).__module__ == "numpy" and hasattr(score, "item"):
        score = score.item()
    if isinstance(score, bool):
        return {"name": name, "score": float(score), "passed": score}
    if not is_unit(score):
        return {"name": name, "score": None, "error": f"{brief(score)} is not a score from 0 to 1"}
    return {"name": name, "score": float(score)}


def trace_scorers(scorers: object) -> list[TraceScorer]:
    """Return the scorers in `Grace(scorers=…)`: one or several scorers, suites, trace scorers, and callables from a trace to a score."""
    listed = list(scorers) if isinstance(scorers, Sequence) and not isinstance(scorers, str) else [scorers]
    return [_trace_scorer(scorer) for scorer in listed]


def _trace_scorer(scorer: object) -> TraceScorer:
    if isinstance(scorer, type):
        raise SettingsError(f"scorers: {scorer.__name__} is a class; give an object of it")
    has_score = callable(getattr(scorer, "score", None))
    has_type = isinstance(getattr(scorer, "type", None), str)
    if callable(scorer) and not (has_score and has_type):
        return CallableScorer(scorer)
    if has_score and not has_type and isinstance(getattr(scorer, "name", None), str):
        return cast("TraceScorer", scorer)
    # The registry line: scorers that compare results, a user's own included, meet the protocol through this adapter.
    from grace_kp.scorers import OnTraces, Suite

    if (has_score and has_type) or isinstance(scorer, Suite):
        return OnTraces(scorer)
    raise SettingsError(f"scorers: {brief(scorer)} is not a scorer or a suite, and cannot be called")


class Scoring:
    __slots__ = ("clean", "entries", "is_done", "next_scorer", "trace")

    def __init__(self, trace: ReasoningTrace, clean: Callable[[str], str]) -> None:
        self.trace = trace
        self.clean = clean
        self.entries: list[dict[str, Any]] = []
        self.next_scorer = 0
        self.is_done = False


class TraceScorers(Resident):
    """All scorers of a runtime, in order. Each may take `seconds` for a run."""

    def __init__(self, scorers: Sequence[TraceScorer], seconds: float, on_scored: Callable[[], object]) -> None:
        self._scorers = list(scorers)
        self._seconds = seconds
        self._on_scored = on_scored
        self._given_up = False
        self.after_fork()
        # A scorer that flushes would wait for itself.
        self._worker = Worker(self._score_next, name="scorer", may_wait=False)
        watch(self)

    def after_fork(self) -> None:
        """Forget in the child what waited: the parent scores it."""
        self._lock = threading.Lock()
        self._queue: deque[Scoring] = deque()
        self._ended: dict[int, threading.Event] = {}
        """Whether the last call of each scorer has ended."""
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
        scoring = Scoring(trace, clean)
        with self._lock:
            self._queue.append(scoring)
            if self._given_up or not self._worker.wake():
                self._skip_all(ENDED)
        return scoring

    def skip(self, reason: str) -> None:
        """Leave the runs that wait now without scores."""
        with self._lock:
            self._skip_all(reason)

    def give_up(self) -> None:
        """Leave all runs without scores, later ones too."""
        with self._lock:
            self._given_up = True
            self._skip_all(ENDED)

    def _skip_all(self, reason: str) -> None:
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
        with self._lock:
            if not self._queue:
                return None
            scoring = self._queue[0]
            number = scoring.next_scorer
        entries = self._ask(number, scoring)
        with self._lock:
            if not scoring.is_done:  # else it was skipped meanwhile
                self._advance(entries)
        return 0.0

    def _ask(self, number: int, scoring: Scoring) -> list[dict[str, Any]]:
        scorer, earlier, ended = self._scorers[number], self._ended.get(number), threading.Event()

        def call() -> list[dict[str, Any]]:
            try:
                return scorer.score(scoring.trace, scoring.clean)
            finally:
                ended.set()

        if earlier is not None and not earlier.is_set():
            error = "TimeoutError: its call for an earlier run has not ended yet"
            return [{"name": scorer.name, "score": None, "error": error}]
        self._ended[number] = ended
        try:
            return call_within(self._seconds, call, name="scorer", or_inline=True)
        except DeadlineExceeded:
            error = f"TimeoutError: it took longer than {self._seconds:g} s"
        except BaseException as raised:  # noqa: BLE001 — a user's scorer may raise anything
            error = ": ".join(describe_error(raised, 300))
        return [{"name": scorer.name, "score": None, "error": error}]
