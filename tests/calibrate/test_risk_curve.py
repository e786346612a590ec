"""Risk against coverage, and how sure both are."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import calibrate as cal

SAMPLES = st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1, max_size=60)


@given(SAMPLES, st.sampled_from(["selective", "overall"]))
def test_each_point_is_the_share_of_wrong_runs_at_its_threshold(rows, promise):
    """Counted one by one, with an interval around it; the last point is all runs."""
    points = cal.risk_curve([row[0] for row in rows], [row[1] for row in rows], promise)
    assert sorted({row[0] for row in rows}, reverse=True) == [point.confidence for point in points]
    for point in points:
        reached = [right for confidence, right in rows if confidence >= point.confidence]
        wrong = len(reached) - sum(reached)
        assert point.coverage == pytest.approx(len(reached) / len(rows))
        assert point.risk == pytest.approx(wrong / (len(rows) if promise == "overall" else len(reached)))
        assert 0 <= point.low <= point.risk <= point.high <= 1
    assert 1.0 == points[-1].coverage


def test_a_long_curve_is_thinned():
    """The first and the last threshold stay, and coverage rises."""
    points = cal.risk_curve([place / 1_000 for place in range(1_001)], [True] * 1_001, points=10)
    assert 10 == len(points)
    assert (1.0, 0.0) == (points[0].confidence, points[-1].confidence)
    assert all(before.coverage < after.coverage for before, after in itertools.pairwise(points))


def test_runs_of_one_task_count_once():
    """Their labels are not independent."""
    (point,) = cal.risk_curve([0.5] * 4, [True, True, False, False], groups=["a", "a", "b", "b"])
    assert 0.5 == point.risk
    assert (point.low, point.high) == pytest.approx((0.0126, 0.9874), abs=1e-3)  # 1 of 2


def test_fractions_are_left_out():
    """A label that is partly right is no error and no success; without any other there is no curve."""
    assert [0.9] == [point.confidence for point in cal.risk_curve([0.9, 0.4], [1.0, 0.5])]
    with pytest.raises(ValueError, match="no label of 0 or 1 is left"):
        cal.risk_curve([0.4], [0.5])


def test_a_bin_has_an_interval():
    """That of its share of correct samples."""
    (found,) = cal.assess([0.65] * 10, [True] * 7 + [False] * 3).bins
    assert cal.bin_interval(found) == pytest.approx((0.3475, 0.9333), abs=1e-3)
