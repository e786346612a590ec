"""Requests: create one, join the open one of a key, or return the one that stands for it."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._due import ESCALATE, observed
from grace_kp.approvals._notes import clean_json
from grace_kp.approvals._record import WAITER, Record, record_of
from grace_kp.approvals._seal import sealed_texts, without_texts
from grace_kp.approvals._standing_use import matching, opened_for
from grace_kp.approvals._states import OPEN, ApprovalState
from grace_kp.approvals._tables import Row, RowQuery
from grace_kp.approvals._verbs import moment
from grace_kp.approvals._votes import voted
from grace_kp.errors import KeyReused
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from grace_kp.approvals._new_request import NewRequest
    from grace_kp.approvals._turn import Turn

_S = ApprovalState
_STANDING_FOR = (*sorted(OPEN), _S.UNKNOWN, _S.DONE)
"""States in which a request of the key stands for every later call."""
_REFUSALS = (_S.REJECTED, _S.RESPONDED, _S.SKIPPED)
_WITHOUT_EFFECT = tuple(state for state in _S if state not in _STANDING_FOR)
MAX_EARLIER = 10
MAX_RUNS = 20
"""Runs of which the chain records that they joined a request. A job that asks every minute would fill it."""


def check_new(new: NewRequest) -> None:
    """Refuse settings that cannot be used.

    Raises:
        ValueError: with the setting and what is allowed.
    """
    InterventionLevel(new.level)
    for name, seconds in (("deadline", new.deadline_seconds), ("use_within", new.use_within_seconds)):
        if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"{name} must be 0 or more seconds, or None, not {seconds!r}")
    action = new.on_deadline
    if action not in {"cancel", "skip"} and not (action.startswith(ESCALATE) and action.removeprefix(ESCALATE).strip()):
        raise ValueError(f"on_deadline must be cancel, skip or escalate:GROUP, not {action!r:.60}")
    if type(new.quorum) is not int or new.quorum < 1:
        raise ValueError(f"quorum must be a whole number of 1 or more, not {new.quorum!r:.60}")
    if new.identity not in {"authenticated", "stated"}:
        raise ValueError(f"identity must be authenticated or stated, not {new.identity!r:.60}")
    groups: object = new.groups
    if isinstance(groups, str):
        raise ValueError(f"groups must be a list of names, not the text {groups!r:.60}")
    open_names = set(new.key_fields) & set(new.sealed)
    if open_names:
        raise ValueError(f"a key is kept in the clear, and {', '.join(sorted(open_names))} must not be")


def request(turn: Turn, new: NewRequest) -> Record:
    """Return the record that stands for a call, creating one where there is none.

    Raises:
        KeyReused: the key belongs to a request with other arguments that is open, may have happened, or was done.
    """
    key = None if new.key is None else hashlib.sha256(new.key.encode("utf-8", "surrogatepass")).hexdigest()
    if key is not None:
        standing = _standing_for(turn, key)
        if standing is not None:
            return _joined(turn, standing, new)
        refusal = _refusal_for(turn, key, new)
        if refusal is not None:
            return refusal
    return _created(turn, new, key)


def _standing_for(turn: Turn, key: str) -> Record | None:
    rows = turn.writes.rows(RowQuery(states=_STANDING_FOR, key=key, order="newest", limit=5))
    records = [observed(turn, record_of(row)) for row in rows]
    return next((record for record in records if record.state in _STANDING_FOR), None)


def _joined(turn: Turn, record: Record, new: NewRequest) -> Record:
    if record.data["asked_digest"] != new.digest:
        raise KeyReused(
            f"the key {new.key!s:.200} belongs to {record.id}, which is {record.state.value} since {moment(record.row.changed)} and has other "
            f"arguments or another version; an action that is repeated needs a field in its key that tells the calls apart",
            approval_id=record.id,
        )
    covers_all = new.waits == record.data["waits"] == "interrupt"
    if record.state in OPEN and not covers_all and (record.data["unencoded"] or new.unencoded):
        names = ", ".join(new.unencoded or record.data["unencoded"])
        raise KeyReused(
            f"the key {new.key!s:.200} belongs to {record.id}, which is {record.state.value}, and it cannot be joined: the digest does not cover "
            f"{names}, so that this call may be another one; wait for its end",
            approval_id=record.id,
        )
    if record.state in OPEN and _is_new_run(record, new):
        record = _with_run(turn, record, new, {})
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


def _is_new_run(record: Record, new: NewRequest) -> bool:
    runs = record.data["runs"]
    return new.run_id not in runs and len(runs) < MAX_RUNS


def _with_run(turn: Turn, record: Record, new: NewRequest, facts: dict[str, Any]) -> Record:
    after = record.changed(runs=[*record.data["runs"], new.run_id], received="received" in facts)
    facts = {"run": new.run_id, **facts}
    return turn.write(record, after, "joined", actor=Actor.here("gate", channel="gate"), facts=facts)


def _refusal_for(turn: Turn, key: str, new: NewRequest) -> Record | None:
    rows = turn.writes.rows(RowQuery(states=_WITHOUT_EFFECT, key=key, order="newest", limit=MAX_EARLIER))
    records = [record_of(row) for row in rows]
    for record in records:
        if record.state not in _REFUSALS:
            continue
        is_same = record.data["asked_digest"] == new.digest
        holds = new.run_id is not None and new.run_id in record.data["runs"]
        if holds and (is_same or record.state is not _S.RESPONDED):
            return record
        # A caller that does not wait has not learnt of the refusal: its next call does, in whatever run.
        if record is records[0] and is_same and record.data["waits"] == "raise" and not record.data["received"]:
            return _with_run(turn, record, new, {"received": record.state.value})
    return None


def _created(turn: Turn, new: NewRequest, key: str | None) -> Record:
    seq, now = turn.next_seq, turn.now
    row = Row(
        id=new.id,
        state=_S.PENDING.value,
        action=new.action,
        domain=new.domain,
        key=key,
        digest=new.digest,
        run_id=new.run_id,
        level=InterventionLevel(new.level).severity,
        deadline=None,
        created=now,
        changed=now,
        revision=1,
    )
    data = {**_fixed(new), **_moving(turn, new), "request": seq, "earlier": _earlier(turn, key)}
    contents = {"arguments": dict(new.stored), "schema": dict(new.schema), "key": new.key, **_words(new)}
    actor = Actor.here("gate", channel="gate")
    facts = {"level": new.level, "quorum": new.quorum, "groups": list(new.groups), "run": new.run_id}
    record = turn.write(None, Record(row, data).changed(), "requested", actor=actor, facts=facts, contents=contents)
    return _approved_by_standing(turn, record)


def _words(new: NewRequest) -> dict[str, Any]:
    """What explains the request, without secrets and without what is sealed."""
    words = {
        "reason": new.reason,
        "gaps": list(new.gaps),
        "facts": dict(new.facts),
        "objective": new.objective,
        "run": None if new.run is None else dict(new.run),
        "note": dict(new.note),
    }
    cleaned: dict[str, Any] = without_texts(clean_json(words), sealed_texts(new.encoded, new.sealed))
    return cleaned


def _fixed(new: NewRequest) -> dict[str, Any]:
    """What stays as the program asked it."""
    return {
        "version": new.version,
        "asked_digest": new.digest,
        "asked_groups": list(new.groups),
        **{name: list(getattr(new, name)) for name in ("not_covered", "sealed", "unencoded", "key_fields")},
        **{
            name: getattr(new, name)
            for name in ("user", "deadline_seconds", "on_deadline", "identity", "origin", "waits")
        },
        **clean_json({name: getattr(new, name) for name in ("score", "breakdown", "penalties", "policy")}),
        "use_within": new.use_within_seconds,
    }


def _moving(turn: Turn, new: NewRequest) -> dict[str, Any]:
    """What later revisions may change."""
    return {
        "level": new.level,
        "groups": list(new.groups),
        "quorum": new.quorum,
        "deadline": None if new.deadline_seconds is None else turn.now + new.deadline_seconds,
        "use_by": None,
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
        "standing": None,
        "runs": [new.run_id],
        "received": False,
        "waiter": turn.office.tables.hold() if new.waits == "wait" else None,
    }


def _earlier(turn: Turn, key: str | None) -> list[dict[str, Any]]:
    if key is None:
        return []
    rows = turn.writes.rows(RowQuery(states=_WITHOUT_EFFECT, key=key, order="newest", limit=MAX_EARLIER))
    return [_as_earlier(record_of(row)) for row in rows]


def _as_earlier(record: Record) -> dict[str, Any]:
    ending = record.data["outcome"] or record.data["decision"] or {}
    return {
        "id": record.id,
        "state": record.state.value,
        "at": ending.get("at", record.row.changed),
        "by": ending.get("actor", {}).get("name", ""),
        "seq": ending.get("seq"),
    }


def _approved_by_standing(turn: Turn, record: Record) -> Record:
    standing = matching(turn, record)
    if standing is None or standing.granted_by is None:
        return record
    actor = Actor.from_dict({**standing.granted_by.to_dict(), "channel": "standing"})
    opened_for(turn, standing, record.id)
    after = record.changed(standing=standing.id)
    return voted(turn, record, after, actor, verb="approve", note=standing.note, facts={"standing": standing.id})
