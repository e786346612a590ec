"""How probable it was that a run would be labelled."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.gating import audit_probability


def silent(rate, level="silent"):
    return {"level": level, "audit": {"rate": rate, "selected": False}}


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([], None),
        ([{"level": "silent"}], None),
        ([silent(0.05)], 0.05),
        ([silent(0.05, "notify")], 0.05),
        ([{"level": "confirm"}], 1.0),
        ([silent(0.05), {"level": "escalate"}], 1.0),
        ([silent(1)], 1.0),
        ([silent(0)], None),
        ([silent(float("nan")), silent("0.5"), {"level": ["x"][0], "audit": 3}, {}], None),
    ],
)
def test_of_single_decisions(decisions, expected):
    """A question makes it certain; a rate that cannot be used is none."""
    found = audit_probability(decisions)
    assert expected == (found if found is None else round(found, 12))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_of_several_actions(rates):
    """One minus the probability that none of them is drawn."""
    expected = 1 - math.prod(1 - rate for rate in rates)
    assert (expected or None) == audit_probability([silent(rate) for rate in rates])
