"""Calls of a key that has requests already: they join the open one, get what stands for it, or the refusal that holds for their run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grace_kp.approvals._actor import Actor, person
from grace_kp.approvals._digest import has_digest
from grace_kp.approvals._due import observed
from grace_kp.approvals._record import WAITER, Record, record_of
from grace_kp.approvals._rights import users_of
from grace_kp.approvals._states import ENTITLING, OPEN, ApprovalState
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._verbs import close, moment
from grace_kp.errors import KeyReused, NotEntitled
from grace_kp.levels import InterventionLevel
from grace_kp.pages import printable

if TYPE_CHECKING:
    from grace_kp.approvals._new_request import NewRequest
    from grace_kp.approvals._turn import Turn

_S = ApprovalState
_STANDING_FOR = (*sorted(OPEN), _S.UNKNOWN, _S.DONE)
"""States in which a request of the key stands for every later call."""
_REFUSALS = (_S.REJECTED, _S.RESPONDED, _S.SKIPPED)
WITHOUT_EFFECT = tuple(state for state in _S if state not in _STANDING_FOR)
"""States after which a later call of the key asks again."""
MAX_EARLIER = 10
MAX_RUNS = 20
"""Runs of which the chain records that they joined a request. A job that asks every minute would fill it."""


def joined(turn: Turn, key: str, new: NewRequest) -> Record | None:
    """Return the request of the key that stands for this call; None if there is none.

    Raises:
        KeyReused: it has other arguments, or arguments that nobody can compare.
        NotEntitled: the call is for a person who has consented to it.
    """
    record = _standing_for(turn, key)
    if record is None:
        return None
    if not _asks_the_same(turn, record, new):
        is_new_version = new.version != record.data["version"]
        found, advice = (
            (
                f"was asked for version {printable(str(record.data['version']))} of the action, not {printable(new.version)}",
                "withdraw it if it is open, or name the version in the key",
            )
            if is_new_version
            else (
                "has other arguments",
                "an action that is repeated needs a field in its key that tells the calls apart",
            )
        )
        raise KeyReused(
            f"the key {new.key!s:.200} belongs to {record.id}, which is {record.state.value} since {moment(record.row.changed)} and "
            f"{found}; {advice}",
            approval_id=record.id,
        )
    if record.state not in OPEN:
        return record
    covers_all = new.waits == record.data["waits"] == "interrupt"
    if not covers_all and (record.data["unencoded"] or new.unencoded):
        names = ", ".join(new.unencoded or record.data["unencoded"])
        raise KeyReused(
            f"the key {new.key!s:.200} belongs to {record.id}, which is {record.state.value}, and it cannot be joined: the digest does not cover "
            f"{names}, so that this call may be another one; wait for its end",
            approval_id=record.id,
        )
    if record.state in ENTITLING and record.data["standing"] and new.level == InterventionLevel.ESCALATE.value:
        note = "a later call of this operation is at level escalate, which no standing approval covers"
        close(turn, record, _S.CANCELLED, "withdrawn", actor=_gate(), verb="join", note=note)
        return None
    _check_user(record, new)
    record = _accompanied(turn, record, new)
    return waited(turn, record) if new.waits == "wait" else record


def waited(turn: Turn, record: Record) -> Record:
    """Note that this process waits for a decision or its use, unless a process does that may still run; return the record."""
    tables = turn.office.tables
    if record.state not in OPEN or record.state is _S.CLAIMED:
        return record
    waiting = turn.writes.document(WAITER, record.id)
    process = record.row.waiter if waiting is None else waiting.decode()
    own = tables.hold()
    if process != own and not (process and tables.is_alive(process)):
        turn.writes.put_document(WAITER, record.id, own.encode())
    return record


def refused(turn: Turn, key: str, new: NewRequest) -> Record | None:
    """Return the refusal that holds for this call; None if there is none."""
    rows = turn.writes.rows(RowQuery(states=WITHOUT_EFFECT, key=key, order="newest", limit=MAX_EARLIER))
    records = [record_of(row) for row in rows]
    for record in records:
        if record.state not in _REFUSALS:
            continue
        is_same = _asks_the_same(turn, record, new)
        holds = new.run_id is not None and new.run_id in record.data["runs"]
        if holds and (is_same or record.state is not _S.RESPONDED):
            return record
        # A caller that does not wait has not learnt of the refusal: its next call does, in whatever run.
        if record is records[0] and is_same and record.data["waits"] == "raise" and not record.data["received"]:
            runs = [*record.data["runs"], new.run_id]
            return _written(turn, record, {"runs": runs, "received": True}, new, {"received": record.state.value})
    return None


def _standing_for(turn: Turn, key: str) -> Record | None:
    rows = turn.writes.rows(RowQuery(states=_STANDING_FOR, key=key, order="newest", limit=5))
    records = [observed(turn, record_of(row)) for row in rows]
    return next((record for record in records if record.state in _STANDING_FOR), None)


def _asks_the_same(turn: Turn, record: Record, new: NewRequest) -> bool:
    """Return whether a call has the digest of a request, which may have been computed before there was a key, or with an earlier one."""
    asked = record.data["asked_digest"]
    if asked == new.digest:
        return True
    try:
        return has_digest(
            asked, new.action, new.version, new.encoded, leave_out=new.not_covered, secret=turn.office.secret
        )
    except ValueError:  # that key is not here
        return False


def _check_user(record: Record, new: NewRequest) -> None:
    """Refuse to let a run use the consent of the person whom it acts for."""
    data = record.data
    if record.state not in ENTITLING or not new.user or not (data["groups"] or data["quorum"] > 1):
        return
    if person(new.user) in {person(vote["actor"]["name"]) for vote in data["votes"]}:
        raise NotEntitled(
            f"{printable(new.user)} has consented to {record.id}, and a run for this person cannot use it: somebody else must decide",
            approval_id=record.id,
        )


def _accompanied(turn: Turn, record: Record, new: NewRequest) -> Record:
    """Note the run that joins, its user, who may not decide either, and its level if it is stricter."""
    data = record.data
    changes: dict[str, Any] = {}
    if new.run_id not in data["runs"] and len(data["runs"]) < MAX_RUNS:
        changes["runs"] = [*data["runs"], new.run_id]
    if new.user and person(new.user) not in users_of(record):
        changes["users"] = [*data["users"], new.user]
    level = InterventionLevel(new.level)
    if record.state is _S.PENDING and level.severity > InterventionLevel(data["level"]).severity:
        changes["level"] = level.value
    return _written(turn, record, changes, new, {}) if changes else record


def _written(turn: Turn, record: Record, changes: dict[str, Any], new: NewRequest, facts: dict[str, Any]) -> Record:
    facts = {"run": new.run_id, "level": new.level, **facts}
    return turn.write(record, record.changed(**changes), "joined", actor=_gate(), facts=facts)


def _gate() -> Actor:
    return Actor.here("gate", channel="gate")
