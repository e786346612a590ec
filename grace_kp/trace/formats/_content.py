"""The content of a chat message as text, whichever dialect it is written in, and the tool calls and results inside of it."""

from __future__ import annotations

import json
from typing import Any

MAX_TEXT = 8_192
_TEXT_KEYS = ("text", "input_text", "output_text", "content", "refusal")
_THINKING = frozenset({"thinking", "reasoning", "reasoning_content", "redacted_thinking", "summary_text"})


def text_of(content: Any) -> str:
    """Plain text, a list of parts, one part, or nothing; what is no text is named in brackets."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [text for part in content if not is_call(part) and not is_result(part) and (text := _part(part))]
        return "\n".join(parts)
    if isinstance(content, dict):
        return _part(content)
    return as_json(content)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return "" if part is None else as_json(part)
    kind = part.get("type")
    if kind in _THINKING:
        inner = part.get("thinking") or part.get("text") or part.get("reasoning") or part.get("summary") or ""
        return text_of(inner)
    for key in _TEXT_KEYS:
        value = part.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, dict) and isinstance(value.get("value"), str):
            return str(value["value"])
        if isinstance(value, list):
            return text_of(value)
    return f"[{kind.removesuffix('_url')}]" if isinstance(kind, str) and kind else as_json(part)


def is_call(part: Any) -> bool:
    """Whether a part of a content list is a tool call (content blocks of the tool_use kind)."""
    return isinstance(part, dict) and part.get("type") in {"tool_use", "tool_call", "function_call", "server_tool_use"}


def is_result(part: Any) -> bool:
    """Whether a part of a content list is what a tool gave back."""
    return isinstance(part, dict) and part.get("type") in {"tool_result", "function_call_output", "function_response"}


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls a message proposes, as {"name", "id", "input"}, in order."""
    found: list[Any] = []
    for key in ("tool_calls", "toolCalls"):
        calls = message.get(key)
        if isinstance(calls, list):
            found += calls
        elif isinstance(calls, dict):
            found.append(calls)
    content = message.get("content")
    if isinstance(content, list):
        found += [part for part in content if is_call(part)]
    if isinstance(message.get("function_call"), dict):
        found.append(message["function_call"])
    extra = message.get("additional_kwargs")
    if not found and isinstance(extra, dict):
        return calls_of({key: value for key, value in extra.items() if key in {"tool_calls", "function_call"}})
    return [_call(item) for item in found]


def _call(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {"name": "(unnamed tool)", "id": None, "input": {"arguments": as_json(item)}}
    inner = item.get("function") if isinstance(item.get("function"), dict) else item
    name = inner.get("name") or item.get("name")
    if not isinstance(name, str) or not name:
        name = item["function"] if isinstance(item.get("function"), str) and item["function"] else "(unnamed tool)"
    raw = next(
        (part[key] for part in (inner, item) for key in ("arguments", "args", "input", "parameters") if key in part),
        None,
    )
    identity = next(
        (item[key] for key in ("id", "call_id", "tool_call_id", "tool_use_id") if isinstance(item.get(key), str | int)),
        None,
    )
    return {"name": name, "id": identity, "input": arguments_of(raw)}


def arguments_of(raw: Any) -> dict[str, Any]:
    """The arguments of a call as an object: from an object, from JSON text (also encoded twice), or kept as they are."""
    for _ in range(3):
        if not isinstance(raw, str):
            break
        if not raw.strip():
            return {}
        try:
            raw = json.loads(raw, parse_constant=str)
        except (ValueError, RecursionError):
            break
    if raw is None:
        return {}
    if isinstance(raw, dict):
        return {key if isinstance(key, str) else as_json(key): value for key, value in raw.items()}
    return {"arguments": raw}


def as_json(value: Any) -> str:
    """Compact JSON, for what has no text of its own."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return f"[{type(value).__name__}]"
