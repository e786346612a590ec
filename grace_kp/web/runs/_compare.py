"""Two runs side by side: their heads and figures in a table, and their steps from the first one in which they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import RedirectResponse

from grace_kp.pages import count_text, duration_text, spaced
from grace_kp.trace.html import (
    agent_name,
    document_of,
    items,
    mapping,
    number,
    run_title,
    share,
    strictest,
    text,
)
from grace_kp.web._site import root_of, site_of
from grace_kp.web.runs._addresses import links_from, run_address
from grace_kp.web.runs._alignment import MAX_STEPS, aligned
from grace_kp.web.runs._beside import MAX_SHOWN, block_of
from grace_kp.web.runs._run import missing_page, stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.web.runs._alignment import Block


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
        trace = stored(site, name)
        if trace is None:
            return missing_page(request, name)
        documents.append(document_of(trace))
    former, latter = documents
    steps = [items(document.get("steps")) for document in documents]
    blocks = aligned(*steps)
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
        facts=list(_rows(_facts_of(former), _facts_of(latter))),
        figures=list(_rows(_figures_of(former), _figures_of(latter))),
        first=first,
        blocks=Markup("".join(shown)),  # noqa: S704 — block_of escapes every text
        summary=_summary(blocks),
        left_out=[max(0, len(side) - MAX_STEPS) for side in steps],
    )


def _summary(blocks: list[Block]) -> str:
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


def _rows(former: Mapping[str, Any], latter: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield label, both values, and in words whether and how they differ."""
    for label in dict.fromkeys([*former, *latter]):
        a, b = former.get(label, ""), latter.get(label, "")
        if a == b == "":
            continue
        yield {"label": label, "a": _shown(label, a), "b": _shown(label, b), "word": _difference(label, a, b)}


def _difference(label: str, a: object, b: object) -> str:
    if a == b:
        return "same"
    if isinstance(a, float | int) and isinstance(b, float | int):
        plus = "+" if b > a else "−"
        return f"{plus}{_shown(label, abs(b - a))}"
    return "differs"


def _shown(label: str, value: object) -> str:
    if isinstance(value, str):
        return value[:300]
    figure = number(value)
    if figure is None:
        return ""
    if label == "duration":
        return duration_text(figure)
    return f"{figure:,.0f}" if isinstance(value, int) else f"{figure:.3f}"


def _facts_of(document: Mapping[str, Any]) -> dict[str, str]:
    grace, metadata = mapping(document.get("grace")), mapping(document.get("metadata"))
    error = mapping(grace.get("error"))
    success = metadata.get("success")
    return {
        "objective": text(mapping(document.get("task")).get("objective")),
        "agent": agent_name(document),
        "domain": text(metadata.get("task_domain")),
        "status": spaced(text(grace.get("status"))),
        "success": "yes" if success is True else "no" if success is False else "",
        "error": ": ".join(filter(None, (text(error.get("type")), text(error.get("message"))))),
        "result": text(mapping(document.get("outcome")).get("result_summary")),
        "began": text(metadata.get("created_at")),
        "strictest level": strictest(grace),
        "user": text(grace.get("user")),
        "session": text(grace.get("session")),
        "tags": ", ".join(text(tag) for tag in items(grace.get("tags"))[:50]),
    }


def _figures_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures by name: floats from 0 to 1, whole numbers, and the duration in milliseconds."""
    grace = mapping(document.get("grace"))
    found: dict[str, Any] = {
        "confidence": share(mapping(document.get("outcome")).get("confidence")),
        **_parts("confidence: ", mapping(grace.get("confidence")).get("breakdown")),
        "value score": share(mapping(document.get("metadata")).get("quality_score")),
        **_parts("value: ", grace.get("value")),
        "steps": len(items(document.get("steps"))),
        "tool calls": len(items(grace.get("calls"))),
        "model calls": len(items(grace.get("model_calls"))),
        "gates": len(items(grace.get("decisions"))),
        **{spaced(name): count for name, count in mapping(grace.get("usage")).items() if type(count) is int},
        "duration": number(grace.get("duration_ms")),
    }
    return {name: value for name, value in found.items() if value is not None}


def _parts(prefix: str, parts: object) -> dict[str, float]:
    return {
        f"{prefix}{spaced(name)}": value
        for name, item in list(mapping(parts).items())[:30]
        if name != "score" and isinstance(item, float | int) and (value := share(item)) is not None
    }
