"""Records ended events: calls of models, results of tools, searches by plain functions, and failures that no callback reports.

Callbacks do not report calls of unknown tools, output that does not fit a schema, and attempts of a node. Their failures become failed
calls in the trace. A success is recorded only after a failure of the same name in the same run, so that a successful retry counts as
one failure and one success.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.integrations.langchain._frames import input_by_name
from grace_kp.integrations.langchain._messages import answer_of, documents_in, fields_of, reply_of, text_of, tool_result
from grace_kp.record import CLOSED, FAILED, HOST, NOT_CAPTURED, RETRIEVER, TOOL, Call, ModelCall, call_in
from grace_kp.trace import render_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.outputs import LLMResult

    from grace_kp.integrations.langchain._frames import Attempt, Frame, Specs


def record_search(frame: Frame, outputs: object, specs: Specs) -> None:
    """Record a chain without inner events as a retriever if it returned documents that were not its input."""
    scored = documents_in(outputs)
    inputs = frame.inputs.values() if isinstance(frame.inputs, Mapping) else [frame.inputs]
    if scored is None or (not scored and any(documents_in(part) is not None for part in inputs)):
        return
    call = call_in(frame.here, specs(RETRIEVER, frame.name, None), input_by_name(frame.inputs, "query"))
    if call is not None:
        call.start = frame.start
        call.close(outputs)
    frame.mark_searched()


def close_tool(frame: Frame, call: Call, output: object) -> None:
    result, error, along = tool_result(output)
    if error is not None:
        call.refuse("ToolError", error)
        return
    if not frame.searched and documents_in(along) is not None:
        call.read_hits(along)
        frame.mark_searched()
    call.close(result)


def record_model(frame: Frame, response: LLMResult | None, error: BaseException | None = None) -> str:
    """Record an ended call of a model; return its output, which is partial after an exception."""
    run = frame.run
    reply: tuple[str, dict[str, int], str | None] = ("", {}, None) if response is None else reply_of(response)
    text, usage, model = reply
    if error is not None and frame.tokens and (pieces := "".join(frame.tokens)).startswith(text):
        text = pieces  # the response of a failed stream lacks its last piece
    if text:
        text = render_text(text, run.max_text) if run.owner.capture_output else NOT_CAPTURED
        frame.home.last = text
    call = ModelCall(
        str(model or frame.name), start=frame.start, end=run.clock(), text=text, usage=usage or None, place=frame.place
    )
    if error is not None:
        status = HOST.status_after(error)
        call.status = "error" if status == FAILED else status
        call.error = None if status == CLOSED else run.owner.describe(error)
    run.model_called(call)
    return text


def left_in(root: Frame, frames: Mapping[int, Frame]) -> tuple[Frame, ...]:
    if root.parent is not None:
        return ()
    found = (frames.get(key) for key in root.keys or ())
    return tuple(frame for frame in found if frame is not None and frame is not root)


def streamed_so_far(frame: Frame, left: Sequence[Frame], outputs: object) -> Any:
    """Record the models that still stream when the reader leaves; return the streamed part of the result."""
    text = ""
    for part in left:
        if part.tokens:
            text = record_model(part, None, GeneratorExit())
    streamed = answer_of(outputs) if outputs is not None else None
    if isinstance(streamed, str) and text.startswith(streamed):
        return text
    return streamed if streamed is not None else text or answer_of(frame.last)


MAX_MESSAGES = 1_000
MAX_SEEN = 16
MAX_CAUSES = 10
_HOOKS = (".before_agent", ".before_model", ".after_model", ".after_agent")
"""Nodes of an agent's middleware. If they answer a call, they reject it; the tool did not fail."""


def failures_of(frame: Frame) -> dict[str, Attempt | None]:
    if frame.home.failures is None:
        frame.home.failures = {}
    return frame.home.failures


def mark_recorded(frame: Frame, error: BaseException) -> bool:
    """Note in the surrounding node or run that an exception is in the trace, so that it counts once; return whether it is new there."""
    above: Any = frame
    while not above.is_node and above is not above.home:
        above = above.parent or above.home
    is_new = all(error is not known for known in above.raised)
    above.raised = (*above.raised[-MAX_SEEN:], error)
    return is_new


def _passes_through(frame: Frame, error: BaseException) -> bool:
    """Return whether the trace already holds an exception that leaves a node, or its cause."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None or any(found is known for known in frame.raised):
            return found is not None
        found = found.__cause__ or found.__context__
    return False


class Unreported:
    """Records failures that no callback reports."""

    def __init__(self, specs: Specs) -> None:
        self._specs = specs

    # Attempts of a node

    def node_started(self, frame: Frame) -> None:
        """Record the previous attempt as failed if a node begins again at the same place."""
        failures = frame.home.failures
        if failures and frame.place is not None and (before := failures.get(frame.place)) is not None:
            self._failed_attempt(*before)
            failures[frame.place] = None

    def part_failed(self, frame: Frame, error: BaseException) -> None:
        """Record a failed node or parser. The first failure of a node counts only once the node is tried again."""
        failures = failures_of(frame)
        if frame.is_parser and mark_recorded(frame, error):  # a stream passes the error of a model on
            failures[f"parser:{frame.name}"] = None
            self._record(frame, frame.name, {"input": frame.inputs}, error=error, start=frame.start)
        if not frame.is_node or frame.place is None or _passes_through(frame, error):
            return
        described, end = frame.run.owner.describe(error), frame.run.clock()
        if frame.place in failures:
            self._failed_attempt(frame, described, end)
        else:
            failures[frame.place] = (frame, described, end)

    def _failed_attempt(self, frame: Frame, error: tuple[str, str], end: int) -> None:
        call = self._record(frame, frame.name, {"input": frame.inputs}, error=error, start=frame.start)
        if call is not None:
            call.end = end

    # Messages

    def node_ended(self, frame: Frame, outputs: object) -> None:
        """Record the failed calls in the output of a node or chain."""
        failures = frame.home.failures
        if frame.is_node and failures and frame.place in failures:
            del failures[frame.place]
            self._record(frame, frame.name, {"input": frame.inputs}, result=outputs, start=frame.start)
        if type(outputs) is str:
            return  # a string holds no messages
        updates = _updates(outputs)
        if frame.is_node and updates:
            frame.home.last = updates[-1]
        if frame.is_node and frame.name.endswith(_HOOKS):
            return
        messages = list(_new_messages(outputs, updates))
        failed = [message for message in messages if _is_tool(message) and message.status == "error"]
        if failed:
            self._record_failed_calls(frame, messages, failed)
        elif frame.is_agent_model and any(_is_tool(message) for message in messages):
            self._record_structured_output(frame, messages, updates)

    def _record_failed_calls(self, frame: Frame, messages: list[Any], failed: list[Any]) -> None:
        calls = {id(event): event for event in frame.run.events if type(event) is Call and event.start >= frame.start}
        is_agent = any(fields_of(message).get("type") == "ai" for message in messages)
        if is_agent and any(call.child is not None for call in calls.values()):
            return  # the trace of the nested agent holds these calls
        old = {message.tool_call_id for message in _messages_in(frame.inputs) if _is_tool(message)}
        proposed = _open_calls(frame.inputs)
        reported = [call.spec.name for call in calls.values()]
        for message in failed:
            if message.tool_call_id in old and message.tool_call_id not in proposed:
                continue
            call = proposed.get(message.tool_call_id, {})
            name = str(message.name or call.get("name") or "tool")
            if name in reported:
                reported.remove(name)
            elif not any(entry.get("action") == name for entry in frame.run.decisions):
                error = "ToolError", text_of(message) or "the tool reported an error"
                self._record(frame, name, call.get("args") or {}, error=error)

    def _record_structured_output(self, frame: Frame, messages: list[Any], updates: list[Mapping[str, Any]]) -> None:
        """Record structured output, the only calls that an agent's model node answers itself."""
        proposed = {call["id"]: call for message in messages for call in fields_of(message).get("tool_calls") or ()}
        answers = [message for message in messages if _is_tool(message) and message.tool_call_id in proposed]
        failed = all(update.get("structured_response") is None for update in updates)
        failures = failures_of(frame)
        for message in answers:
            call, text = proposed[message.tool_call_id], text_of(message)
            name, arguments = str(call["name"]), call.get("args") or {}
            if failed:
                failures[f"schema:{name}"] = None
                self._record(frame, name, arguments, error=("StructuredOutputError", text))
            elif f"schema:{name}" in failures:
                self._record(frame, name, arguments, result=text)

    # Parsers and models

    def parser_ended(self, frame: Frame, outputs: object) -> None:
        if f"parser:{frame.name}" in (frame.home.failures or ()):
            self._record(frame, frame.name, {"input": frame.inputs}, result=outputs)

    def model_ended(self, frame: Frame, response: object) -> None:
        """Record proposed calls whose arguments cannot be read."""
        for generations in getattr(response, "generations", None) or ():
            for generation in generations[:1]:
                message = getattr(generation, "message", None)
                for call in getattr(message, "invalid_tool_calls", None) or ():
                    error = "InvalidToolCall", str(call.get("error") or "the arguments cannot be read")
                    self._record(frame, str(call.get("name") or "tool"), {"arguments": call.get("args")}, error=error)

    def _record(
        self,
        frame: Frame,
        name: str,
        arguments: object,
        *,
        error: BaseException | tuple[str, str] | None = None,
        result: object = None,
        start: int | None = None,
    ) -> Call | None:
        named = arguments if isinstance(arguments, dict) else {"input": arguments}
        call = call_in(frame.here, self._specs(TOOL, name, None), named)
        if call is None:
            return None
        call.place = frame.place
        if start is not None:
            call.start = start
        if isinstance(error, tuple):
            call.refuse(*error)
        elif error is not None:
            call.fail(error)
        else:
            call.close(result)
        return call


def _is_tool(message: object) -> bool:
    fields = fields_of(message)
    return fields.get("type") == "tool" and {"tool_call_id", "status"} <= fields.keys()


def _updates(outputs: Any) -> list[Mapping[str, Any]]:
    parts = outputs if isinstance(outputs, list | tuple) else [outputs]
    found = []
    for part in parts[:MAX_MESSAGES]:
        update = part.update if type(part).__name__ == "Command" and getattr(part, "graph", None) is None else part
        if isinstance(update, Mapping):
            found.append(update)
    return found


def _new_messages(outputs: object, updates: list[Mapping[str, Any]]) -> Iterator[Any]:
    if isinstance(outputs, list | tuple):
        yield from (part for part in outputs[:MAX_MESSAGES] if "type" in fields_of(part))
    for update in updates:
        messages = update.get("messages")
        if isinstance(messages, list | tuple):
            yield from messages[:MAX_MESSAGES]
        elif "type" in fields_of(messages):
            yield messages


def _messages_in(inputs: object) -> list[Any]:
    if isinstance(inputs, Mapping) and isinstance(inputs.get("state"), Mapping | list):
        inputs = inputs["state"]
    found = inputs.get("messages") if isinstance(inputs, Mapping) else fields_of(inputs).get("messages", inputs)
    return list(found[:MAX_MESSAGES]) if isinstance(found, list | tuple) else []


def _open_calls(inputs: object) -> dict[Any, Mapping[str, Any]]:
    """Return the calls that a node should execute, by id: a single one, or those of the last model message that have no answer yet."""
    proposed: Any = ()
    messages, answered = _messages_in(inputs), set()
    for message in reversed(messages):
        if proposed := fields_of(message).get("tool_calls") or ():
            break
        if _is_tool(message):
            answered.add(message.tool_call_id)
    calls = [*(part for part in messages if isinstance(part, Mapping) and part.get("type") == "tool_call"), *proposed]
    if isinstance(inputs, Mapping) and isinstance(inputs.get("tool_call"), Mapping):
        calls = [inputs["tool_call"]]
    found = {call.get("id"): call for call in calls if isinstance(call, Mapping)}
    return {name: call for name, call in found.items() if not proposed or name not in answered}
