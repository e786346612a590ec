"""Stored requests: the row of a new one, the record that verbs work on, the `Approval` that people and programs get, and lists.

Contents (arguments, notes, results, the trace of the run) are stored with entries of the chain, so that retention deletes them in one place. The data
of a row holds the numbers of these entries.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import decode
from grace_kp.approvals._chain import contents_of
from grace_kp.approvals._digest import clean_json, list_sealed, opened_arguments, operation_of, sealed_texts
from grace_kp.approvals._request import (
    ENTITLING,
    Actor,
    ApprovalRequest,
    ApprovalState,
    Claimed,
    Decided,
    Earlier,
    Ended,
    Vote,
    person,
    reason_without_account,
)
from grace_kp.approvals._tables import Row, RowQuery
from grace_kp.errors import StoreError, UnknownApproval, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from grace_kp.approvals._digest import Secret
    from grace_kp.approvals._tables import Reads, Tables, Writes

WAITER = "waiter"
"""Kind of the documents that name the waiting process. Waiting is not a fact about the request, and so not in the chain."""
STANDING = "standing"
"""Kind of the documents that hold standing approvals, and the channel of their decisions."""
_PENDING = ApprovalState.PENDING
_AS_ASKED = (
    "version", "not_covered", "sealed", "unencoded", "key_fields", "user", "deadline_seconds", "on_deadline", "identity", "origin", "waits",
)  # fmt: skip
"""Fields of the data that never change."""
_MAY_CHANGE = ("level", "groups", "quorum", "deadline", "use_by", "standing")
"""Fields of the data that later revisions may change."""
_MEASURED = ("score", "breakdown", "penalties", "policy")
"""Fields of the data that are redacted."""
_NOT_YET = ("edit", "edited", "editor", "edited_from", "decision", "claim", "token", "outcome", "late")
"""Fields of the data that later revisions set."""
_WORDS = ("reason", "gaps", "facts", "objective", "run", "note")
"""Fields that are contents: redacted, and deleted by retention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(ApprovalRequest):
    """A request for approval at one revision, as an immutable value.

    Strings of people and agents may be hostile: escape control and bidirectional characters before you display them.
    """

    def _repr_html_(self) -> str:
        """Return the request for a notebook: the call, the reason, and the outcome. Sealed arguments stay sealed."""
        from grace_kp.approvals._words import approval_html
        from grace_kp.pages import notebook

        return notebook(approval_html(self))


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A row and its data."""

    row: Row
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def state(self) -> ApprovalState:
        return ApprovalState(self.row.state)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(self.data["groups"])

    @property
    def due(self) -> float | None:
        """Time at which it is due, in seconds since the epoch; None for never."""
        return self.row.deadline

    @property
    def closer(self) -> Actor | None:
        """Who decided or closed it; None while it is pending."""
        decision = self.data["decision"]
        return None if decision is None else Actor.from_dict(decision["actor"])

    def at(self, now: float) -> float:
        """Return the time of a change, which is never before the previous change, even if the clock was set back."""
        return max(now, self.row.changed)

    def revise(self, state: ApprovalState | None = None, *, digest: str | None = None, **data: object) -> RequestRecord:
        """Return the record with another state, digest or data, and the columns that follow from them."""
        after = {**self.data, **data}
        state = self.state if state is None else state
        deadline, process = None, None
        if state is _PENDING or state in ENTITLING:
            deadline, process = after["deadline" if state is _PENDING else "use_by"], after["waiter"]
        elif state in {ApprovalState.CLAIMED, ApprovalState.UNKNOWN} and after["claim"]:
            process = after["claim"]["process"]
        row = replace(
            self.row,
            state=state.value,
            digest=self.row.digest if digest is None else digest,
            level=InterventionLevel(after["level"]).severity,
            deadline=deadline,
            waiter=process,
        )
        return RequestRecord(row, after)


def new_record(
    new: ApprovalRequest, unsealed: Mapping[str, Any], *, key: str | None, now: float, **data: object
) -> tuple[RequestRecord, dict[str, Any]]:
    """Return the record of a new request, filed `now` in seconds since the epoch, and its contents."""
    row = Row(
        **{name: getattr(new, name) for name in ("id", "action", "domain", "digest", "run_id")},
        state=_PENDING.value,
        key=key,
        level=0,  # `revise` computes it, and the deadline
        deadline=None,
        created=now,
        changed=now,
        revision=1,
    )
    texts = sealed_texts(unsealed, new.sealed)
    kept = {
        **{
            name: list(value) if isinstance(value := getattr(new, name), tuple) else value
            for name in (*_AS_ASKED, *_MAY_CHANGE)
        },
        **clean_json({name: getattr(new, name) for name in _MEASURED}, texts),
        "asked_digest": new.digest,
        "asked_groups": list(new.groups),
        "use_within": new.use_within_seconds,
        "deadline": None if new.deadline_seconds is None else now + new.deadline_seconds,
        "escalated": False,
        "votes": [],
        **dict.fromkeys(_NOT_YET),
        "runs": [new.run_id],
        "users": [],
        "received": False,
        **data,
    }
    words = clean_json({name: getattr(new, name) for name in _WORDS}, texts)
    contents = {"arguments": dict(new.encoded), "schema": dict(new.schema), "key": new.key, **words}
    return RequestRecord(row, kept).revise(), contents


def record_of(row: Row) -> RequestRecord:
    try:
        data = json.loads(row.data)
        ApprovalState(row.state)
        data["version"], data["decision"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"the approval {brief(row.id)} cannot be read: {type(error).__name__}: {error}") from error
    return RequestRecord(row, data)


def read_record(reads: Reads, approval_id: str) -> RequestRecord:
    """Return the record with an id."""
    row = reads.row(approval_id) if isinstance(approval_id, str) else None
    if row is None:
        raise UnknownApproval(
            f"no approval has the id {brief(approval_id)}; `grace-kp approvals list` lists pending requests",
            approval_id=approval_id if isinstance(approval_id, str) else "",
        )
    return record_of(row)


def contents_at(reads: Reads, seq: int | None) -> dict[str, Any] | None:
    """Return the contents of an entry; None if they were deleted."""
    link = None if seq is None else reads.link(seq)
    contents = None if link is None else contents_of(link)
    return contents if isinstance(contents, dict) else None


def note_at(reads: Reads, seq: int | None) -> str:
    """Return the note of an entry; empty if it was deleted."""
    return str((contents_at(reads, seq) or {}).get("note", ""))


def stored_arguments(reads: Reads, record: RequestRecord) -> dict[str, Any] | None:
    """Return the current arguments as stored; None if they were deleted."""
    contents = contents_at(reads, record.data["edit"] or record.data["request"])
    return None if contents is None else contents["arguments"]


def is_awaited(tables: Tables, reads: Reads, record: RequestRecord) -> bool | None:
    """Return whether a live process waits for the decision or runs the action; None if that cannot be known."""
    if not record.state.is_open:
        return False
    process = record.row.waiter
    if record.state is _PENDING or record.state in ENTITLING:
        waiting = reads.document(WAITER, record.id)
        process = process if waiting is None else waiting.decode()
    return tables.is_alive(process) if process else False


def approval_of(reads: Reads, record: RequestRecord, *, tables: Tables, secret: Secret | None) -> Approval:
    """Return the approval of a record. Values that need the declared type of their parameter, and sealed values without a key, stay encoded."""
    row, data = record.row, record.data
    first = contents_at(reads, data["request"])
    last = contents_at(reads, data["edit"]) if data["edit"] else first
    asked, now = (first or {}).get("arguments", {}), (last or {}).get("arguments", {})
    contents = first or {}
    decision, claim, outcome, attempt = data["decision"], data["claim"], data["outcome"], data["attempt"]
    operation = row.id
    if row.key is not None:
        operation = operation_of(attempt["store"], row.key, row.digest, attempt["failed"])
    # Requests with arguments that have no encoding cannot be compared.
    same, is_pending = 1, record.state is _PENDING
    if is_pending and not data["unencoded"]:
        same = max(1, reads.count(RowQuery(states=(_PENDING.value,), digest=row.digest, domain=row.domain)))
    return Approval(
        **{name: getattr(row, name) for name in ("id", "revision", "action", "domain", "digest", "run_id")},
        state=record.state,
        created_at=row.created,
        operation=operation,
        arguments=_open(now, secret, row.id, row.digest),
        encoded=now,
        asked=_open(asked, secret, row.id, data["asked_digest"]) if data["edit"] else None,
        asked_encoded=asked if data["edit"] else None,
        asked_digest=data["asked_digest"],
        use_within_seconds=data["use_within"],
        **{name: _frozen(data[name]) for name in (*_AS_ASKED, *_MAY_CHANGE, *_MEASURED)},
        **{name: _frozen(contents[name]) for name in (*_WORDS, "schema", "key") if name in contents},
        votes=tuple(_read_vote(reads, vote, is_pending=is_pending) for vote in data["votes"]),
        decision=None if decision is None else _read_event(Decided, reads, decision),
        claim=None if claim is None else _read_event(Claimed, reads, claim),
        outcome=None if outcome is None else _read_event(Ended, reads, outcome),
        earlier=tuple(_read_event(Earlier, reads, each) for each in data["earlier"]),
        is_awaited=is_awaited(tables, reads, record),
        same=same,
        deleted=first is None,
    )


def _frozen(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _open(stored: Mapping[str, Any], secret: Secret | None, approval_id: str, digest: str) -> dict[str, Any]:
    opened = dict(stored)
    with suppress(ValueError):
        opened = opened_arguments(stored, secret, approval_id=approval_id, digest=digest)
    for name, encoded in opened.items():
        with suppress(ValueError):
            opened[name] = decode({name: encoded})[name]
    return opened


def _read_event(kind: type[Any], reads: Reads, data: Mapping[str, Any]) -> Any:
    contents = contents_at(reads, data.get("seq")) or {}
    known = {
        **data,
        "note": contents.get("note", ""),
        "has_result": "result" in contents,
        "result": contents.get("result"),
    }
    values = {each.name: known[each.name] for each in fields(kind) if each.name in known}
    for name, read in (("state", ApprovalState), ("actor", Actor.from_dict)):
        if name in values:
            values[name] = read(values[name])
    return kind(**values)


def _read_vote(reads: Reads, data: Mapping[str, Any], *, is_pending: bool) -> Vote:
    vote: Vote = _read_event(Vote, reads, data)
    return replace(vote, counts=vote.counts and not (is_pending and reason_without_account(reads, vote.actor)))


def texts_in_sealed(reads: Reads, secret: Secret | None, record: RequestRecord) -> tuple[list[str], bool]:
    """Return the strings in sealed arguments, before and after an edit, and whether all of these could be opened."""
    data = record.data
    texts: set[str] = set()
    are_all = True
    for seq, digest in {data["request"]: data["asked_digest"], data["edit"]: record.row.digest}.items():
        stored = (contents_at(reads, seq) or {}).get("arguments", {})
        sealed = list_sealed(stored)
        try:
            encoded = opened_arguments(stored, secret, approval_id=record.id, digest=digest) if sealed else {}
        except ValueError:
            are_all = False
            continue
        closed = list_sealed(encoded)
        are_all = are_all and not closed
        texts.update(sealed_texts(encoded, [name for name in sealed if name not in closed]))
    return sorted(texts, key=len, reverse=True), are_all


# Lists and figures


_PAST = tuple(state.value for state in ApprovalState if state is not _PENDING)
_PAGE = 500
_PROCESSES = frozenset({"gate", "deadline"})
"""Channels of actors that are not people."""
AT_MOST_LOOKED_UP = 2_000
"""Maximum number of requests of a person that are read one by one."""


def pending_records(
    reads: Reads, query: RowQuery, level: int | None, is_wanted: Callable[[RequestRecord], bool] | None
) -> list[RequestRecord]:
    """Return the pending requests of a query, by deadline and level."""
    query = replace(query, states=(_PENDING.value,))
    if level is None and is_wanted is None:
        return [record_of(row) for row in reads.rows(query)]
    return _filter_records(reads, query, is_wanted or (lambda _: True), level)


def past_records(reads: Reads, query: RowQuery, by: str | None) -> list[RequestRecord]:
    """Return the requests of a query that are no longer pending and that a person has decided or closed, newest first."""
    wanted = tuple(state for state in query.states if state in _PAST) or _PAST
    query = replace(query, states=wanted, order="newest")
    if by is None:
        return [record_of(row) for row in reads.rows(query)]
    names = reads.documents(_index_of(by))
    if len(names) > AT_MOST_LOOKED_UP:  # then the newest rows hold enough of them
        return _filter_records(reads, query, lambda record: person(by) in _people(record))
    matching = [
        row
        for name in names
        if (row := reads.row(name)) is not None
        and row.state in wanted
        and (query.action is None or fnmatchcase(row.action, query.action))
        and (query.since is None or row.changed >= query.since)
    ]
    matching.sort(key=lambda row: row.changed, reverse=True)
    return [record_of(row) for row in matching[query.offset : query.offset + (query.limit or 0)]]


def note_people(writes: Writes, record: RequestRecord) -> None:
    """Index a request by the people who have acted on it."""
    for name in _people(record):
        if writes.document(kind := _index_of(name), record.id) is None:
            writes.put_document(kind, record.id, b"")


def _index_of(name: str) -> str:
    return f"by:{hashlib.sha256(person(name).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _filter_records(
    reads: Reads, query: RowQuery, is_wanted: Callable[[RequestRecord], bool], level: int | None = None
) -> list[RequestRecord]:
    """Return the wanted records of a query, at one level if it is given; limit and offset count these."""
    end = query.offset + (query.limit or 0)

    def each() -> Iterator[RequestRecord]:
        size, offset = max(1, min(end, _PAGE)), 0
        while rows := reads.rows(replace(query, limit=size, offset=offset)):
            # Compare the column, because parsing the data takes longer than reading the row.
            yield from (record_of(row) for row in rows if level is None or row.level == level)
            offset, size = offset + len(rows), _PAGE

    return list(islice(filter(is_wanted, each()), query.offset, max(query.offset, end)))


def _people(record: RequestRecord) -> set[str]:
    """Return the people who voted, decided, closed or reconciled."""
    data = record.data
    actors = [source["actor"] for source in (*data["votes"], data["decision"], data["outcome"]) if source]
    return {person(actor["name"]) for actor in actors if actor["channel"] not in _PROCESSES}


AT_MOST_READ = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFigures:
    """Statistics of the requests that were decided or closed in a period."""

    pending: int
    """Requests that are pending now, independent of the period."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """By state of the decision, such as `approved`, `edited`, `rejected`, `expired`; `standing` for standing approvals. Most frequent first."""
    waits: tuple[float, ...] = ()
    """Seconds from each request to the decision of a person, ascending."""
    is_cut: bool = False
    """Whether the oldest requests are missing, because there are too many."""


def approval_figures(reads: Reads, since: float, until: float, *, limit: int = AT_MOST_READ) -> ApprovalFigures:
    """Return the statistics of the period from `since` to `until`, in seconds since the epoch."""
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
