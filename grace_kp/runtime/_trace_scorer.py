"""Scorers of finished runs: the protocol that the runtime calls, and how each kind of value in `Grace(scorers=…)` meets it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from grace_kp.background import finish
from grace_kp.errors import SettingsError, brief, is_unit

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace

    Answer = float | bool | Mapping[str, float | bool] | None


class TraceScorer(Protocol):
    """A scorer of finished runs. `grace_kp.scorers.OnTraces` is one."""

    @property
    def name(self) -> str:
        """The name that its entries are found by."""
        ...

    def score(self, trace: ReasoningTrace, clean: Callable[[str], str], /) -> list[dict[str, Any]]:
        """Return the entries to store with the trace; `clean` cleans a text as the trace's texts were cleaned."""
        ...


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
        return {"name": name, "score": None, "error": f"{brief(score)} is no score from 0 to 1"}
    return {"name": name, "score": float(score)}


def trace_scorers(scorers: object) -> list[TraceScorer]:
    """Return the scorers in `Grace(scorers=…)`: one or several scorers, suites, trace scorers, and callables from a trace to a score.

    Raises:
        SettingsError: an item is none of these.
    """
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
    raise SettingsError(f"scorers: {brief(scorer)} is no scorer, no suite, and cannot be called")
