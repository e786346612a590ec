"""The steps of two runs side by side: which belong together, where they begin to differ, and how arguments and texts differ."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.pages import safe
from grace_kp.trace.html import as_json, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_STEPS = 2_000
"""Steps of each run that are compared."""
MAX_WORDS = 200
"""Words and spaces that are compared between the first and the last difference of a text; more of them stand as a whole."""
MAX_TEXT = 4_000
"""Characters of a text that are shown."""
BEFORE = 100
"""Characters of a long text before its first difference."""
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Pair:
    """Steps that stand beside each other, by number; None where one run has none."""

    first: int | None
    second: int | None


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that are equal, or that differ."""

    equal: bool
    pairs: tuple[Pair, ...]


def aligned(first: Sequence[Any], second: Sequence[Any]) -> list[Block]:
    """Return the steps of two runs in blocks. Steps are equal if type, tool, arguments and content are.

    Where the runs differ, steps with the same type and tool stand beside each other, in order.
    """
    former, latter = ([_key(mapping(step)) for step in steps[:MAX_STEPS]] for steps in (first, second))
    # The equal beginning and end are cut off first: that is quick, and it keeps what is left short.
    start = _shared(former, latter)
    end = _shared(former[start:][::-1], latter[start:][::-1])
    matcher = difflib.SequenceMatcher(None, former[start : len(former) - end], latter[start : len(latter) - end])
    blocks = [Block(True, tuple(Pair(place, place) for place in range(start)))] if start else []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        left, right = range(start + a, start + a_end), range(start + b, start + b_end)
        if tag == "equal":
            blocks.append(Block(True, tuple(map(Pair, left, right))))
        else:
            blocks.append(Block(False, tuple(_paired(left, right, former, latter))))
    if end:
        rest = range(len(former) - end, len(former)), range(len(latter) - end, len(latter))
        blocks.append(Block(True, tuple(map(Pair, *rest))))
    return blocks


def _paired(left: range, right: range, former: list[Any], latter: list[Any]) -> Iterator[Pair]:
    """Yield the steps of a difference: those with the same type and tool together."""
    kinds = difflib.SequenceMatcher(
        None, [former[place][:2] for place in left], [latter[place][:2] for place in right]
    ).get_opcodes()
    for tag, a, a_end, b, b_end in kinds:
        if tag == "equal":
            yield from map(Pair, left[a:a_end], right[b:b_end])
            continue
        yield from (Pair(place, None) for place in left[a:a_end])
        yield from (Pair(None, place) for place in right[b:b_end])


def _shared(former: Sequence[Any], latter: Sequence[Any]) -> int:
    count = 0
    for before, after in zip(former, latter, strict=False):
        if before != after:
            break
        count += 1
    return count


def _key(step: dict[str, Any]) -> tuple[str, str, str, str]:
    return (
        text(step.get("type")),
        text(mapping(step.get("tool")).get("name")),
        as_json(step.get("input")),
        text(step.get("content")),
    )


def differing(before: object, after: object) -> str:
    """Return two values as one text in HTML, with what was taken out and what was put in; equal ones without marks."""
    former, latter = text(before), text(after)
    if former == latter:
        return safe(former[:MAX_TEXT], lines=True)
    # A long text is shown from shortly before the first place where it differs.
    start = max(0, _shared(former, latter) - BEFORE) if max(len(former), len(latter)) > MAX_TEXT else 0
    note = f'<span class="soft">{start:,} equal characters … </span>' if start else ""
    return note + _differing(former[start : start + MAX_TEXT], latter[start : start + MAX_TEXT])


def _differing(former: str, latter: str) -> str:
    a, b = _WORD.findall(former), _WORD.findall(latter)
    start = _shared(a, b)
    end = _shared(a[start:][::-1], b[start:][::-1])
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    parts = [safe("".join(a[:start]), lines=True)]
    if max(len(middle_a), len(middle_b)) > MAX_WORDS:
        parts.append(_taken("".join(middle_a)) + _put("".join(middle_b)))
    else:
        matcher = difflib.SequenceMatcher(None, middle_a, middle_b, autojunk=False)
        for tag, first, last, begin, finish in matcher.get_opcodes():
            old, new = "".join(middle_a[first:last]), "".join(middle_b[begin:finish])
            parts.append(safe(old, lines=True) if tag == "equal" else _taken(old) + _put(new))
    return "".join(parts) + safe("".join(a[len(a) - end :]), lines=True)


def _taken(words: str) -> str:
    return f"<del>{safe(words, lines=True)}</del>" if words else ""


def _put(words: str) -> str:
    return f"<ins>{safe(words, lines=True)}</ins>" if words else ""
