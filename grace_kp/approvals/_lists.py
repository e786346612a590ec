"""Lists of requests, pending and past, and figures of the approvals of a period: how many were decided, how, and how long people took."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING

from grace_kp.approvals._people import person
from grace_kp.approvals._record import record_of
from grace_kp.approvals._request import ApprovalState
from grace_kp.approvals._tables import RowQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grace_kp.approvals._record import RequestRecord
    from grace_kp.approvals._tables import Reads, Writes


_PENDING = ApprovalState.PENDING
_PAST = tuple(state.value for state in ApprovalState if state is not _PENDING)
_PAGE = 500
STANDING = "standing"
"""Channel of consent in advance, and the outcome of requests that it approved: nobody was asked."""
_PROCESSES = frozenset({"gate", "deadline"})
"""Channels of actors that are no person."""
AT_MOST_LOOKED_UP = 2_000
"""Requests of a person that are read one by one."""


def pending_records(
    reads: Reads,
    action: str | None,
    group: str | None,
    limit: int,
    *,
    offset: int = 0,
    level: int | None = None,
    is_wanted: Callable[[RequestRecord], bool] | None = None,
) -> list[RequestRecord]:
    """Return pending requests that members of a group may decide, by deadline and level; `offset` of those that match are left out."""
    query = RowQuery(states=(_PENDING.value,), action=action)
    if group is None and level is None and is_wanted is None:
        return [record_of(row) for row in reads.rows(replace(query, limit=limit, offset=offset))]

    def matches(record: RequestRecord) -> bool:
        is_theirs = group is None or not record.groups or group in record.groups
        return is_theirs and (is_wanted is None or is_wanted(record))

    return _first(reads, query, limit + offset, matches, level)[offset:]


def past_records(
    reads: Reads,
    action: str | None,
    since: float | None,
    by: str | None,
    limit: int,
    *,
    offset: int = 0,
    states: Sequence[str] = (),
) -> list[RequestRecord]:
    """Return what is no longer pending, is in one of these states and has to do with a person, newest first; `offset` of these are left out.

    Where the person has few requests, these are read; where there are many, the newest rows hold enough of them.
    """
    wanted = tuple(state for state in states if state in _PAST) or _PAST
    query = RowQuery(states=wanted, action=action, since=since, order="newest")
    if by is None:
        return [record_of(row) for row in reads.rows(replace(query, limit=limit, offset=offset))]
    names = reads.documents(index_of(by))
    if len(names) > AT_MOST_LOOKED_UP:
        return _first(reads, query, offset + limit, lambda record: person(by) in _people(record))[offset:]
    rows = [row for name in names if (row := reads.row(name)) is not None]
    matching = [
        row
        for row in rows
        if row.state in wanted
        and (action is None or fnmatchcase(row.action, action))
        and (since is None or row.changed >= since)
    ]
    matching.sort(key=lambda row: row.changed, reverse=True)
    return [record_of(row) for row in matching[offset : offset + limit]]


def note_people(writes: Writes, record: RequestRecord) -> None:
    """Note who has to do with a request, so that it is found by person."""
    for name in _people(record):
        if writes.document(kind := index_of(name), record.id) is None:
            writes.put_document(kind, record.id, b"")


def index_of(name: str) -> str:
    """Return the kind of the documents that name the requests of a person."""
    return f"by:{hashlib.sha256(person(name).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _first(
    reads: Reads, query: RowQuery, limit: int, is_wanted: Callable[[RequestRecord], bool], level: int | None = None
) -> list[RequestRecord]:
    return list(islice(filter(is_wanted, _each(reads, query, limit, level)), max(0, limit)))


def _each(reads: Reads, query: RowQuery, limit: int, level: int | None) -> Iterator[RequestRecord]:
    """Yield the records at a level, or at all, page by page; the first page is as large as what is asked for."""
    size, offset = max(1, min(limit, _PAGE)), 0
    while rows := reads.rows(replace(query, limit=size, offset=offset)):
        # The column is enough: to parse the data of a row takes longer than to read it.
        yield from (record_of(row) for row in rows if level is None or row.level == level)
        offset, size = offset + len(rows), _PAGE


def _people(record: RequestRecord) -> set[str]:
    """Who voted, decided, closed or reconciled; no process, and no deadline."""
    data = record.data
    actors = [source["actor"] for source in (*data["votes"], data["decision"], data["outcome"]) if source]
    return {person(actor["name"]) for actor in actors if actor["channel"] not in _PROCESSES}


AT_MOST_READ = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFigures:
    """Figures of the requests that were decided or closed in a period."""

    pending: int
    """Requests that wait now, whatever the period."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """By state of the decision, such as `approved`, `edited`, `rejected`, `expired`; `standing` for standing approvals. Most frequent first."""
    waits: tuple[float, ...] = ()
    """Seconds from each request to the decision of a person, from short to long."""
    is_cut: bool = False
    """Whether there were more requests than were read, so that the oldest are missing."""


def approval_figures(reads: Reads, since: float, until: float, *, limit: int = AT_MOST_READ) -> ApprovalFigures:
    """Return the figures of the approvals of a period.

    Args:
        since: beginning of the period, in seconds since the epoch.
    """
    rows = reads.rows(RowQuery(states=_PAST, since=since, order="newest", limit=limit))
    outcomes: Counter[str] = Counter()
    waits = []
    for row in rows:
        decision = record_of(row).data["decision"]
        if decision is None or not since <= decision["at"] < until:
            continue
        channel = decision["actor"]["channel"]
        outcomes[STANDING if channel == STANDING else decision["state"]] += 1
        if channel not in {*_PROCESSES, STANDING}:
            waits.append(max(0.0, decision["at"] - row.created))
    return ApprovalFigures(
        pending=reads.count(RowQuery(states=(_PENDING.value,))),
        outcomes=dict(outcomes.most_common()),
        waits=tuple(sorted(waits)),
        is_cut=len(rows) == limit,
    )
