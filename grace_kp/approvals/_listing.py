"""Lists of requests: those that wait, and those that do not any more."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from grace_kp.approvals._actor import person
from grace_kp.approvals._record import record_of
from grace_kp.approvals._states import ApprovalState
from grace_kp.approvals._tables import RowQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.approvals._record import Record
    from grace_kp.approvals._tables import Reads, Row, Writes

_PENDING = ApprovalState.PENDING
_PAST = tuple(state.value for state in ApprovalState if state is not _PENDING)
_PAGE = 500
_PROCESSES = {"gate", "deadline"}
"""Channels of actors that are nobody."""
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
    is_wanted: Callable[[Record], bool] | None = None,
) -> list[Record]:
    """Return pending requests that members of a group may decide, by deadline and level; `offset` of those that match are left out."""
    query = RowQuery(states=(_PENDING.value,), action=action)
    if group is None and level is None and is_wanted is None:
        return [record_of(row) for row in reads.rows(replace(query, limit=limit, offset=offset))]

    def matches(record: Record) -> bool:
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
) -> list[Record]:
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
    matching = [row for row in rows if row.state in wanted and _is_in(row, action, since)]
    matching.sort(key=lambda row: row.changed, reverse=True)
    return [record_of(row) for row in matching[offset : offset + limit]]


def note_people(writes: Writes, record: Record) -> None:
    """Note who has to do with a request, so that it is found by person."""
    for name in _people(record):
        if writes.document(kind := index_of(name), record.id) is None:
            writes.put_document(kind, record.id, b"")


def index_of(name: str) -> str:
    """Return the kind of the documents that name the requests of a person."""
    return f"by:{hashlib.sha256(person(name).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _is_in(row: Row, action: str | None, since: float | None) -> bool:
    return (action is None or fnmatchcase(row.action, action)) and (since is None or row.changed >= since)


def same_as(reads: Reads, record: Record) -> int:
    """Return how many pending requests ask the same as this one. Where an argument has no encoding, nobody knows of another."""
    if record.state is not _PENDING or record.data["unencoded"]:
        return 1
    return max(1, reads.count(RowQuery(states=(_PENDING.value,), digest=record.row.digest, domain=record.row.domain)))


def _first(
    reads: Reads, query: RowQuery, limit: int, is_wanted: Callable[[Record], bool], level: int | None = None
) -> list[Record]:
    found: list[Record] = []
    for record in _each(reads, query, limit, level):
        if len(found) >= limit:
            break
        if is_wanted(record):
            found.append(record)
    return found


def _each(reads: Reads, query: RowQuery, limit: int, level: int | None) -> Iterator[Record]:
    """Yield the records at a level, or at all, page by page; the first page is as large as what is asked for."""
    size, offset = max(1, min(limit, _PAGE)), 0
    while rows := reads.rows(replace(query, limit=size, offset=offset)):
        # The column is enough: to parse the data of a row takes longer than to read it.
        yield from (record_of(row) for row in rows if level is None or row.level == level)
        offset, size = offset + len(rows), _PAGE


def _people(record: Record) -> set[str]:
    """Who voted, decided, closed or reconciled; no process, and no deadline."""
    data = record.data
    actors = [source["actor"] for source in (*data["votes"], data["decision"], data["outcome"]) if source]
    return {person(actor["name"]) for actor in actors if actor["channel"] not in _PROCESSES}
