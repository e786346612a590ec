"""What a case of another framework states as expected, as an expectation of ours."""

from __future__ import annotations

from grace_kp.errors import brief
from grace_kp.scorers import EditExpectation


def as_expectation(value: object, place: str) -> EditExpectation:
    """Return the expectation that a case holds at this place."""
    if isinstance(value, EditExpectation):
        return value
    if isinstance(value, dict):
        return EditExpectation.from_dict(value)
    raise ValueError(f"{place} must be an EditExpectation or an object with its fields, not {brief(value)}")
