"""Exact tests, bets against a promise, and the figures of a confidence with their intervals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import brier_score_loss, roc_auc_score

from grace_kp import calibrate as cal
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


@given(st.integers(1, 5_000), st.floats(0, 1), st.floats(0.001, 0.5))
def test_bounds_are_those_of_the_beta_distribution(n, share, delta):
    errors = int(share * n)
    upper = 1.0 if errors == n else stats.beta.ppf(1 - delta, errors + 1, n - errors)
    lower = 0.0 if errors == 0 else stats.beta.ppf(delta, errors, n - errors + 1)
    assert (lower, upper) == pytest.approx(clopper_pearson(errors, n, 1 - 2 * delta), abs=1e-9)


@given(RISKS, st.floats(0.0001, 0.5))
def test_the_fewest_labels_without_an_error(risk, delta):
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


PAIRS = st.lists(st.tuples(st.integers(0, 20).map(lambda i: i / 20), st.booleans()), min_size=1, max_size=40)


def calibrated(n, seed=0):
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, random.random(n) < scores


@given(PAIRS)
def test_figures_are_those_of_scikit_learn(pairs):
    scores, labels = map(np.array, zip(*pairs, strict=True))
    found = cal.assess(scores, labels)
    if 0 < labels.mean() < 1:
        assert roc_auc_score(labels, scores) == pytest.approx(found.auroc)
    else:
        assert found.auroc is None
    assert brier_score_loss(labels, scores, pos_label=True) == pytest.approx(found.brier)
    assert labels.mean() == pytest.approx(found.accuracy)
    place = np.minimum((scores * 10).astype(int), 9)
    gaps = [abs(scores[place == i].sum() - labels[place == i].sum()) for i in range(10)]
    assert sum(gaps) / len(labels) == pytest.approx(found.ece)
    assert len(pairs) == sum(each.n for each in found.bins) == found.n


def test_intervals_cover_the_truth():
    """Over 100 samples, about 95 of 100 intervals of a known AUROC hold it; 85 would have a chance of 1 in 20,000."""
    truth = cal.assess(*calibrated(200_000, seed=1)).auroc
    held = 0
    for seed in range(100):
        low, high = cal.assess(*calibrated(150, seed=seed + 2)).intervals["auroc"]
        held += low <= truth <= high
    assert held > 85


def test_clusters_widen_the_interval():
    """Ten copies of each label are no new information."""
    scores, labels = (np.repeat(values, 10) for values in calibrated(40))
    alone = cal.assess(scores, labels).intervals["auroc"]
    whole = cal.assess(scores, labels, clusters=np.repeat(np.arange(40), 10)).intervals["auroc"]
    assert whole[1] - whole[0] > 2 * (alone[1] - alone[0])


def test_groups_are_assessed_alone_too():
    scores, labels = calibrated(300)
    models = ["a" if i % 3 else "b" for i in range(300)]
    found = cal.assess(scores, labels, groups=models)
    assert {"a", "b"} == set(found.by_group)
    own = np.array(models) == "b"
    assert cal.assess(scores[own], labels[own]) == found.by_group["b"]
    assert cal.assess(scores, labels).to_dict() | {"by_group": found.to_dict()["by_group"]} == found.to_dict()


def test_weights_count_as_copies():
    """A weight of 3 gives the figures of three samples."""
    scores, labels = calibrated(50)
    weights = np.arange(50) % 3 + 1
    copies = cal.assess(np.repeat(scores, weights), np.repeat(labels, weights))
    found = cal.assess(scores, labels, weights=weights)
    assert (copies.auroc, copies.ece, copies.brier, copies.accuracy) == pytest.approx(
        (found.auroc, found.ece, found.brier, found.accuracy)
    )


def test_a_class_alone_has_no_auroc_and_no_certainty():
    found = cal.assess([0.9, 0.9, 0.9], [1, 1, 1])
    assert found.auroc is None
    assert found.intervals["auroc"] is None
    assert found.intervals["brier"] is None
    assert (0.2924, 1.0) == pytest.approx(found.intervals["accuracy"], abs=1e-4)
    assert found.to_dict() == json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_many_labels_have_the_intervals_of_few():
    """Beyond 20,000 labels near confidences are joined, and the interval still holds the figure."""
    found = cal.assess(*calibrated(60_000))
    for name in ("auroc", "brier", "ece", "accuracy"):
        low, high = found.intervals[name]
        assert low - 0.002 < getattr(found, name) < high
        assert high - low < 0.02


@pytest.mark.parametrize(
    ("confidence", "correct", "message"),
    [
        ([0.5, math.nan], [1, 0], r"confidence\[1\] must be a number from 0 to 1 \(got nan\)"),
        ([0.5, 1.2], [1, 0], r"confidence\[1\] must be a number from 0 to 1 \(got 1.2\)"),
        ([0.5, None], [1, 0], r"confidence\[1\] must be a number from 0 to 1 \(got None\)"),
        ([0.5, "0.5"], [1, 0], r"confidence\[1\] must be a number from 0 to 1 \(got '0.5'\)"),
        ([0.5, 0.5], [1, math.nan], r"correct\[1\] must be a number from 0 to 1 \(got nan\)"),
        ([0.5, 0.5], [1, 2], r"correct\[1\] must be a number from 0 to 1 \(got 2.0\)"),
        ([0.5], [1, 0], r"same length \(got 1 and 2\)"),
        ([[0.5], [0.5]], [1, 0], r"one dimension"),
        ([{}], [1], r"confidence must be numbers"),
        ([], [], r"at least one label \(got none\)"),
    ],
)
@pytest.mark.parametrize("use", [cal.assess, lambda c, y: cal.risk_thresholds(c, y, {"silent": 0.2})])
def test_what_cannot_be_used_is_refused_by_its_place(use, confidence, correct, message):
    with pytest.raises(ValueError, match=message):
        use(confidence, correct)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("groups", ["a"], r"groups must hold one group for each sample \(got 1 for 2\)"),
        ("groups", [[1], [2]], "groups must be hashable"),
        ("weights", [1], "weights must hold one number for each sample"),
        ("weights", [1, 0], r"weights\[1\] must be a number above 0, at most 1e\+09 \(got 0.0\)"),
        ("weights", [math.inf, 1], r"weights\[0\] must be a number above 0"),
        ("weights", ["a", 1], "weights must be numbers"),
    ],
)
def test_groups_and_weights_are_checked(name, values, message):
    with pytest.raises(ValueError, match=message):
        cal.assess([0.5, 0.6], [0, 1], **{name: values})
