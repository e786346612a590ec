"""Blocks of two runs as HTML: equal steps folded into one line, differing ones beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.pages import badge, count_text, duration_text, safe, spaced
from grace_kp.trace.html import as_json, items, mapping, number, text
from grace_kp.web.runs._alignment import shared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.trace import Links
    from grace_kp.web.runs._alignment import Block, Pair

MAX_SHOWN = 300
"""Fields of differing steps on a page."""
MAX_LISTED = 50
"""Equal steps that a folded line lists."""
MAX_FIELDS = 40
"""Fields of a step that are shown."""
MAX_TEXT = 1_000
"""Characters of a text that are shown."""
BEFORE = 100
"""Characters of a long text before its first difference."""


def block_of(
    block: Block, documents: Sequence[Mapping[str, Any]], links: Links, *, left: int, is_first: bool
) -> tuple[str, int]:
    """Return a block as HTML, and the number of fields that it shows, those of the longer side; a pair without any counts as one.

    Args:
        block: steps that are equal, or that differ.
        documents: both runs.
        links: addresses of steps.
        left: fields that may still be shown; the last pair may exceed it.
        is_first: whether it begins with the first difference, which gets the id `difference`.
    """
    if block.equal:
        return _equal(block, documents), 0
    parts, used, shown = [], 0, 0
    for pair in block.pairs:
        if used >= left:
            break
        html, changes = _pair(pair, documents, links, mark=is_first and shown == 0)
        parts.append(html)
        used, shown = used + max(1, changes), shown + 1
    hidden = len(block.pairs) - shown
    if hidden:
        parts.append(f'<p class="note small">{count_text(hidden, "more differing step")} are not shown here.</p>')
    return "".join(parts), used


def _equal(block: Block, documents: Sequence[Mapping[str, Any]]) -> str:
    steps = items(documents[0].get("steps"))
    first, last = block.pairs[0], block.pairs[-1]
    listed = "".join(f"<li>{_head(mapping(steps[pair.first or 0]))}</li>" for pair in block.pairs[:MAX_LISTED])
    more = len(block.pairs) - MAX_LISTED
    listed += f"<li>and {more:,} more</li>" if more > 0 else ""
    where = f"A {_range(first.first, last.first)}, B {_range(first.second, last.second)}"
    return (
        f'<details class="equal"><summary>{count_text(len(block.pairs), "equal step")} <span class="soft">({where})</span></summary>'
        f'<ul class="bare small">{listed}</ul></details>'
    )


def _range(first: int | None, last: int | None) -> str:
    return f"{first}" if first == last else f"{first}–{last}"


def _pair(pair: Pair, documents: Sequence[Mapping[str, Any]], links: Links, *, mark: bool) -> tuple[str, int]:
    places = pair.first, pair.second
    steps = [_step(document, place) for document, place in zip(documents, places, strict=True)]
    fields = [_fields(step) for step in steps]
    sides = []
    for letter, document, place, step, own, other in zip(
        "AB", documents, places, steps, fields, reversed(fields), strict=True
    ):
        if step is None or place is None:
            sides.append(
                f'<div class="side none"><span class="letter">{letter}</span> <span class="soft">no such step</span></div>'
            )
            continue
        address = links.step(text(document.get("id")), place)
        number_of = f'<a href="{safe(address)}">step {place}</a>' if address else f"step {place}"
        sides.append(
            f'<div class="side"><span class="letter">{letter}</span> {number_of} {_head(step)}{_listed(own, other)}</div>'
        )
    word = "only in A" if places[1] is None else "only in B" if places[0] is None else "changed"
    identity = ' id="difference" tabindex="-1"' if mark else ""
    label = badge("first difference", "warn") + " " if mark else ""
    head = f'<p class="what">{label}{badge(word, "")}</p><div class="sides">{"".join(sides)}</div>'
    return f'<div class="pair{" first" if mark else ""}"{identity}>{head}</div>', min(MAX_FIELDS, max(map(len, fields)))


def _step(document: Mapping[str, Any], place: int | None) -> dict[str, Any] | None:
    return None if place is None else mapping(items(document.get("steps"))[place])


def _head(step: dict[str, Any]) -> str:
    parts = [f'<span class="kind">{safe(spaced(text(step.get("type"))[:100]) or "step")}</span>']
    tool = text(mapping(step.get("tool")).get("name"))
    if tool:
        parts.append(f'<span class="name mono">{safe(tool[:200])}</span>')
    took = number(step.get("latency_ms"))
    if took is not None:
        parts.append(f'<span class="soft small">{safe(duration_text(took))}</span>')
    return " ".join(parts)


def _fields(step: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the arguments and texts of a step, with their labels."""
    if step is None:
        return []
    arguments = step.get("input")
    named = arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments}
    rows = [(name[:200], as_json(value)) for name, value in named.items()]
    rows += [("text", text(step.get("content"))), ("summary", text(step.get("output_summary")))]
    return [(name, value) for name, value in rows if value]


def _listed(own: list[tuple[str, str]], other: list[tuple[str, str]]) -> str:
    """Return the fields of a step as HTML, those that are not in the other step first."""
    others, values = set(other), dict(other)
    rows = sorted(own, key=others.__contains__)
    shown = "".join(
        f'<dt>{safe(name)}</dt><dd class="text">{_cut(value, values.get(name, ""))}</dd>'
        for name, value in rows[:MAX_FIELDS]
    )
    more = (
        f'<p class="note small">{count_text(len(rows) - MAX_FIELDS, "more field")}</p>'
        if len(rows) > MAX_FIELDS
        else ""
    )
    return f'<dl class="facts">{shown}</dl>{more}' if shown else ""


def _cut(value: str, other: str) -> str:
    """Return as much of a text as fits; a long one from shortly before the first place in which it differs from the other."""
    start = max(0, shared(value, other) - BEFORE) if len(value) > MAX_TEXT and value != other else 0
    note = f'<span class="soft">{start:,} equal characters … </span>' if start else ""
    return note + safe(value[start : start + MAX_TEXT], lines=True)
