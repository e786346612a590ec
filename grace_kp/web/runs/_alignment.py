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
MAX_WORDS = 400
"""Words of a text that are compared; longer ones stand side by side as a whole."""
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
    one, two = ([_key(mapping(step)) for step in steps[:MAX_STEPS]] for steps in (first, second))
    # The equal beginning and end are cut off first: that is quick, and it keeps what is left short.
    start = _shared(one, two)
    end = _shared(one[start:][::-1], two[start:][::-1])
    matcher = difflib.SequenceMatcher(None, one[start : len(one) - end], two[start : len(two) - end])
    blocks = [Block(True, tuple(Pair(place, place) for place in range(start)))] if start else []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        left, right = range(start + a, start + a_end), range(start + b, start + b_end)
        if tag == "equal":
            blocks.append(Block(True, tuple(map(Pair, left, right))))
        else:
            blocks.append(Block(False, tuple(_paired(left, right, one, two))))
    if end:
        rest = range(len(one) - end, len(one)), range(len(two) - end, len(two))
        blocks.append(Block(True, tuple(map(Pair, *rest))))
    return blocks


def _paired(left: range, right: range, one: list[Any], two: list[Any]) -> Iterator[Pair]:
    """Yield the steps of a difference: those with the same type and tool together."""
    kinds = difflib.SequenceMatcher(
        None, [one[place][:2] for place in left], [two[place][:2] for place in right]
    ).get_opcodes()
    for tag, a, a_end, b, b_end in kinds:
        if tag == "equal":
            yield from map(Pair, left[a:a_end], right[b:b_end])
            continue
        yield from (Pair(place, None) for place in left[a:a_end])
        yield from (Pair(None, place) for place in right[b:b_end])


def _shared(one: Sequence[Any], two: Sequence[Any]) -> int:
    count = 0
    for before, after in zip(one, two, strict=False):
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
    one, two = text(before), text(after)
    if one == two:
        return safe(one[:MAX_TEXT], lines=True)
    # A long text is shown from shortly before the first place where it differs.
    start = max(0, _shared(one, two) - BEFORE) if max(len(one), len(two)) > MAX_TEXT else 0
    note = f'<span class="soft">{start:,} equal characters … </span>' if start else ""
    return note + _differing(one[start : start + MAX_TEXT], two[start : start + MAX_TEXT])


def _differing(one: str, two: str) -> str:
    a, b = _WORD.findall(one), _WORD.findall(two)
    if len(a) > MAX_WORDS or len(b) > MAX_WORDS:
        return _taken(one) + _put(two)
    parts = []
    for tag, start, stop, begin, finish in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        old, new = "".join(a[start:stop]), "".join(b[begin:finish])
        parts.append(safe(old, lines=True) if tag == "equal" else _taken(old) + _put(new))
    return "".join(parts)


def _taken(words: str) -> str:
    return f"<del>{safe(words, lines=True)}</del>" if words else ""


def _put(words: str) -> str:
    return f"<ins>{safe(words, lines=True)}</ins>" if words else ""
