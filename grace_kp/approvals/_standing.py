"""Standing approvals: consent in advance to calls of one action whose every parameter is constrained.

A constraint is an exact value, a list, a numeric range, or explicitly any value.
"""

from __future__ import annotations

import json
import math
import secrets
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import MAX_DEPTH, canonical
from grace_kp.approvals._chain import append
from grace_kp.approvals._digest import clean_note, secret_parameters
from grace_kp.approvals._record import STANDING, read_record, record_of, stored_arguments
from grace_kp.approvals._request import ENTITLING, Actor, ApprovalState
from grace_kp.approvals._tables import RowQuery
from grace_kp.approvals._transaction import DEADLINE, close, conclude, is_same_person
from grace_kp.approvals._words import json_text
from grace_kp.errors import ApprovalError, UnknownApproval, brief

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from grace_kp.approvals._record import RequestRecord
    from grace_kp.approvals._tables import Reads
    from grace_kp.approvals._transaction import Transaction


FORMS = '{"is": value}, {"in": [values]}, {"from": low, "to": high} or {"any": true}'


def problem_with(constraint: object) -> str:
    """Return what is wrong with a constraint, or an empty string."""
    if not isinstance(constraint, dict) or not constraint:
        return "is missing"
    names = set(constraint)
    if names == {"any"}:
        return "" if constraint["any"] is True else "must be true where it is `any`"
    if names == {"is"} or names == {"in"}:
        values = [constraint["is"]] if "is" in names else constraint["in"]
        if not isinstance(values, list) or not values:
            return "must list at least one value"
        try:
            canonical(values)
        except (ValueError, TypeError) as error:
            return f"holds a value that is not encoded JSON ({error})"
        return "holds a value that is nested too deeply" if _is_deep(values) else ""
    if names <= {"from", "to"}:
        bounds = {name: _number(bound) for name, bound in constraint.items()}
        if None in bounds.values():
            return "must have numbers as bounds"
        low, high = bounds.get("from"), bounds.get("to")
        return "has a lower bound above the upper one" if low is not None and high is not None and low > high else ""
    return f"has unknown fields: {', '.join(sorted(map(repr, names)))}"


def _is_inside(value: object, constraint: Mapping[str, Any]) -> bool:
    if constraint.get("any") is True:
        return True
    if "is" in constraint or "in" in constraint:
        return canonical(value) in map(canonical, constraint.get("in", [constraint.get("is")]))
    number = _number(value)
    if number is None:
        return False
    low, high = (_number(constraint[bound]) if bound in constraint else None for bound in ("from", "to"))
    return (low is None or low <= number) and (high is None or number <= high)


def _is_deep(value: object) -> bool:
    """Return whether containers are nested more deeply than in any encoded argument: a `$dict` has three per dict."""
    level = [value]
    for _ in range(3 * MAX_DEPTH + 3):
        lists = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [child for each in lists for child in each]
    return bool(level)


def _number(value: object) -> Decimal | None:
    """Return an encoded number exactly; None for other values, booleans, NaN and infinity."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in {"$int", "$decimal", "$float"}:
        value = next(iter(value.values()))
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = Decimal(value)  # type: ignore[arg-type]
    except (InvalidOperation, ValueError, TypeError):
        return None
    return number if number.is_finite() and math.isfinite(number) else None


MAX_USES = 1_000_000
MAX_SECONDS = 366 * 86_400
"""Maximum duration of a standing approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Consent in advance.

    It covers no request with a quorum above 1, at level `escalate`, with an alarm, or with parameters that have no encoding.
    """

    action: str
    """Name of the action; no glob."""
    domain: str
    parameters: Mapping[str, Mapping[str, Any]]
    """A constraint per parameter: `{"is": value}`, `{"in": [values]}`, `{"from": low, "to": high}` with one or both bounds, inclusive,
    or `{"any": True}`. Values are encoded as in `Approval.encoded`. A request must have exactly these parameters. Sealed parameters and
    parameters that the digest leaves out are covered by `any` only."""
    until: float
    """Seconds since the epoch."""
    uses: int
    """Maximum number of claims."""
    version: str | None = None
    """Covered version of the action; None for every version."""
    note: str = ""
    id: str = ""
    """Set by `RequestStore.grant`."""
    granted_by: Actor | None = None
    """Set by `RequestStore.grant`."""
    granted_at: float = 0.0
    used: int = 0
    """Number of claims so far."""
    open: tuple[str, ...] = field(default=())
    """Ids of requests that it approved and that are not claimed yet."""
    ended: str = ""
    """Reason of its end; empty while it is valid."""

    def holds(self, now: float) -> bool:
        """Return whether it can approve a request at this time."""
        return not self.ended and now < self.until and self.used + len(self.open) < self.uses

    def covers(
        self, stored: Mapping[str, Any], *, sealed: Collection[str] = (), not_covered: Collection[str] = ()
    ) -> bool:
        """Return whether every argument meets its constraint."""
        if set(stored) != set(self.parameters):
            return False
        hidden = {*sealed, *not_covered}
        return all(
            constraint.get("any") is True if name in hidden else _is_inside(stored[name], constraint)
            for name, constraint in self.parameters.items()
        )


def check_standing(standing: Standing, now: float) -> None:
    """Refuse a standing approval that cannot be used."""
    problem, uses, until = "", standing.uses, standing.until
    for name, stated in (("action", standing.action), ("domain", standing.domain)):
        if not isinstance(stated, str) or not stated.strip():
            raise ApprovalError(f"a standing approval needs the {name} that it is for, not {brief(stated)}")
    if any(character in standing.action for character in "*?["):
        problem = f"a standing approval is for one action; {brief(standing.action)} is a pattern"
    elif type(uses) is not int or not 1 <= uses <= MAX_USES:
        problem = f"uses must be a whole number from 1 to {MAX_USES:,}, not {brief(uses)}"
    elif type(until) not in {int, float} or not now < until <= now + MAX_SECONDS:
        problem = f"until must be a time after now and within {MAX_SECONDS // 86_400} days, not {brief(until)}"
    for name, constraint in standing.parameters.items():
        if wrong := problem_with(constraint):
            problem = problem or f"the constraint of {brief(name)} {wrong}; allowed are {FORMS}"
    if problem:
        raise ApprovalError(problem)


def read_standing(reads: Reads, standing_id: str) -> Standing:
    data = reads.document(STANDING, standing_id) if isinstance(standing_id, str) else None
    if data is None:
        raise ApprovalError(f"no standing approval has the id {brief(standing_id)}")
    return _from_json(data)


def all_standing(reads: Reads) -> list[Standing]:
    """Return all standing approvals, including ended ones, by the time of their grant."""
    found = [_from_json(data) for data in reads.documents(STANDING).values() if data]
    return sorted(found, key=lambda standing: (standing.granted_at, standing.id))


def _put_standing(tx: Transaction, standing: Standing) -> None:
    tx.changes += 1
    document = asdict(standing)
    document["granted_by"] = None if standing.granted_by is None else standing.granted_by.to_dict()
    tx.writes.put_document(STANDING, standing.id, json.dumps(document, separators=(",", ":")).encode())


def _from_json(data: bytes) -> Standing:
    document = json.loads(data)
    actor = document.pop("granted_by")
    return Standing(
        **{**document, "open": tuple(document["open"])}, granted_by=None if actor is None else Actor.from_dict(actor)
    )


def constraint_texts(standing: Standing) -> list[tuple[str, str]]:
    """Return the constraint of each parameter in words."""

    def words_of(constraint: Mapping[str, Any]) -> str:
        if constraint.get("any"):
            return "any value"
        if "is" in constraint:
            return json_text(constraint["is"])
        if "in" in constraint:
            return f"one of {json_text(constraint['in'])}"
        return " ".join(f"{bound} {json_text(constraint[bound])}" for bound in ("from", "to") if bound in constraint)

    return [(name, words_of(constraint)) for name, constraint in standing.parameters.items()]


# Use


def grant(tx: Transaction, standing: Standing, actor: Actor) -> Standing:
    """Record a standing approval, or return an identical one of this person."""
    check_standing(standing, tx.now)
    _check_open(tx, standing)
    wanted = replace(_terms(standing), ended="", note=clean_note(standing.note, ""))
    for other in all_standing(tx.writes):
        # Compared as strings, because 1 equals True. A form that is sent twice must not double the uses.
        if is_same_person(other.granted_by, actor) and repr(wanted) == repr(_terms(other)):
            return other
    granted = replace(wanted, id=f"st-{secrets.token_hex(6)}", granted_by=actor, granted_at=tx.now)
    _put_standing(tx, granted)
    facts = {"standing": granted.id, "action": granted.action, "until": granted.until, "uses": granted.uses}
    contents = {"parameters": granted.parameters, "note": granted.note}
    append(tx.writes, "standing_granted", at=tx.now, actor=actor, facts=facts, contents=contents)
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
            f"{', '.join(map(brief, closed))} is encrypted, and a constraint is stored in the clear; only `any` is allowed for it"
        )


def reserve_use(tx: Transaction, record: RequestRecord) -> Standing | None:
    """Reserve one use of the standing approval that covers a request and ends first, and return it; None if there is none."""
    every = all_standing(tx.writes)
    for standing in every:
        # Recorded, so that a clock that is set back does not revive it.
        if not standing.ended and tx.now >= standing.until:
            end(tx, standing, Actor.here(DEADLINE, channel=DEADLINE), "its time is over")
    if record.data["quorum"] != 1 or record.data["level"] == "escalate" or record.data["unencoded"]:
        return None
    found = [
        standing
        for standing in every
        if standing.holds(tx.now) and _is_about(tx, standing, record) and _may_grant(tx, standing, record)
    ]
    if not found:
        return None
    first = min(found, key=lambda standing: standing.until)
    _put_standing(tx, replace(first, open=(*first.open, record.id)))
    return first


def use(tx: Transaction, record: RequestRecord) -> str:
    """Count a use by a claim, or return why the standing approval cannot be used any more."""
    standing = read_standing(tx.writes, record.data["standing"])
    if standing.ended:
        return f"the standing approval {standing.id} has ended: {standing.ended}"
    if record.at(tx.now) >= standing.until:
        return f"the standing approval {standing.id} was valid until an earlier time"
    if standing.used >= standing.uses:
        return f"the standing approval {standing.id} has been used {standing.used} times, which is all it allows"
    if not _may_grant(tx, standing, record):
        return f"the author of the standing approval {standing.id} may no longer decide this action"
    _put_standing(tx, replace(standing, used=standing.used + 1))
    return ""


def give_back(tx: Transaction, record: RequestRecord) -> None:
    """Undo the count of a use whose claim was released."""
    standing = read_standing(tx.writes, record.data["standing"])
    _put_standing(tx, replace(standing, used=standing.used - 1, open=(*standing.open, record.id)))


def reject(tx: Transaction, approval_id: str, *, actor: Actor, note: str, digest: str | None) -> RequestRecord:
    """Reject a request, and end the standing approvals that cover it."""
    closed = conclude(tx, approval_id, "reject", actor=actor, note=note, digest=digest)
    is_repeated = tx.changes == tx.changes_due
    for standing in [] if is_repeated else all_standing(tx.writes):
        if not standing.ended and _is_about(tx, standing, closed):
            end(tx, standing, actor, f"{closed.id}, which it covers, was rejected")
    return closed


def end(tx: Transaction, standing: Standing, actor: Actor, reason: str) -> Standing:
    """End a standing approval and cancel requests that it approved and that are not claimed yet."""
    for approval_id in standing.open:
        try:
            record = read_record(tx.writes, approval_id)
        except UnknownApproval:  # deleted with its contents
            continue
        if record.state in ENTITLING and record.data["standing"] == standing.id:
            note = f"its standing approval {standing.id} has ended: {reason}"
            close(tx, record, ApprovalState.CANCELLED, "withdrawn", actor=actor, verb="standing", note=note)
    ended = replace(read_standing(tx.writes, standing.id), ended=reason, open=())
    _put_standing(tx, ended)
    facts, contents = {"standing": standing.id}, {"note": reason}
    append(tx.writes, "standing_ended", at=tx.now, actor=actor, facts=facts, contents=contents)
    return ended


def end_by_id(tx: Transaction, standing_id: str, actor: Actor, reason: str) -> Standing:
    """End the standing approval with an id; one that has ended stays as it is."""
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
        raise ApprovalError(f"the standing approval {standing.id} has no author")
    return not tx.rights.reason_against(tx.writes, record, standing.granted_by)
