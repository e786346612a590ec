"""Tags, user, session and metadata of a run: their limits, and the form in which they are compared.

Live recording and stores share these rules, so that a query compares values in the form in which they were stored. Secrets are
removed elsewhere (`redaction`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from grace_kp.trace._render import storable, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TAGS = 50
MAX_METADATA = 50
MAX_LABEL = 200
"""Characters of a tag, a user, a session or a metadata key."""
MAX_VALUE = 2_000
"""Characters of one text in a metadata value."""

TAG, USER, SESSION, METADATA, PARENT = "tag", "user", "session", "metadata", "parent"


def label(text: str) -> str:
    """Return the text as a label: without NUL and half surrogate pairs, and at most `MAX_LABEL` characters long.

    A longer text keeps its beginning and ends with its length and a fingerprint, so that different texts stay different.
    """
    text = storable(text).replace("\0", " ")
    if len(text) <= MAX_LABEL:
        return text
    end = f"… [cut: {len(text):,} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}]"
    return text[: MAX_LABEL - len(end)] + end


def comparable(value: object) -> str:
    """Return the text by which a metadata value is found: a text itself, any other value as compact JSON."""
    return label(to_text(value))


def attributes_in(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the attributes of a trace as (kind, name, value). A foreign document may hold values of any type here."""
    grace = document.get("grace")
    if not isinstance(grace, dict):
        return
    tags = grace.get("tags")
    for tag in tags[:MAX_TAGS] if isinstance(tags, list) else ():
        if isinstance(tag, str):
            yield TAG, "", label(tag)
    for kind in (USER, SESSION):
        value = grace.get(kind)
        if isinstance(value, str):
            yield kind, "", label(value)
    metadata = grace.get("metadata")
    for name, value in list(metadata.items())[:MAX_METADATA] if isinstance(metadata, dict) else ():
        yield METADATA, label(name), comparable(value)
    parent = grace.get("parent")
    if isinstance(parent, dict) and isinstance(parent.get("trace_id"), str):
        yield PARENT, "", parent["trace_id"]
