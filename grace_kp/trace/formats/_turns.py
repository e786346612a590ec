"""Messages of a chat in any dialect: the role, and the parts in order.

`_parts` reads the parts, `_openai_messages` turns them into steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from grace_kp.errors import InvalidTrace, brief
from grace_kp.trace.formats._parts import (
    REFUSAL,
    Part,
    ToolCall,
    Words,
    call_and_result,
    decode,
    first,
    is_call,
    is_result,
    kind_of,
    plain,
    read_call,
    read_content,
    read_result,
    reasoning_of,
    words,
)

Side = Literal["system", "user", "assistant", "tool", "other"]

_SIDES: dict[str, Side] = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "customer": "user", "usertext": "user",
    "assistant": "assistant", "ai": "assistant", "gpt": "assistant", "model": "assistant", "bot": "assistant",
    "chatbot": "assistant", "agent": "assistant", "chatgpt": "assistant", "llm": "assistant", "bard": "assistant",
    "function_call": "assistant", "tool_call": "assistant", "tool_use": "assistant", "tool_calls": "assistant",
    "toolcallrequestevent": "assistant",
    "tool": "tool", "function": "tool", "observation": "tool", "ipython": "tool", "tool_response": "tool",
    "tool_result": "tool", "tool_results": "tool", "toolresult": "tool", "function_response": "tool",
    "function_output": "tool", "tool_output": "tool", "functionexecutionresult": "tool",
    "toolcallexecutionevent": "tool",
}  # fmt: skip
_WRITTEN_CALLS = frozenset({"function_call", "tool_call", "tool_use", "tool_calls"})
_ROLE_KEYS = ("role", "from", "author", "speaker")
_CONTENT = ("content", "value", "text", "message", "parts")
_LIST_OF_RESULTS = ("tool_responses", "tool_results", "tool_messages")
_LISTS_OF_CALLS = ("tool_calls", "toolCalls", "toolInvocations")


@dataclass(slots=True)
class ChatTurn:
    """A message: its side, the role as written, and its parts."""

    side: Side
    role: str
    parts: list[Part] = field(default_factory=list)


def read_turn(message: object, place: str) -> ChatTurn:
    """Read one message."""
    message = plain(message)
    if not isinstance(message, dict):
        raise InvalidTrace(f"must be an object (got {brief(message)})", path=place)
    message = _unwrap(message)
    role = _role(message)
    if role is None:
        return _item(message, place)
    side = _SIDES.get(role, "other")
    turn = ChatTurn(side, role)
    if role in _WRITTEN_CALLS:
        turn.parts = _written_calls(message)
    elif side == "tool":
        turn.parts = _results(message)
    elif side == "assistant":
        turn.parts = _assistant(message)
    else:
        turn.parts = read_content(_content(message)) + _calls(message, set()) + _listed_results(message)
    turn.parts = _join_words(turn.parts)
    return turn


def is_message(value: object) -> bool:
    """Return whether the value looks like a message of a chat."""
    value = plain(value)
    if not isinstance(value, dict):
        return False
    value = _unwrap(value)
    if any(isinstance(value.get(name), str | dict) for name in _ROLE_KEYS):
        return any(
            name in value for name in (*_CONTENT, *_LISTS_OF_CALLS, "function_call", "output", "refusal", "audio")
        )
    held = any(name in value for name in (*_CONTENT, *_LISTS_OF_CALLS))
    return (held and _role(value) is not None) or _is_item(value)


def _unwrap(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message inside the envelope of a framework."""
    for _ in range(3):
        kind = message.get("type")
        data = message.get("data")
        if isinstance(message.get("kwargs"), dict) and isinstance(message.get("id"), list) and message["id"]:
            message = {"type": message["id"][-1], **message["kwargs"]}
        elif isinstance(data, dict) and isinstance(kind, str) and _role(message) in _SIDES:
            message = {"type": kind, **data}
        elif isinstance(inner := first(message, "message", "payload"), dict) and not isinstance(
            message.get("role"), str
        ):
            if not (any(name in inner for name in (*_ROLE_KEYS, "type"))):
                break
            message = inner
        elif isinstance(inner := message.get("content"), dict) and "parts" in inner and "role" in inner:
            message = inner
        else:
            break
    return message


def _role(message: dict[str, Any]) -> str | None:
    """Return the role in lower case with underscores; None without one."""
    for name in _ROLE_KEYS:
        value = message.get(name)
        if isinstance(value, dict):
            value = first(value, "role", "name", "label", "Label", "value")
        if isinstance(value, str) and value.strip():
            return _normal(value)
    for name in ("type", "kind", "message_type", "source"):
        value = message.get(name)
        if not isinstance(value, str):
            continue
        role = _normal(value)
        if role == "text" and value.lower().endswith("message"):
            return "user" if message.get("source") == "user" else "assistant"
        if role in _SIDES and not (name == "type" and _is_item(message)):
            return role
        if name == "kind" and isinstance(message.get("parts"), list) and role in {"request", "response"}:
            return "user" if role == "request" else "assistant"
    return None


def _normal(role: str) -> str:
    role = str.lower(role.strip())[:60].replace("-", "_").replace(" ", "_")
    return role.removesuffix("chunk").removesuffix("message").rstrip("_") or role


def _is_item(message: dict[str, Any]) -> bool:
    """Return whether it is an item of OpenAI's responses, which has a type instead of a role."""
    kind = kind_of(message)
    if kind == "reasoning":
        return True
    if kind in _SIDES and "content" in message and not ("name" in message or "call_id" in message):
        return False
    return bool(kind) and (is_call(message) or is_result(message))


def _item(message: dict[str, Any], place: str) -> ChatTurn:
    kind = kind_of(message)
    if not _is_item(message):
        for name in _ROLE_KEYS:
            if message.get(name) is not None:
                raise InvalidTrace(
                    f"must be a text that names the role (got {brief(message[name])})", path=f"{place}.{name}"
                )
        raise InvalidTrace("is missing", path=f"{place}.role")
    if kind == "reasoning":
        return ChatTurn("assistant", kind, _join_words([Words(reasoning_of(message), reasoning=True)]))
    if is_result(message):
        return ChatTurn("tool", kind, [read_result(message)])
    return ChatTurn("assistant", kind, call_and_result(message))


def _content(message: dict[str, Any]) -> Any:
    parts = message.get("parts")
    return parts if isinstance(parts, list) and parts else first(message, *_CONTENT)


def _assistant(message: dict[str, Any]) -> list[Part]:
    content = read_content(_content(message))
    ids = {part.id for part in content if isinstance(part, ToolCall) and part.id is not None}
    parts: list[Part] = []
    if not any(isinstance(part, Words) and part.reasoning for part in content):
        thinking = first(message, "reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
        parts.append(Words(words(thinking), reasoning=True))
    parts += content
    if words(message.get("tool_plan")):
        parts.append(Words(words(message["tool_plan"])))
    if words(message.get("refusal")):
        parts.append(Words(f"{REFUSAL} {words(message['refusal'])}"))
    audio = message.get("audio")
    if isinstance(audio, dict) and not any(isinstance(part, Words) and part.text for part in content):
        parts.append(Words(f"[audio] {words(audio.get('transcript'))}".strip()))
    has_parts = isinstance(message.get("parts"), list) and bool(message["parts"])
    parts += _calls(message, ids, from_parts=has_parts) + _listed_results(message)
    observed = message.get("observation")
    if isinstance(observed, dict) and isinstance(observed.get("results"), list):
        parts += [read_result(item) for item in observed["results"] if isinstance(item, dict)]
    return parts


def _calls(message: dict[str, Any], known: set[str], *, from_parts: bool = False) -> list[Part]:
    """Return the calls beside the content; `known` are the ids of the calls within it."""
    more = message.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    items: list[Any] = []
    for name in _LISTS_OF_CALLS:
        if name == "toolInvocations" and from_parts:
            continue
        items += _to_list(message.get(name))
    items = items or _to_list(more.get("tool_calls"))
    items += _to_list(message.get("invalid_tool_calls"))
    function = first(message, "function_call") or more.get("function_call")
    if function is not None and not items:
        items = [function]
    parts: list[Part] = []
    for item in items:
        found = call_and_result(item) if isinstance(item, dict) else [read_call(item)]
        call = found[0]
        if isinstance(call, ToolCall) and call.id is not None and call.id in known:
            continue
        parts += found
    return parts


def _to_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = decode(value, [value] if value.strip() else [])
    if isinstance(value, list | tuple):
        return [item for item in value if item is not None]
    return [] if value is None else [value]


def _results(message: dict[str, Any]) -> list[Part]:
    listed = _listed_results(message)
    if listed:
        return listed
    content = _content(message)
    items = content if isinstance(content, list) else [content]
    found: list[Part] = [read_result(item) for item in items if is_result(item)]
    return found or [read_result(message)]


def _listed_results(message: dict[str, Any]) -> list[Part]:
    for name in _LIST_OF_RESULTS:
        listed = message.get(name)
        if isinstance(listed, list) and any(isinstance(item, dict) for item in listed):
            return [read_result(item) for item in listed if isinstance(item, dict)]
    return []


def _written_calls(message: dict[str, Any]) -> list[Part]:
    """Return calls that are the text of a message, as in ShareGPT data."""
    content = _content(message)
    value = decode(content) if isinstance(content, str) else content
    items = value if isinstance(value, list) else [value]
    named = [
        item for item in items if isinstance(item, dict) and (isinstance(item.get("name"), str) or "function" in item)
    ]
    calls: list[Part] = [read_call(item) for item in named]
    return calls or _assistant(message)


def _join_words(parts: list[Part]) -> list[Part]:
    """Join consecutive words of a kind, and drop blank ones."""
    joined: list[Part] = []
    audible = [part for part in parts if not isinstance(part, Words) or part.text.strip()]
    for reasoning, group in groupby(audible, lambda part: part.reasoning if isinstance(part, Words) else None):
        items = list(group)
        texts = [part.text for part in items if isinstance(part, Words)]
        joined += items if reasoning is None else [Words("\n".join(texts), reasoning)]
    return joined
