"""Encoded arguments as plain JSON, for what only looks at them: redaction, and the check of an edit by a JSON schema."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LISTS = ("$tuple", "$set", "$frozenset")
_BYTES = ("$bytes", "$bytearray", "$text")


def tag_of(encoded: object) -> str:
    """Return the type tag of an encoded value; empty for plain JSON."""
    if not isinstance(encoded, dict):
        return ""
    return next((key for key in encoded if isinstance(key, str) and key.startswith("$")), "")


def plain_json(encoded: Any, *, decimal: Callable[[str], Any] = str) -> Any:
    """Return an encoded value without type tags: bytes as text, a model as its fields, an enum as its value, dates as text.

    Args:
        encoded: the encoding.
        decimal: what becomes of the text of a Decimal.
    """
    if isinstance(encoded, list):
        return [plain_json(item, decimal=decimal) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    tag = tag_of(encoded)
    if not tag:
        return {name: plain_json(item, decimal=decimal) for name, item in encoded.items()}
    content = encoded[tag]
    if tag in _LISTS:
        return plain_json(content, decimal=decimal)
    if tag in _BYTES:
        return base64.b64decode(content).decode("utf-8", "replace")
    if tag == "$dict":
        return {_name(key): plain_json(item, decimal=decimal) for key, item in content}
    if tag == "$model":
        parts = {part: plain_json(item, decimal=decimal) for part, item in encoded.items() if part != "$model"}
        if "fields" not in parts:
            return parts.get("value")
        more = (parts.get("extra", {}), parts.get("private", {}))
        return {**parts["fields"], **more[0], **more[1]}
    if tag == "$int":
        return int(content)
    if tag == "$float":
        return number if math.isfinite(number := float(content)) else content
    return decimal(content) if tag == "$decimal" else plain_json(content, decimal=decimal)


def _name(key: Any) -> str:
    plain = plain_json(key)
    return plain if isinstance(plain, str) else str(plain)
