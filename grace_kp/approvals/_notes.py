"""Texts and JSON from people and programs on their way into the store: bounded, and without recognised secrets."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._seal import without_texts
from grace_kp.errors import ApprovalError
from grace_kp.trace import redact_text, redact_value, storable

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NOTE = 10_000
"""Characters that a note may have."""
MAX_RESULT = 100_000
"""Bytes that a recorded result may have as JSON."""
_MAX_DEPTH = 100


def clean_note(text: object, approval_id: str, *, what: str = "note") -> str:
    """Return a note without secrets.

    Raises:
        ApprovalError: it is no text, or longer than `MAX_NOTE` characters.
    """
    if not isinstance(text, str):
        raise ApprovalError(f"the {what} must be a text, not {type(text).__name__}", approval_id=approval_id)
    if len(text) > MAX_NOTE:
        raise ApprovalError(
            f"the {what} has {len(text):,} characters, and at most {MAX_NOTE:,} are kept; shorten it",
            approval_id=approval_id,
        )
    return redact_text(storable(text), identifiers=False)


def clean_json(value: object, sealed: Sequence[str] = ()) -> Any:
    """Return JSON without secrets. Values that JSON cannot hold become strings.

    Args:
        value: the value.
        sealed: the texts of sealed arguments, which are replaced by `[SEALED]`.
    """
    plain = json.loads(json.dumps(value, default=str, skipkeys=True), parse_constant=str)
    # Before redaction, which may change a part of such a text, so that the rest would be found no more.
    return redact_value(without_texts(plain, sealed), identifiers=False)


def kept_result(value: object) -> bool:
    """Return whether a result can be recorded and returned later: JSON, at most `MAX_RESULT` bytes, without recognised secrets."""
    if not _is_json(value, 0):
        return False
    try:
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):  # an integer with too many digits
        return False
    return size <= MAX_RESULT and bool(redact_value(value, identifiers=False) == value)


def _is_json(value: Any, depth: int) -> bool:
    kind = type(value)  # an instance of a subclass would come back as another type
    if value is None or kind in {bool, str, int}:
        return True
    if kind is float:
        return math.isfinite(value)
    if depth > _MAX_DEPTH:
        return False
    if kind is list:
        return all(_is_json(item, depth + 1) for item in value)
    return kind is dict and all(type(key) is str and _is_json(item, depth + 1) for key, item in value.items())
