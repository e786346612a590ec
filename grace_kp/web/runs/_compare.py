"""Two runs side by side: their steps, and the first one in which they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import RedirectResponse

from grace_kp.pages import count_text
from grace_kp.trace.html import document_of, items, run_title, text
from grace_kp.web._site import root_of, site_of
from grace_kp.web.runs._addresses import links_from, run_address
from grace_kp.web.runs._alignment import MAX_STEPS, aligned
from grace_kp.web.runs._beside import MAX_SHOWN, block_of
from grace_kp.web.runs._run import missing_page, stored

if TYPE_CHECKING:
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
