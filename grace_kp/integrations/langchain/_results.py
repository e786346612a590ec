"""What LangChain's inputs, messages and outputs hold, and how ended events are recorded.

This code runs in the agent's thread, and stops reading at the first match.

Callbacks do not report calls of unknown tools, output that does not fit a schema, and attempts of a node. Their failures become failed
calls in the trace. A success is recorded only after a failure of the same name in the same run, so that a successful retry counts as
one failure and one success.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from grace_kp.record import (
    CLOSED,
    FAILED,
    HOST,
    NOT_CAPTURED,
    RETRIEVER,
    TOOL,
    Call,
    ModelCall,
    Spec,
    call_in,
    reported_failure,
)
from grace_kp.trace import cut, render, render_text, stored_fields, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.outputs import LLMResult

    from grace_kp.confidence import ProvenanceIndex
    from grace_kp.integrations.langchain._frames import Attempt, Frame, Specs
    from grace_kp.record import Recorder, Run

    Failure = BaseException | tuple[str, str] | None


QUESTIONS = ("input", "question", "query", "prompt", "task", "topic", "text", "objective")
ANSWERS = ("output", "answer", "result", "response", "text", "generation")
MAX_OBJECTIVE = 2_000
STREAMED = {"input": ""}
"""LangChain's placeholder for the input of a stream that has not read it yet."""
_HUMAN = {"human", "user"}
_MODEL = {"ai", "assistant", "AIMessageChunk"}
_USAGE = {
    "input_tokens": ("input_tokens", "prompt_tokens", "prompt_token_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidates_token_count"),
    "total_tokens": ("total_tokens", "total_token_count"),
}


def question_of(inputs: object) -> str | None:
    """Return the question in the input of a chain, graph or model; None if it holds no string."""
    if isinstance(inputs, str):
        return inputs or None
    if isinstance(inputs, Mapping):
        messages = inputs.get("messages")
        if messages:
            return question_of(messages)
        name = _key_of_question(inputs)
        return None if name is None else str(inputs[name])
    if isinstance(inputs, list | tuple):
        if len(inputs) == 2 and isinstance(inputs[0], str) and inputs[0] in _HUMAN and isinstance(inputs[1], str):
            return inputs[1]
        return _last(inputs, _HUMAN) or _last(inputs, None)
    prompt: Any = inputs
    if hasattr(type(prompt), "to_messages"):
        return question_of(prompt.to_messages())
    text = _text_if(inputs, None)
    if text is not None:
        return text
    has_fields = hasattr(inputs, "__dict__") and not callable(inputs)  # such as a state that is a dataclass
    return question_of(dict(vars(inputs)) if has_fields else {})


def _key_of_question(inputs: Mapping[str, Any]) -> str | None:
    return next((name for name in (*QUESTIONS, *inputs) if isinstance(value := inputs.get(name), str) and value), None)


def is_question_document(inputs: object) -> bool:
    """Return whether the question in the input of a chain or graph is the value of a key that is named like a document."""
    fields = inputs if isinstance(inputs, Mapping) else getattr(inputs, "__dict__", {})
    return not fields.get("messages") and Spec.is_document(str(_key_of_question(fields) or ""))


def answer_of(outputs: object) -> Any:
    """Return the answer in an output: the last message of the model, the string under a usual name, else the whole output."""
    if isinstance(outputs, str):
        return outputs
    if isinstance(outputs, Mapping):
        messages = outputs.get("messages")
        if isinstance(messages, list | tuple) and messages:
            return _last(messages, _MODEL) or _text_if(messages[-1], None) or ""
        for name in ANSWERS:
            if isinstance(outputs.get(name), str):
                return outputs[name]
        return {key: value for key, value in outputs.items() if key != "__interrupt__"}
    text = _text_if(outputs, None)
    return outputs if text is None else text


def text_of(message: object) -> str:
    """Return the content of a message, or its text blocks joined by newlines."""
    content = message["content"] if isinstance(message, Mapping) else getattr(message, "content", "")
    if isinstance(content, str):
        return content
    blocks = filter(_is_text, content if isinstance(content, list) else ())
    texts = (block if isinstance(block, str) else block.get("text") for block in blocks)
    return "\n".join(text for text in texts if isinstance(text, str))


def reply_of(response: LLMResult) -> tuple[str, dict[str, int], str | None]:
    """Return the text, token usage and model name of a response."""
    texts: list[str] = []
    usage: dict[str, int] = {}
    model: str | None = None
    for generations in response.generations:
        for generation in generations[:1]:
            message = getattr(generation, "message", None)
            texts.append(text_of(message) if message is not None else str(generation.text))
            reported = getattr(message, "usage_metadata", None) or {}
            for name in _USAGE if reported.get("total_cost") != 0 else ():  # an answer from LangChain's cache costs 0
                if isinstance(reported.get(name), int):
                    usage[name] = usage.get(name, 0) + reported[name]
            named = getattr(message, "response_metadata", None) or {}
            model = model or named.get("model_name") or named.get("model")
    output = response.llm_output or {}
    if not usage:
        reported = output.get("token_usage") or output.get("usage") or {}
        for name, names in _USAGE.items():
            found = next((reported[key] for key in names if isinstance(reported.get(key), int)), None)
            if found is not None:
                usage[name] = found
    return "\n".join(text for text in texts if text), usage, model or output.get("model_name")


def digests_in(inputs: object) -> list[bytes]:
    """Return digests of what a user wrote in the input of a chain or graph."""
    listed = inputs.get("messages", inputs) if isinstance(inputs, Mapping) else inputs
    texts = (_text_if(each, _HUMAN) for each in (listed if isinstance(listed, list | tuple) else [listed]))
    return [_digest(text) for text in texts if text]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def read_messages(
    messages: Sequence[Any], digests: Collection[bytes], index: ProvenanceIndex, objective: str | None, order: int | None,
    *, is_stored: bool, is_head: bool = False,
) -> None:  # fmt: skip
    """Add to an index what a model was sent: instructions, and earlier turns of a conversation.

    A message in the role of a user may hold documents. It is a person's words if the input of the outermost run, or of an earlier one of the
    same thread, holds it, by its `digests`, or if it is the objective of that run, which is None for a nested one.

    Without an `order`, the agent had done nothing before. With one, it is the place of the turns before the run. What follows the user's last
    message is then this run's own: its calls were recorded, and its results too where `is_stored`. Instructions are seen now, as is a
    head: the first message of a later call.
    """
    texts = [_text_if(each, None) or "" for each in messages]
    is_users = [
        _text_if(each, _HUMAN) == text != "" and (text == objective or _digest(text) in digests)
        for each, text in zip(messages, texts, strict=True)
    ]
    last = max((number for number, each in enumerate(is_users) if each), default=-1)
    failed = {fields_of(each).get("tool_call_id") for each in messages if tool_result(each)[1] is not None} - {None}
    for number, (message, text) in enumerate(zip(messages, texts, strict=True)):
        fields = fields_of(message)
        role, content = fields.get("type"), fields.get("content")
        is_whole = not isinstance(content, list) or all(map(_is_text, content))
        index.at = None if is_head or role == "system" else order
        is_own = order is not None and not is_head and number > last
        if is_own and (role == "ai" or (is_stored and role != "system")):
            continue
        if role == "ai":
            for call in fields.get("tool_calls") or ():
                has_succeeded = False if call.get("id") in failed else None
                index.add_call(str(call.get("name")), call.get("args"), has_succeeded=has_succeeded)
        elif role == "system":
            if objective is not None:
                index.add_policy(text, is_complete=is_whole)
            else:
                index.add_gap("the instructions of a nested agent are not known", hides_results=False)
        elif role != "human":
            has_failed = fields.get("tool_call_id") in failed
            index.add_result(str(fields.get("name") or ""), text, has_failed=has_failed, is_complete=is_whole)
        elif objective is None:
            continue  # what another agent wrote
        elif is_users[number]:
            index.add_user(text, is_complete=is_whole)
        elif fields.get("id"):  # of the state of a graph
            index.add_gap("earlier messages of this conversation are not known as a user's words", hides_results=False)
        else:
            index.add_result("", text, is_complete=is_whole)


def _is_text(block: object) -> bool:
    return isinstance(block, str) or (isinstance(block, Mapping) and block.get("type") in {"text", None})


def proposed_by(response: LLMResult) -> str:
    """Return a line with the proposed calls of a response; an empty string where it proposes none."""
    names = [
        str(call.get("name"))
        for generations in response.generations
        for generation in generations[:1]
        for call in getattr(getattr(generation, "message", None), "tool_calls", None) or ()
    ]
    return f"Proposed calls: {', '.join(names)}" if names else ""


def tool_result(output: object) -> tuple[Any, str | None, Any]:
    """Return the result in a tool's output, the error that it reports, and its artifact."""
    if isinstance(output, str):
        return output, None, None
    messages = _tool_messages(output)
    if not messages:
        return output, None, output
    failed = next((message for message in messages if getattr(message, "status", None) == "error"), None)
    if failed is not None:
        return None, text_of(failed) or "the tool reported an error", None
    artifact = next((message.artifact for message in messages if getattr(message, "artifact", None) is not None), None)
    content = messages[-1].content
    error = reported_failure(artifact) or (_failure_in_json(content) if isinstance(content, str) else None)
    if error is not None:
        return None, error, None
    return content if isinstance(content, str) else text_of(messages[-1]) or content, None, artifact


def fields_of(value: object) -> dict[str, Any]:
    return stored_fields(value, type(value)) or {}


def _failure_in_json(content: str) -> str | None:
    """Return the failure in a result of MCP, which LangChain writes into the message as JSON."""
    if '"isError"' not in content or content.lstrip()[:1] != "{":
        return None
    try:
        return reported_failure(json.loads(content))
    except (ValueError, RecursionError):
        return None


def _tool_messages(output: object) -> list[Any]:
    fields = fields_of(output)
    if fields.get("type") == "tool" and "tool_call_id" in fields:
        return [output]
    update = fields.get("update") if type(output).__name__ == "Command" else output
    if isinstance(update, Mapping):
        update = update.get("messages")
    if isinstance(update, list | tuple) and update and type(output).__name__ in {"Command", "list", "tuple"}:
        return [message for item in update for message in _tool_messages(item)]
    return []


def documents_in(value: object) -> bool | None:
    """Return True for search results with scores, False for search results without, None for any other value."""
    if not isinstance(value, list) or not value:
        return None
    first = value[0]
    if isinstance(first, tuple) and len(first) == 2 and _is_document(first[0]):
        return isinstance(first[1], int | float) or hasattr(first[1], "dtype")
    return False if _is_document(first) else None


def _is_document(value: object) -> bool:
    return {"page_content", "metadata"} <= fields_of(value).keys()


def _last(messages: Sequence[object], roles: set[str] | None) -> str | None:
    texts = (_text_if(message, roles) for message in reversed(messages))
    return next(filter(None, texts), None)


def _text_if(message: object, roles: set[str] | None) -> str | None:
    """Return the content of a message in any of LangChain's forms if its role is among `roles`, else None."""
    if isinstance(message, str):
        return message if roles is None or "human" in roles else None
    if isinstance(message, list | tuple) and len(message) == 2 and all(isinstance(part, str) for part in message):
        return message[1] if roles is None or message[0] in roles else None
    if isinstance(message, Mapping) and "content" in message:
        role = str(message.get("role") or message.get("type"))
        return text_of(message) if roles is None or role in roles else None
    fields = fields_of(message)
    kind = fields.get("type")
    if isinstance(kind, str) and "content" in fields:
        return text_of(message) if roles is None or kind in roles else None
    return None


def input_by_name(inputs: object, name: str) -> dict[str, Any]:
    """Return an input as arguments by its own keys, or as one argument called `name`."""
    if isinstance(inputs, Mapping) and all(isinstance(key, str) for key in inputs):
        return dict(inputs)
    return {name: inputs}


def is_placeholder(inputs: object) -> bool:
    return type(inputs) is dict and inputs == STREAMED


def objective_of(recorder: Recorder, name: str, inputs: object) -> str:
    """Return the objective of a run: the question in its input, else the call itself."""
    if not recorder.capture_input:
        return name
    text = inputs if type(inputs) is str else question_of(inputs)
    limit = min(MAX_OBJECTIVE, recorder.max_text)
    if text and not text.isspace():
        return text if len(text) <= limit else cut(text, limit)
    if inputs is None or is_placeholder(inputs) or type(inputs).__name__ == "Command":
        return name
    return cut(f"{name}({to_text(render(inputs, 200))})", limit)


def keep_messages(run: Run, messages: Sequence[Any], frame: Frame | None) -> None:
    """Keep the messages that a model is sent first in a run, and instructions that it is sent later, for the gates of the run."""
    known, head = run.preamble or [], getattr(messages[0], "content", messages[0]) if messages else None
    heads = [getattr(first := each.args[0][0], "content", first) for _, each in known if isinstance(each, partial)]
    if head is None or head in heads or len(heads) >= MAX_HEADS:
        return
    while frame is not None and frame.parent is not None:
        frame = frame.parent
    digests, at = () if frame is None else frame.digests or digests_in(frame.inputs), len(run.events)
    words = partial(read_messages, messages[:1] if heads else [*messages], digests, is_head=bool(heads))
    run.preamble = [*known, (at if at or heads or run.is_resumed else -1, words)]


MAX_HEADS = 8
"""Different first messages of a run that are kept."""


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
        error: Failure = None,
        result: object = None,
        start: int = -1,
    ) -> Call | None:
        named = arguments if isinstance(arguments, dict) else {"input": arguments}
        call = call_in(frame.here, self._specs(TOOL, name, None), named)
        if call is None:
            return None
        call.place = frame.place
        call.start = call.start if start < 0 else start
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
