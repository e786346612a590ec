"""A confidence with its parts: the number, a bar for each sub-score, the penalties in words and the reason.

The values may come from a document of another program, so every type is checked and every length is bounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from grace_kp.pages._parts import badge, linked, meter, safe
from grace_kp.pages._words import penalty_text, spaced

MAX_PARTS = 30
"""Sub-scores and penalties that are shown; a note gives the number of the others."""
MAX_NAME = 80
"""Characters of a name, a penalty or a value that is not a number."""
MAX_REASON = 2_000


def confidence_html(
    score: object,
    *,
    breakdown: object,
    penalties: object = (),
    reason: object = "",
    not_scored: object = (),
    level: str | None = None,
) -> str:
    """Return a confidence with its parts as HTML. Every string is escaped.

    Args:
        score: 0 to 1; anything else is shown as "no confidence".
        breakdown: the sub-scores by name, 0 to 1 each; None for a sub-score that was not measured.
    """
    value = _share(score)
    number = "no confidence" if value is None else f"{value:.3f}"
    mark = f" {badge(level)}" if level else ""
    bar = "" if value is None else meter(value)
    words = reason if isinstance(reason, str) else ""
    why = f'<p class="small soft">{linked(_shorten(words, MAX_REASON), lines=False)}</p>' if words else ""
    return (
        f'<div class="confidence"><p class="figure"><span class="sum">{number}</span>{mark}</p>{bar}'
        f"{_parts(breakdown, set(_texts(not_scored)))}{_penalties(_texts(penalties))}{why}</div>"
    )


def _parts(breakdown: object, unscored: set[str]) -> str:
    if not isinstance(breakdown, Mapping) or not breakdown:
        return ""
    rows = []
    for name, value in itertools.islice(breakdown.items(), MAX_PARTS):
        share = _share(value)
        if share is None:
            # A huge integer cannot be printed, and a foreign object may print anything.
            words = f"{value:g}" if isinstance(value, float) else f"({type(value).__name__})"
            if value is None:
                words = "not scored" if str(name) in unscored else "not evaluated"
            elif isinstance(value, str):
                words = value
            cells = f'<dd class="none">{safe(_shorten(words, MAX_NAME))}</dd>'
        else:
            cells = f'<dd>{share:.3f}</dd><dd aria-hidden="true">{meter(share)}</dd>'
        rows.append(f"<dt>{safe(spaced(_shorten(str(name), MAX_NAME)))}</dt>{cells}")
    return f'<dl class="parts">{"".join(rows)}</dl>{_more(len(breakdown), "sub-scores")}'


def _penalties(found: Sequence[str]) -> str:
    if not found:
        return ""
    rows = "".join(f"<li>{safe(_shorten(penalty_text(penalty), MAX_NAME))}</li>" for penalty in found[:MAX_PARTS])
    return f'<div class="lowered"><span class="kind">lowered by</span><ul>{rows}</ul></div>{_more(len(found), "penalties")}'


def _more(count: int, noun: str) -> str:
    return f'<p class="small soft">{count - MAX_PARTS:,} more {noun} are not shown.</p>' if count > MAX_PARTS else ""


def _texts(values: object) -> list[str]:
    """Return the strings of a collection; an empty list for any other value."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        return []
    return [value for value in values if isinstance(value, str)]


def _share(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 and math.isfinite(value) else None


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
