"""The text of a part of a message, in any dialect; other media are named in brackets.

`_parts` decides which parts are calls and results. Values are followed only a few levels deep.
"""

from __future__ import annotations

from typing import Any

from grace_kp.trace._render import render, to_text

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
    """Return the text of a tool's result: text parts joined, media named, other values as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    content = plain(content)
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    if isinstance(content, dict) and _is_text_part(content):
        return part_text(content)
    if isinstance(content, list | tuple) and any(isinstance(item, str) or _is_text_part(item) for item in content):
        texts = (item if isinstance(item, str) else _item_text(item) for item in content)
        return "\n".join(text for text in texts if text)
    return to_text(render(content))


def words(value: object, depth: int = 0) -> str:
    """Return the text of a value that should be one: a text, a text part, or a list of these; else ""."""
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
    for field in ("type", "part_kind", "kind", "content_type"):
        kind = part.get(field)
        if kind and isinstance(kind, str):
            return lowered(kind)
    return ""


def lowered(value: object) -> str:
    """Return a keyword in lower case with underscores; "" if it is not a text."""
    return value[:60].lower().replace("-", "_") if isinstance(value, str) else ""


def first(mapping: dict[str, Any], *keys: str) -> Any:
    """Return the first value under these keys that is not None."""
    for field in keys:
        value = mapping.get(field)
        if value is not None:
            return value
    return None


def word(value: object) -> str | None:
    """Return a name or an id as text; None for other values."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 200:
        return str(value)
    return None


def plain(value: object) -> Any:
    """Return an object of a client library as its dict, and any other value itself."""
    dump = getattr(value, "model_dump", None) if not isinstance(value, dict | list | str | int | float) else None
    return dump() if callable(dump) else value


def _is_text_part(item: object) -> bool:
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


def _item_text(item: Any) -> str:
    return part_text(item) if _is_text_part(item) else to_text(render(item))


def part_text(part: dict[str, Any]) -> str:
    """Return the text of a part that is neither call, result nor reasoning; other media are named in brackets."""
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
