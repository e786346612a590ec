"""The one execution that a decision entitles to: its claim, its release before anything was done, and its outcome.

The outcome is the report of the claimant, or the statement of a person where nobody knows. A claim is checked under the policy that is in force then,
which may be stricter than the one that the approval was asked under.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._chain import append
from grace_kp.approvals._digest import clean_note, kept_result, without_texts
from grace_kp.approvals._people import Actor
from grace_kp.approvals._record import record_of, texts_in_sealed
from grace_kp.approvals._request import ENTITLING, ApprovalState
from grace_kp.approvals._standing import all_standing, end, give_back, use
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import already_decided, check_actor, close, is_same_person, moment, write_due
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, NotEntitled, brief
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Collection

    from grace_kp.approvals._record import Approval, RequestRecord
    from grace_kp.approvals._transaction import Transaction


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run an action once."""

    token: str = field(repr=False)
    """What `settle` and `release` must present. Only its hash is stored."""
    approval: Approval


def claim(
    tx: Transaction, approval_id: str, *, digest: str, version: str, policy: PolicyNow, actor: Actor
) -> tuple[str, RequestRecord]:
    """Take the one right to run the action; return the token and the record.

    If the policy is stricter now or the standing approval no longer holds, the approval is cancelled, and `tx.error` says why.
    """
    check_actor(actor)
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
        closed = close(tx, record, ApprovalState.CANCELLED, "withdrawn", actor=actor, verb="claim", note=note)
        error = already_decided(closed)
        error.args = (f"{error.args[0].removesuffix('; nothing was changed')}: {note}",)
        tx.error = error
        return "", closed
    return _take(tx, record, policy, actor)


def release(tx: Transaction, approval_id: str, token: str) -> RequestRecord:
    """Return the right unused. The decision can be claimed again until its use-by time."""
    record = tx.read(approval_id)
    _check_token(record, token)
    if record.state is not ApprovalState.CLAIMED:
        raise already_decided(record)
    facts = {}
    if record.data["standing"]:
        give_back(tx, record)
        facts["standing"] = record.data["standing"]
    actor = Actor.from_dict(record.data["claim"]["actor"])
    after = record.changed(ApprovalState.APPROVED, claim=None, token=None)
    return tx.write(record, after, "released", actor=actor, facts=facts)


def _check_token(record: RequestRecord, token: str) -> None:
    known = record.data["token"]
    if known is None or not hmac.compare_digest(known, _hash_of(token)):
        raise NotEntitled(
            f"this token does not belong to the last claim of {record.id}, which is {record.state.value}; only the claimant reports",
            approval_id=record.id,
        )


def _hash_of(token: str) -> str:
    return hashlib.sha256(str(token).encode("utf-8", "replace")).hexdigest()


def _take(tx: Transaction, record: RequestRecord, policy: PolicyNow, actor: Actor) -> tuple[str, RequestRecord]:
    token, at, standing = secrets.token_urlsafe(32), record.at(tx.now), record.data["standing"]
    taken = {"at": at, "process": tx.tables.hold(), "actor": actor.to_dict()}
    after = record.changed(ApprovalState.CLAIMED, claim=taken, token=_hash_of(token))
    facts = {"process": taken["process"], "policy": policy.version, "version": record.data["version"]}
    written = tx.write(record, after, "claimed", actor=actor, facts=facts)
    if standing:
        facts, revision = {"standing": standing}, written.row.revision
        append(tx.writes, "standing_used", at=at, approval=written.id, revision=revision, actor=actor, facts=facts)
    return token, written


def _check_call(tx: Transaction, record: RequestRecord, digest: str, version: str) -> None:
    """Refuse a call that is not the one which was decided on, and a process that does not hold the arguments without an encoding.

    The digest does not cover these, except in a program that pauses: it makes them anew, and their lasting digest is a part of it.
    """
    found = "version of the action" if version != record.data["version"] else ""
    if digest != record.row.digest:
        found = found or "digest of the arguments"
    if found:
        raise ChangedSinceShown(
            f"the {found} is not the one that {record.id} was decided on; it does not entitle to run this",
            approval_id=record.id,
        )
    names = "" if record.data["waits"] == "interrupt" else ", ".join(record.data["unencoded"])
    if names and record.data["waiter"] != tx.tables.hold():
        raise NotEntitled(
            f"only the process that asked holds {names} of {record.id}, and no other process can carry it out",
            approval_id=record.id,
        )


_S = ApprovalState
REPORTS = frozenset({_S.DONE, _S.FAILED, _S.UNKNOWN})


def settle(
    tx: Transaction, approval_id: str, token: str, *, state: str, result: object, has_result: bool, error: str
) -> RequestRecord:
    """Write the report of a claimant. After a reconciliation it is recorded in the chain only."""
    if not isinstance(state, str) or state not in REPORTS:
        raise ApprovalError(
            f"the outcome must be done, failed or unknown, not {brief(state)}", approval_id=str(approval_id)
        )
    report = _S(state)
    record = tx.read(approval_id)
    _check_token(record, token)
    outcome = record.data["outcome"]
    if record.state is report and outcome is not None and not outcome["reconciled"]:
        return record
    claimant = Actor.from_dict(record.data["claim"]["actor"])
    if record.state not in {_S.CLAIMED, _S.UNKNOWN} or (record.state is _S.UNKNOWN and report is _S.UNKNOWN):
        if record.state is _S.UNKNOWN or record.data["late"] == report.value:
            return record  # it changes nothing, and is recorded already
        facts = {"reported": report.value, "error": _error(tx, record, error)}
        return tx.write(record, record.changed(late=report.value), "late_report", actor=claimant, facts=facts)
    contents = {"result": result} if has_result and _can_be_kept(tx, record, result) else None
    return _with_outcome(tx, record, report, "settled", actor=claimant, contents=contents, error=error)


def reconcile(
    tx: Transaction, approval_id: str, *, actor: Actor, happened: bool, note: str, revision: int | None
) -> RequestRecord:
    """Write what a person states about an action whose outcome is unknown."""
    check_actor(actor)
    if not isinstance(happened, bool):
        raise ApprovalError(f"happened must be True or False, not {brief(happened)}", approval_id=str(approval_id))
    note = clean_note(note, approval_id)
    shown = tx.read(approval_id)
    record = write_due(tx, shown)
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
        raise already_decided(record)
    if revision not in {None, shown.row.revision}:
        raise ChangedSinceShown(
            f"{record.id} has changed since it was shown, and may have been started again; look at it again",
            approval_id=record.id,
        )
    tx.rights.check(tx.writes, record, actor)
    claim = record.data["claim"]
    # Without a claim it was marked after a restore: the history with its claimant is lost.
    alive = None if claim is None else tx.tables.is_alive(claim["process"])
    if alive and (record.state is _S.CLAIMED or not happened):
        raise AlreadyDecided(
            f"{record.id} was claimed at {moment(claim['at'])} by a process that still runs ({claim['process']}); wait for its report or "
            "stop the process, then reconcile",
            approval_id=record.id,
            state=record.state.value,
            by=claim["actor"]["name"],
            at=claim["at"],
        )
    if record.state is _S.CLAIMED:
        lost = "the lease of the process that carried it out has expired"
        record = _with_outcome(tx, record, _S.UNKNOWN, "settled", actor=actor, contents={"note": lost})
    facts = {"happened": happened, "claimant": "may only be paused" if alive is None else "is gone"}
    contents = {"note": tx.hide_sealed(record, note)}
    return _with_outcome(tx, record, state, "reconciled", actor=actor, contents=contents, facts=facts)


def restored(tx: Transaction, actor: Actor) -> int:
    """Mark everything that may have run in the lost part of the history; return how many approvals were marked."""
    check_actor(actor)
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
    after = record.changed(state, outcome=outcome)
    return tx.write(record, after, kind, actor=actor, facts=facts, contents=contents)


def _can_be_kept(tx: Transaction, record: RequestRecord, result: object) -> bool:
    """Return whether a result is kept: not where it repeats a sealed argument, or cannot be compared with one that has no key here."""
    if not kept_result(result):
        return False
    texts, are_all = texts_in_sealed(tx.writes, tx.secret, record)
    return are_all and bool(without_texts(result, texts) == result)


def _error(tx: Transaction, record: RequestRecord, error: str) -> str:
    return tx.hide_sealed(record, clean_note(error[:200], record.id, what="error"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNow:
    """What the policy of an action requires now."""

    denies: bool = False
    """Whether the action is forbidden."""
    floor: str | None = None
    """The mildest level that the action can have; None for any."""
    groups: tuple[str, ...] = ()
    """Groups whose members may decide; empty for anybody."""
    quorum: int = 1
    identity: str = "stated"
    """Whose votes a quorum above 1 counts: of `authenticated` people alone, or also names that were only `stated`."""
    version: str = ""

    def stricter_than(self, *, level: str, groups: Collection[str], quorum: int, identity: str) -> str:
        """Return in what this policy is stricter than one with these settings; empty where it is not.

        A group is stricter where it excludes somebody who could decide: any group instead of none, or fewer groups.
        """
        if self.denies:
            return "the policy forbids the action now"
        if self.floor is not None and InterventionLevel(self.floor).severity > InterventionLevel(level).severity:
            return f"the policy requires {self.floor} now, and the decision was asked for at {level}"
        if self.quorum > quorum:
            return f"the policy requires {self.quorum} people now, and the decision needed {quorum}"
        if self.quorum > 1 and self.identity != identity == "stated":
            return "the policy counts authenticated people alone now"
        if self.groups and (not groups or not set(groups) <= set(self.groups)):
            return f"the policy requires a member of {' or '.join(self.groups)} now"
        return ""
