"""What came of an execution: the report of its claimant, and the statement of a person where nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._chain import append
from grace_kp.approvals._claim import check_token
from grace_kp.approvals._due import observed
from grace_kp.approvals._notes import clean_note, kept_result
from grace_kp.approvals._opened import repeats_sealed, without_sealed
from grace_kp.approvals._record import record_of
from grace_kp.approvals._standing import all_standing
from grace_kp.approvals._standing_use import end
from grace_kp.approvals._states import ENTITLING, ApprovalState
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._verbs import already, check_actor, is_same_person, moment
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, brief

if TYPE_CHECKING:
    from grace_kp.approvals._record import Record
    from grace_kp.approvals._turn import Turn

_S = ApprovalState
REPORTS = frozenset({_S.DONE, _S.FAILED, _S.UNKNOWN})


def settle(
    turn: Turn, approval_id: str, token: str, *, state: str, result: object, has_result: bool, error: str
) -> Record:
    """Write the report of a claimant. After a reconciliation it is recorded in the chain only."""
    if not isinstance(state, str) or state not in REPORTS:
        raise ApprovalError(
            f"the outcome must be done, failed or unknown, not {brief(state)}", approval_id=str(approval_id)
        )
    report = _S(state)
    record = turn.read(approval_id)
    check_token(record, token)
    outcome = record.data["outcome"]
    if record.state is report and outcome is not None and not outcome["reconciled"]:
        return record
    if record.state not in {_S.CLAIMED, _S.UNKNOWN} or (record.state is _S.UNKNOWN and report is _S.UNKNOWN):
        return _late(turn, record, report, error)
    contents = {"result": result} if has_result and _is_kept(turn, record, result) else None
    return _written(turn, record, report, "settled", actor=_claimant(record), contents=contents, error=error)


def reconcile(turn: Turn, approval_id: str, *, actor: Actor, happened: bool, note: str, revision: int | None) -> Record:
    """Write what a person states about an action whose outcome is unknown."""
    check_actor(actor)
    if not isinstance(happened, bool):
        raise ApprovalError(f"happened must be True or False, not {brief(happened)}", approval_id=str(approval_id))
    note = clean_note(note, approval_id)
    shown = turn.read(approval_id)
    record = observed(turn, shown)
    state = _S.DONE if happened else _S.NOT_DONE
    outcome = record.data["outcome"]
    if record.state is state and outcome["reconciled"] and is_same_person(Actor.from_dict(outcome["actor"]), actor):
        return record
    if record.state is _S.PENDING or record.state in ENTITLING:
        raise AlreadyDecided(
            f"{record.id} is {record.state.value} and nobody has started it, so there is no outcome to state; nothing was changed",
            approval_id=record.id,
            state=record.state.value,
            by="",
            at=record.row.changed,
        )
    if record.state not in {_S.CLAIMED, _S.UNKNOWN}:
        raise already(record)
    if revision not in {None, shown.row.revision}:
        raise ChangedSinceShown(
            f"{record.id} has changed since it was shown, and may have been started again; look at it again",
            approval_id=record.id,
        )
    turn.office.rights.check(turn.writes, record, actor)
    alive = _is_running(turn, record)
    if alive and (record.state is _S.CLAIMED or not happened):
        raise _runs(record)
    if record.state is _S.CLAIMED:
        lost = "the lease of the process that carried it out has expired"
        record = _written(turn, record, _S.UNKNOWN, "settled", actor=actor, contents={"note": lost})
    facts = {"happened": happened, "claimant": "may only be paused" if alive is None else "is gone"}
    return _written(
        turn,
        record,
        state,
        "reconciled",
        actor=actor,
        contents={"note": without_sealed(turn.writes, turn.office.secret, record, note)},
        facts=facts,
    )


def restored(turn: Turn, actor: Actor) -> int:
    """Mark everything that may have run in the lost part of the history; return how many approvals were marked."""
    check_actor(actor)
    states = (_S.APPROVED, _S.EDITED, _S.CLAIMED)
    rows = turn.writes.rows(RowQuery(states=states, limit=None))
    note = "the store was restored from a backup; whether this was carried out afterwards is not known"
    for row in rows:
        _written(turn, record_of(row), _S.UNKNOWN, "restored", actor=actor, contents={"note": note})
    for standing in all_standing(turn.writes):
        if not standing.ended:
            end(turn, standing, actor, "the store was restored from a backup, and uses since then are not known")
    append(turn.writes, "restored", at=turn.now, actor=actor, facts={"marked": len(rows)})
    return len(rows)


def _written(
    turn: Turn,
    record: Record,
    state: ApprovalState,
    kind: str,
    *,
    actor: Actor,
    contents: dict[str, Any] | None = None,
    error: str = "",
    facts: dict[str, Any] | None = None,
) -> Record:
    outcome = {
        "state": state.value,
        "at": record.at(turn.now),
        "actor": actor.to_dict(),
        "error": _error(turn, record, error),
        "seq": turn.next_seq if contents else None,
        "reconciled": kind == "reconciled",
    }
    after = record.changed(state, outcome=outcome)
    return turn.write(record, after, kind, actor=actor, facts=facts, contents=contents)


def _late(turn: Turn, record: Record, report: ApprovalState, error: str) -> Record:
    """Record a report that changes nothing; repeating it records nothing more."""
    if record.state is _S.UNKNOWN or record.data["late"] == report.value:
        return record
    facts = {"reported": report.value, "error": _error(turn, record, error)}
    return turn.write(record, record.changed(late=report.value), "late_report", actor=_claimant(record), facts=facts)


def _is_kept(turn: Turn, record: Record, result: object) -> bool:
    return kept_result(result) and not repeats_sealed(turn.writes, turn.office.secret, record, result)


def _error(turn: Turn, record: Record, error: str) -> str:
    cleaned: str = without_sealed(
        turn.writes, turn.office.secret, record, clean_note(error[:200], record.id, what="error")
    )
    return cleaned


def _claimant(record: Record) -> Actor:
    return Actor.from_dict(record.data["claim"]["actor"])


def _is_running(turn: Turn, record: Record) -> bool | None:
    claim = record.data["claim"]
    # Without a claim it was marked after a restore: the history with its claimant is lost.
    return None if claim is None else turn.office.tables.is_alive(claim["process"])


def _runs(record: Record) -> AlreadyDecided:
    claim = record.data["claim"]
    return AlreadyDecided(
        f"{record.id} was claimed at {moment(claim['at'])} by a process that still runs ({claim['process']}); wait for its report or stop the "
        "process, then reconcile",
        approval_id=record.id,
        state=record.state.value,
        by=claim["actor"]["name"],
        at=claim["at"],
    )
