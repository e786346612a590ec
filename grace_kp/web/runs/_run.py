"""One run as a page: its head, its labels with a button for each, a search in it, and its steps as a timeline, a tree, a waterfall or JSON."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from grace_kp.approvals import ApprovalState, RowQuery
from grace_kp.pages import count_text, safe, visible
from grace_kp.runtime import with_outcomes
from grace_kp.store import named_decisions
from grace_kp.trace import Links, run_timeline, run_title, run_tree, run_waterfall
from grace_kp.trace.html import (
    arguments_line,
    as_json,
    decisions_by_place,
    document_of,
    items,
    labels_of,
    mapping,
    run_details,
    run_summary,
    text,
)
from grace_kp.web._site import Right, form_of, person_of, root_of, site_of, trust_html, whole_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup
    from starlette.requests import Request

    from grace_kp.trace import DecisionRecord, ReasoningTrace
    from grace_kp.web._site import Site


PREFIX = "kp:trace:"
MAX_ID = 500
"""Characters of an id that becomes a link."""


def run_address(root: str, name: str) -> str:
    return f"{root}/runs/{quote(name, safe=':', errors='replace')}"


def links_from(root: str) -> Links:
    """Return the links of a page about runs. Ids that no trace can have get no link."""

    def run(name: str) -> str | None:
        return run_address(root, name) if name.startswith(PREFIX) and len(name) <= MAX_ID else None

    def step(name: str, place: int) -> str | None:
        address = run(name)
        return None if address is None else f"{address}?{urlencode({'from': place})}#step-{place}"

    def approval(name: str) -> str | None:
        return f"{root}/approvals/{quote(name, safe=':', errors='replace')}" if len(name) <= MAX_ID else None

    return Links(run=run, step=step, approval=approval)


MAX_QUERY = 200
"""Characters of a search."""
MAX_MARKS = 2_000
"""Places that are marked on a page."""
_TAG = re.compile(r"(<[^>]*>)")


def matching_steps(document: Mapping[str, Any], query: str) -> list[int]:
    """Return the numbers of the steps that contain a string, ignoring case; a gate decision counts for the step that follows it."""
    sought = visible(query).casefold()
    grace = mapping(document.get("grace"))
    steps = items(document.get("steps"))
    records: dict[int, list[Any]] = {}
    for entries, fields in ((grace.get("calls"), ("tool_call", "observation")), (grace.get("model_calls"), ("step",))):
        for entry in map(mapping, items(entries)):
            for field in fields:
                if type(entry.get(field)) is int:
                    records.setdefault(entry[field], []).append(entry)
    for place, decisions in decisions_by_place(items(grace.get("decisions")), len(steps)).items():
        records.setdefault(min(place, len(steps) - 1), []).extend(decisions)
    return [place for place, step in enumerate(steps) if sought in _words([step, *records.get(place, ())]).casefold()]


def mark_matches(page: str, query: str) -> str:
    """Mark each occurrence of a search string within one element of some HTML."""
    sought = re.compile(f"({re.escape(visible(query, lines=True))})", re.IGNORECASE)
    left = MAX_MARKS
    parts = _TAG.split(page)
    for place in range(0, len(parts), 2):
        if left > 0 and parts[place]:
            # The group makes every second piece a match.
            pieces = sought.split(html.unescape(parts[place]), maxsplit=left)
            shown = [safe(piece, lines=True) for piece in pieces]
            shown[1::2] = [f"<mark>{match}</mark>" for match in shown[1::2]]
            parts[place] = "".join(shown)
            left -= len(pieces) // 2
    return "".join(parts)


def _words(values: list[Any]) -> str:
    return "\n".join(
        visible(content if isinstance(content, str) else as_json(content), lines=True)
        for value in values
        for content in (value.values() if isinstance(value, dict) else [text(value)])
    )


VIEWS = {"timeline": "Timeline", "tree": "Tree", "waterfall": "Durations", "json": "JSON"}
MAX_STEPS = 2_000
"""Steps of a timeline on a page."""
MAX_FOUND = 200
"""Steps with a match on a page."""
MAX_ACTIONS = 200
"""Actions that can be labelled on a page."""
MAX_JSON = 200_000
"""Characters of JSON on a page; the download has the rest."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def run_page(request: Request) -> Response:
    site, name = site_of(request), request.path_params["id"]
    trace = find_run(site, name)
    if trace is None:
        return missing_page(request, name)
    document = document_of(trace)
    view = request.query_params.get("view", "timeline")
    view = view if view in VIEWS else "timeline"
    root = root_of(request)
    address = run_address(root, trace.id)
    return site.page(
        request,
        "runs/run.html",
        title=run_title(document),
        address=address,
        run=trace.id,
        summary=trust_html(run_summary(document)),
        details=trust_html(run_details(document, links=links_from(root), labels=False)),
        labels=trust_html(labels_of(mapping(document.get("grace")))),
        actions=list_actions(trace),
        unlisted=max(0, len(trace.decisions) - MAX_ACTIONS),
        may_label=person_of(request).may(Right.LABEL),
        tabs=[(label, f"{address}?view={word}", word == view) for word, label in VIEWS.items()],
        view=view,
        label=VIEWS[view],
        **_content_of(view, site, document, request),
    )


def list_actions(trace: ReasoningTrace) -> list[tuple[DecisionRecord, Markup, str, Markup]]:
    """Return the gated actions of a run, each with its arguments as stored, its name in labels and its labels."""
    found = []
    for _, name, decision in named_decisions(trace)[:MAX_ACTIONS]:
        labels = trust_html(labels_of(trace.grace or {}, name))
        found.append((decision, trust_html(arguments_line(dict(decision.arguments))), name, labels))
    return found


def run_json(request: Request) -> Response:
    site, name = site_of(request), request.path_params["id"]
    trace = find_run(site, name)
    if trace is None:
        return missing_page(request, name)
    file = _UNSAFE.sub("-", trace.id.removeprefix(PREFIX))[:80].strip("-.") or "run"
    headers = {"Content-Disposition": f'attachment; filename="run-{file}.json"'}
    return Response(trace.to_json(), media_type="application/json", headers=headers)


def find_run(site: Site, name: str) -> ReasoningTrace | None:
    """Return a run of the store by its id, with or without `kp:trace:`; None if there is none."""
    if not name.isprintable() or len(name) > MAX_QUERY:
        # A runtime never creates such an id, and a store may refuse it.
        return None
    found = site.grace.store.get(name if name.startswith(PREFIX) else PREFIX + name)
    return None if found is None else with_outcomes(found, site.tables)


def missing_page(request: Request, name: str) -> Response:
    """Return the page for an unknown run. A run with open requests exists and has not ended yet."""
    site, asked = site_of(request), []
    if name.isprintable() and len(name) <= MAX_QUERY:
        query = RowQuery(run_id=name if name.startswith(PREFIX) else PREFIX + name, order="newest")
        asked = [row for row in site.tables.rows(query) if ApprovalState(row.state).is_open]
    return site.page(request, "runs/missing.html", status=200 if asked else 404, run=name[:MAX_QUERY], asked=asked)


def _timeline(document: Mapping[str, Any], request: Request, links: Links) -> dict[str, Any]:
    """Return the steps from `from=` on, or the steps that match `q=`."""
    address = run_address(root_of(request), str(document.get("id")))
    count = len(items(document.get("steps")))
    query = request.query_params.get("q", "").strip()[:MAX_QUERY]
    start = whole_of(request.query_params.get("from", "")) or 0
    if query:
        found = matching_steps(document, query)
        rest = [place for place in found if place >= start]
        context = sorted(
            {near for place in rest[:MAX_FOUND] for near in (place - 1, place, place + 1) if 0 <= near < count}
        )
        steps = mark_matches(run_timeline(document, places=context, links=links), query)
        more = f"{address}?{urlencode({'q': query, 'from': rest[MAX_FOUND]})}" if len(rest) > MAX_FOUND else ""
        words = f"{count_text(len(found), 'step')} of {count:,} contain{'s' if len(found) == 1 else ''} “{query}”"
        return {
            "content": trust_html(steps if rest else ""),
            "query": query,
            "found": words,
            "hits": len(found),
            "pages": [("Next matches", more)] if more else [],
            "count": count,
        }
    # Pages begin at multiples, so that addresses of different steps share pages.
    start = min(start, max(0, count - 1)) // MAX_STEPS * MAX_STEPS
    steps = run_timeline(document, places=range(start, min(start + MAX_STEPS, count)), links=links)
    pages = []
    if count > MAX_STEPS:
        for first in range(0, count, MAX_STEPS):
            last = min(first + MAX_STEPS, count) - 1
            pages.append((f"Steps {first:,} to {last:,}", "" if first == start else f"{address}?from={first}"))
    return {"content": trust_html(steps), "query": "", "found": "", "hits": 0, "pages": pages[:50], "count": count}


def _content_of(view: str, site: Site, document: Mapping[str, Any], request: Request) -> dict[str, Any]:
    links = links_from(root_of(request))
    if view == "timeline":
        return _timeline(document, request, links)
    if view == "tree":
        return {"content": trust_html(run_tree(document, links=links, nested=lambda name: find_run(site, name)))}
    if view == "waterfall":
        return {"content": trust_html(run_waterfall(document, links=links))}
    pretty = json.dumps(document, ensure_ascii=False, indent=2)
    left = len(pretty) - MAX_JSON
    note = f"{left:,} more characters are not shown here; the download has them." if left > 0 else ""
    code = f'<pre class="json" tabindex="0" role="region" aria-label="JSON of the run">{safe(pretty[:MAX_JSON], lines=True)}</pre>'
    return {"content": trust_html(code), "note": note}


VALUES = {"1": 1.0, "0.5": 0.5, "0": 0.0}
"""Right, partly, wrong."""


def label_run(request: Request) -> Response:
    """Store a label of a run or of one of its actions, and return to where the button was.

    Fields: `correct` is 1, 0.5 or 0; `note` is optional; `action` names an action; `list` is the query of the list, and `approval` the request,
    if the button was there.
    """
    form, root = form_of(request), root_of(request)
    stated = form.get("correct", [""])[0]
    if stated not in VALUES:
        raise HTTPException(422, "Choose Right, Partly or Wrong.")
    name = request.path_params["id"]
    name = name if name.startswith(PREFIX) else PREFIX + name
    note, action = (form.get(field, [""])[0].strip() or None for field in ("note", "action"))
    person = person_of(request)
    site_of(request).grace.feedback(
        name, VALUES[stated], source="user", by=person.name, note=note, program=person.is_program, action=action
    )
    if "approval" in form:
        return RedirectResponse(f"{root}/approvals/{quote(form['approval'][0], safe='')}#label", 303)
    if "list" in form:
        fields = [pair for pair in parse_qsl(form["list"][0]) if pair[0] != "labelled"]
        return RedirectResponse(f"{root}/runs?{urlencode([*fields, ('labelled', name)])}", 303)
    return RedirectResponse(f"{run_address(root, name)}#{'labels' if action is None else 'actions'}", 303)
