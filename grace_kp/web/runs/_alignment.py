"""The steps of two runs side by side: which belong together, and where they begin to differ."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.trace.html import as_json, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_STEPS = 2_000
"""Steps of each run that are compared."""


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
    start = shared(former, latter)
    end = shared(former[start:][::-1], latter[start:][::-1])
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


def shared(former: Sequence[Any], latter: Sequence[Any]) -> int:
    """Return how many items two sequences have in common at their beginning."""
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
