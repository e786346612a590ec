"""Constraints of standing approvals on one argument: an exact value, a list, a numeric range, or explicitly any value."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from grace_kp.approvals._canonical import MAX_DEPTH, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

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
