"""Filing a request: create it, or find the request that the call belongs to already.

A call with a key joins the pending request of the key, gets the decision or outcome that there is, or repeats a refusal that holds for its run.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._digest import has_digest, secret_parameters, unopened
from grace_kp.approvals._people import Actor, person
from grace_kp.approvals._record import WAITER, RequestRecord, new_record, record_of
from grace_kp.approvals._request import ENTITLING, OPEN, ApprovalState
from grace_kp.approvals._standing import find_covering, reserve_use
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import ESCALATE, add_vote, close, moment, users_of, write_due
from grace_kp.errors import KeyReused, NotEntitled
from grace_kp.levels import InterventionLevel
from grace_kp.pages import printable
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._request import ApprovalRequest
    from grace_kp.approvals._transaction import Transaction

_S = ApprovalState
_ANSWERING = (*sorted(OPEN), _S.UNKNOWN, _S.DONE)
"""States in which a request of the key answers every later call."""
_WITHOUT_EFFECT = tuple(state for state in _S if state not in _ANSWERING)
"""States after which a later call of the key asks again."""
_REFUSALS = (_S.REJECTED, _S.RESPONDED, _S.SKIPPED)
MAX_EARLIER = 10
MAX_RUNS = 20
"""Runs of which the chain records that they joined a request. A job that asks every minute would fill it."""


def check_new(new: ApprovalRequest, unsealed: Mapping[str, Any] | None, *, is_lasting: bool) -> None:
    """Refuse settings that cannot be used, and secrets in the clear."""
    InterventionLevel(new.level)
    for name, seconds in (("deadline", new.deadline_seconds), ("use_within", new.use_within_seconds)):
        if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"{name} must be 0 or more seconds, or None, not {seconds!r}")
    action, groups, closed = new.on_deadline, new.groups, unopened(new.encoded)
    is_known = action in {"cancel", "skip"} or (action.startswith(ESCALATE) and action.removeprefix(ESCALATE).strip())
    _refuse(not is_known, f"on_deadline must be cancel, skip or escalate:GROUP, not {action!r:.60}")
    has_quorum = type(new.quorum) is int and new.quorum >= 1
    _refuse(not has_quorum, f"quorum must be a whole number of 1 or more, not {new.quorum!r:.60}")
    has_identity = new.identity in {"authenticated", "stated"}
    _refuse(not has_identity, f"identity must be authenticated or stated, not {new.identity!r:.60}")
    _refuse(isinstance(groups, str), f"groups must be a list of names, not the text {groups!r:.60}")
    names = ", ".join(sorted(set(new.key_fields) & set(new.sealed)))
    _refuse(names, f"a key is kept in the clear, and {names} must not be")
    names = ", ".join(sorted(set(new.sealed) - set(closed)))
    _refuse(names, f"{names} is to be kept sealed, and `encoded` holds it in the clear")
    repeated = "so that no text repeats them in the clear"
    _refuse(new.sealed and unsealed is None, f"`unsealed` is needed where arguments are sealed, {repeated}")
    if is_lasting:
        found = [*secret_parameters({name: value for name, value in new.encoded.items() if name not in closed})]
        words = [("key", new.key or ""), ("action", new.action), ("domain", new.domain)]
        words += [("groups", group) for group in groups]
        found += [name for name, word in words if redact_text(word, identifiers=False) != word]
        _refuse(found, f"{'; '.join(found[:1])} holds a secret, which must not reach the disk in the clear")


def _refuse(is_wrong: object, problem: str) -> None:
    if is_wrong:
        raise ValueError(problem)


def digest_of_key(key: str) -> str:
    """Return the digest that requests of a key are found by."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def file_request(tx: Transaction, new: ApprovalRequest, unsealed: Mapping[str, Any]) -> RequestRecord:
    """Return the record that answers a call, creating one where there is none."""
    new = replace(new, user=None if new.user is None else redact_text(new.user, identifiers=False))
    if new.key is None:
        return _create(tx, new, unsealed, None)
    key = digest_of_key(new.key)
    return _join(tx, key, new, unsealed) or _find_refusal(tx, key, new, unsealed) or _create(tx, new, unsealed, key)


# Joining


def _join(tx: Transaction, key: str, new: ApprovalRequest, unsealed: Mapping[str, Any]) -> RequestRecord | None:
    rows = tx.writes.rows(RowQuery(states=_ANSWERING, key=key, order="newest", limit=5))
    records = [write_due(tx, record_of(row)) for row in rows]
    record = next((each for each in records if each.state in _ANSWERING), None)
    if record is None:
        return None
    _check_same_call(tx, record, new, unsealed)
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
        close(tx, record, _S.CANCELLED, "withdrawn", actor=_gate(), verb="join", note=note)
        return None
    _check_user(record, new)
    record = _add_run(tx, record, new)
    if new.waits == "wait" and record.state is not _S.CLAIMED:
        waiting = tx.writes.document(WAITER, record.id)
        process = record.row.waiter if waiting is None else waiting.decode()
        own = tx.tables.hold()
        if process != own and not (process and tx.tables.is_alive(process)):
            tx.writes.put_document(WAITER, record.id, own.encode())
    return record


def _check_same_call(tx: Transaction, record: RequestRecord, new: ApprovalRequest, unsealed: Mapping[str, Any]) -> None:
    if _asks_the_same(tx, record, new, unsealed):
        return
    found, advice = (
        "has other arguments",
        "an action that is repeated needs a field in its key that tells the calls apart",
    )
    if new.version != record.data["version"]:
        before = printable(str(record.data["version"]))
        found = f"was asked for version {before} of the action, not {printable(new.version)}"
        advice = "withdraw it if it is open, or name the version in the key"
    raise KeyReused(
        f"the key {new.key!s:.200} belongs to {record.id}, which is {record.state.value} since {moment(record.row.changed)} and "
        f"{found}; {advice}",
        approval_id=record.id,
    )


def _asks_the_same(tx: Transaction, record: RequestRecord, new: ApprovalRequest, unsealed: Mapping[str, Any]) -> bool:
    """Return whether a call has the digest of a request, which may have been computed before there was a key, or with an earlier one."""
    asked = record.data["asked_digest"]
    if asked == new.digest:
        return True
    try:
        return has_digest(asked, new.action, new.version, unsealed, leave_out=new.not_covered, secret=tx.secret)
    except ValueError:  # that key is not here
        return False


def _check_user(record: RequestRecord, new: ApprovalRequest) -> None:
    """Refuse to let a run use the consent of the person whom it acts for."""
    data = record.data
    if record.state not in ENTITLING or not new.user or not (data["groups"] or data["quorum"] > 1):
        return
    if person(new.user) in {person(vote["actor"]["name"]) for vote in data["votes"]}:
        raise NotEntitled(
            f"{printable(new.user)} has consented to {record.id}, and a run for this person cannot use it: somebody else must decide",
            approval_id=record.id,
        )


def _add_run(tx: Transaction, record: RequestRecord, new: ApprovalRequest) -> RequestRecord:
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
    return _write_joined(tx, record, new, changes) if changes else record


def _find_refusal(tx: Transaction, key: str, new: ApprovalRequest, unsealed: Mapping[str, Any]) -> RequestRecord | None:
    rows = tx.writes.rows(RowQuery(states=_WITHOUT_EFFECT, key=key, order="newest", limit=MAX_EARLIER))
    for number, record in enumerate(map(record_of, rows)):
        if record.state not in _REFUSALS:
            continue
        is_same = _asks_the_same(tx, record, new, unsealed)
        holds = new.run_id is not None and new.run_id in record.data["runs"]
        if holds and (is_same or record.state is not _S.RESPONDED):
            return record
        # A caller that does not wait has not learnt of the refusal: its next call does, in whatever run.
        if number == 0 and is_same and record.data["waits"] == "raise" and not record.data["received"]:
            changes = {"runs": [*record.data["runs"], new.run_id], "received": True}
            return _write_joined(tx, record, new, changes, received=record.state.value)
    return None


def _write_joined(
    tx: Transaction, record: RequestRecord, new: ApprovalRequest, changes: dict[str, Any], **facts: object
) -> RequestRecord:
    facts = {"run": new.run_id, "level": new.level, **facts}
    return tx.write(record, record.changed(**changes), "joined", actor=_gate(), facts=facts)


# Creating


def _create(tx: Transaction, new: ApprovalRequest, unsealed: Mapping[str, Any], key: str | None) -> RequestRecord:
    # What tells an attempt from those that the receiving service must take for the same one, apart from key and arguments. An execution that was
    # reconciled as not done, or that a restored backup has lost, may have had its effect all the same. A new attempt after a failure is another
    # one: a service may answer its key with the same failure for ever.
    failed = 0 if key is None else tx.writes.count(RowQuery(states=(_S.FAILED,), key=key))
    record, contents = new_record(
        new,
        unsealed,
        key=key,
        now=tx.now,
        waiter=tx.tables.hold() if new.waits == "wait" else None,
        request=tx.next_seq,
        earlier=[] if key is None else _list_earlier(tx, key),
        attempt={"store": tx.tables.identity, "failed": failed},
    )
    facts: dict[str, Any] = {"level": new.level, "quorum": new.quorum, "groups": list(new.groups), "run": new.run_id}
    record = tx.write(None, record, "requested", actor=_gate(), facts=facts, contents=contents)
    standing = find_covering(tx, record)
    if standing is None or standing.granted_by is None:
        return record
    actor = Actor.from_dict({**standing.granted_by.to_dict(), "channel": "standing"})
    reserve_use(tx, standing, record.id)
    after, facts = record.changed(standing=standing.id), {"standing": standing.id}
    return add_vote(tx, record, after, actor, verb="approve", note=standing.note, facts=facts)


def _list_earlier(tx: Transaction, key: str) -> list[dict[str, Any]]:
    earlier = []
    for row in tx.writes.rows(RowQuery(states=_WITHOUT_EFFECT, key=key, order="newest", limit=MAX_EARLIER)):
        data = record_of(row).data
        ending = data["outcome"] or data["decision"] or {}
        at, by = ending.get("at", row.changed), ending.get("actor", {}).get("name", "")
        earlier.append({"id": row.id, "state": row.state, "at": at, "by": by, "seq": ending.get("seq")})
    return earlier


def _gate() -> Actor:
    return Actor.here("gate", channel="gate")
