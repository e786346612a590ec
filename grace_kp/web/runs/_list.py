"""The list of runs: filters as a form and as chips, pages by position, and example code in an empty list. The address holds the filters."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from grace_kp.levels import InterventionLevel
from grace_kp.pages import spaced
from grace_kp.web._parameter import RunConditions, query_from
from grace_kp.web._site import Right, person_of, recording_lines, root_of, site_of
from grace_kp.web.runs._run import run_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.store import Catalog


NAMES = tuple(RunConditions.model_fields)
_LABELS = {
    "min_score": "score from", "max_score": "score to", "min_confidence": "confidence from", "max_confidence": "confidence to",
    "tags": "tag", "since": "began since", "until": "began until", "text": "contains", "scorer_passed": "scorer",
    "feedback": "labels", "roots": "nesting",
}  # fmt: skip
_WORDS = {
    ("scorer_passed", "true"): "passed", ("scorer_passed", "false"): "not passed", ("feedback", "true"): "labelled",
    ("feedback", "false"): "not labelled", ("roots", "true"): "outermost runs only", ("roots", "false"): "all runs", ("level", "none"): "no gate",
}  # fmt: skip
_CHOICES = {
    "level": (*InterventionLevel, "none"),
    "scorer_passed": ("true", "false"),
    "feedback": ("true", "false"),
    "roots": ("true",),
}
_FROM_CATALOG = {"agent": "agent", "domain": "domain", "status": "status", "tags": "tag", "scorer": "scorer"}
_FIRST = ("text", "agent", "status", "level")
"""Fields that are always visible; the others fold."""
_HINTS = {
    "since": "a day such as 2026-11-25, or 7d for the last seven days",
    "until": "a day such as 2026-11-25, or 2h for two hours ago",
}
_RANGE = {"min_score", "max_score", "min_confidence", "max_confidence"}


def chips(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the active filters, each with the query of the list without it."""
    return [
        {"label": _label(name), "value": _word(name, value), "without": urlencode([pair for pair in pairs if pair != (name, value)])}
        for name, value in pairs
    ]  # fmt: skip


def fields(catalog: Catalog, pairs: Sequence[tuple[str, str]], problems: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the fields of the form with the values of the address.

    `options` are values and labels of a drop-down, empty for an input; `kept` are further values of a repeated parameter.
    """
    form = []
    for name in [*_FIRST, *(name for name in NAMES if name not in _FIRST)]:
        is_many = RunConditions.is_list(name)
        values = [value for stated_name, value in pairs if stated_name == name]
        value = values[0] if values and not is_many else ""
        choices = catalog.names(_FROM_CATALOG[name]) if name in _FROM_CATALOG else list(_CHOICES.get(name, ()))
        if choices and value and value not in choices:
            choices.insert(0, value)
        label = "add a tag" if is_many and values else "scorer result" if name == "scorer_passed" else _label(name)
        form.append(
            {
                "name": name,
                "label": label,
                "value": value,
                "problem": problems.get(name, ""),
                "options": [(choice, _word(name, choice)) for choice in choices if choice and choice not in values[1:]],
                "kept": values if is_many else [],
                "hint": _HINTS.get(name, ""),
                "number": name in _RANGE,
                "first": name in _FIRST,
            }
        )
    return form


def _label(name: str) -> str:
    return _LABELS.get(name, spaced(name))


def _word(name: str, value: str) -> str:
    return _WORDS.get((name, value), spaced(value) if name in {"status", "level"} else value)


LIMIT = 50


def run_list(request: Request) -> Response:
    site, root = site_of(request), root_of(request)
    pairs = request.query_params.multi_items()
    if any(not value for name, value in pairs if name in NAMES):
        # A form sends all its fields. An address that people share should hold only the filled ones.
        kept = urlencode([pair for pair in pairs if pair[1]])
        return RedirectResponse(f"{root}/runs{'?' if kept else ''}{kept}", 303)
    conditions = list(dict.fromkeys((name, value) for name, value in pairs if name in NAMES and value))
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
        rows=[
            {"run": run, "address": run_address(root, run.id), "began": _seconds(run.created_at)} for run in found.rows
        ],
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


def _page(conditions: list[tuple[str, str]], name: str, position: int | None) -> str:
    return "" if position is None else urlencode([*conditions, (name, position)])


def _cursor(request: Request) -> dict[str, int]:
    for name in ("before", "after"):
        value = request.query_params.get(name, "")
        if value.removeprefix("-").isascii() and value.removeprefix("-").isdecimal() and len(value) < 19:
            return {name: int(value)}
    return {}


def _seconds(instant: str) -> float | None:
    try:
        return datetime.fromisoformat(instant).timestamp()
    except (ValueError, OverflowError):
        return None
