"""Exact tests: binomial bounds against scipy, and bets that gain nothing under the promise and whose interval holds the true rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grace_kp.calibrate._betting import CAPITAL, DOWN, UP, interval, log_wealth, log_wealth_bound, start_capital
from grace_kp.calibrate._binomial import (
    binomial_cdf,
    clopper_pearson,
    fewest_without_error,
    most_errors,
    smallest_sample,
)

RATES = st.floats(0.001, 0.999)
COUNTS = st.dictionaries(
    st.sampled_from([0.05, 0.5, 1.0]), st.lists(st.integers(0, 300), min_size=2, max_size=2), min_size=1
)
WEEKS = st.dictionaries(st.integers(0, 60), COUNTS, max_size=4).map(lambda weeks: sorted(weeks.items()))


def test_the_capital_is_one():
    """Whatever is bet, and whenever the bets start, no more than 1 is there in the beginning."""
    assert sum(CAPITAL) == pytest.approx(1)
    assert 1 - 0.25 / 999 == pytest.approx(sum(map(start_capital, range(1_000))))


@given(
    WEEKS, RATES, st.floats(0, 1), st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.001, 1)), min_size=1, max_size=3)
)
def test_the_wealth_does_not_rise_on_average(weeks, rate, share_of_rate, groups):
    """For any past, weights and error rates that keep the promise on average, the expected wealth after a label is at most the wealth.

    Groups of actions have probabilities and error rates of their own; a label's weight is inverse to the probability of labelling.
    """
    number = weeks[-1][0] if weeks else 0
    before = dict(weeks).get(number, {})
    start = [*weeks[:-1], (number, before)] if weeks else [(0, {})]
    errors = [error for _, error in groups]
    scale = min(1.0, rate * share_of_rate / np.mean(errors))
    smallest = min(labelled for labelled, _ in groups)
    expected = 0.0
    for labelled, error in groups:
        for wrong, chance in ((1, error * scale), (0, 1 - error * scale)):
            share = smallest / labelled
            counts = {key: list(value) for key, value in before.items()}
            counts.setdefault(share, [0, 0])[wrong] += 1
            gain = math.exp(log_wealth([*start[:-1], (number, counts)], rate)[0] - log_wealth(start, rate)[0])
            expected += labelled * chance * gain / len(groups)
    unlabelled = 1 - np.mean([labelled for labelled, _ in groups])
    assert expected + unlabelled <= 1 + 1e-9


@given(st.integers(0, 40), st.integers(0, 400), RATES)
def test_a_bet_is_a_likelihood_ratio(errors, right, rate):
    odds = rate / (1 - rate)
    ratios = [
        stats.binom.logpmf(errors, errors + right, c * odds / (1 + c * odds))
        - stats.binom.logpmf(errors, errors + right, rate)
        for c in UP
    ]
    expected = math.log(start_capital(0)) + np.log(np.sum(np.array(CAPITAL) * np.exp(ratios)))
    assert expected == pytest.approx(log_wealth([(0, {1.0: [right, errors]})], rate)[0], abs=1e-6)


@given(WEEKS, RATES)
def test_the_bound_is_one(weeks, rate):
    """The cheap bound is never below the wealth, so that skipping by it loses no alarm."""
    assert log_wealth(weeks, rate)[0] <= log_wealth_bound(weeks, rate) + 1e-9


@given(COUNTS, st.floats(0.01, 0.5))
def test_the_interval_contains_the_observed_rate(counts, alpha):
    everything = sum(share * sum(pair) for share, pair in counts.items())
    low, high = interval(counts, alpha)
    assert 0 <= low <= high <= 1
    if everything:
        rate = sum(share * pair[1] for share, pair in counts.items()) / everything
        assert low - 1e-9 <= rate <= high + 1e-9
    wider = interval(counts, alpha / 2)
    assert wider[0] <= low + 1e-12
    assert high - 1e-12 <= wider[1]


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_the_interval_covers_at_every_look(rate):
    """In 80 streams of 200 labels, looked at after each of 5 portions, no more miss the true rate than alpha allows."""
    random, alpha, streams = np.random.default_rng(7), 0.2, 80
    wrong = (random.random((streams, 5, 40)) < rate).sum(axis=2).cumsum(axis=1)
    missed = 0
    for stream in wrong:
        looks = [
            interval({1.0: [40 * look - int(errors), int(errors)]}, alpha) for look, errors in enumerate(stream, 1)
        ]
        missed += any(not low <= rate <= high for low, high in looks)
    assert stats.binomtest(missed, streams, alpha, alternative="greater").pvalue > 1e-6


def test_no_labels_say_nothing():
    """Without labels every rate is possible, and the wealth is what it was."""
    assert (0.0, 1.0) == interval({}, 0.1)
    assert (0.0, 0) == log_wealth([], 0.1)


def test_many_labels_do_not_overflow():
    counts = {1.0: [10**9, 10**9]}
    assert math.isfinite(log_wealth([(0, counts)], 0.01)[0])
    low, high = interval(counts, 0.1)
    assert low < 0.5 < high
    assert high - low < 0.05
    assert all(math.isfinite(odds) for odds in DOWN)


SIZES = st.integers(1, 2_000) | st.sampled_from((10_000, 1_000_000))
RISKS = st.floats(0.001, 0.999)


@given(SIZES, st.floats(0, 1), st.floats(0, 1))
def test_the_probability_is_that_of_scipy(n, share, rate):
    errors = int(share * n)
    assert stats.binom.cdf(errors, n, rate) == pytest.approx(binomial_cdf(errors, n, rate), rel=1e-7, abs=1e-12)


def test_probabilities_at_the_ends():
    """No errors are fewer than zero, and at most all are errors."""
    assert [0.0, 1.0, 1.0, 0.0] == [
        binomial_cdf(-1, 5, 0.5), binomial_cdf(5, 5, 0.5), binomial_cdf(0, 5, 0.0), binomial_cdf(4, 5, 1.0),
    ]  # fmt: skip


@given(st.integers(1, 5_000), st.floats(0, 1), st.floats(0.001, 0.5))
def test_bounds_are_those_of_the_beta_distribution(n, share, delta):
    errors = int(share * n)
    upper = 1.0 if errors == n else stats.beta.ppf(1 - delta, errors + 1, n - errors)
    lower = 0.0 if errors == 0 else stats.beta.ppf(delta, errors, n - errors + 1)
    assert (lower, upper) == pytest.approx(clopper_pearson(errors, n, 1 - 2 * delta), abs=1e-9)


@given(RISKS, st.floats(0.0001, 0.5))
def test_the_fewest_labels_without_an_error(risk, delta):
    """One label fewer would not do."""
    n = fewest_without_error(risk, delta)
    assert (1 - risk) ** n <= delta * (1 + 1e-9)
    assert n == 1 or (1 - risk) ** (n - 1) > delta * (1 - 1e-9)


@given(st.integers(1, 3_000), RISKS, st.floats(0.0001, 0.5))
def test_the_most_errors_that_still_pass(n, risk, delta):
    """One more would not pass; and no smaller sample allows as many."""
    most = most_errors(n, risk, delta)
    assert most == -1 or binomial_cdf(most, n, risk) <= delta
    assert most >= n - 1 or binomial_cdf(most + 1, n, risk) > delta
    smallest = smallest_sample(n, risk, delta)
    assert smallest <= n
    assert most == most_errors(smallest, risk, delta)
    assert most == -1 or smallest <= most + 1 or most_errors(smallest - 1, risk, delta) < most
