"""Traces as results: tool calls become operations, so that scorers of edits can score any run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.scorers._edits import EditResult, Operation

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace

    Actual = EditResult | ReasoningTrace | Mapping[str, Any]
    """What an agent did: a result, or the trace of its run."""

ANSWER = "result"
"""The title of the page that holds the answer of a run."""


def operations_from_trace(
    trace: ReasoningTrace | Mapping[str, Any],
    target: str = "path",
    position: str = "position",
    content: str = "content",
    index: str = "index",
) -> list[Operation]:
    """Return the tool calls of a trace as operations, in order. The type is the tool's name; the rest is read from the tool's arguments.

    Args:
        trace: a trace, as model or in its dict form.
        target: the argument that names the target block; a call without it has no target.
        position: the argument with the position.
        content: the argument with the content.
        index: the argument with the index of the target.
    """
    operations = []
    for step in _tool_calls(_document(trace)):
        arguments = step.get("input") or {}
        number, block, text = arguments.get(index), arguments.get(target), arguments.get(content)
        operations.append(
            Operation(
                str((step.get("tool") or {}).get("name") or ""),
                None if block is None else str(block),
                number if isinstance(number, int) and not isinstance(number, bool) else None,
                arguments.get(position),
                text if isinstance(text, str) else None,
            )
        )
    return operations


def result_from_trace(trace: ReasoningTrace | Mapping[str, Any], **inputs: str) -> EditResult:
    """Return a trace as a result: operations, which of them succeeded, the duration, and the answer as the page `result`.

    A trace does not contain the blocks of a document, so they are unknown.

    Args:
        trace: a trace, as model or in its dict form.
        inputs: which tool arguments hold target, position, content and index, as `operations_from_trace` takes them.
    """
    document = _document(trace)
    grace = document.get("grace") or {}
    calls = grace.get("calls")  # a trace from elsewhere may hold any value here
    succeeded = {
        call["tool_call"]: call.get("status") == "ok"
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, Mapping) and isinstance(call.get("tool_call"), int | float)
    }
    numbers = [step.get("step_id") for step in _tool_calls(document)]
    duration = grace.get("duration_ms")
    return EditResult(
        operations_from_trace(document, **inputs),
        applied=[succeeded[number] for number in numbers] if all(number in succeeded for number in numbers) else None,
        blocks_before=None,
        blocks_after=None,
        pages={ANSWER: (document.get("outcome") or {}).get("result_summary") or ""},
        duration_ms=duration if isinstance(duration, int | float) and not isinstance(duration, bool) else None,
    )


def as_result(actual: Actual) -> EditResult:
    """Return a trace as a result, and any other value unchanged."""
    if isinstance(actual, Mapping):
        return result_from_trace(actual) if "steps" in actual else actual  # type: ignore[return-value]
    if not isinstance(actual, EditResult) and hasattr(actual, "steps") and hasattr(actual, "to_dict"):
        return result_from_trace(actual)
    return actual  # type: ignore[return-value]


def _document(trace: ReasoningTrace | Mapping[str, Any]) -> Mapping[str, Any]:
    return trace if isinstance(trace, Mapping) else trace.to_dict()


def _tool_calls(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [step for step in document.get("steps") or () if step.get("type") == "tool_call"]
