"""Exact binomial tests and bounds, against scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grace_kp.calibrate._binomial import (
    binomial_cdf,
    clopper_pearson,
    fewest_without_error,
    lower_bound,
    most_errors,
    smallest_sample,
    upper_bound,
)

SIZES = st.integers(1, 2_000) | st.sampled_from((10_000, 1_000_000))
RISKS = st.floats(0.001, 0.999)


@given(SIZES, st.floats(0, 1), st.floats(0, 1))
def test_the_probability_is_that_of_scipy(n, share, rate):
    """To nine digits, from no errors to all, with a million trials too."""
    errors = int(share * n)
    assert stats.binom.cdf(errors, n, rate) == pytest.approx(binomial_cdf(errors, n, rate), rel=1e-7, abs=1e-12)


def test_probabilities_at_the_ends():
    """No errors are fewer than zero, and at most all are errors."""
    assert [0.0, 1.0, 1.0, 0.0] == [
        binomial_cdf(-1, 5, 0.5), binomial_cdf(5, 5, 0.5), binomial_cdf(0, 5, 0.0), binomial_cdf(4, 5, 1.0),
    ]  # fmt: skip


@given(st.integers(1, 5_000), st.floats(0, 1), st.floats(0.001, 0.5))
def test_bounds_are_those_of_the_beta_distribution(n, share, delta):
    """Clopper-Pearson bounds are quantiles of beta distributions."""
    errors = int(share * n)
    upper = 1.0 if errors == n else stats.beta.ppf(1 - delta, errors + 1, n - errors)
    lower = 0.0 if errors == 0 else stats.beta.ppf(delta, errors, n - errors + 1)
    assert (lower, upper) == pytest.approx((lower_bound(errors, n, delta), upper_bound(errors, n, delta)), abs=1e-9)


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_interval_holds_the_share(k, more):
    """And it is the two-sided interval of scipy."""
    n = k + more
    low, high = clopper_pearson(k, n)
    if n == 0:
        assert (0.0, 1.0) == (low, high)
    else:
        known = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
        assert (known.low, known.high) == pytest.approx((low, high), abs=1e-9)
        assert low <= k / n <= high


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
