"""The search along ranks: what it finds, and how often it is wrong."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
from scipy.stats import binom

from grace_kp.calibrate._risk import Ranking, ladder

DELTA = 0.1
LADDERS = functools.cache(ladder)


def drawn(n, chance, seed):
    """A sample of which a confidence c is right with the probability chance(c), and a function from a threshold to its true risk."""
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, (random.random(n) >= chance(scores)).astype(float)


def risk_above(chance, threshold):
    grid = np.linspace(min(threshold, 1 - 1e-9), 1, 4_001)
    return 1 - float(chance(grid).mean())


@given(st.integers(1, 100_000), st.floats(0.01, 0.6), st.floats(0.001, 0.2))
def test_the_parts_of_delta_sum_to_delta(n, risk, delta):
    """And the ranks rise to the whole sample."""
    ranks, shares = ladder(n, risk, delta)
    assert delta == pytest.approx(sum(shares))
    assert sorted(ranks) == ranks
    assert n == ranks[-1]
    assert min(shares) >= 0


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=80), st.floats(0.05, 0.6))
def test_what_is_found_passes_the_test_itself(pairs, risk):
    """Whatever the sample, with ties too: the errors at the threshold are few enough for the whole delta."""
    scores, wrong = map(np.array, zip(*pairs, strict=True))
    scores = scores / 10
    ranking = Ranking(scores, wrong.astype(float))
    threshold = ranking.selective(risk, DELTA)
    if threshold < math.inf:
        n, errors = ranking.at(threshold)
        assert n == (scores >= threshold).sum()
        assert errors == wrong[scores >= threshold].sum()
        assert binom.cdf(errors, n, risk) <= DELTA + 1e-12


@pytest.mark.parametrize(
    "chance", [np.sqrt, np.square, lambda c: c, lambda c: 0.5 + 0 * c], ids=["under", "over", "right", "constant"]
)
def test_a_promise_is_broken_in_at_most_delta_of_the_samples(chance, monkeypatch):
    """400 samples of known risk: the share of broken promises has delta within its own sampling error of one in 10,000."""
    monkeypatch.setattr("grace_kp.calibrate._risk.ladder", LADDERS)  # depends on the sample size alone
    risk, broken = 0.3, 0
    for seed in range(400):
        threshold = Ranking(*drawn(300, chance, seed)).selective(risk, DELTA)
        broken += threshold < math.inf and risk_above(chance, threshold) > risk
    assert binom.sf(broken - 1, 400, DELTA) > 1e-4


def test_it_finds_more_than_a_bound_by_hoeffding_and_bentkus():
    """Tested from the strictest rank down, as MAPIE's p-values would be, less is covered than here."""
    ours, theirs = 0.0, 0.0
    for seed in range(40):
        scores, wrong = drawn(600, np.sqrt, seed)
        ours += np.mean(scores >= Ranking(scores, wrong).selective(0.15, DELTA / 3))
        order = np.argsort(-scores)
        count = 0
        for k in range(25, 601, 5):
            p = compute_hoeffding_bentkus_p_value(np.array([wrong[order[:k]].mean()]), k, np.array([0.15]))
            if p.ravel()[0] > DELTA / 3:
                break
            count = k
        theirs += count / 600
    assert ours > 1.3 * theirs > 0


def test_exact_p_values_are_smaller_than_those_of_mapie():
    """Clopper-Pearson is exact where Hoeffding-Bentkus is an upper bound."""
    for errors in (0, 3, 10, 20):
        theirs = compute_hoeffding_bentkus_p_value(np.array([errors / 200]), 200, np.array([0.15])).ravel()[0]
        assert binom.cdf(errors, 200, 0.15) <= theirs * (1 + 1e-9)


def test_overall_counts_errors_among_all_samples():
    """The mildest threshold that no more errors reach than pass among all samples."""
    scores, wrong = np.arange(100) / 100, np.zeros(100)
    wrong[[80, 60, 40]] = 1
    ranking = Ranking(scores, wrong)
    assert binom.cdf(2, 100, 0.07) <= 0.05 < binom.cdf(3, 100, 0.07)
    threshold = ranking.overall(0.07, 0.05)
    assert 0.4 < threshold < 0.41
    assert (59, 2) == ranking.at(threshold)
    assert 0.0 == ranking.overall(0.1, 0.05)  # three are few enough
    assert math.inf == ranking.overall(0.01, 0.05)  # even none would be too many


def test_a_tie_is_left_out_whole():
    """A threshold cannot let half of a tie act."""
    ranking = Ranking(np.array([0.9] * 50 + [0.5] * 50), np.array([0.0] * 50 + [1.0] * 10 + [0.0] * 40))
    assert (50, 0) == ranking.at(ranking.overall(0.07, 0.05))
    assert (50, 0) == ranking.at(ranking.selective(0.07, 0.05))
