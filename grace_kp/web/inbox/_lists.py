"""The lists of the inbox, with filters in the address: pending requests, requests that need attention, and ended ones; and decisions on several.

A search reads requests one by one, so it stops after a bounded number, reports that, and can be continued.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from grace_kp.approvals import RowQuery
from grace_kp.errors import ApprovalError, ChangedSinceShown, UnknownApproval
from grace_kp.gating import changed_arguments, unshown_arguments
from grace_kp.levels import InterventionLevel
from grace_kp.pages import APPROVAL_STATES
from grace_kp.store import moment
from grace_kp.web._site import Right, asking_lines, form_of, perform_several, person_of, site_of, whole_of
from grace_kp.web.inbox._request import lines, sentence_of, value_of
from grace_kp.web.inbox._words import MAX_CHARACTERS, query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval
    from grace_kp.web._site import Site


MOST_SEARCHED = 1_000
"""Requests that one search looks at."""
READ_AT_ONCE = 200
"""Requests that are read together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPage:
    """A page of requests."""

    approvals: Sequence[Approval]
    older: int | None = None
    """Offset at which the next page begins; None at the end of the list."""
    is_cut: bool = False
    """Whether the search stopped at its limit, so that the next page may have more matches."""


def find(read: Callable[[int, int], list[Approval]], text: str, *, offset: int, limit: int) -> RequestPage:
    """Return the requests of a list that contain a string."""
    if not text:
        found = read(limit + 1, offset)
        return RequestPage(approvals=found[:limit], older=offset + limit if len(found) > limit else None)
    wanted = text.casefold()
    matching: list[Approval] = []
    end = offset + MOST_SEARCHED
    while offset < end:
        part = read(min(READ_AT_ONCE, end - offset), offset)
        for place, approval in enumerate(part):
            if len(matching) == limit:
                return RequestPage(approvals=matching, older=offset + place)
            if contains(approval, wanted):
                matching.append(approval)
        offset += len(part)
        if len(part) < READ_AT_ONCE:
            return RequestPage(approvals=matching)
    return RequestPage(approvals=matching, older=offset, is_cut=True)


def contains(approval: Approval, wanted: str) -> bool:
    """Return whether a request contains a case-folded string. Sealed arguments are compared in their sealed form, so a search cannot reveal them."""
    texts = [approval.id, approval.action, approval.key, approval.objective, approval.user, approval.reason]
    texts += [vote.note for vote in approval.votes]
    texts += [part.note for part in (approval.decision, approval.outcome) if part is not None]
    if any(wanted in text.casefold() for text in texts if text):
        return True
    # As JSON, in which a quote or a line break of an argument has another form.
    sought, arguments = (json.dumps(each, ensure_ascii=False, default=str) for each in (wanted, approval.encoded))
    return sought[1:-1] in arguments.casefold()


PAGE = 50
"""Requests on a page."""
ATTENTION = 200
"""Requests of each kind on the page of requests that need attention."""
UNCLAIMED = ("approved", "edited")
PAST = tuple(state for state in APPROVAL_STATES if state != "pending")
LEVELS = tuple(level.value for level in InterventionLevel)


def waiting(request: Request) -> Response:
    """List pending requests by deadline and level."""
    site, person = site_of(request), person_of(request)
    values, seq = texts_of(request, "action", "level", "group", "mine", "text"), site.tables.head()[0]
    offset = offset_of(request)

    def read(limit: int, offset: int) -> list[Approval]:
        return site.requests.pending(
            pattern_of(values["action"]),
            limit=limit,
            offset=offset,
            group=values["group"] or None,
            level=values["level"] if values["level"] in LEVELS else None,
            decider=person.actor if values["mine"] else None,
        )

    page = find(read, values["text"], offset=offset, limit=PAGE)
    return site.page(
        request,
        "inbox/list.html",
        tab="waiting",
        seq=seq,
        reasons={approval.id: site.requests.reason_against(approval.id, person.actor) for approval in page.approvals},
        may_decide=person.may(Right.DECIDE),
        example=asking_lines(site.grace.settings.store),
        levels=LEVELS,
        offset=offset,
        **_page_values(site, page, values, offset),
    )


def attention(request: Request) -> Response:
    """List decided requests that need attention: unknown outcomes, unused approvals, and actions under way."""
    site = site_of(request)
    site.requests.sweep()
    seq = site.tables.head()[0]
    kinds: dict[str, Sequence[str]] = {"unknown": ["unknown"], "unclaimed": UNCLAIMED, "started": ["claimed"]}
    return site.page(
        request,
        "inbox/attention.html",
        tab="attention",
        seq=seq,
        found={name: site.requests.history(states=states, limit=ATTENTION) for name, states in kinds.items()},
        limit=ATTENTION,
        **counts(site),
    )


def history(request: Request) -> Response:
    site = site_of(request)
    values = texts_of(request, "q", "text", "by", "since", "state")
    offset = offset_of(request)
    since, problem = since_of(values["since"])

    def read(limit: int, offset: int) -> list[Approval]:
        return site.requests.history(
            action=pattern_of(values["q"]),
            by=values["by"] or None,
            since=since,
            states=[values["state"]] if values["state"] in PAST else (),
            limit=limit,
            offset=offset,
        )

    if values["q"].startswith("ap-"):
        page = RequestPage(approvals=[site.requests.get(each) for each in site.tables.ids(values["q"], limit=PAGE)])
    elif problem:
        page = RequestPage(approvals=())
    else:
        page = find(read, values["text"], offset=offset, limit=PAGE)
    return site.page(
        request,
        "inbox/history.html",
        status=422 if problem else 200,
        tab="history",
        problem=problem,
        states=[(state, APPROVAL_STATES[state]) for state in PAST],
        **_page_values(site, page, values, offset),
    )


def _page_values(site: Site, page: RequestPage, values: Mapping[str, str], offset: int) -> dict[str, Any]:
    """Return the values of a list. A search restarts at its first page, because the offsets of earlier matches are unknown."""
    previous = 0 if values["text"] else max(0, offset - PAGE)
    return {
        "found": page.approvals,
        "is_cut": page.is_cut,
        "values": values,
        "is_filtered": any(values.values()),
        "newer": query(values, offset=previous) or "?" if offset else None,
        "older": None if page.older is None else query(values, offset=page.older),
        **counts(site),
    }


def counts(site: Site) -> dict[str, int]:
    tables = site.tables
    return {
        "pending_count": tables.count(RowQuery(states=("pending",))),
        "attention_count": tables.count(RowQuery(states=("unknown", *UNCLAIMED))),
    }


def texts_of(request: Request, *names: str) -> dict[str, str]:
    """Return stripped query parameters of at most 200 characters each."""
    query: Mapping[str, str] = request.query_params
    return {name: query.get(name, "").strip()[:200] for name in names}


def offset_of(request: Request) -> int:
    """Return the number of requests before the page; 0 if it is not a number."""
    return min(whole_of(request.query_params.get("offset", "")) or 0, 10**9)


def pattern_of(text: str) -> str | None:
    """Return a glob; a string without wildcards may occur anywhere in the name."""
    if not text:
        return None
    return text if any(character in text for character in "*?[") else f"*{text}*"


def since_of(text: str) -> tuple[float | None, str]:
    """Return a date in UTC as seconds since the epoch, and the problem with the string, if any."""
    try:
        stated = moment(text or None, "since")
        return None if stated is None else dt.datetime.fromisoformat(stated).timestamp(), ""
    except (ValueError, OverflowError):
        return None, f"“{text[:40]}” is not a date such as 2026-01-31."


MOST_SELECTED = 200
"""Requests that can be decided at once."""
VERBS: Mapping[str, str] = {
    "approve": "approved",
    "reject": "rejected",
    "respond": "answered",
    "skip": "skipped",
    "retry": "sent back",
    "withdraw": "withdrew",
}
"""Verbs for several requests, with their past forms."""


def decide_several(request: Request) -> Response:
    """Show the selected requests; with a verb, apply it to the displayed requests."""
    form = form_of(request)
    ids = list(dict.fromkeys(form.get("id", [])))
    if len(ids) > MOST_SELECTED:
        text = f"At most {MOST_SELECTED} requests can be decided at once, and {len(ids):,} are selected."
        raise HTTPException(422, text)
    verb = value_of(form, "verb")
    if not verb:
        return _show_selected(request, ids)
    if verb not in VERBS:
        raise HTTPException(422, f"The verb must be one of {', '.join(VERBS)}.")
    digests = {each: value_of(form, f"digest-{each}") for each in ids}
    if not all(digests.values()):
        raise HTTPException(400, "The form lacks the digest of a request. Select the requests again.")
    return _decide_selected(request, ids, verb, digests)


def _show_selected(request: Request, ids: list[str], *, problem: str = "", status: int = 200) -> Response:
    site, person = site_of(request), person_of(request)
    groups: dict[str, list[tuple[Approval, str]]] = {"ready": [], "denied": [], "alone": [], "ended": []}
    for each in ids:
        try:
            approval = site.requests.get(each, by=person.actor)
        except UnknownApproval:
            continue
        reason = site.requests.reason_against(approval.id, person.actor)
        if approval.state != "pending":
            groups["ended"].append((approval, ""))
        elif reason:
            groups["denied"].append((approval, reason))
        elif unshown_arguments(approval, MAX_CHARACTERS) or approval.deleted:
            groups["alone"].append((approval, "its arguments cannot be shown in full"))
        else:
            groups["ready"].append((approval, ""))
    return site.page(
        request,
        "inbox/several.html",
        status=status,
        changed={approval.id: changed_arguments(approval) for approval, _ in groups["ready"]},
        may_decide=person.may(Right.DECIDE),
        problem=problem,
        **groups,
    )


def _decide_selected(request: Request, ids: list[str], verb: str, digests: dict[str, str]) -> Response:
    site, note = site_of(request), lines(value_of(form_of(request), "note"))
    if verb == "respond" and not note:
        problem = "An answer needs words for the agent. Nothing was decided."
        return _show_selected(request, ids, problem=problem, status=422)
    problems: dict[str, str] = {}
    for each in ids if verb == "approve" else ():
        approval = _find(site, each)
        if approval and approval.state == "pending" and unshown_arguments(approval, MAX_CHARACTERS):
            problems[each] = "Its arguments cannot be shown in full. It can only be approved on its own page."
    digests = {each: digest for each, digest in digests.items() if each not in problems}
    for each, outcome in perform_several(request, verb, digests, words=note).items():
        if isinstance(outcome, ChangedSinceShown):
            problems[each] = "The arguments have changed since they were shown. It was not decided."
        elif isinstance(outcome, ApprovalError):
            problems[each] = sentence_of(outcome)
    results = [(each, _find(site, each), problems.get(each, "")) for each in ids]
    return site.page(
        request,
        "inbox/decided.html",
        status=409 if results and len(problems) == len(results) else 200,
        done=VERBS[verb],
        results=results,
        failed=len(problems),
    )


def _find(site: Site, approval_id: str) -> Approval | None:
    try:
        return site.requests.get(approval_id)
    except UnknownApproval:
        return None
