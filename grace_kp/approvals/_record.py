"""A request as it is kept: the row of a new one, the record that verbs work on, and the `Approval` that people and programs get back.

Contents (arguments, notes, results, the trace of the run) are kept with entries of the chain, so that retention deletes them in one place. The
data of a row holds the numbers of those entries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import decode
from grace_kp.approvals._chain import contents_of
from grace_kp.approvals._digest import operation_of
from grace_kp.approvals._people import Actor, reason_without_account
from grace_kp.approvals._request import (
    ENTITLING,
    ApprovalRequest,
    ApprovalState,
    Claimed,
    Decided,
    Earlier,
    Ended,
    Vote,
)
from grace_kp.approvals._seal import clean_json, opened_arguments, sealed_texts, unopened
from grace_kp.approvals._tables import Row, RowQuery
from grace_kp.errors import StoreError, UnknownApproval, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._seal import Secret
    from grace_kp.approvals._tables import Reads, Tables

WAITER = "waiter"
"""Kind of the documents that name the process which waits now. Waiting is not a fact about the request, so that it is neither a revision nor
in the chain."""
_PENDING = ApprovalState.PENDING
_AS_ASKED = (
    "version", "not_covered", "sealed", "unencoded", "key_fields", "user", "deadline_seconds", "on_deadline", "identity", "origin", "waits",
)  # fmt: skip
"""Fields that the data of a row holds as the program asked them."""
_MAY_CHANGE = ("level", "groups", "quorum", "deadline", "use_by", "standing")
"""Fields that the data holds and later revisions may change."""
_MEASURED = ("score", "breakdown", "penalties", "policy")
"""Fields that the data holds without secrets."""
_WORDS = ("reason", "gaps", "facts", "objective", "run", "note")
"""Fields that are contents: without secrets, and deleted by retention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(ApprovalRequest):
    """A request for approval at one revision. It is a value: it never changes; read it again to see changes.

    Texts of people and agents may be hostile; whoever displays them makes control and bidirectional characters visible.
    """

    def _repr_html_(self) -> str:
        """Return the request for a notebook: what would run, why a person is asked, and the outcome. Sealed arguments stay sealed."""
        from grace_kp.approvals._html import approval_html
        from grace_kp.pages import notebook

        return notebook(approval_html(self))


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A row and its data."""

    row: Row
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Id of the approval."""
        return self.row.id

    @property
    def state(self) -> ApprovalState:
        """Its state."""
        return ApprovalState(self.row.state)

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups whose members may decide now."""
        return tuple(self.data["groups"])

    @property
    def due(self) -> float | None:
        """When it is due, in seconds since the epoch; None for never."""
        return _due_of(self.state, self.data)

    @property
    def closer(self) -> Actor | None:
        """Who decided or closed it; None while it is pending."""
        decision = self.data["decision"]
        return None if decision is None else Actor.from_dict(decision["actor"])

    @property
    def operation(self) -> str:
        """What the idempotency key of the action is derived from."""
        if self.row.key is None:
            return self.id
        attempt = self.data["attempt"]
        return operation_of(attempt["store"], self.row.key, self.row.digest, attempt["failed"])

    def at(self, now: float) -> float:
        """Return the time of a change. A clock that was set back does not lead behind what is recorded."""
        return max(now, self.row.changed)

    def changed(
        self, state: ApprovalState | None = None, *, digest: str | None = None, **data: object
    ) -> RequestRecord:
        """Return the record with a state, a digest and fields of its data replaced; the other columns follow from them."""
        after = {**self.data, **data}
        state = self.state if state is None else state
        row = replace(
            self.row,
            state=state.value,
            digest=self.row.digest if digest is None else digest,
            level=InterventionLevel(after["level"]).severity,
            deadline=_due_of(state, after),
            waiter=_process_of(state, after),
        )
        return RequestRecord(row, after)


def _due_of(state: ApprovalState, data: Mapping[str, Any]) -> float | None:
    if state is _PENDING:
        return data["deadline"]  # type: ignore[no-any-return]
    return data["use_by"] if state in ENTITLING else None


def _process_of(state: ApprovalState, data: Mapping[str, Any]) -> str | None:
    if state in {ApprovalState.CLAIMED, ApprovalState.UNKNOWN} and data["claim"]:
        return data["claim"]["process"]  # type: ignore[no-any-return]
    return data["waiter"] if state is _PENDING or state in ENTITLING else None


def new_record(
    new: ApprovalRequest, unsealed: Mapping[str, Any], *, key: str | None, now: float, **data: object
) -> tuple[RequestRecord, dict[str, Any]]:
    """Return the record of a new request, and its contents.

    Args:
        now: the time, in seconds since the epoch.
    """
    row = Row(
        id=new.id,
        state=_PENDING.value,
        action=new.action,
        domain=new.domain,
        key=key,
        digest=new.digest,
        run_id=new.run_id,
        level=0,  # follows from the data
        deadline=None,
        created=now,
        changed=now,
        revision=1,
    )
    texts = sealed_texts(unsealed, new.sealed)
    fields = {
        **{name: _as_json(getattr(new, name)) for name in (*_AS_ASKED, *_MAY_CHANGE)},
        **clean_json({name: getattr(new, name) for name in _MEASURED}, texts),
        "asked_digest": new.digest,
        "asked_groups": list(new.groups),
        "use_within": new.use_within_seconds,
        "deadline": None if new.deadline_seconds is None else now + new.deadline_seconds,
        "escalated": False,
        "votes": [],
        "edit": None,
        "edited": None,
        "editor": None,
        "edited_from": None,
        "decision": None,
        "claim": None,
        "token": None,
        "outcome": None,
        "late": None,
        "runs": [new.run_id],
        "users": [],
        "received": False,
        **data,
    }
    words = clean_json({name: getattr(new, name) for name in _WORDS}, texts)
    contents = {"arguments": dict(new.encoded), "schema": dict(new.schema), "key": new.key, **words}
    return RequestRecord(row, fields).changed(), contents


def record_of(row: Row) -> RequestRecord:
    """Return the record of a row."""
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
            f"no approval has the id {brief(approval_id)}; `grace-kp approvals list` shows those that wait",
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
    """Return the arguments that are decided on now, as they are kept; None if they were deleted."""
    contents = contents_at(reads, record.data["edit"] or record.data["request"])
    return None if contents is None else contents["arguments"]


def is_awaited(tables: Tables, reads: Reads, record: RequestRecord) -> bool | None:
    """Return whether a live process waits for the decision, or carries the action out; None where that cannot be known."""
    if not record.state.is_open:
        return False
    process = record.row.waiter
    if record.state is _PENDING or record.state in ENTITLING:
        waiting = reads.document(WAITER, record.id)
        process = process if waiting is None else waiting.decode()
    return tables.is_alive(process) if process else False


def approval_of(reads: Reads, record: RequestRecord, *, tables: Tables, secret: Secret | None) -> Approval:
    """Return the approval that people and programs see of a record.

    A value that needs the declared type of its parameter, such as an instance of a data class, stays encoded in it. So does a sealed value that
    was changed or has no key here.
    """
    row, data = record.row, record.data
    first = contents_at(reads, data["request"])
    last = contents_at(reads, data["edit"]) if data["edit"] else first
    asked, now = (first or {}).get("arguments", {}), (last or {}).get("arguments", {})
    contents = first or {}
    decision, claim, outcome = data["decision"], data["claim"], data["outcome"]
    return Approval(
        id=row.id,
        state=record.state,
        revision=row.revision,
        action=row.action,
        domain=row.domain,
        digest=row.digest,
        run_id=row.run_id,
        created_at=row.created,
        operation=record.operation,
        arguments=_open(now, secret, row.id, row.digest),
        encoded=now,
        asked=_open(asked, secret, row.id, data["asked_digest"]) if data["edit"] else None,
        asked_encoded=asked if data["edit"] else None,
        asked_digest=data["asked_digest"],
        use_within_seconds=data["use_within"],
        **{name: _frozen(data[name]) for name in (*_AS_ASKED, *_MAY_CHANGE, *_MEASURED)},
        **{name: _frozen(contents[name]) for name in (*_WORDS, "schema", "key") if name in contents},
        votes=tuple(_vote(reads, vote, is_pending=record.state is _PENDING) for vote in data["votes"]),
        decision=None if decision is None else Decided(**_dated(decision), note=note_at(reads, decision["seq"])),
        claim=None if claim is None else Claimed(**{**claim, "actor": Actor.from_dict(claim["actor"])}),
        outcome=None if outcome is None else _outcome(reads, outcome),
        earlier=tuple(_earlier(reads, each) for each in data["earlier"]),
        is_awaited=is_awaited(tables, reads, record),
        same=_count_same(reads, record),
        deleted=first is None,
    )


def _as_json(value: object) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _frozen(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _open(stored: Mapping[str, Any], secret: Secret | None, approval_id: str, digest: str) -> dict[str, Any]:
    try:
        encoded = opened_arguments(stored, secret, approval_id=approval_id, digest=digest)
    except ValueError:
        encoded = dict(stored)
    return {name: _decode(name, item) for name, item in encoded.items()}


def _decode(name: str, encoded: object) -> object:
    try:
        return decode({name: encoded})[name]
    except ValueError:
        return encoded


def _count_same(reads: Reads, record: RequestRecord) -> int:
    """Count the pending requests that ask the same as this one. Where an argument has no encoding, nobody knows of another."""
    if record.state is not _PENDING or record.data["unencoded"]:
        return 1
    return max(1, reads.count(RowQuery(states=(_PENDING.value,), digest=record.row.digest, domain=record.row.domain)))


def _vote(reads: Reads, vote: Mapping[str, Any], *, is_pending: bool) -> Vote:
    actor = Actor.from_dict(vote["actor"])
    counts = vote["counts"] and not (is_pending and reason_without_account(reads, actor))
    return Vote(actor=actor, at=vote["at"], digest=vote["digest"], counts=counts, note=note_at(reads, vote["seq"]))


def _dated(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"state": ApprovalState(event["state"]), "actor": Actor.from_dict(event["actor"]), "at": event["at"]}


def _outcome(reads: Reads, outcome: Mapping[str, Any]) -> Ended:
    contents = contents_at(reads, outcome["seq"]) or {}
    return Ended(
        **_dated(outcome),
        has_result="result" in contents,
        result=contents.get("result"),
        error=outcome["error"],
        note=contents.get("note", ""),
    )


def _earlier(reads: Reads, each: Mapping[str, Any]) -> Earlier:
    note = note_at(reads, each["seq"])
    return Earlier(id=each["id"], state=ApprovalState(each["state"]), at=each["at"], by=each["by"], note=note)


def texts_in_sealed(reads: Reads, secret: Secret | None, record: RequestRecord) -> tuple[list[str], bool]:
    """Return the texts in sealed arguments, as asked and as edited, and whether all of these could be opened."""
    data = record.data
    texts: set[str] = set()
    are_all = True
    for seq, digest in {data["request"]: data["asked_digest"], data["edit"]: record.row.digest}.items():
        stored = (contents_at(reads, seq) or {}).get("arguments", {})
        sealed = unopened(stored)
        try:
            encoded = opened_arguments(stored, secret, approval_id=record.id, digest=digest) if sealed else {}
        except ValueError:
            are_all = False
            continue
        closed = unopened(encoded)
        are_all = are_all and not closed
        texts.update(sealed_texts(encoded, [name for name in sealed if name not in closed]))
    return sorted(texts, key=len, reverse=True), are_all
