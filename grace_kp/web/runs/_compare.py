"""Two runs side by side: equal steps folded into one line, differing ones beside each other, and the first difference marked."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import RedirectResponse

from grace_kp.pages import badge, count_text, duration_text, safe, spaced
from grace_kp.trace.html import as_json, document_of, items, mapping, number, run_title, text
from grace_kp.web._site import root_of, site_of
from grace_kp.web.runs._run import find_run, links_from, missing_page, run_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.trace import Links


MAX_STEPS = 2_000
"""Steps of each run that are compared."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Steps that stand beside each other, by number; None where one run has none."""

    first: int | None
    second: int | None


@dataclass(frozen=True, slots=True)
class StepBlock:
    """Steps that are equal, or that differ."""

    equal: bool
    pairs: tuple[Pair, ...]


def align_steps(first: Sequence[Any], second: Sequence[Any]) -> list[StepBlock]:
    """Return the steps of two runs in blocks. Steps are equal if type, tool, arguments and content are.

    Where the runs differ, steps with the same type and tool stand beside each other, in order.
    """
    former, latter = ([_key(mapping(step)) for step in steps[:MAX_STEPS]] for steps in (first, second))
    # The equal beginning and end are cut off first: that is quick, and it keeps what is left short.
    start = count_shared(former, latter)
    end = count_shared(former[start:][::-1], latter[start:][::-1])
    matcher = difflib.SequenceMatcher(None, former[start : len(former) - end], latter[start : len(latter) - end])
    blocks = [StepBlock(True, tuple(Pair(place, place) for place in range(start)))] if start else []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        left, right = range(start + a, start + a_end), range(start + b, start + b_end)
        if tag == "equal":
            blocks.append(StepBlock(True, tuple(map(Pair, left, right))))
        else:
            blocks.append(StepBlock(False, tuple(_pair_steps(left, right, former, latter))))
    if end:
        rest = range(len(former) - end, len(former)), range(len(latter) - end, len(latter))
        blocks.append(StepBlock(True, tuple(map(Pair, *rest))))
    return blocks


def _pair_steps(left: range, right: range, former: list[Any], latter: list[Any]) -> Iterator[Pair]:
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


def count_shared(former: Sequence[Any], latter: Sequence[Any]) -> int:
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
    block: StepBlock, documents: Sequence[Mapping[str, Any]], links: Links, *, left: int, is_first: bool
) -> tuple[str, int]:
    """Return a block as HTML, and the number of fields that it shows, those of the longer side; a pair without any counts as one."""
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


def _equal(block: StepBlock, documents: Sequence[Mapping[str, Any]]) -> str:
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
            f'<div class="side"><span class="letter">{letter}</span> {number_of} {_head(step)}{_list_fields(own, other)}</div>'
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


def _list_fields(own: list[tuple[str, str]], other: list[tuple[str, str]]) -> str:
    """Return the fields of a step as HTML, those that are not in the other step first."""
    others, values = set(other), dict(other)
    rows = sorted(own, key=others.__contains__)
    shown = "".join(
        f'<dt>{safe(name)}</dt><dd class="text">{_cut_text(value, values.get(name, ""))}</dd>'
        for name, value in rows[:MAX_FIELDS]
    )
    more = (
        f'<p class="note small">{count_text(len(rows) - MAX_FIELDS, "more field")}</p>'
        if len(rows) > MAX_FIELDS
        else ""
    )
    return f'<dl class="facts">{shown}</dl>{more}' if shown else ""


def _cut_text(value: str, other: str) -> str:
    """Return as much of a text as fits; a long one from shortly before the first place in which it differs from the other."""
    start = max(0, count_shared(value, other) - BEFORE) if len(value) > MAX_TEXT and value != other else 0
    note = f'<span class="soft">{start:,} equal characters … </span>' if start else ""
    return note + safe(value[start : start + MAX_TEXT], lines=True)


def compare_page(request: Request) -> Response:
    """Return two runs side by side. `a=` and `b=` are their ids; the list sends two `id=`."""
    site, root, params = site_of(request), root_of(request), request.query_params
    chosen = params.getlist("id")
    if len(chosen) == 2:
        return RedirectResponse(f"{root}/runs/compare?{urlencode({'a': chosen[0], 'b': chosen[1]})}", 303)
    names = [params.get(side, "").strip() for side in ("a", "b")]
    if chosen or not all(names):
        wrong = count_text(len(chosen), "run") if chosen else ""
        return site.page(
            request, "runs/choose.html", a=names[0], b=names[1], chosen=wrong, status=422 if chosen else 200
        )
    documents = []
    for name in names:
        trace = find_run(site, name)
        if trace is None:
            return missing_page(request, name)
        documents.append(document_of(trace))
    steps = [items(document.get("steps")) for document in documents]
    blocks = align_steps(*steps)
    first = next((block.pairs[0] for block in blocks if not block.equal), None)
    links = links_from(root)
    left, shown = MAX_SHOWN, []
    for block in blocks:
        html, used = block_of(
            block, documents, links, left=left, is_first=first is not None and block.pairs[0] is first
        )
        shown.append(html)
        left -= used
    ids = [text(document.get("id")) for document in documents]
    return site.page(
        request,
        "runs/compare.html",
        titles=[run_title(document) for document in documents],
        addresses=[run_address(root, name) for name in ids],
        swapped=f"{root}/runs/compare?{urlencode({'a': names[1], 'b': names[0]})}",
        same=ids[0] == ids[1],
        first=first,
        blocks=Markup("".join(shown)),  # noqa: S704 — block_of escapes every text
        summary=_summary(blocks),
        left_out=[max(0, len(side) - MAX_STEPS) for side in steps],
    )


def _summary(blocks: list[StepBlock]) -> str:
    """Return in words how many steps are equal, differ, or stand in one run only."""
    pairs = [(block.equal, pair) for block in blocks for pair in block.pairs]
    equal = sum(same for same, _ in pairs)
    changed = sum(not same and None not in (pair.first, pair.second) for same, pair in pairs)
    only = [
        sum(not same and (pair.second if side == "A" else pair.first) is None for same, pair in pairs) for side in "AB"
    ]
    words = [
        f"{count_text(equal, 'step')} equal",
        f"{changed:,} changed",
        f"{only[0]:,} only in A",
        f"{only[1]:,} only in B",
    ]
    return ", ".join(words)
