"""Search inside a run: which steps contain a text, and where it stands in the HTML of a page."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from grace_kp.pages import safe, visible
from grace_kp.trace.html import as_json, decisions_by_place, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_QUERY = 200
"""Characters of a search."""
MAX_MARKS = 2_000
"""Places that are marked on a page."""
_TAG = re.compile(r"(<[^>]*>)")


def matching_steps(document: Mapping[str, Any], query: str) -> list[int]:
    """Return the numbers of the steps that contain a text, whatever its case; decisions of gates count for the step that they stand before."""
    sought = visible(query).casefold()
    grace = mapping(document.get("grace"))
    steps = items(document.get("steps"))
    records: dict[int, list[Any]] = {}
    for entries, fields in ((grace.get("calls"), ("tool_call", "observation")), (grace.get("model_calls"), ("step",))):
        for entry in map(mapping, items(entries)):
            for field in fields:
                if type(entry.get(field)) is int:
                    records.setdefault(entry[field], []).append(entry)
    for place, decisions in decisions_by_place(items(grace.get("decisions")), len(steps)).items():
        records.setdefault(min(place, len(steps) - 1), []).extend(decisions)
    return [place for place, step in enumerate(steps) if sought in _words([step, *records.get(place, ())]).casefold()]


def with_context(places: Sequence[int], count: int) -> list[int]:
    """Return the steps in order, each with the one before and the one after it.

    Args:
        places: their numbers, in order.
        count: number of steps of the run.
    """
    return sorted({near for place in places for near in (place - 1, place, place + 1) if 0 <= near < count})


def marked(page: str, query: str) -> str:
    """Return HTML in which each occurrence of a text within one element is marked.

    Args:
        page: HTML in which every text is escaped, so that no `<` or `>` stands in a text or an attribute.
        query: plain text, found whatever its case.
    """
    sought = re.compile(re.escape(visible(query, lines=True)), re.IGNORECASE)
    left = MAX_MARKS
    parts = _TAG.split(page)
    for place in range(0, len(parts), 2):
        if left <= 0 or not parts[place]:
            continue
        plain = html.unescape(parts[place])
        found = list(sought.finditer(plain))[:left]
        if found:
            left -= len(found)
            parts[place] = _with_marks(plain, found)
    return "".join(parts)


def _with_marks(plain: str, found: Iterable[re.Match[str]]) -> str:
    parts, end = [], 0
    for match in found:
        parts += [safe(plain[end : match.start()], lines=True), f"<mark>{safe(match[0], lines=True)}</mark>"]
        end = match.end()
    return "".join(parts) + safe(plain[end:], lines=True)


def _words(values: list[Any]) -> str:
    """Return the texts of step and records, one a line, with names of fields."""
    return "\n".join(
        visible(content if isinstance(content, str) else as_json(content), lines=True)
        for value in values
        for content in (value.values() if isinstance(value, dict) else [text(value)])
    )
