"""The lists of the inbox: what waits for a decision, what needs attention afterwards, and what has ended. Filters live in the address."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING

from grace_kp.approvals import RowQuery
from grace_kp.levels import InterventionLevel
from grace_kp.pages import APPROVAL_STATES
from grace_kp.web._example import asking_lines
from grace_kp.web._person import Right
from grace_kp.web._site import person_of, site_of
from grace_kp.web.inbox._search import Found, find
from grace_kp.web.inbox._words import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import Approval
    from grace_kp.web._site import Site

PAGE = 50
"""Requests on a page."""
ATTENTION = 200
"""Requests of each kind on the page of those that need attention."""
UNCLAIMED = ("approved", "edited")
PAST = tuple(state for state in APPROVAL_STATES if state != "pending")
LEVELS = tuple(level.value for level in InterventionLevel)


def waiting(request: Request) -> Response:
    """List pending requests by deadline and level."""
    site, person = site_of(request), person_of(request)
    values, seq = texts_of(request, "action", "level", "group", "mine", "text"), site.tables.head()[0]
    offset = offset_of(request)

    def read(limit: int, offset: int) -> list[Approval]:
        return site.desk.pending(
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
        words=WORDS,
        tab="waiting",
        seq=seq,
        found=page.approvals,
        is_cut=page.is_cut,
        reasons={approval.id: site.desk.reason_against(approval.id, person.actor) for approval in page.approvals},
        may_decide=person.may(Right.DECIDE),
        values=values,
        is_filtered=any(values.values()),
        example=asking_lines(site.grace.settings.store),
        levels=LEVELS,
        offset=offset,
        newer=_newer(values, offset),
        older=None if page.older is None else WORDS["query"](values, offset=page.older),
        **counts(site),
    )


def attention(request: Request) -> Response:
    """List what needs somebody although it is decided: outcomes that nobody knows, and approvals that nobody has used."""
    site = site_of(request)
    site.desk.sweep()
    seq = site.tables.head()[0]
    unknown = site.desk.history(states=["unknown"], limit=ATTENTION)
    unclaimed = site.desk.history(states=UNCLAIMED, limit=ATTENTION)
    started = site.desk.history(states=["claimed"], limit=ATTENTION)
    return site.page(
        request,
        "inbox/attention.html",
        words=WORDS,
        tab="attention",
        seq=seq,
        unknown=unknown,
        unclaimed=unclaimed,
        started=started,
        limit=ATTENTION,
        **counts(site),
    )


def history(request: Request) -> Response:
    """List and search what is no longer pending, by last change."""
    site = site_of(request)
    values = texts_of(request, "q", "text", "by", "since", "state")
    offset = offset_of(request)
    since, problem = since_of(values["since"])

    def read(limit: int, offset: int) -> list[Approval]:
        return site.desk.history(
            action=pattern_of(values["q"]),
            by=values["by"] or None,
            since=since,
            states=[values["state"]] if values["state"] in PAST else (),
            limit=limit,
            offset=offset,
        )

    if values["q"].startswith("ap-"):
        page = Found(approvals=[site.desk.get(each) for each in site.tables.ids(values["q"], limit=PAGE)])
    elif problem:
        page = Found(approvals=())
    else:
        page = find(read, values["text"], offset=offset, limit=PAGE)
    return site.page(
        request,
        "inbox/history.html",
        status=422 if problem else 200,
        words=WORDS,
        tab="history",
        found=page.approvals,
        is_cut=page.is_cut,
        values=values,
        problem=problem,
        is_filtered=any(values.values()),
        states=[(state, APPROVAL_STATES[state]) for state in PAST],
        newer=_newer(values, offset),
        older=None if page.older is None else WORDS["query"](values, offset=page.older),
        **counts(site),
    )


def _newer(values: Mapping[str, str], offset: int) -> str | None:
    """Return the query of the page before. A search goes back to its beginning: it knows no place of the matches before this page."""
    if not offset:
        return None
    query: str = WORDS["query"](values, offset=0 if values["text"] else max(0, offset - PAGE))
    return query or "?"


def counts(site: Site) -> dict[str, int]:
    """Return the numbers beside the tabs."""
    tables = site.tables
    return {
        "pending_count": tables.count(RowQuery(states=("pending",))),
        "attention_count": tables.count(RowQuery(states=("unknown", *UNCLAIMED))),
    }


def texts_of(request: Request, *names: str) -> dict[str, str]:
    """Return values of the address, without blanks around them and at most 200 characters each."""
    query: Mapping[str, str] = request.query_params
    return {name: query.get(name, "").strip()[:200] for name in names}


def offset_of(request: Request) -> int:
    """Return how many requests stand before the page; 0 for what is no number."""
    text = request.query_params.get("offset", "")
    return min(int(text), 10**9) if text.isascii() and text.isdecimal() and len(text) < 12 else 0


def pattern_of(text: str) -> str | None:
    """Return the glob that a person means: a text without wildcards is looked for anywhere in the name."""
    if not text:
        return None
    return text if any(character in text for character in "*?[") else f"*{text}*"


def since_of(text: str) -> tuple[float | None, str]:
    """Return the time of a date in UTC, in seconds since the epoch, and what is wrong with the text."""
    if not text:
        return None, ""
    try:
        moment = dt.datetime.fromisoformat(text)
        at = (moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment).timestamp()
    except (ValueError, OverflowError):
        return None, f"“{text[:40]}” is no date such as 2026-01-31."
    return (at, "") if math.isfinite(at) else (None, f"“{text[:40]}” is no date that can be used.")
