"""Standing approvals at work: granting, finding one for a request, use by a claim, and their end."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from grace_kp.approvals._chain import append
from grace_kp.approvals._people import Actor
from grace_kp.approvals._record import record_of, stored_arguments
from grace_kp.approvals._request import ENTITLING, ApprovalState
from grace_kp.approvals._seal import clean_note, secret_parameters
from grace_kp.approvals._standing import all_standing, check_standing, put_standing, read_standing
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import DEADLINE, check_actor, close, is_same_person
from grace_kp.errors import ApprovalError, NotEntitled, UnknownApproval, brief

if TYPE_CHECKING:
    from grace_kp.approvals._record import RequestRecord
    from grace_kp.approvals._standing import Standing
    from grace_kp.approvals._transaction import Transaction


def grant(tx: Transaction, standing: Standing, actor: Actor) -> Standing:
    """Record a standing approval; return the one that there is if this person has granted the very same, until the same moment."""
    check_actor(actor)
    check_standing(standing, tx.now)
    _check_open(tx, standing)
    wanted = replace(_terms(standing), ended="", note=clean_note(standing.note, ""))
    for other in all_standing(tx.writes):
        # As text, because 1 equals True. A form that is sent twice must not double the uses.
        if is_same_person(other.granted_by, actor) and repr(wanted) == repr(_terms(other)):
            return other
    granted = replace(wanted, id=f"st-{secrets.token_hex(6)}", granted_by=actor, granted_at=tx.now)
    put_standing(tx.writes, granted)
    facts = {"standing": granted.id, "action": granted.action, "until": granted.until, "uses": granted.uses}
    contents = {"parameters": granted.parameters, "note": granted.note}
    append(tx.writes, "standing_granted", at=tx.now, actor=actor, facts=facts, contents=contents)
    tx.changes += 1
    return granted


def _terms(standing: Standing) -> Standing:
    return replace(standing, id="", granted_by=None, granted_at=0.0, used=0, open=())


def _check_open(tx: Transaction, standing: Standing) -> None:
    """Refuse constraints that would keep a secret in the clear."""
    values = {name: dict(constraint) for name, constraint in standing.parameters.items() if "any" not in constraint}
    stated = {name: [each.get("is"), *each.get("in", ())] for name, each in values.items()}
    secrets_in = {name for name, forms in stated.items() for form in forms if secret_parameters({name: form})}
    newest = tx.writes.rows(RowQuery(action=standing.action, domain=standing.domain, order="newest", limit=1))
    sealed = {name for row in newest for name in record_of(row).data["sealed"]}
    closed = sorted(secrets_in | (sealed & values.keys()))
    if closed:
        raise ApprovalError(
            f"{', '.join(map(brief, closed))} is kept encrypted, and a constraint is kept in the clear; only `any` is allowed for it"
        )


def find_covering(tx: Transaction, record: RequestRecord) -> Standing | None:
    """Return a standing approval that consents to a request; the one that ends first, if there are several.

    One whose time is over is ended, so that a clock that is set back does not revive it.
    """
    for standing in all_standing(tx.writes):
        if not standing.ended and tx.now >= standing.until:
            end(tx, standing, Actor.here(DEADLINE, channel=DEADLINE), "its time is over")
    if record.data["quorum"] != 1 or record.data["level"] == "escalate" or record.data["unencoded"]:
        return None
    found = [
        standing
        for standing in all_standing(tx.writes)
        if standing.holds(tx.now) and _is_about(tx, standing, record) and _may_grant(tx, standing, record)
    ]
    return min(found, key=lambda standing: standing.until) if found else None


def reserve_use(tx: Transaction, standing: Standing, approval_id: str) -> None:
    """Note that a standing approval has approved a request, which reserves one use."""
    tx.changes += 1
    put_standing(tx.writes, replace(standing, open=(*standing.open, approval_id)))


def use(tx: Transaction, record: RequestRecord) -> str:
    """Count the use of a standing approval by a claim; return why it cannot be used any more, and count nothing then."""
    standing = read_standing(tx.writes, record.data["standing"])
    if standing.ended:
        return f"the standing approval {standing.id} has ended: {standing.ended}"
    if record.at(tx.now) >= standing.until:
        return f"the standing approval {standing.id} held until an earlier time"
    if standing.used >= standing.uses:
        return f"the standing approval {standing.id} has been used {standing.used} times, which is all it allows"
    if not _may_grant(tx, standing, record):
        return f"the author of the standing approval {standing.id} may no longer decide this action"
    tx.changes += 1
    put_standing(tx.writes, replace(standing, used=standing.used + 1))
    return ""


def give_back(tx: Transaction, record: RequestRecord) -> None:
    """Undo the count of a use whose claim was released before anything was done."""
    standing = read_standing(tx.writes, record.data["standing"])
    tx.changes += 1
    put_standing(tx.writes, replace(standing, used=standing.used - 1, open=(*standing.open, record.id)))


def end_covering(tx: Transaction, record: RequestRecord, actor: Actor) -> None:
    """End the standing approvals that cover a request which a person has rejected."""
    for standing in all_standing(tx.writes):
        if not standing.ended and _is_about(tx, standing, record):
            end(tx, standing, actor, f"{record.id}, which it covers, was rejected")


def end(tx: Transaction, standing: Standing, actor: Actor, reason: str) -> Standing:
    """End a standing approval and cancel what it approved and nobody has claimed."""
    for approval_id in standing.open:
        try:
            record = tx.read(approval_id)
        except UnknownApproval:  # deleted with its contents
            continue
        if record.state in ENTITLING and record.data["standing"] == standing.id:
            note = f"its standing approval {standing.id} has ended: {reason}"
            close(tx, record, ApprovalState.CANCELLED, "withdrawn", actor=actor, verb="standing", note=note)
    ended = replace(read_standing(tx.writes, standing.id), ended=reason, open=())
    put_standing(tx.writes, ended)
    append(
        tx.writes,
        "standing_ended",
        at=tx.now,
        actor=actor,
        facts={"standing": standing.id},
        contents={"note": reason},
    )
    tx.changes += 1
    return ended


def end_by_id(tx: Transaction, standing_id: str, actor: Actor, reason: str) -> Standing:
    """End the standing approval with an id; one that has ended stays as it is."""
    check_actor(actor)
    standing = read_standing(tx.writes, standing_id)
    if standing.ended:
        return standing
    return end(tx, standing, actor, clean_note(reason, "", what="reason") or f"ended by {actor.name}")


def _is_about(tx: Transaction, standing: Standing, record: RequestRecord) -> bool:
    row, data = record.row, record.data
    if (standing.action, standing.domain) != (row.action, row.domain):
        return False
    if standing.version is not None and standing.version != data["version"]:
        return False
    stored = stored_arguments(tx.writes, record)
    return stored is not None and standing.covers(stored, sealed=data["sealed"], not_covered=data["not_covered"])


def _may_grant(tx: Transaction, standing: Standing, record: RequestRecord) -> bool:
    if standing.granted_by is None:
        raise ApprovalError(f"the standing approval {standing.id} names nobody who granted it")
    try:
        tx.rights.check(tx.writes, record, standing.granted_by)
    except NotEntitled:
        return False
    return True
