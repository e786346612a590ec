"""The one execution that a decision entitles to: claim it, or release it before anything was done."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.approvals._actor import Actor
from grace_kp.approvals._chain import append
from grace_kp.approvals._due import observed
from grace_kp.approvals._standing_use import give_back, use
from grace_kp.approvals._states import ENTITLING, ApprovalState
from grace_kp.approvals._verbs import already, check_actor, close
from grace_kp.errors import ChangedSinceShown, NotEntitled

if TYPE_CHECKING:
    from grace_kp.approvals._approval import Approval
    from grace_kp.approvals._policy_now import PolicyNow
    from grace_kp.approvals._record import Record
    from grace_kp.approvals._turn import Turn


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run an action once."""

    token: str = field(repr=False)
    """What `settle` and `release` must present. Only its hash is stored."""
    approval: Approval


def claim(
    turn: Turn, approval_id: str, *, digest: str, version: str, policy: PolicyNow, actor: Actor
) -> tuple[str, Record]:
    """Take the one right to run the action; return the token and the record.

    If the policy is stricter now or the standing approval no longer holds, the approval is cancelled, and `turn.error` says why.
    """
    check_actor(actor)
    record = observed(turn, turn.read(approval_id))
    if record.state not in ENTITLING:
        raise already(record)
    _check_same(record, digest, version)
    _check_holder(turn, record)
    data = record.data
    asked = {name: data[name] for name in ("level", "quorum", "identity")}
    refusal = policy.stricter_than(groups=data["asked_groups"], **asked)
    if not refusal and data["standing"]:
        refusal = use(turn, record)
    if refusal:
        closed = close(
            turn, record, ApprovalState.CANCELLED, "withdrawn", actor=actor, verb="claim", note=f"{refusal}; ask again"
        )
        error = already(closed)
        error.args = (f"{error.args[0].removesuffix('; nothing was changed')}: {refusal}; ask again",)
        turn.error = error
        return "", closed
    return _claimed(turn, record, policy, actor)


def release(turn: Turn, approval_id: str, token: str) -> Record:
    """Return the right unused. The decision can be claimed again until its use-by time."""
    record = turn.read(approval_id)
    check_token(record, token)
    if record.state is not ApprovalState.CLAIMED:
        raise already(record)
    facts = {}
    if record.data["standing"]:
        give_back(turn, record)
        facts["standing"] = record.data["standing"]
    actor = Actor.from_dict(record.data["claim"]["actor"])
    after = record.changed(ApprovalState.APPROVED, claim=None, token=None)
    return turn.write(record, after, "released", actor=actor, facts=facts)


def check_token(record: Record, token: str) -> None:
    """Refuse whoever does not hold the last claim.

    Raises:
        NotEntitled: with the state of the approval.
    """
    known = record.data["token"]
    if known is None or not hmac.compare_digest(known, hash_of(token)):
        raise NotEntitled(
            f"this token does not belong to the last claim of {record.id}, which is {record.state.value}; only the claimant reports",
            approval_id=record.id,
        )


def hash_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(str(token).encode("utf-8", "replace")).hexdigest()


def _claimed(turn: Turn, record: Record, policy: PolicyNow, actor: Actor) -> tuple[str, Record]:
    token, at = secrets.token_urlsafe(32), record.at(turn.now)
    taken = {"at": at, "process": turn.office.tables.hold(), "actor": actor.to_dict()}
    after = record.changed(ApprovalState.CLAIMED, claim=taken, token=hash_of(token))
    facts = {"process": taken["process"], "policy": policy.version, "version": record.data["version"]}
    written = turn.write(record, after, "claimed", actor=actor, facts=facts)
    if record.data["standing"]:
        append(
            turn.writes,
            "standing_used",
            at=at,
            approval=written.id,
            revision=written.row.revision,
            actor=actor,
            facts={"standing": record.data["standing"]},
        )
    return token, written


def _check_holder(turn: Turn, record: Record) -> None:
    """Refuse a process that does not hold the arguments without an encoding.

    The digest does not cover them, except in a program that pauses: it makes them anew, and their lasting digest is a part of it.
    """
    names = "" if record.data["waits"] == "interrupt" else ", ".join(record.data["unencoded"])
    if names and record.data["waiter"] != turn.office.tables.hold():
        raise NotEntitled(
            f"only the process that asked holds {names} of {record.id}, and nobody else can carry it out",
            approval_id=record.id,
        )


def _check_same(record: Record, digest: str, version: str) -> None:
    found = "version of the action" if version != record.data["version"] else ""
    if digest != record.row.digest:
        found = found or "digest of the arguments"
    if found:
        raise ChangedSinceShown(
            f"the {found} is not the one that {record.id} was decided on; it does not entitle to run this",
            approval_id=record.id,
        )
