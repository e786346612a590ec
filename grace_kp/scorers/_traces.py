"""A trace's tool calls as operations, so that what scorers say of edits can be said of any agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.scorers._edits import Operation

if TYPE_CHECKING:
    from grace_kp.trace import ReasoningTrace


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
    document = trace if isinstance(trace, Mapping) else trace.to_dict()
    found = []
    for step in document.get("steps") or ():
        if step.get("type") != "tool_call":
            continue
        given = step.get("input") or {}
        number, block, text = given.get(index), given.get(target), given.get(content)
        found.append(
            Operation(
                (step.get("tool") or {}).get("name", ""),
                None if block is None else str(block),
                number if isinstance(number, int) and not isinstance(number, bool) else None,
                given.get(position),
                text if isinstance(text, str) else None,
            )
        )
    return found
