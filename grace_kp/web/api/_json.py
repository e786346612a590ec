"""JSON that every reader accepts: UTF-8, with half surrogate pairs as escapes and null for numbers that are not finite."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.responses import Response

NOT_WRITABLE = "cannot be written as JSON"
"""Stands for a value that is nested too deeply, or an integer with too many digits."""
_MAX_DEPTH = 300
_MAX_BITS = 14_000


def json_text(value: object) -> str:
    """Return a value as JSON text that UTF-8 can hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return json_text(_writable(value, 0))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON holds only as an escape
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def json_response(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON text as a response that no browser takes for anything else."""
    return Response(
        text,
        status,
        media_type="application/json",
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **(headers or {})},
    )


def _writable(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return NOT_WRITABLE
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return NOT_WRITABLE
    if isinstance(value, dict):
        return {name: _writable(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item, depth + 1) for item in value]
    return value
