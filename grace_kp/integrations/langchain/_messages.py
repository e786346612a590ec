"""Strings in LangChain's inputs, messages and outputs: the question, the model's output, a tool's result, the answer.

This code runs in the agent's thread. It only reads, and stops at the first match.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grace_kp.record import Spec, reported_failure
from grace_kp.trace import stored_fields

if TYPE_CHECKING:
    from langchain_core.outputs import LLMResult

    from grace_kp.confidence import ProvenanceIndex

QUESTIONS = ("input", "question", "query", "prompt", "task", "topic", "text", "objective")
ANSWERS = ("output", "answer", "result", "response", "text", "generation")
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
