"""One confidence for several steps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import ConfidenceAggregator, ConfidenceFactors, ConfidenceScore

METHODS = ("mean", "min", "weighted")
aggregator = ConfidenceAggregator()
lists = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_golden_aggregates(vectors):
    """Every recorded list gives its recorded mean, minimum, weighted mean and critical check."""
    for number, vector in enumerate(vectors("aggregate")):
        scores, expected = vector["scores"], vector["expected"]
        for method in METHODS:
            assert expected[method] == pytest.approx(aggregator.aggregate(scores, method), abs=1e-9), number
        value, critical = aggregator.aggregate_with_critical_check(scores, vector["critical_threshold"])
        assert expected["critical"] == [pytest.approx(value, abs=1e-9), critical], number


@given(lists)
def test_order_of_the_aggregates(scores):
    """The minimum is at most the mean and the weighted mean, and these at most the maximum."""
    lowest, mean, weighted = (aggregator.aggregate(scores, method) for method in ("min", "mean", "weighted"))
    assert min(scores) == lowest <= mean <= max(scores)
    assert lowest <= weighted <= max(scores)


@given(lists, st.randoms())
def test_order_of_steps_matters_only_when_weighted(scores, random):
    """Mean and minimum do not change when the steps are shuffled."""
    shuffled = random.sample(scores, len(scores))
    for method in ("mean", "min"):
        assert aggregator.aggregate(scores, method) == aggregator.aggregate(shuffled, method)


@given(lists)
def test_later_steps_count_more(scores):
    """In rising order the weighted mean is at least the mean, in falling order at most."""
    mean = aggregator.aggregate(scores)
    assert mean <= aggregator.aggregate(sorted(scores), "weighted") + 1e-12
    assert aggregator.aggregate(sorted(scores)[::-1], "weighted") <= mean + 1e-12


@given(lists, st.data())
def test_a_worse_step_never_raises_an_aggregate(scores, data):
    """Every method is monotone in every step; so is the mean of the critical check."""
    at = data.draw(st.integers(0, len(scores) - 1))
    worse = [*scores[:at], data.draw(st.floats(0, scores[at])), *scores[at + 1 :]]
    for method in METHODS:
        assert aggregator.aggregate(worse, method) <= aggregator.aggregate(scores, method) + 1e-15
    assert aggregator.aggregate_with_critical_check(worse)[0] <= (
        aggregator.aggregate_with_critical_check(scores)[0] + 1e-15
    )


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 1 / 3])
def test_equal_scores_aggregate_to_themselves(value):
    """A mean of equal numbers is that number to the last bit."""
    for method in METHODS:
        assert value == aggregator.aggregate([value] * 3, method)


def test_nothing_aggregates_to_zero():
    """No steps, no confidence; and nothing critical about it."""
    assert [0.0] * 3 == [aggregator.aggregate([], method) for method in METHODS]
    assert (0.0, False) == aggregator.aggregate_with_critical_check([])


def test_scores_may_be_objects():
    """ConfidenceScore objects and numbers may be mixed, in any iterable."""
    scores = (ConfidenceScore(0.25, ConfidenceFactors()), 0.75)
    assert 0.5 == aggregator.aggregate(iter(scores))
    assert (0.35, True) == aggregator.aggregate_with_critical_check(iter(scores))


def test_a_score_at_the_threshold_is_not_critical():
    """Only below the threshold is critical."""
    assert (0.3, False) == aggregator.aggregate_with_critical_check([0.3])


def test_an_unknown_method_is_refused():
    """Also when there is nothing to aggregate."""
    with pytest.raises(ValueError, match="mean, min, weighted"):
        aggregator.aggregate([], "median")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True])
def test_bad_scores_are_refused_by_place(bad):
    """A score that is no number from 0 to 1 is named by its place; so is a bad threshold."""
    for method in METHODS:
        with pytest.raises(ValueError, match=r"^scores\[1\] must be"):
            aggregator.aggregate([0.5, bad], method)
    with pytest.raises(ValueError, match="critical_threshold"):
        aggregator.aggregate_with_critical_check([0.5], bad)
