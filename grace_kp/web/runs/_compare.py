"""Two runs side by side: equal steps folded into one line, differing steps in pairs, and the first difference marked."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from grace_kp.pages import badge, count_text, duration_text, safe, spaced
from grace_kp.trace.html import as_json, document_of, items, mapping, number, run_title, text
from grace_kp.web._site import root_of, site_of, trust_html
from grace_kp.web.runs._run import find_run, links_from, missing_page, run_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.trace import Links


MAX_STEPS = 2_000
"""Steps of each run that are compared."""
MAX_SHOWN = 300
"""Differing steps on a page."""
MAX_TEXT = 1_000
"""Characters of a field that are shown."""
Pair = tuple[int | None, int | None]
"""Numbers of two steps that are shown side by side; None for a missing step."""


def align_steps(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[bool, list[Pair]]]:
    """Return the steps of two runs in blocks of equal and of differing ones. Steps are equal if type, tool, arguments and content are.

    In differing blocks, steps with the same type and tool are paired in order.
    """
    former, latter = ([_key(mapping(step)) for step in steps[:MAX_STEPS]] for steps in (first, second))
    # The equal beginning and end are cut off first, because the matcher ignores steps that are frequent in long runs.
    shorter = min(len(former), len(latter))
    start = next((place for place in range(shorter) if former[place] != latter[place]), shorter)
    blocks: list[tuple[bool, list[Pair]]] = [(True, [(place, place) for place in range(start)])] if start else []
    rest = shorter - start
    same = next((back for back in range(rest) if former[-1 - back] != latter[-1 - back]), rest)
    ends_at = len(former) - same, len(latter) - same
    matcher = difflib.SequenceMatcher(None, former[start : ends_at[0]], latter[start : ends_at[1]])
    for tag, *ends in matcher.get_opcodes():
        a, a_end, b, b_end = (start + end for end in ends)
        if tag == "equal":
            blocks.append((True, list(zip(range(a, a_end), range(b, b_end), strict=True))))
            continue
        before, after = ([step[:2] for step in steps] for steps in (former[a:a_end], latter[b:b_end]))
        pairs: list[Pair] = []
        for kind, i, i_end, j, j_end in difflib.SequenceMatcher(None, before, after).get_opcodes():
            left, right = range(a + i, a + i_end), range(b + j, b + j_end)
            if kind == "equal":
                pairs += zip(left, right, strict=True)
            else:
                pairs += [(place, None) for place in left] + [(None, place) for place in right]
        blocks.append((False, pairs))
    if same:
        blocks.append((True, [(ends_at[0] + place, ends_at[1] + place) for place in range(same)]))
    return blocks


def _key(step: dict[str, Any]) -> tuple[str, str, str, str]:
    tool = text(mapping(step.get("tool")).get("name"))
    return text(step.get("type")), tool, as_json(step.get("input")), text(step.get("content"))


def equal_steps(pairs: Sequence[Pair]) -> str:
    ends = zip(pairs[0], pairs[-1], strict=True)
    ranges = [f"{first}" if first == last else f"{first}–{last}" for first, last in ends]
    return f'<p class="equal">{count_text(len(pairs), "equal step")} <span class="soft">(A {ranges[0]}, B {ranges[1]})</span></p>'


def differing_steps(pair: Pair, documents: Sequence[Mapping[str, Any]], links: Links, *, is_first: bool) -> str:
    sides = []
    for letter, document, place in zip("AB", documents, pair, strict=True):
        if place is None:
            content = '<span class="soft">no such step</span>'
        else:
            step = mapping(items(document.get("steps"))[place])
            address = links.step(text(document.get("id")), place)
            number_of = f'<a href="{safe(address)}">step {place}</a>' if address else f"step {place}"
            content = f"{number_of} {_head(step)}{_fields(step)}"
        sides.append(
            f'<div class="side{" none" if place is None else ""}"><span class="letter">{letter}</span> {content}</div>'
        )
    word = "only in A" if pair[1] is None else "only in B" if pair[0] is None else "changed"
    identity = ' id="difference" tabindex="-1"' if is_first else ""
    label = badge("first difference", "warn") + " " if is_first else ""
    head = f'<p class="what">{label}{badge(word, "")}</p><div class="sides">{"".join(sides)}</div>'
    return f'<div class="pair{" first" if is_first else ""}"{identity}>{head}</div>'


def _head(step: dict[str, Any]) -> str:
    parts = [f'<span class="kind">{safe(spaced(text(step.get("type"))[:100]) or "step")}</span>']
    tool = text(mapping(step.get("tool")).get("name"))
    if tool:
        parts.append(f'<span class="name mono">{safe(tool[:200])}</span>')
    took = number(step.get("latency_ms"))
    if took is not None:
        parts.append(f'<span class="soft small">{safe(duration_text(took))}</span>')
    return " ".join(parts)


def _fields(step: dict[str, Any]) -> str:
    rows = [("input", as_json(step["input"]) if step.get("input") is not None else "")]
    rows += [("text", text(step.get("content"))), ("summary", text(step.get("output_summary")))]
    shown = "".join(
        f'<dt>{name}</dt><dd class="text">{safe(value[:MAX_TEXT], lines=True)}{"…" if len(value) > MAX_TEXT else ""}</dd>'
        for name, value in rows
        if value
    )
    return f'<dl class="facts">{shown}</dl>' if shown else ""


def compare_page(request: Request) -> Response:
    """Return two runs side by side. `a=` and `b=` are their ids; the list sends two `id=`."""
    site, root, params = site_of(request), root_of(request), request.query_params
    chosen = params.getlist("id")
    if len(chosen) == 2:
        return RedirectResponse(f"{root}/runs/compare?{urlencode({'a': chosen[0], 'b': chosen[1]})}", 303)
    names = [params.get(side, "").strip() for side in ("a", "b")]
    if chosen or not all(names):
        wrong = count_text(len(chosen), "run") if chosen else ""
        status = 422 if chosen else 200
        return site.page(request, "runs/choose.html", a=names[0], b=names[1], chosen=wrong, status=status)
    documents = []
    for name in names:
        trace = find_run(site, name)
        if trace is None:
            return missing_page(request, name)
        documents.append(document_of(trace))
    steps = [items(document.get("steps")) for document in documents]
    shown: list[str] = []
    differing: list[Pair] = []
    count_equal = 0
    for is_equal, pairs in align_steps(*steps):
        if is_equal:
            shown.append(equal_steps(pairs))
            count_equal += len(pairs)
        for pair in () if is_equal else pairs:
            if len(differing) < MAX_SHOWN:
                shown.append(differing_steps(pair, documents, links_from(root), is_first=not differing))
            differing.append(pair)
    ids = [text(document.get("id")) for document in documents]
    only_a, only_b = (sum(pair[side] is None for pair in differing) for side in (1, 0))
    return site.page(
        request,
        "runs/compare.html",
        titles=[run_title(document) for document in documents],
        addresses=[run_address(root, name) for name in ids],
        swapped=f"{root}/runs/compare?{urlencode({'a': names[1], 'b': names[0]})}",
        same=ids[0] == ids[1],
        first=differing[0] if differing else None,
        blocks=trust_html("".join(shown)),
        summary=f"{count_text(count_equal, 'step')} equal, {len(differing) - only_a - only_b:,} changed, {only_a:,} only in A, {only_b:,} only in B",
        hidden=max(0, len(differing) - MAX_SHOWN),
        left_out=[max(0, len(side) - MAX_STEPS) for side in steps],
    )
