"""The list of runs: filters in the address, pages by position, and what to do where it is empty."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from grace_kp.web._example import recording_lines
from grace_kp.web._person import Right
from grace_kp.web._run_query import query_from
from grace_kp.web._site import person_of, root_of, site_of
from grace_kp.web.runs._addresses import run_address
from grace_kp.web.runs._conditions import NAMES, chips, fields, stated

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.store import RunRow

LIMIT = 50
_CURSORS = ("before", "after")


def run_list(request: Request) -> Response:
    """Return a page of the list of runs."""
    site, root = site_of(request), root_of(request)
    pairs = request.query_params.multi_items()
    if any(not value for name, value in pairs if name in NAMES):
        # A form sends all its fields; an address that people share holds only those that say something.
        kept = urlencode([pair for pair in pairs if pair[1]])
        return RedirectResponse(f"{root}/runs{'?' if kept else ''}{kept}", 303)
    conditions = stated(pairs)
    query, problems = query_from(request.query_params)
    active = [pair for pair in conditions if pair[0] not in problems]
    cursor = _cursor(request)
    found = site.catalog.find(query, limit=LIMIT, **cursor)
    progress = site.catalog.progress()
    labelled = request.query_params.get("labelled", "")
    return site.page(
        request,
        "runs/list.html",
        status=422 if problems else 200,
        rows=[_row(row, root) for row in found.rows],
        chips=chips(active),
        fields=fields(site.catalog, conditions, problems),
        problems=problems,
        query=urlencode(active),
        here=urlencode([*active, *cursor.items()]),
        newer=_page(active, "after", found.newer),
        older=_page(active, "before", found.older),
        searched_to=_seconds(found.searched_to) if found.searched_to else None,
        progress=progress,
        later_page=bool(cursor),
        backwards="after" in cursor,
        labelled=(labelled, run_address(root, labelled)) if labelled else None,
        may_label=person_of(request).may(Right.LABEL),
        record=recording_lines(site.grace.settings.store),
    )


def _row(row: RunRow, root: str) -> dict[str, Any]:
    return {"run": row, "address": run_address(root, row.id), "began": _seconds(row.created_at)}


def _page(conditions: list[tuple[str, str]], name: str, position: int | None) -> str:
    return "" if position is None else urlencode([*conditions, (name, position)])


def _cursor(request: Request) -> dict[str, int]:
    """Return `before` or `after` as the address states it; one that is no position is ignored."""
    for name in _CURSORS:
        value = request.query_params.get(name, "")
        if value.removeprefix("-").isascii() and value.removeprefix("-").isdecimal() and len(value) < 19:
            return {name: int(value)}
    return {}


def _seconds(instant: str) -> float | None:
    try:
        return datetime.fromisoformat(instant).timestamp()
    except (ValueError, OverflowError):
        return None
