"""A trace as the result of an agent, so that what scorers say of edits can be said of any run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.scorers._edits import EditResult, Operation

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace

ANSWER = "result"
"""The page on which a run's answer stands."""


def operations_from_trace(
    trace: ReasoningTrace | Mapping[str, Any],
    target: str = "path",
    position: str = "position",
    content: str = "content",
    index: str = "index",
) -> list[Operation]:
    """The tool calls of a trace, in order: the type is the tool's name, the rest is read from its input.

    Args:
        trace: a trace, as model or in its dict form.
        target: the input that names the target block; where a call has none it is None.
        position: the input that says where.
        content: the input with the content.
        index: the input with the target's index.
    """
    found = []
    for step in _calls(_document(trace)):
        given = step.get("input") or {}
        number, block, text = given.get(index), given.get(target), given.get(content)
        found.append(
            Operation(
                str((step.get("tool") or {}).get("name") or ""),
                None if block is None else str(block),
                number if isinstance(number, int) and not isinstance(number, bool) else None,
                given.get(position),
                text if isinstance(text, str) else None,
            )
        )
    return found


def result_from_trace(trace: ReasoningTrace | Mapping[str, Any], **inputs: str) -> EditResult:
    """A trace as a result: its operations, which of them went well, how long the run took, and its answer as the page `result`.

    Blocks are not known of a trace.

    Args:
        trace: a trace, as model or in its dict form.
        inputs: which inputs of the tools are meant, as `operations_from_trace` takes them.
    """
    document = _document(trace)
    grace = document.get("grace") or {}
    listed = grace.get("calls")  # a trace from elsewhere may hold anything here
    calls = [call for call in listed if isinstance(call, Mapping)] if isinstance(listed, list) else []
    ended = {
        call["tool_call"]: call.get("status") == "ok"
        for call in calls
        if isinstance(call.get("tool_call"), int | float)
    }
    numbers = [step.get("step_id") for step in _calls(document)]
    taken = grace.get("duration_ms")
    return EditResult(
        operations_from_trace(document, **inputs),
        applied=[ended[number] for number in numbers] if all(number in ended for number in numbers) else None,
        blocks_before=None,
        blocks_after=None,
        pages={ANSWER: (document.get("outcome") or {}).get("result_summary") or ""},
        duration_ms=taken if isinstance(taken, int | float) and not isinstance(taken, bool) else None,
    )


def is_trace(value: Any) -> bool:
    """Whether a value is a trace, as model or in its dict form."""
    if isinstance(value, Mapping):
        return "steps" in value
    return hasattr(value, "steps") and hasattr(value, "to_dict")


def as_result(actual: Any) -> EditResult:
    """What scorers look at: a trace as a result, anything else as it is."""
    result: EditResult = result_from_trace(actual) if is_trace(actual) else actual
    return result


def _document(trace: ReasoningTrace | Mapping[str, Any]) -> Mapping[str, Any]:
    return trace if isinstance(trace, Mapping) else trace.to_dict()


def _calls(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [step for step in document.get("steps") or () if step.get("type") == "tool_call"]
