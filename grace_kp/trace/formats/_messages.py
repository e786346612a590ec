"""Messages of a chat in any dialect: the role, and the parts in order, which are words, calls of tools and results of tools.

The dialects are those of OpenAI (chat and responses), Anthropic, Gemini, Bedrock, LangChain, the Vercel AI SDK, MCP and
OpenTelemetry. Every JSON value can be read. `_openai_messages` turns messages into steps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeGuard

from grace_kp.errors import InvalidTrace, brief
from grace_kp.trace._render import render, to_text

UNNAMED = "unknown"
REFUSAL = "[refusal]"

_CALLS = frozenset({
    "tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call", "custom_tool_call", "dynamic_tool",
    "tool_invocation", "toolcall", "builtin_tool_call", "function", "invalid_tool_call",
})  # fmt: skip
_RESULTS = frozenset({
    "tool_result", "tool_call_response", "tool_response", "function_response", "tool_return", "builtin_tool_return",
    "retry_prompt", "function_result", "toolresult", "tool_output",
})  # fmt: skip
_REASONING = frozenset({"thinking", "reasoning", "reasoning_text", "thought", "thoughts", "reasoning_content"})
_SILENT = frozenset({"redacted_thinking", "system_prompt", "step_start", "start_step", "finish_step", "cache_point"})
_CALL_KEYS = ("functionCall", "function_call", "toolUse", "toolInvocation")
_RESULT_KEYS = ("functionResponse", "function_response", "toolResult", "codeExecutionResult")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input", "toolInput")
_OUTPUTS = ("content", "value", "output", "result", "response", "results", "outputs", "text", "parts")
_CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "callId", "id")
_RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseId", "callId", "source_call_id")
_NAMES = ("name", "tool_name", "toolName", "function_name", "function", "tool")
_FAILED = frozenset({"error", "failed", "failure", "output_error"})


@dataclass(frozen=True, slots=True)
class Words:
    """Text; `reasoning` is True for the model's reasoning, False for its answer."""

    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool."""

    name: str
    input: dict[str, Any]
    id: str | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool; `failed` is True if the message marks it as an error."""

    text: str
    id: str | None = None
    name: str | None = None
    failed: bool = False


Part = Words | ToolCall | ToolResult


def read_content(content: object, depth: int = 0) -> list[Part]:
    """Return the parts of a message's content: a string, a list of parts, a single part, or any other JSON value."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Words(content)]
    if isinstance(content, list | tuple):
        return (
            [part for item in content for part in read_content(item, depth + 1)]
            if depth < 2
            else [Words(to_text(render(content)))]
        )
    part = plain(content)
    if not isinstance(part, dict):
        return [Words(to_text(render(part)))]
    if isinstance(part.get("parts"), list) and depth < 2:
        return read_content(part["parts"], depth)
    kind = kind_of(part)
    if is_result(part):
        result = read_result(part)
        return [result] if result.id or result.name or kind != "retry_prompt" else [Words(result.text)]
    if is_call(part):
        return call_and_result(part)
    if kind in _SILENT:
        return []
    if kind in _REASONING or part.get("thought") is True or isinstance(part.get("reasoningContent"), dict):
        return [Words(reasoning_of(part), reasoning=True)]
    if kind == "refusal":
        return [Words(f"{REFUSAL} {words(part.get('refusal'))}")]
    return [Words(part_text(part))]


def is_call(part: dict[str, Any]) -> bool:
    kind = kind_of(part)
    if kind in _CALLS or (kind.endswith("_call") and len(kind) > 5):
        return True
    if any(isinstance(part.get(field), dict) for field in (*_CALL_KEYS, "executableCode")):
        return True
    if kind.startswith("tool_") and "toolCallId" in part:  # a part of the Vercel AI SDK's user interface messages
        return True
    return not kind and word(part.get("name")) is not None and ("arguments" in part or "args" in part)


def is_result(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    kind = kind_of(part)
    if kind in _RESULTS or kind.endswith(("_tool_result", "_call_output")):
        return True
    if any(isinstance(part.get(field), dict) for field in _RESULT_KEYS):
        return True
    return not kind and any(field in part for field in _RESULT_IDS) and any(field in part for field in _OUTPUTS)


def call_and_result(part: dict[str, Any]) -> list[Part]:
    """Return a call, and its result if the same part holds it."""
    inner = part["toolInvocation"] if isinstance(part.get("toolInvocation"), dict) else part
    call = read_call(inner)
    kind, state = kind_of(part), to_keyword(inner.get("state"))
    hosted = kind.endswith("_call") and kind not in _CALLS
    if not hosted and "state" not in inner and "result" not in inner:
        return [call]
    keys = ("output", "outputs", "results", "result", "errorText", "error")
    done = state in {"result", "output_available", "output_error"} or (hosted and inner.get("status") == "completed")
    if not done and all(inner.get(field) is None for field in keys):
        return [call]
    error = first(inner, "errorText", "error")
    output = first(inner, *keys)
    failed = bool(error) or says_failed(inner) or state == "output_error"
    return [call, ToolResult(result_text(output), call.id, call.name, failed)]


def read_call(part: object) -> ToolCall:
    """Return a call of a tool, in any notation of name, arguments and id."""
    part = plain(part)
    if isinstance(part, str):
        value = decode(part)
        if not isinstance(value, dict):
            return ToolCall(part[:200] or UNNAMED, {})
        part = value
    if not isinstance(part, dict):
        return ToolCall(UNNAMED, arguments(part))
    inner = part
    for field in ("function", "custom", *_CALL_KEYS):
        value = plain(part.get(field))
        if isinstance(value, dict):
            inner = value
            break
    code = part.get("executableCode")
    if isinstance(code, dict):
        return ToolCall("code_execution", arguments(code))
    call_id = _first_word(inner, _CALL_IDS) if inner is not part else None
    kind = kind_of(part)
    named = _first_word(inner, _NAMES) or _first_word(part, _NAMES)
    if named is None and kind.startswith("tool_") and "toolCallId" in part:
        named = str(part["type"])[5:65]
    elif named is None and kind.endswith("_call") and kind not in _CALLS:
        named = kind.removesuffix("_call")
    server = word(first(part, "server_label", "mcp_server", "serverName"))
    return ToolCall(named or UNNAMED, _arguments_of(inner, part), _first_word(part, _CALL_IDS) or call_id, server)


def read_result(part: dict[str, Any]) -> ToolResult:
    inner = next((part[field] for field in _RESULT_KEYS if isinstance(part.get(field), dict)), part)
    output = first(inner, *_OUTPUTS)
    failed = says_failed(part) or says_failed(inner) or kind_of(part) == "retry_prompt"
    if isinstance(output, dict):
        kind = kind_of(output)
        failed = failed or kind.endswith("_error") or kind.startswith("error_") or output.get("isError") is True
        if "value" in output and kind in {"text", "json", "content", "error_text", "error_json", "execution_denied"}:
            output = output["value"]
        elif isinstance(output.get("content"), list) and "isError" in output:
            output = output["content"]
    text = result_text(output)
    if failed and not text:
        text = words(inner.get("error"))
    ids = part.get("tool_call_ids")
    many = word(ids[0]) if isinstance(ids, list) and ids else None
    answered = part.get("call")
    call = answered if isinstance(answered, dict) else {}
    result_id = _first_word(inner, _RESULT_IDS) or _first_word(part, _RESULT_IDS) or many or word(inner.get("id"))
    return ToolResult(text, result_id, _first_word(inner, _NAMES) or _first_word(call, _NAMES), failed)


def says_failed(part: dict[str, Any]) -> bool:
    flag, error = first(part, "is_error", "isError"), part.get("error")
    return (
        flag is True
        or (isinstance(flag, str) and flag.strip().lower() == "true")
        or (isinstance(error, str | dict | bool) and bool(error))
        or any(to_keyword(part.get(name)) in _FAILED for name in ("status", "state"))
        or kind_of(part).endswith("_error")
    )


def arguments(value: object) -> dict[str, Any]:
    """Return the arguments of a call by name.

    JSON text is decoded, also if it was encoded twice. A value that is not an object, or cannot be decoded, is kept under the name
    `arguments`. An empty string and null mean no arguments.
    """
    for _ in range(3):
        value = decode(value, value) if isinstance(value, str) else plain(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    return value if isinstance(value, dict) else {"arguments": value}


def decode(text: str, otherwise: Any = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def _first_word(mapping: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((found for field in keys if (found := word(mapping.get(field))) is not None), None)


def _arguments_of(inner: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    found = first(inner, *_ARGUMENTS)
    if found is None:
        found = first(part, *_ARGUMENTS)
    if found is None and kind_of(part).endswith("_call"):
        for field in ("action", "code", "queries", "query", "operation"):
            value = part.get(field)
            if value is not None:
                return value if isinstance(value, dict) else {field: value}
    return arguments(found)


_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "markdown", "user_prompt", "plain_text"})
_MEDIA = {
    "image": "image", "image_url": "image", "input_image": "image", "output_image": "image", "image_file": "image",
    "audio": "audio", "input_audio": "audio", "output_audio": "audio", "audio_url": "audio", "media": "media",
    "video": "video", "video_url": "video", "input_video": "video", "document": "document", "pdf": "document",
    "file": "file", "input_file": "file", "file_data": "file", "image_asset_pointer": "image", "blob": "file",
}  # fmt: skip
_MEDIA_KEYS = ("image", "document", "video", "audio", "inlineData", "inline_data", "fileData", "file_data")
MAX_NESTING = 4


def reasoning_of(part: dict[str, Any]) -> str:
    """Return the model's visible reasoning in a part or a message; "" without any."""
    nested = part.get("reasoningContent")
    if isinstance(nested, dict):
        inner = nested.get("reasoningText")
        part = inner if isinstance(inner, dict) else nested
    for field in ("thinking", "reasoning", "reasoning_content", "text", "content", "thoughts", "summary"):
        text = words(part.get(field))
        if text.strip():
            return text
    return ""


def result_text(content: object) -> str:
    """Return a tool's result as a string: text parts joined, media named, other values as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    content = plain(content)
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    if _is_text_part(content):
        return part_text(content)
    if isinstance(content, list | tuple) and any(isinstance(item, str) or _is_text_part(item) for item in content):
        texts = (
            part_text(item) if _is_text_part(item) else item if isinstance(item, str) else to_text(render(item))
            for item in content
        )
        return "\n".join(filter(None, texts))
    return to_text(render(content))


def words(value: object, depth: int = 0) -> str:
    """Return the words of a string, a text part, or a list of these; "" for any other value."""
    if isinstance(value, str):
        return value
    if depth > MAX_NESTING:
        return ""
    if isinstance(value, list | tuple):
        return "\n".join(text for item in value if (text := words(item, depth + 1)))
    if isinstance(value, dict):
        found = first(value, "text", "content", "value", "thinking", "reasoning", "message", "summary")
        return words(found, depth + 1)
    return ""


def kind_of(part: dict[str, Any]) -> str:
    """Return the type that a part names, in lower case with underscores; "" without one."""
    kinds = (part.get(field) for field in ("type", "part_kind", "kind", "content_type"))
    return next((to_keyword(kind) for kind in kinds if kind and isinstance(kind, str)), "")


def to_keyword(value: object) -> str:
    return value[:60].lower().replace("-", "_") if isinstance(value, str) else ""


def first(mapping: dict[str, Any], *keys: str) -> Any:
    """Return the first value under these keys that is not None."""
    return next((mapping[field] for field in keys if mapping.get(field) is not None), None)


def word(value: object) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 200:
        return str(value)
    return None


def plain(value: object) -> Any:
    """Return an object of a client library as its dict, and any other value itself."""
    dump = getattr(value, "model_dump", None) if not isinstance(value, dict | list | str | int | float) else None
    return dump() if callable(dump) else value


def _is_text_part(item: object) -> TypeGuard[dict[str, Any]]:
    if not isinstance(item, dict):
        return False
    kind = kind_of(item)
    if kind in _TEXTS:
        return isinstance(first(item, "text", "value", "content"), str | dict)
    if kind in _MEDIA:
        return any(
            field in item for field in (kind, "source", "data", "url", "file_id", "file", "mimeType", "mime_type")
        )
    if kind == "resource":
        return isinstance(item.get("resource"), dict)
    if kind:
        return False
    return (isinstance(item.get("text"), str) and len(item) == 1) or any(
        isinstance(item.get(field), dict) for field in _MEDIA_KEYS
    )


def part_text(part: dict[str, Any]) -> str:
    """Return the words of a part that is neither call, result nor reasoning; media are named in brackets."""
    kind = kind_of(part)
    if kind in _MEDIA:
        return _media(part, _MEDIA[kind])
    found = first(part, "text", "content", "value", "input_text")
    if isinstance(found, str):
        return found
    text = words(found)
    if text:
        return text
    for field in _MEDIA_KEYS:
        held = part.get(field)
        if isinstance(held, dict):
            mime = first(held, "mimeType", "mime_type")
            family = mime.partition("/")[0] if isinstance(mime, str) else ""
            return _media(held, family if family in {"image", "audio", "video"} else _MEDIA.get(field, "file"))
    if kind == "resource":
        return words(part.get("resource")) or "[resource]"
    if kind in _TEXTS:
        return ""
    return f"[{kind}]" if kind and kind != "json" else to_text(render(part))


def _media(part: dict[str, Any], family: str) -> str:
    held = next((part[field] for field in ("file", "audio", "input_audio") if isinstance(part.get(field), dict)), part)
    transcript = words(held.get("transcript")) or words(part.get("transcript"))
    if transcript:
        return f"[{family}] {transcript}"
    document = part.get("document")
    if isinstance(document, dict) and "source" not in document:
        return to_text(render(document))
    name = word(first(held, "filename", "name", "title")) or word(first(part, "filename", "name", "title"))
    return f"[{family}: {name[:100]}]" if name else f"[{family}]"


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
    parts: list[Part]


def read_turn(message: object, place: str) -> ChatTurn:
    message = plain(message)
    if not isinstance(message, dict):
        raise InvalidTrace(f"must be an object (got {brief(message)})", path=place)
    message = _unwrap(message)
    role = _role(message)
    if role is None:
        return _item(message, place)
    side = _SIDES.get(role, "other")
    parts: list[Part]
    if role in _WRITTEN_CALLS:  # calls that are written as the content of a message, as in ShareGPT data
        content = _content(message)
        value = decode(content) if isinstance(content, str) else content
        items = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        named = (item for item in items if isinstance(item.get("name"), str) or "function" in item)
        parts = [*map(read_call, named)] or _assistant(message)
    elif side == "tool":
        parts = _results(message)
    elif side == "assistant":
        parts = _assistant(message)
    else:
        parts = read_content(_content(message)) + _calls(message, set()) + _listed_results(message)
    return ChatTurn(side, role, _join_words(parts))


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
                    f"must be a string that names the role (got {brief(message[name])})", path=f"{place}.{name}"
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
    """Return the calls outside the content; `known` are the ids of the calls within it."""
    more = message.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    lists = [name for name in _LISTS_OF_CALLS if not (name == "toolInvocations" and from_parts)]
    items = [item for name in lists for item in _to_list(message.get(name))]
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


def _join_words(parts: list[Part]) -> list[Part]:
    """Join consecutive words of a kind, and drop blank ones."""
    joined: list[Part] = []
    audible = [part for part in parts if not isinstance(part, Words) or part.text.strip()]
    for reasoning, group in groupby(audible, lambda part: part.reasoning if isinstance(part, Words) else None):
        items = list(group)
        texts = [part.text for part in items if isinstance(part, Words)]
        joined += items if reasoning is None else [Words("\n".join(texts), reasoning)]
    return joined
