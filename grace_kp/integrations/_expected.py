"""Converts the expected value of another framework's case."""

from __future__ import annotations

from grace_kp.errors import brief
from grace_kp.scorers import EditExpectation


def as_expectation(value: object, place: str) -> EditExpectation:
    if isinstance(value, EditExpectation):
        return value
    if isinstance(value, dict):
        return EditExpectation.from_dict(value)
    raise ValueError(f"{place} must be an EditExpectation or an object with its fields, not {brief(value)}")
