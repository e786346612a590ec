"""Blocks of two runs as HTML: equal steps folded into one line, differing ones beside each other with what changed."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from grace_kp.pages import badge, count_text, duration_text, safe, spaced
from grace_kp.trace.html import as_json, items, mapping, number, text
from grace_kp.web.runs._alignment import differing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.trace import Links
    from grace_kp.web.runs._alignment import Block, Pair

MAX_SHOWN = 300
"""Differing fields of steps on a page."""
MAX_LISTED = 50
"""Equal steps that a folded line lists."""
MAX_ARGUMENTS = 40


def block_of(
    block: Block, documents: Sequence[Mapping[str, Any]], links: Links, *, left: int, is_first: bool
) -> tuple[str, int]:
    """Return a block as HTML, and the number of differing fields that it shows; a pair without any counts as one.

    Args:
        block: steps that are equal, or that differ.
        documents: both runs.
        links: addresses of steps.
        left: differing fields that may still be shown; the last pair may exceed it.
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
    sides = []
    steps = [_step(document, place) for document, place in zip(documents, (pair.first, pair.second), strict=True)]
    for letter, document, place, step in zip("AB", documents, (pair.first, pair.second), steps, strict=True):
        if step is None or place is None:
            sides.append(
                f'<div class="side none"><span class="letter">{letter}</span> <span class="soft">no such step</span></div>'
            )
            continue
        address = links.step(text(document.get("id")), place)
        number_of = f'<a href="{safe(address)}">step {place}</a>' if address else f"step {place}"
        sides.append(f'<div class="side"><span class="letter">{letter}</span> {number_of} {_head(step)}</div>')
    former, latter = steps
    rows = _whole(former or latter or {}) if former is None or latter is None else _changes(former, latter)
    word = "only in A" if latter is None else "only in B" if former is None else "changed"
    identity = ' id="difference" tabindex="-1"' if mark else ""
    label = badge("first difference", "warn") + " " if mark else ""
    head = f'<p class="what">{label}{badge(word, "")}</p><div class="sides">{"".join(sides)}</div>'
    return f'<div class="pair{" first" if mark else ""}"{identity}>{head}{_listed(rows)}</div>', len(rows)


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


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what changed between two steps, argument by argument."""
    rows = []
    former, latter = before.get("input"), after.get("input")
    if isinstance(former, dict) and isinstance(latter, dict):
        names = list(dict.fromkeys(chain(former, latter)))
        changed = [name for name in names if name not in former or name not in latter or former[name] != latter[name]]
        for name in changed[:MAX_ARGUMENTS]:
            pair = (as_json(side[name]) if name in side else "" for side in (former, latter))
            rows.append((name[:200], differing(*pair)))
        equal = len(names) - len(changed)
        if equal and changed:
            rows.append(("arguments", f'<span class="soft">{count_text(equal, "other")} equal</span>'))
    elif former != latter:
        rows.append(("input", differing(former, latter)))
    for label, name in (("text", "content"), ("summary", "output_summary")):
        if text(before.get(name)) != text(after.get(name)):
            rows.append((label, differing(before.get(name), after.get(name))))
    return rows


def _whole(step: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        (name[:200], safe(as_json(value)[:1_000]))
        for name, value in list(mapping(step.get("input")).items())[:MAX_ARGUMENTS]
    ]
    if text(step.get("content")):
        rows.append(("text", safe(text(step["content"])[:1_000], lines=True)))
    return rows


def _listed(rows: list[tuple[str, str]]) -> str:
    shown = "".join(f'<dt>{safe(name)}</dt><dd class="text">{change}</dd>' for name, change in rows)
    return f'<dl class="facts">{shown}</dl>' if rows else ""
