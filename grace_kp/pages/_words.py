"""Strings for people: names, durations and numbers in words, without characters that a terminal or a browser obeys or hides."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_FAILURES = re.compile(r"tool_failures\(rate=([01]\.\d\d)\)")
_FIXED = {
    "no_search_results": "the search found nothing",
    "no_sources": "no sources",
    # Rules of the value score.
    "single_thought": "a single thought: 0.1",
    "error_recovery_bonus": "more than two recoveries: +0.1",
    "low_tool_diversity": "only one tool: -0.1",
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
APPROVAL_STATES: Mapping[str, str] = {
    "approved": "approved",
    "edited": "approved with edits",
    "rejected": "rejected",
    "responded": "answered with words",
    "skipped": "skipped",
    "retried": "sent back for a retry",
    "expired": "expired",
    "cancelled": "cancelled",
    "claimed": "started, no outcome yet",
    "done": "done",
    "failed": "failed",
    "unknown": "started, outcome unknown",
    "not_done": "not done",
    "pending": "pending",
}
"""The states of a request for approval in words."""


def outcome_text(approval: Mapping[str, Any]) -> str:
    """Return the outcome of a request after the end of its run and who decided; empty if unknown."""
    now = approval.get("now")
    state, decision, by = (
        str((now if isinstance(now, dict) else {}).get(name, ""))[:200] for name in ("state", "decision", "by")
    )
    words = [APPROVAL_STATES.get(state, state)] if decision != state else []
    return ", ".join(words + ([f"{APPROVAL_STATES.get(decision, decision)} by {by}"] if by else []))


def penalty_text(penalty: str) -> str:
    """Return a penalty, or a rule of the value score, in words: `tool_failures(rate=0.83)` reads "tools succeeded: 83 %".

    Unknown names stay as they are.
    """
    failures = _FAILURES.fullmatch(penalty)
    if failures is not None:
        # A rate of 1.00 is rounded: if every tool had succeeded, the penalty would not exist.
        share = "over 99" if failures[1] == "1.00" else str(round(float(failures[1]) * 100))
        return f"tools succeeded: {share} %"
    return _FIXED.get(penalty, penalty)


def with_fallbacks(parts: Mapping[str, Any], fallbacks: object) -> dict[str, Any]:
    """Return sub-scores in which an unmeasured one with a fallback value reads `fallback 0.5`."""
    known = fallbacks if isinstance(fallbacks, dict) else {}
    values = {name: value for name, value in known.items() if type(value) in {int, float} and 0 <= value <= 1}
    return {**parts, **{name: f"fallback {value:g}" for name, value in values.items()}}


def spaced(name: object) -> str:
    """Return the name of a field in words: `not_approved` reads "not approved"."""
    return str(name).replace("_", " ")


def duration_text(milliseconds: float) -> str:
    """Return a duration: `40 µs`, `0.4 ms`, `420 ms`, `3.2 s`, `4 min 10 s`, `3 h 5 min`; empty for a negative or non-finite number."""
    if not math.isfinite(milliseconds) or milliseconds < 0:
        return ""
    if 0 < milliseconds < 0.0995:
        return f"{max(1, round(milliseconds * 1_000))} µs"
    if milliseconds < 999.5:
        return f"{milliseconds:.1f} ms" if 0 < milliseconds < 9.95 else f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, left = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {left} min" if left else f"{hours:,} h"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: `1 step`, `2,000 steps`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def span_text(seconds: float) -> str:
    """Return a duration in at most two units, such as `3 h 20 m`; less than a minute in seconds."""
    left = int(abs(seconds))
    for place, (size, unit) in enumerate(_UNITS):
        if left < size:
            continue
        count, rest = divmod(left, size)
        smaller = rest // _UNITS[place + 1][0] if place + 1 < len(_UNITS) else 0
        return f"{count} {unit}" + (f" {smaller} {_UNITS[place + 1][1]}" if smaller and count < 10 else "")
    return f"{left} s"


_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159"
_SELECTORS = "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Default-ignorable and blank characters that `str.isprintable` accepts.
_INVISIBLE = re.compile(f"[{_BLANK}{_SELECTORS}]")
_SPACE = "\u3000"
"""The ideographic space: as wide as a character, and common in Japanese text."""


def hides(character: str) -> bool:
    """Return whether a character is invisible although `str.isprintable` accepts it."""
    return _INVISIBLE.match(character) is not None


def printable(text: str, *, keep: str = "", replace: str | Callable[[str], str] = " ") -> str:
    """Replace each character that `str.isprintable` refuses or that is invisible, except those in `keep`.

    A variation selector stays after the symbol or ideograph that it belongs to.
    """
    rest = text.translate(dict.fromkeys(map(ord, keep))) if keep else text
    if rest.isprintable() and (text.isascii() or not _INVISIBLE.search(text)):
        return text
    return "".join(
        character
        if character in keep or (character.isprintable() and (not hides(character) or _belongs(character, before)))
        else (replace if isinstance(replace, str) else replace(character))
        for before, character in zip(f"\0{text}", text, strict=False)
    )


def _belongs(selector: str, before: str) -> bool:
    """Return whether a variation selector chooses a form of the character before it: an emoji, or a variant of an ideograph."""
    if selector in "\ufe0e\ufe0f":
        return unicodedata.category(before) in {"So", "Sm"} and not hides(before)
    is_ideograph = "\u3400" <= before <= "\u9fff" or "\U00020000" <= before <= "\U0003ffff"
    return is_ideograph and (selector >= "\U000e0100" or "\ufe00" <= selector <= "\ufe02")


def visible(text: str, *, lines: bool = False) -> str:
    """Return a string for a page: control and invisible characters become codes such as ⟨U+202E⟩, and blanks become spaces."""
    if lines:
        return printable(text.replace("\r\n", "\n"), keep=f"\n\t{_SPACE}", replace=_code)
    return printable(text, keep=_SPACE, replace=lambda character: " " if character in "\t\n\r" else _code(character))


def _code(character: str) -> str:
    return " " if unicodedata.category(character) == "Zs" else f"⟨U+{ord(character):04X}⟩"
