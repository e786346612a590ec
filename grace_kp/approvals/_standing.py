"""Standing approvals: consent in advance to calls of one action whose every parameter is constrained.

A constraint is an exact value, a list, a numeric range, or explicitly any value. `_standing_use` grants, uses and ends standing approvals.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._arguments import MAX_DEPTH, canonical
from grace_kp.approvals._people import Actor
from grace_kp.errors import ApprovalError, brief

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from grace_kp.approvals._tables import Reads, Writes


FORMS = '{"is": value}, {"in": [values]}, {"from": low, "to": high} or {"any": true}'


def problem_with(constraint: object) -> str:
    """Return what is wrong with a constraint; empty where nothing is."""
    if not isinstance(constraint, dict) or not constraint:
        return "is missing"
    names = set(constraint)
    if names == {"any"}:
        return "" if constraint["any"] is True else "must be true where it is `any`"
    if names == {"is"} or names == {"in"}:
        values = [constraint["is"]] if "is" in names else constraint["in"]
        if not isinstance(values, list) or not values:
            return "must list at least one value"
        if _is_deep(values):
            return "holds a value that is nested too deeply"
        try:
            canonical(values)
        except (ValueError, TypeError) as error:
            return f"holds a value that is no encoded JSON ({error})"
        return ""
    if names <= {"from", "to"}:
        bounds = {name: _number(bound) for name, bound in constraint.items()}
        if None in bounds.values():
            return "must have numbers as bounds"
        low, high = bounds.get("from"), bounds.get("to")
        return "has a lower bound above the upper one" if low is not None and high is not None and low > high else ""
    return f"has unknown fields: {', '.join(sorted(map(repr, names)))}"


def is_inside(value: object, constraint: Mapping[str, Any]) -> bool:
    """Return whether an encoded value is inside of a constraint."""
    if constraint.get("any") is True:
        return True
    if "is" in constraint or "in" in constraint:
        values = [constraint["is"]] if "is" in constraint else constraint["in"]
        return canonical(value) in {canonical(each) for each in values}
    number = _number(value)
    if number is None:
        return False
    low, high = (_number(constraint[bound]) if bound in constraint else None for bound in ("from", "to"))
    return (low is None or low <= number) and (high is None or number <= high)


def _is_deep(value: object) -> bool:
    """Return whether more containers stand inside of each other than in any encoded argument: three in each dict that becomes a `$dict`."""
    level = [value]
    for _ in range(3 * MAX_DEPTH + 3):
        lists = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [child for each in lists for child in each]
    return bool(level)


def _number(value: object) -> Decimal | None:
    """Return an encoded number exactly; None for everything else, also for truth values, NaN and infinity."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in {"$int", "$decimal", "$float"}:
        value = next(iter(value.values()))
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = Decimal(value)  # type: ignore[arg-type]
    except (InvalidOperation, ValueError, TypeError):
        return None
    return number if number.is_finite() and math.isfinite(number) else None


DOCUMENT = "standing"
"""Kind of the documents that hold standing approvals."""
MAX_USES = 1_000_000
MAX_SECONDS = 366 * 86_400
"""The longest time that a standing approval can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Consent in advance.

    It covers no request with a quorum above 1, at level `escalate`, or with parameters that have no encoding.
    """

    action: str
    """Name of the action; no glob."""
    domain: str
    parameters: Mapping[str, Mapping[str, Any]]
    """A constraint per parameter: `{"is": value}`, `{"in": [values]}`, `{"from": low, "to": high}` with one or both bounds, inclusive,
    or `{"any": True}`. Values are encoded as in `Approval.encoded`. A request with another parameter is not covered. Sealed parameters and
    those that the digest leaves out are covered by `any` only."""
    until: float
    """Seconds since the epoch."""
    uses: int
    """At most this many claims."""
    version: str | None = None
    """Version of the action that it is limited to; None for every version."""
    note: str = ""
    id: str = ""
    """Set by `RequestStore.grant`."""
    granted_by: Actor | None = None
    """Set by `RequestStore.grant`."""
    granted_at: float = 0.0
    used: int = 0
    """Number of claims so far."""
    open: tuple[str, ...] = field(default=())
    """Ids of the approvals that it approved and nobody has claimed yet."""
    ended: str = ""
    """Why it ended; empty while it holds."""

    def holds(self, now: float) -> bool:
        """Return whether it can approve or be used at this time."""
        return not self.ended and now < self.until and self.used + len(self.open) < self.uses

    def covers(
        self, stored: Mapping[str, Any], *, sealed: Collection[str] = (), not_covered: Collection[str] = ()
    ) -> bool:
        """Return whether every argument is inside of its constraint."""
        if set(stored) != set(self.parameters):
            return False
        hidden = {*sealed, *not_covered}
        return all(
            constraint.get("any") is True if name in hidden else is_inside(stored[name], constraint)
            for name, constraint in self.parameters.items()
        )


def check_standing(standing: Standing, now: float) -> None:
    """Refuse a standing approval that cannot be used."""
    for name, text in (("action", standing.action), ("domain", standing.domain)):
        if not isinstance(text, str) or not text.strip():
            raise ApprovalError(f"a standing approval needs the {name} that it is for, not {brief(text)}")
    if any(character in standing.action for character in "*?["):
        raise ApprovalError(f"a standing approval is for one action; {brief(standing.action)} is a pattern")
    uses: object = standing.uses
    if type(uses) is not int or not 1 <= uses <= MAX_USES:
        raise ApprovalError(f"uses must be a whole number from 1 to {MAX_USES:,}, not {brief(uses)}")
    until: object = standing.until
    if isinstance(until, bool) or not isinstance(until, int | float) or not now < until <= now + MAX_SECONDS:
        raise ApprovalError(
            f"until must be a time after now and within {MAX_SECONDS // 86_400} days, not {brief(until)}"
        )
    for name, constraint in standing.parameters.items():
        problem = problem_with(constraint)
        if problem:
            raise ApprovalError(f"the constraint of {brief(name)} {problem}; allowed are {FORMS}")


def read_standing(reads: Reads, standing_id: str) -> Standing:
    """Return the standing approval with an id."""
    data = reads.document(DOCUMENT, standing_id) if isinstance(standing_id, str) else None
    if data is None:
        raise ApprovalError(f"no standing approval has the id {brief(standing_id)}")
    return _from_json(data)


def all_standing(reads: Reads) -> list[Standing]:
    """Return all standing approvals, also those that ended, by the time they were granted."""
    found = [_from_json(data) for data in reads.documents(DOCUMENT).values() if data]
    return sorted(found, key=lambda standing: (standing.granted_at, standing.id))


def put_standing(writes: Writes, standing: Standing) -> None:
    """Write a standing approval."""
    document = asdict(standing)
    document["granted_by"] = None if standing.granted_by is None else standing.granted_by.to_dict()
    writes.put_document(DOCUMENT, standing.id, json.dumps(document, separators=(",", ":")).encode())


def free_reserved(writes: Writes, standing_id: str, approval_id: str) -> None:
    """Take an approval that was claimed or has ended off those that a standing approval keeps open."""
    standing = read_standing(writes, standing_id)
    if approval_id in standing.open:
        left = tuple(each for each in standing.open if each != approval_id)
        put_standing(writes, replace(standing, open=left))


def _from_json(data: bytes) -> Standing:
    document = json.loads(data)
    actor = document.pop("granted_by")
    return Standing(
        **{**document, "open": tuple(document["open"])}, granted_by=None if actor is None else Actor.from_dict(actor)
    )
