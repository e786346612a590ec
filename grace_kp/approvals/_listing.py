"""Lists of requests: those that wait, and those that do not any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grace_kp.approvals._record import record_of
from grace_kp.approvals._rights import person
from grace_kp.approvals._states import ApprovalState
from grace_kp.approvals._tables import RowQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.approvals._record import Record
    from grace_kp.approvals._tables import Reads

_PENDING = ApprovalState.PENDING
_PAST = tuple(state.value for state in ApprovalState if state is not _PENDING)
_PAGE = 500


def pending_records(reads: Reads, action: str | None, group: str | None, limit: int) -> list[Record]:
    """Return pending requests that members of a group may decide, by deadline and level."""
    query = RowQuery(states=(_PENDING.value,), action=action)
    return _first(reads, query, limit, lambda record: group is None or not record.groups or group in record.groups)


def past_records(reads: Reads, query: RowQuery, by: str | None, limit: int) -> list[Record]:
    """Return what is no longer pending and has to do with a person, newest first."""
    return _first(reads, query, limit, lambda record: by is None or person(by) in _people(record))


def past_query(action: str | None, since: float | None) -> RowQuery:
    """Return the query for what is no longer pending."""
    return RowQuery(states=_PAST, action=action, since=since, order="newest")


def same_as(reads: Reads, record: Record) -> int:
    """Return how many pending requests ask the same as this one. Where an argument has no encoding, nobody knows of another."""
    if record.state is not _PENDING or record.data["unencoded"]:
        return 1
    return max(1, reads.count(RowQuery(states=(_PENDING.value,), digest=record.row.digest, domain=record.row.domain)))


def _first(reads: Reads, query: RowQuery, limit: int, is_wanted: Callable[[Record], bool]) -> list[Record]:
    found: list[Record] = []
    for record in _each(reads, query, limit):
        if len(found) >= limit:
            break
        if is_wanted(record):
            found.append(record)
    return found


def _each(reads: Reads, query: RowQuery, limit: int) -> Iterator[Record]:
    """Yield the records page by page; the first page is as large as what is asked for."""
    size, offset = max(1, min(limit, _PAGE)), 0
    while rows := reads.rows(replace(query, limit=size, offset=offset)):
        yield from map(record_of, rows)
        offset, size = offset + len(rows), _PAGE


def _people(record: Record) -> set[str]:
    data = record.data
    sources = [*data["votes"], data["decision"], data["outcome"], data["claim"]]
    return {person(source["actor"]["name"]) for source in sources if source}
