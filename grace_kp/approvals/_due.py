"""What time and the death of processes do to a request: expiry, escalation, claims whose claimant is gone.

The first observer writes it, in the transaction of whatever verb it calls. Times are those of the wall clock, because they must mean the same in
every process and after a restart. What has expired is final, so that a clock that is set back revives nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._states import ENTITLING, ApprovalState
from grace_kp.approvals._tables import RowQuery

if TYPE_CHECKING:
    from grace_kp.approvals._record import Record
    from grace_kp.approvals._tables import Tables
    from grace_kp.approvals._turn import Turn

ESCALATE = "escalate:"
DEADLINE = "deadline"
"""Name of the actor where the clock closed a request and nobody did."""
_PENDING, _CLAIMED = ApprovalState.PENDING, ApprovalState.CLAIMED
TIMED = (_PENDING.value, *sorted(state.value for state in ENTITLING))
"""States that time ends."""


def is_due(record: Record, now: float, tables: Tables) -> bool:
    """Return whether something must be written before the record is used."""
    if record.state is _CLAIMED:
        return tables.is_alive(record.data["claim"]["process"]) is False
    return record.due is not None and record.due <= record.at(now)


def observed(turn: Turn, record: Record) -> Record:
    """Write what is due to a record; return it as it stands then."""
    while is_due(record, turn.now, turn.office.tables):
        record = _advanced(turn, record)
        turn.changes_due = turn.changes
    return record


def sweep_batch(turn: Turn, limit: int) -> int:
    """Write what time has ended, of at most this many requests; return how many."""
    due = turn.writes.rows(RowQuery(states=TIMED, due_before=turn.now, limit=limit))
    before = turn.changes
    for row in due:
        observed(turn, turn.read(row.id))
    return turn.changes - before


def _advanced(turn: Turn, record: Record) -> Record:
    if record.state is _CLAIMED:
        return _claimant_is_gone(turn, record)
    if record.state is not _PENDING:
        return _expired(turn, record, ApprovalState.EXPIRED, "not used in time")
    on_deadline = record.data["on_deadline"]
    if on_deadline.startswith(ESCALATE) and not record.data["escalated"]:
        return _escalated(turn, record, on_deadline.removeprefix(ESCALATE))
    if on_deadline == "skip":
        return _expired(turn, record, ApprovalState.SKIPPED, "nobody decided in time")
    return _expired(turn, record, ApprovalState.EXPIRED, "nobody decided in time")


def _expired(turn: Turn, record: Record, state: ApprovalState, reason: str) -> Record:
    actor = Actor.here(DEADLINE, channel=DEADLINE)
    closed = {
        "state": state.value,
        "actor": actor.to_dict(),
        "at": record.at(turn.now),
        "seq": turn.next_seq,
    }
    after = record.changed(state, decision=closed)
    return turn.write(record, after, "expired", actor=actor, facts={"due": record.due}, contents={"note": reason})


def _escalated(turn: Turn, record: Record, group: str) -> Record:
    # From the time of observation: the group gets the full time also where nobody looked when the first deadline passed.
    deadline = record.at(turn.now) + record.data["deadline_seconds"]
    after = record.changed(groups=[group], deadline=deadline, votes=[], escalated=True)
    actor = Actor.here(DEADLINE, channel=DEADLINE)
    facts = {"group": group, "due": record.due, "deadline": deadline}
    return turn.write(record, after, "escalated", actor=actor, facts=facts)


def _claimant_is_gone(turn: Turn, record: Record) -> Record:
    actor = Actor.here("observer", channel="gate")
    outcome = {
        "state": ApprovalState.UNKNOWN.value,
        "at": record.at(turn.now),
        "actor": actor.to_dict(),
        "error": "",
        "seq": turn.next_seq,
        "reconciled": False,
    }
    after = record.changed(ApprovalState.UNKNOWN, outcome=outcome)
    note = "the process that carried it out is gone and has reported nothing"
    facts = {"process": record.data["claim"]["process"]}
    return turn.write(record, after, "settled", actor=actor, facts=facts, contents={"note": note})
