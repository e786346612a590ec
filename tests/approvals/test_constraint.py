"""Constraints of standing approvals: exact values, lists, ranges, any."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import Standing, encode


def covers(constraint, value):
    encoded, _ = encode({"x": value})
    return Standing(action="a", domain="d", parameters={"x": constraint}, until=1.0, uses=1).covers(encoded)


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        ({"is": 5}, [5], [5.0, "5", True, None, 6]),
        ({"is": True}, [True], [1, "true"]),
        ({"is": {"a": [1]}}, [{"a": [1]}], [{"a": [2]}, {"a": (1,)}]),
        ({"in": ["a", "b"]}, ["a", "b"], ["c", "A", ["a"], "a "]),
        ({"from": 1, "to": 20}, [1, 20, 1.5, decimal.Decimal("19.99")], [0, 21, 20.000001, True, "5", None, [5], float("nan")]),
        ({"from": 2**60}, [2**60, 2**61], [2**60 - 1, float("inf")]),
        ({"to": {"$decimal": "0.3"}}, [decimal.Decimal("0.3"), 0, -5], [decimal.Decimal("0.30001"), 0.31]),
        ({"any": True}, [None, "x", 2**70, [1]], []),
    ],
)  # fmt: skip
def test_a_constraint_holds_values_of_its_kind(constraint, inside, outside):
    """A text that looks like a number is none, and a truth value is no number."""
    assert [] == [value for value in inside if not covers(constraint, value)]
    assert [] == [value for value in outside if covers(constraint, value)]


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(), st.integers())
def test_a_range_is_exact(value, low, high):
    """Decimal numbers are compared without rounding."""
    bounds = {name: encode({"x": bound})[0]["x"] for name, bound in (("from", low), ("to", high))}
    assert (low <= value <= high) == covers(bounds, value)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "constraint",
    [None, [], "any", {}, {"in": []}, {"in": "ab"}, {"is": float("nan")}, {"is": nested(500)}, {"in": [nested(50_000)]}, {"from": 10**400}, {"to": float("inf")}, {"from": "1"}, {"from": True}, {"from": 3, "to": 2}, {"is": 1, "any": True}],
)  # fmt: skip
def test_a_constraint_that_cannot_be_read_has_a_problem(constraint):
    """It is refused when it is granted; it never means any value."""
    from grace_kp.approvals._standing import problem_with

    assert problem_with(constraint)
