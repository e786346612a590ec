"""Helpers for your tests: captured traces, a scripted reviewer and judge, a controlled clock, fixed ids.

Nothing here changes a global. Captures belong to their context, so tests may run concurrently in threads and tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, overload

from grace_kp.record import CAPTURE
from grace_kp.runtime import Grace

if TYPE_CHECKING:
    from grace_kp.gating import InterventionRequest, InterventionResponse
    from grace_kp.record import Run
    from grace_kp.trace import ReasoningTrace

__all__ = ["Captured", "FakeClock", "ScriptedJudge", "ScriptedReviewer", "capture", "fixed_ids", "make_grace"]

START_NS = 1_767_323_045_000_000_000  # 2026-01-02T03:04:05Z


class Captured(Sequence["ReasoningTrace"]):
    """The traces of the runs that began in this context and have ended, in the order in which they ended."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    @property
    def traces(self) -> list[ReasoningTrace]:
        """The traces as a list."""
        ended = sorted((run for run in self._runs if not run.open), key=lambda run: run.end)
        return [run.trace for run in ended]

    @property
    def still_open(self) -> int:
        """Number of runs that have not ended; a test usually wants 0."""
        return sum(run.open for run in self._runs)

    @property
    def only(self) -> ReasoningTrace:
        """The only trace.

        Raises:
            AssertionError: the number of traces is not 1; the message names their objectives.
        """
        traces = self.traces
        if len(traces) != 1:
            raise AssertionError(f"expected one trace, got {len(traces)}: {[t.task.objective for t in traces]}")
        return traces[0]

    @overload
    def __getitem__(self, index: int) -> ReasoningTrace: ...
    @overload
    def __getitem__(self, index: slice) -> list[ReasoningTrace]: ...
    def __getitem__(self, index: int | slice) -> ReasoningTrace | list[ReasoningTrace]:
        return self.traces[index]

    def __len__(self) -> int:
        return len(self.traces)


@contextmanager
def capture() -> Iterator[Captured]:
    """`with capture() as captured:` — the traces of runs that begin in this context, whichever runtime records them.

    Runs of other threads and tasks are included only if they were started inside the block.
    """
    runs: list[Run] = []
    token = CAPTURE.set(runs)
    try:
        yield Captured(runs)
    finally:
        CAPTURE.reset(token)


class ScriptedReviewer:
    """A reviewer that returns the next answer of a script each time it is asked.

    An answer is an InterventionResponse, an action ("proceed", "cancel", …), an exception that is raised, or a callable
    from the request to one of these.

    Attributes:
        requests: the requests so far, in order.
    """

    def __init__(self, *answers: Any) -> None:
        self.requests: list[InterventionRequest] = []
        self._answers = list(answers)

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Return the next answer.

        Raises:
            AssertionError: the script has no answer left.
        """
        from grace_kp.gating import InterventionResponse

        self.requests.append(request)
        if len(self.requests) > len(self._answers):
            raise AssertionError(f"asked {len(self.requests)} times, the script has {len(self._answers)} answers")
        answer = self._answers[len(self.requests) - 1]
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer) and not isinstance(answer, str):
            answer = answer(request)
        if isinstance(answer, str):
            answer = InterventionResponse(action=answer, reviewer="script")
        result: InterventionResponse = answer
        return result

    @property
    def asked(self) -> int:
        """Number of times it was asked."""
        return len(self.requests)


class ScriptedJudge:
    """A judge that returns the next reply of a script each time it is asked.

    A reply is a string, a number for both scores of a run, an exception that is raised, or a callable from the prompt to one of these. The
    last reply is repeated.

    Attributes:
        prompts: the prompts so far, in order.
    """

    def __init__(self, *replies: object) -> None:
        if not replies:
            raise ValueError("a scripted judge needs at least one reply")
        self.prompts: list[str] = []
        self._replies = replies
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        """Return the next reply."""
        with self._lock:
            self.prompts.append(prompt)
            reply = self._replies[min(len(self.prompts), len(self._replies)) - 1]
        if callable(reply):
            reply = reply(prompt)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, int | float):
            return f'{{"score": {reply}, "reason": "script", "coverage": {reply}, "coverage_reason": "script"}}'
        return str(reply)

    @property
    def asked(self) -> int:
        """Number of times it was asked."""
        return len(self.prompts)


class FakeClock:
    """A clock that advances only on request. Calling it returns seconds, as `time.monotonic` does."""

    def __init__(self, start_ns: int = START_NS, *, tick_ns: int = 0) -> None:
        """Start at `start_ns` (2026-01-02T03:04:05Z) and advance by `tick_ns` with every reading."""
        self.now_ns = start_ns
        self.tick_ns = tick_ns

    def __call__(self) -> float:
        """Return seconds."""
        return self.ns() / 1e9

    def ns(self) -> int:
        """Return nanoseconds, as `time.perf_counter_ns` and `time.time_ns` do."""
        now = self.now_ns
        self.now_ns += self.tick_ns
        return now

    def advance(self, seconds: float) -> None:
        """Advance by a number of seconds.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"seconds must be 0 or more, not {seconds}")
        self.now_ns += round(seconds * 1e9)


def fixed_ids() -> Callable[[], str]:
    """Return a function whose trace ids count up from 1: `kp:trace:00000000-0000-4000-8000-000000000001`, …"""
    numbers = count(1)
    return lambda: f"kp:trace:00000000-0000-4000-8000-{next(numbers):012d}"


def make_grace(*, clock: FakeClock | None = None, **settings: object) -> Grace:
    """Return a Grace for tests: in memory, without reviewer and models, with fixed ids and a clock that advances 1 ms with every reading.

    Any argument of `Grace` may be passed and takes precedence.
    """
    fake = clock or FakeClock(tick_ns=1_000_000)
    defaults: dict[str, Any] = {
        "store": "memory:",
        "reviewer": None,
        "embedder": None,
        "evaluator": None,
        "clock": fake.ns,
        "wall_clock": lambda: fake.now_ns,
        "new_id": fixed_ids(),
    }
    return Grace(**{**defaults, **settings})
