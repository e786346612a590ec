"""A trace as far as a decision may see it: its steps up to a number, the calls and results among them, and the answer of a run that has ended.

The document may come from anywhere, so every part is checked. Whatever follows the decision, and every field that could hold a label, stays
unread. The features themselves are computed in `_features`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.calibrate._wording import shows_failure

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace

_FAILED = ("error", "cancelled")
_ENDED = ("ok", "error", "cancelled", "closed")
MAX_LATENCY = 1e12
"""Milliseconds; more than any run takes, and a number that can be summed."""
NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True)
class SeenCall:
    """A call of a tool, as far as it is known."""

    name: str
    signature: str
    """The name and the arguments as text, to recognise a repeated call."""
    size: int
    """Characters of the arguments."""
    record: Mapping[str, Any]
    """The entry of `grace.calls`; empty without one."""
    result: str | None = None
    """The text of the result; None for a call without a result."""
    latency: float | None = None
    """Milliseconds that the call took. It counts once there is a result: a trace states it for calls that were still running, too."""
    failed: bool = False


@dataclass(slots=True)
class Transcript:
    """What a decision may see of a run."""

    kinds: list[str] = field(default_factory=list)
    """The types of the steps."""
    calls: list[SeenCall] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """The texts of the results of calls."""
    messages: list[str] = field(default_factory=list)
    """Observations that no call returned: what a user or another agent wrote."""
    thoughts: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    objective: str = ""
    answer: str | None = None
    """The answer; None before the run has ended."""
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    """`grace.evaluation`; empty before the run has ended."""


def transcript_of(trace: Mapping[str, Any] | ReasoningTrace, *, has_ended: bool, upto: int | None) -> Transcript:
    """Return what a decision may see of a trace.

    Args:
        trace: the trace or its dict form. Parts of unknown form are left out.
        has_ended: whether the answer exists.
        upto: number of steps that exist; None for all.
    """
    document = trace if isinstance(trace, Mapping) else trace.to_dict()
    seen = Transcript()
    steps = [step for step in _list(document.get("steps"))[:upto] if isinstance(step, Mapping)]
    while steps and steps[-1].get("type") == "error_recovery":
        # A run that ended well is said to have recovered from its last error. A reader that knows the label adds this step.
        steps.pop()
    grace = _mapping(document.get("grace"))
    _read_steps(seen, steps, [call for call in _list(grace.get("calls")) if isinstance(call, Mapping)])
    seen.objective = _text(_mapping(document.get("task")).get("objective"))
    if has_ended:
        seen.answer = _text(_mapping(document.get("outcome")).get("result_summary"))
        seen.evaluation = _mapping(grace.get("evaluation"))
    return seen


def _read_steps(seen: Transcript, steps: list[Mapping[str, Any]], records: list[Mapping[str, Any]]) -> None:
    by_call = {number: record for record in records if type(number := record.get("tool_call")) is int}
    waiting: deque[SeenCall] = deque()
    linked: dict[int, SeenCall] = {}
    last: SeenCall | None = None
    for place, step in enumerate(steps):
        kind = step.get("type")
        kind = kind if isinstance(kind, str) else str(getattr(kind, "value", kind))
        number = step.get("step_id")
        number = number if type(number) is int else place
        seen.kinds.append(kind)
        latency = step.get("latency_ms")
        took = min(latency, MAX_LATENCY) if isinstance(latency, int | float) and 0 <= latency < math.inf else None
        content = _text(step.get("content"))
        if kind == "tool_call":
            last = _call(step, by_call.get(number, NOTHING))
            last.latency = took
            seen.calls.append(last)
            if type(observation := last.record.get("observation")) is int:
                linked[observation] = last
            else:
                waiting.append(last)
        elif kind == "observation":
            last = linked.pop(number, None)
            if last is None and number not in linked and waiting and not waiting[0].record:
                last = waiting.popleft()
            _returned(seen, last, content)
        elif kind == "error_recovery":
            if last is not None and not last.record:
                last.failed = True
            last = None
        else:
            last = None
            if took is not None:
                seen.latencies.append(took)
            if kind == "thought":
                seen.thoughts.append(content)


def _call(step: Mapping[str, Any], record: Mapping[str, Any]) -> SeenCall:
    tool = step.get("tool")
    name = _text(_mapping(tool).get("name"))
    arguments = step.get("input")
    try:
        shown = "" if arguments is None else str(arguments)
    except RecursionError:
        shown = "nested"
    return SeenCall(name, f"{name} {shown}", len(shown), record)


def _returned(seen: Transcript, call: SeenCall | None, content: str) -> None:
    if call is None:
        seen.messages.append(content)
        return
    seen.results.append(content)
    call.result = content
    if call.latency is not None:
        seen.latencies.append(call.latency)
    call.failed = call.record.get("status") in _FAILED or shows_failure(content)


def finished_calls(seen: Transcript) -> list[Any]:
    """Return the entries of `grace.calls` whose results can be seen."""
    return [call.record for call in seen.calls if call.result is not None and call.record.get("status") in _ENDED]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else NOTHING


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
