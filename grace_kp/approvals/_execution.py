"""The verbs of gates: filing a request, and the one execution that a decision permits.

A call with a key joins the pending request of the key, gets its decision or outcome, or repeats a refusal from the same run. An execution is claimed,
released before it has an effect, or settled with its outcome, which the claimant reports. If the claimant is gone, a person states the outcome.
A claim is checked under the policy in force at that time, which may be stricter than at the time of the request.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import append
from grace_kp.approvals._digest import (
    clean_note,
    has_digest,
    kept_result,
    list_sealed,
    secret_parameters,
    without_texts,
)
from grace_kp.approvals._record import (
    WAITER,
    RequestRecord,
    contents_at,
    new_record,
    read_record,
    record_of,
    texts_in_sealed,
)
from grace_kp.approvals._request import ENTITLING, OPEN, Actor, ApprovalState, person
from grace_kp.approvals._standing import all_standing, end, give_back, reserve_use, use
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import (
    add_vote,
    already_decided,
    close,
    is_same_person,
    moment,
    users_of,
    write_due,
)
from grace_kp.errors import ApprovalError, ChangedSinceShown, KeyReused, NotEntitled, brief
from grace_kp.levels import InterventionLevel
from grace_kp.pages import printable
from grace_kp.trace import redact_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.approvals._record import Approval
    from grace_kp.approvals._request import ApprovalRequest, PolicyNow
    from grace_kp.approvals._transaction import Transaction

_S = ApprovalState
_ANSWERING = (*sorted(OPEN), _S.UNKNOWN, _S.DONE)
"""States in which a request of the key answers every later call."""
_WITHOUT_EFFECT = tuple(state for state in _S if state not in _ANSWERING)
"""States after which a later call of the key asks again."""
_REFUSALS = (_S.REJECTED, _S.RESPONDED, _S.SKIPPED)
MAX_EARLIER = 10
MAX_RUNS = 20
"""Runs per request that the chain records as joined. A job that asks every minute would fill it."""


def check_new(new: ApprovalRequest, unsealed: Mapping[str, Any] | None, *, is_lasting: bool) -> None:
    """Refuse an endless deadline, and secrets in the clear."""
    closed, seconds = list_sealed(new.encoded), new.deadline_seconds
    is_endless = seconds is not None and not math.isfinite(seconds)
    _refuse(is_endless, f"deadline must be a finite number of seconds, or None, not {seconds!r}")
    names = ", ".join(sorted(set(new.key_fields) & set(new.sealed)))
    _refuse(names, f"a key is kept in the clear, and {names} must not be")
    names = ", ".join(sorted(set(new.sealed) - set(closed)))
    _refuse(names, f"{names} must be sealed, and `encoded` holds it in the clear")
    _refuse(
        new.sealed and unsealed is None, "`unsealed` is needed to remove sealed values from the rest of the request"
    )
    if is_lasting:
        found = [*secret_parameters({name: value for name, value in new.encoded.items() if name not in closed})]
        words = [("key", new.key or ""), ("action", new.action), ("domain", new.domain)]
        words += [("groups", group) for group in new.groups]
        found += [name for name, word in words if redact_text(word, identifiers=False) != word]
        _refuse(found, f"{'; '.join(found[:1])} holds a secret, which must not reach the disk in the clear")


def _refuse(is_wrong: object, problem: str) -> None:
    if is_wrong:
        raise ValueError(problem)


def hash_of(text: str) -> str:
    """Return the hash under which a key, or the token of a claim, is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_request(tx: Transaction, new: ApprovalRequest, unsealed: Mapping[str, Any]) -> RequestRecord:
    """Return the record that answers a call, creating one where there is none."""
    new = replace(new, user=None if new.user is None else redact_text(new.user, identifiers=False))
    if new.key is None:
        return _create(tx, new, unsealed, None)
    key = hash_of(new.key)
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
    note = ""
    if record.state in ENTITLING and record.data["standing"] and new.level == InterventionLevel.ESCALATE.value:
        note = "a later call of this operation is at level escalate; no standing approval covers it"
    elif record.state is not _S.CLAIMED and not _shows_alarms(tx, record, new):
        note = "a later call of this operation raised an alarm that this request does not show"
    if note:
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
    found, advice = "has other arguments", "a repeated action needs a field in its key that tells the calls apart"
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
    """Return whether a call has the digest of a request, which may have been computed without a key, or with an earlier one."""
    asked = record.data["asked_digest"]
    if asked == new.digest:
        return True
    try:
        return has_digest(asked, new.action, new.version, unsealed, leave_out=new.not_covered, secret=tx.secret)
    except ValueError:  # that key is not here
        return False


def _shows_alarms(tx: Transaction, record: RequestRecord, new: ApprovalRequest) -> bool:
    facts = (contents_at(tx.writes, record.data["request"]) or {}).get("facts") or {}
    return all(alarm in facts.get("alarms", ()) for alarm in new.facts.get("alarms") or ())


def _check_user(record: RequestRecord, new: ApprovalRequest) -> None:
    """Refuse to let a run use the consent of the person whom it acts for."""
    data = record.data
    if record.state not in ENTITLING or not new.user or not (data["groups"] or data["quorum"] > 1):
        return
    if person(new.user) in {person(vote["actor"]["name"]) for vote in data["votes"]}:
        raise NotEntitled(
            f"{printable(new.user)} has consented to {record.id}, and a run for this person cannot use it: another person must decide",
            approval_id=record.id,
        )


def _add_run(tx: Transaction, record: RequestRecord, new: ApprovalRequest) -> RequestRecord:
    """Record the run that joins, its user, who then may not decide, and its level if that is stricter."""
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
        # A caller that did not wait has not seen the refusal. Its next call gets it, in any run.
        if number == 0 and is_same and record.data["waits"] == "raise" and not record.data["received"]:
            changes = {"runs": [*record.data["runs"], new.run_id], "received": True}
            return _write_joined(tx, record, new, changes, received=record.state.value)
    return None


def _write_joined(
    tx: Transaction, record: RequestRecord, new: ApprovalRequest, changes: dict[str, Any], **facts: object
) -> RequestRecord:
    facts = {"run": new.run_id, "level": new.level, **facts}
    return tx.write(record, record.revise(**changes), "joined", actor=_gate(), facts=facts)


# Creating


def _create(tx: Transaction, new: ApprovalRequest, unsealed: Mapping[str, Any], key: str | None) -> RequestRecord:
    # An attempt after a failure gets another idempotency key, because services repeat a failure for the same key. All other attempts share
    # one: an execution that was reconciled as not done, or that a restored backup has lost, may have had its effect.
    failed = 0 if key is None else tx.writes.count(RowQuery(states=(_S.FAILED,), key=key))
    record, contents = new_record(
        new,
        unsealed,
        key=key,
        now=tx.now,
        waiter=tx.tables.hold() if new.waits == "wait" else None,
        request=tx.next_seq,
        earlier=[] if key is None else _list_earlier(tx, key),
        attempt={"store": tx.writes.identity, "failed": failed},
    )
    facts: dict[str, Any] = {"level": new.level, "quorum": new.quorum, "groups": list(new.groups), "run": new.run_id}
    record = tx.write(None, record, "requested", actor=_gate(), facts=facts, contents=contents)
    standing = None if new.facts.get("alarms") else reserve_use(tx, record)
    if standing is None or standing.granted_by is None:
        return record
    actor = Actor.from_dict({**standing.granted_by.to_dict(), "channel": "standing"})
    after, facts = record.revise(standing=standing.id), {"standing": standing.id}
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


# The execution


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run an action once."""

    token: str = field(repr=False)
    """Needed for `settle` and `release`. Only its hash is stored."""
    approval: Approval


def claim(tx: Transaction, approval_id: str, *, digest: str, version: str, policy: PolicyNow, actor: Actor) -> Claim:
    """Take the one right to run the action.

    If the policy is stricter now or the standing approval has ended, the approval is cancelled, and `tx.error` holds the reason.
    """
    record = tx.read_due(approval_id)
    if record.state not in ENTITLING:
        raise already_decided(record)
    _check_call(tx, record, digest, version)
    data = record.data
    asked = {name: data[name] for name in ("level", "quorum", "identity")}
    refusal = policy.stricter_than(groups=data["asked_groups"], **asked)
    if not refusal and data["standing"]:
        refusal = use(tx, record)
    if refusal:
        note = f"{refusal}; ask again"
        closed = close(tx, record, _S.CANCELLED, "withdrawn", actor=actor, verb="claim", note=note)
        tx.error = already_decided(closed, ending=f": {note}")
        return Claim("", tx.show(closed))
    token, at, standing = secrets.token_urlsafe(32), record.at(tx.now), data["standing"]
    taken = {"at": at, "process": tx.tables.hold(), "actor": actor.to_dict()}
    after = record.revise(_S.CLAIMED, claim=taken, token=hash_of(token))
    facts = {"process": taken["process"], "policy": policy.version, "version": data["version"]}
    written = tx.write(record, after, "claimed", actor=actor, facts=facts)
    if standing:
        facts, revision = {"standing": standing}, written.row.revision
        append(tx.writes, "standing_used", at=at, approval=written.id, revision=revision, actor=actor, facts=facts)
    return Claim(token, tx.show(written))


def release(tx: Transaction, approval_id: str, token: str) -> RequestRecord:
    """Give an unused claim back. The decision can be claimed again until its use-by time."""
    record = read_record(tx.writes, approval_id)
    _check_token(record, token)
    if record.state is not _S.CLAIMED:
        raise already_decided(record)
    facts = {}
    if record.data["standing"]:
        give_back(tx, record)
        facts["standing"] = record.data["standing"]
    actor = Actor.from_dict(record.data["claim"]["actor"])
    after = record.revise(_S.APPROVED, claim=None, token=None)
    return tx.write(record, after, "released", actor=actor, facts=facts)


def _check_token(record: RequestRecord, token: str) -> None:
    known = record.data["token"]
    if known is None or not hmac.compare_digest(known, hash_of(str(token))):
        raise NotEntitled(
            f"this token does not belong to the last claim of {record.id}, which is {record.state.value}; only the claimant reports",
            approval_id=record.id,
        )


def _check_call(tx: Transaction, record: RequestRecord, digest: str, version: str) -> None:
    # A program that pauses creates objects without an encoding again, and its digest covers them, so that any process may claim.
    found = "version of the action" if version != record.data["version"] else ""
    if digest != record.row.digest:
        found = found or "digest of the arguments"
    if found:
        raise ChangedSinceShown(
            f"the {found} differs from that of {record.id}, which does not permit this call",
            approval_id=record.id,
        )
    names = "" if record.data["waits"] == "interrupt" else ", ".join(record.data["unencoded"])
    if names and record.data["waiter"] != tx.tables.hold():
        raise NotEntitled(
            f"only the process that asked holds {names} of {record.id}, and no other process can carry it out",
            approval_id=record.id,
        )


REPORTS = frozenset({_S.DONE, _S.FAILED, _S.UNKNOWN})


def settle(
    tx: Transaction, approval_id: str, token: str, *, state: str, result: object, has_result: bool, error: str
) -> RequestRecord:
    """Record the report of a claimant; after a reconciliation, only in the chain."""
    if not isinstance(state, str) or state not in REPORTS:
        raise ApprovalError(
            f"the outcome must be done, failed or unknown, not {brief(state)}", approval_id=str(approval_id)
        )
    report = _S(state)
    record = read_record(tx.writes, approval_id)
    _check_token(record, token)
    outcome = record.data["outcome"]
    if record.state is report and outcome is not None and not outcome["reconciled"]:
        return record
    claimant = Actor.from_dict(record.data["claim"]["actor"])
    if record.state not in {_S.CLAIMED, _S.UNKNOWN} or (record.state is _S.UNKNOWN and report is _S.UNKNOWN):
        if record.state is _S.UNKNOWN or record.data["late"] == report.value:
            return record  # recorded already
        facts = {"reported": report.value, "error": _error(tx, record, error)}
        return tx.write(record, record.revise(late=report.value), "late_report", actor=claimant, facts=facts)
    contents = {"result": result} if has_result and _can_be_kept(tx, record, result) else None
    return _with_outcome(tx, record, report, "settled", actor=claimant, contents=contents, error=error)


def reconcile(
    tx: Transaction, approval_id: str, *, actor: Actor, happened: bool, note: str, revision: int | None
) -> RequestRecord:
    """Record whether an action with an unknown outcome has happened, as a person states."""
    if not isinstance(happened, bool):
        raise ApprovalError(f"happened must be True or False, not {brief(happened)}", approval_id=str(approval_id))
    note = clean_note(note, approval_id)
    shown = read_record(tx.writes, approval_id)
    record = write_due(tx, shown)
    state = _S.DONE if happened else _S.NOT_DONE
    outcome = record.data["outcome"]
    if record.state is state and outcome["reconciled"] and is_same_person(Actor.from_dict(outcome["actor"]), actor):
        return record
    if record.state is _S.PENDING or record.state in ENTITLING:
        raise already_decided(record, f"is {record.state.value} and was not started; nothing was changed")
    if record.state not in {_S.CLAIMED, _S.UNKNOWN}:
        raise already_decided(record)
    if revision not in {None, shown.row.revision}:
        raise ChangedSinceShown(
            f"{record.id} has changed since it was shown, and may have been started again; look at it again",
            approval_id=record.id,
        )
    tx.rights.check(tx.writes, record, actor)
    claim = record.data["claim"]
    # Without a claim it was marked after a restore, and its claimant is not known.
    alive = None if claim is None else tx.tables.is_alive(claim["process"])
    if alive and (record.state is _S.CLAIMED or not happened):
        problem = f"was claimed at {moment(claim['at'])} by a process that still runs ({claim['process']})"
        raise already_decided(record, f"{problem}; wait for its report or stop the process, then reconcile")
    if record.state is _S.CLAIMED:
        lost = "the lease of the process that carried it out has expired"
        record = _with_outcome(tx, record, _S.UNKNOWN, "settled", actor=actor, contents={"note": lost})
    facts = {"happened": happened, "claimant": "may only be paused" if alive is None else "is gone"}
    contents = {"note": tx.hide_sealed(record, note)}
    return _with_outcome(tx, record, state, "reconciled", actor=actor, contents=contents, facts=facts)


def mark_restored(tx: Transaction, actor: Actor) -> int:
    """Mark all requests that may have run in the lost part of the history as unknown; return their number."""
    states = (_S.APPROVED, _S.EDITED, _S.CLAIMED)
    rows = tx.writes.rows(RowQuery(states=states, limit=None))
    note = "the store was restored from a backup; whether this was carried out afterwards is not known"
    for row in rows:
        _with_outcome(tx, record_of(row), _S.UNKNOWN, "restored", actor=actor, contents={"note": note})
    for standing in all_standing(tx.writes):
        if not standing.ended:
            end(tx, standing, actor, "the store was restored from a backup, and uses since then are not known")
    append(tx.writes, "restored", at=tx.now, actor=actor, facts={"marked": len(rows)})
    return len(rows)


def _with_outcome(
    tx: Transaction,
    record: RequestRecord,
    state: ApprovalState,
    kind: str,
    *,
    actor: Actor,
    contents: dict[str, Any] | None = None,
    error: str = "",
    facts: dict[str, Any] | None = None,
) -> RequestRecord:
    outcome = {
        "state": state.value,
        "at": record.at(tx.now),
        "actor": actor.to_dict(),
        "error": _error(tx, record, error),
        "seq": tx.next_seq if contents else None,
        "reconciled": kind == "reconciled",
    }
    after = record.revise(state, outcome=outcome)
    return tx.write(record, after, kind, actor=actor, facts=facts, contents=contents)


def _can_be_kept(tx: Transaction, record: RequestRecord, result: object) -> bool:
    """Return whether a result can be stored: it repeats no sealed argument, and all of these could be opened for the comparison."""
    if not kept_result(result):
        return False
    texts, are_all = texts_in_sealed(tx.writes, tx.secret, record)
    return are_all and bool(without_texts(result, texts) == result)


def _error(tx: Transaction, record: RequestRecord, error: str) -> str:
    return tx.hide_sealed(record, clean_note(error[:200], record.id, what="error"))
