"""A request as the desk works on it: a row with its parsed data, and the `Approval` that people see.

Contents (arguments, notes, results, the trace of the run) stand beside entries of the chain, so that retention deletes them in one place. The
data of the row holds the numbers of those entries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._account import reason_without_account
from grace_kp.approvals._actor import Actor
from grace_kp.approvals._approval import Approval
from grace_kp.approvals._chain import contents_of
from grace_kp.approvals._digest import operation_of
from grace_kp.approvals._facts import Claimed, Decided, Earlier, Ended, Vote
from grace_kp.approvals._states import ENTITLING, ApprovalState
from grace_kp.errors import StoreError, UnknownApproval, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grace_kp.approvals._tables import Reads, Row, Tables

WAITER = "waiter"
"""Kind of the documents that name the process which waits now. Waiting is no fact about the request, so that it is neither a revision nor
in the chain."""
_PENDING = ApprovalState.PENDING


@dataclass(frozen=True, slots=True)
class Record:
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

    def changed(self, state: ApprovalState | None = None, *, digest: str | None = None, **data: object) -> Record:
        """Return the record with a state, a digest and fields of its data replaced; the other columns follow from them."""
        after = {**self.data, **data}
        stands = self.state if state is None else state
        row = replace(
            self.row,
            state=stands.value,
            digest=self.row.digest if digest is None else digest,
            level=InterventionLevel(after["level"]).severity,
            deadline=_due_of(stands, after),
            waiter=_process_of(stands, after),
        )
        return Record(row, after)


def record_of(row: Row) -> Record:
    """Return the record of a row.

    Raises:
        StoreError: its data cannot be read.
    """
    try:
        data = json.loads(row.data)
        ApprovalState(row.state)
        data["version"], data["decision"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"the approval {brief(row.id)} cannot be read: {type(error).__name__}: {error}") from error
    return Record(row, data)


def read_record(reads: Reads, approval_id: str) -> Record:
    """Return the record with an id.

    Raises:
        UnknownApproval: there is none.
    """
    row = reads.row(approval_id) if isinstance(approval_id, str) else None
    if row is None:
        raise UnknownApproval(
            f"no approval has the id {brief(approval_id)}; `grace-kp approvals list` shows those that wait",
            approval_id=approval_id if isinstance(approval_id, str) else "",
        )
    return record_of(row)


def contents_at(reads: Reads, seq: int | None) -> dict[str, Any] | None:
    """Return the contents of an entry; None where there are none any more."""
    link = None if seq is None else reads.link(seq)
    contents = None if link is None else contents_of(link)
    return contents if isinstance(contents, dict) else None


def note_at(reads: Reads, seq: int | None) -> str:
    """Return the note of an entry; empty where there is none any more."""
    return str((contents_at(reads, seq) or {}).get("note", ""))


def stored_arguments(reads: Reads, record: Record) -> dict[str, Any] | None:
    """Return the arguments that are decided on now, as they are kept; None once they are deleted."""
    contents = contents_at(reads, record.data["edit"] or record.data["request"])
    return None if contents is None else contents["arguments"]


def is_awaited(tables: Tables, reads: Reads, record: Record) -> bool | None:
    """Return whether a live process waits for the decision, or carries the action out; None where that cannot be known."""
    if not record.state.is_open:
        return False
    process = record.row.waiter
    if record.state is _PENDING or record.state in ENTITLING:
        waiting = reads.document(WAITER, record.id)
        process = process if waiting is None else waiting.decode()
    return tables.is_alive(process) if process else False


def approval_of(
    reads: Reads, record: Record, *, tables: Tables, opened: Callable[[Mapping[str, Any], str, str], dict[str, Any]]
) -> Approval:
    """Return what people see of a record.

    Args:
        reads: the tables, or a transaction on them.
        record: the record.
        tables: the tables, for what is known of processes.
        opened: decodes stored arguments, those of an approval with an id and a digest.
    """
    row, data = record.row, record.data
    first = contents_at(reads, data["request"])
    last = contents_at(reads, data["edit"]) if data["edit"] else first
    asked, now = (first or {}).get("arguments", {}), (last or {}).get("arguments", {})
    text = first or {}
    return Approval(
        id=row.id,
        state=record.state,
        revision=row.revision,
        action=row.action,
        version=data["version"],
        domain=row.domain,
        digest=row.digest,
        operation=record.operation,
        arguments=opened(now, row.id, row.digest),
        asked=opened(asked, row.id, data["asked_digest"]) if data["edit"] else None,
        asked_encoded=asked if data["edit"] else None,
        asked_digest=data["asked_digest"],
        encoded=now,
        schema=text.get("schema", {}),
        key=text.get("key"),
        reason=text.get("reason", ""),
        gaps=tuple(text.get("gaps", ())),
        facts=text.get("facts", {}),
        objective=text.get("objective"),
        run=text.get("run"),
        note=text.get("note", {}),
        **_listed(data),
        run_id=row.run_id,
        created_at=row.created,
        votes=tuple(_vote(reads, vote, is_pending=record.state is _PENDING) for vote in data["votes"]),
        decision=_decided(reads, data["decision"]),
        claim=_claimed(data["claim"]),
        outcome=_ended(reads, data["outcome"]),
        earlier=tuple(_earlier(reads, each) for each in data["earlier"]),
        is_awaited=is_awaited(tables, reads, record),
        deleted=first is None,
    )


def _listed(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an approval that stand in the data under the same name."""
    lists = ("not_covered", "sealed", "unencoded", "key_fields", "penalties", "groups")
    single = ("level", "score", "breakdown", "policy", "user", "deadline", "use_by", "on_deadline")
    rest = ("quorum", "identity", "standing", "origin", "waits")
    return {**{name: tuple(data[name]) for name in lists}, **{name: data[name] for name in (*single, *rest)}}


def _due_of(state: ApprovalState, data: Mapping[str, Any]) -> float | None:
    if state is _PENDING:
        return data["deadline"]  # type: ignore[no-any-return]
    return data["use_by"] if state in ENTITLING else None


def _process_of(state: ApprovalState, data: Mapping[str, Any]) -> str | None:
    if state in {ApprovalState.CLAIMED, ApprovalState.UNKNOWN} and data["claim"]:
        return data["claim"]["process"]  # type: ignore[no-any-return]
    return data["waiter"] if state is _PENDING or state in ENTITLING else None


def _vote(reads: Reads, vote: Mapping[str, Any], *, is_pending: bool) -> Vote:
    actor = Actor.from_dict(vote["actor"])
    return Vote(
        actor=actor,
        at=vote["at"],
        digest=vote["digest"],
        counts=vote["counts"] and not (is_pending and reason_without_account(reads, actor)),
        note=note_at(reads, vote["seq"]),
    )


def _decided(reads: Reads, decision: Mapping[str, Any] | None) -> Decided | None:
    if decision is None:
        return None
    return Decided(
        state=ApprovalState(decision["state"]),
        actor=Actor.from_dict(decision["actor"]),
        at=decision["at"],
        note=note_at(reads, decision["seq"]),
    )


def _claimed(claim: Mapping[str, Any] | None) -> Claimed | None:
    if claim is None:
        return None
    return Claimed(at=claim["at"], process=claim["process"], actor=Actor.from_dict(claim["actor"]))


def _ended(reads: Reads, outcome: Mapping[str, Any] | None) -> Ended | None:
    if outcome is None:
        return None
    contents = contents_at(reads, outcome["seq"]) or {}
    return Ended(
        state=ApprovalState(outcome["state"]),
        at=outcome["at"],
        actor=Actor.from_dict(outcome["actor"]),
        has_result="result" in contents,
        result=contents.get("result"),
        error=outcome["error"],
        note=contents.get("note", ""),
    )


def _earlier(reads: Reads, each: Mapping[str, Any]) -> Earlier:
    return Earlier(
        id=each["id"],
        state=ApprovalState(each["state"]),
        at=each["at"],
        by=each["by"],
        note=note_at(reads, each["seq"]),
    )
