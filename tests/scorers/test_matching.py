"""Maximum matching by common keys, and values that are equal in other words."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from grace_kp.scorers._matching import match_pairs
from tests.scorers.records import done, op, wanted


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=5),
    st.lists(st.lists(st.integers(0, 4), max_size=2), max_size=5),
)
def test_there_are_as_many_pairs_as_there_can_be(left, right):
    made = match_pairs(left, right)
    assert all(set(left[one]) & set(right[other]) for one, other in made)
    assert len(made) == len({one for one, _ in made}) == len({other for _, other in made})
    best = 0
    for order in itertools.permutations(range(len(right))):
        best = max(best, sum(bool(set(keys) & set(right[other])) for keys, other in zip(left, order, strict=False)))
    if len(left) > len(right):
        best = len(match_pairs(right, left))
    assert best == len(made)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, Fraction(1), True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ({"a": 1, "b": [2]}, {"b": (2.0,), "a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ([1, 2], [2, 1], False),
        ({1, 2}, {2, 1}, True),
        (float("nan"), float("nan"), True),
        (None, "None", False),
        ({"a": {"b": [{}]}}, {"a": {"b": [{}]}}, True),
    ],
)
def test_positions_are_compared_by_value(one, other, same):
    actual, expected = done(op("insert", "a", position=one)), wanted(op("insert", "a", position=other))
    assert float(same) == sc.OperationAccuracy().score(actual, expected)
