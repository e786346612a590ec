"""Regularised logistic regression, beside scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression

from grace_kp.calibrate._logistic import fit_calibration, fit_logistic, log_loss, probability


def sample(seed, rows=200, columns=5):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, columns))
    labels = (random.random(rows) < probability(values @ random.normal(size=columns))).astype(float)
    return values, labels, random.uniform(0.1, 3, rows)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 30.0, 1000.0]), st.booleans())
def test_weights_are_those_of_scikit_learn(seed, penalty, is_weighted):
    """The same minimum, with the intercept free of the penalty, with and without weights of the rows."""
    values, labels, weights = sample(seed)
    weights = weights if is_weighted else None
    if len(set(labels)) < 2:
        return
    oracle = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(values, labels, sample_weight=weights)
    fitted = fit_logistic(values, labels, penalty, weights=weights)
    assert np.allclose(oracle.coef_[0], fitted.weights, atol=2e-4)
    assert np.isclose(oracle.intercept_[0], fitted.intercept, atol=2e-4)
    assert np.allclose(oracle.decision_function(values), fitted.logits(values), atol=1e-3)


def test_a_fraction_counts_as_a_share_of_a_success():
    """A label of 0.7 is fitted like seven rows that are right and three that are wrong, each at a tenth."""
    values, labels, _ = sample(1)
    shares = 0.7 * labels + 0.1
    twice = fit_logistic(
        np.vstack([values, values]),
        np.repeat([1.0, 0.0], len(labels)),
        3.0,
        weights=np.concatenate([shares, 1 - shares]),
    )
    assert np.allclose(twice.weights, fit_logistic(values, shares, 3.0).weights, atol=1e-6)


def test_a_similar_regression_to_start_from_changes_nothing_but_the_time():
    """The minimum is the same from everywhere."""
    values, labels, _ = sample(2)
    start = fit_logistic(values, labels, 100.0)
    assert np.allclose(
        fit_logistic(values, labels, 1.0).weights, fit_logistic(values, labels, 1.0, start=start).weights, atol=1e-5
    )


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_single_class_ends_at_a_finite_intercept(label):
    """Also where all columns are constant, and where a column separates the classes."""
    values, _, _ = sample(3)
    fitted = fit_logistic(values, np.full(200, label), 1.0)
    assert np.isfinite(fitted.weights).all()
    assert abs(probability(fitted.logits(values)) - label).max() < 0.05
    parted = fit_logistic(values * 100, (values[:, 0] > 0).astype(float), 0.01)
    assert np.isfinite([parted.intercept, *parted.weights]).all()


@given(arrays(np.float64, 30, elements=st.floats(-700, 700)))
def test_probabilities_are_from_0_to_1(logits):
    """Without overflow, and rising with the log-odds."""
    found = probability(np.sort(logits))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= 0).all()
    assert np.isfinite(log_loss(logits, np.ones(30)))


def test_overconfident_scores_are_calibrated():
    """With many labels, slope and offset are those that the labels were drawn with."""
    random = np.random.default_rng(0)
    logits = random.normal(0, 3, 40_000)
    labels = (random.random(40_000) < probability(0.4 * logits - 0.5)).astype(float)
    slope, offset = fit_calibration(logits, labels)
    assert (0.4, -0.5) == (pytest.approx(slope, abs=0.03), pytest.approx(offset, abs=0.05))


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_few_labels_change_the_scores_little(seed, rows):
    """The calibration never reverses the order of the scores, and a handful of labels cannot make it wild."""
    random = np.random.default_rng(seed)
    logits, labels = random.normal(0, 2, rows), random.integers(0, 2, rows).astype(float)
    slope, offset = fit_calibration(logits, labels)
    assert 0 < slope < 4
    assert abs(offset) < 3


def test_scores_that_rank_the_wrong_way_round_become_nearly_constant():
    """What remains is the share of successes."""
    random = np.random.default_rng(0)
    logits = random.normal(0, 2, 5_000)
    labels = (random.random(5_000) < probability(-logits)).astype(float)
    slope, offset = fit_calibration(logits, labels)
    assert 0 < slope <= 0.05
    assert abs(probability(slope * logits + offset) - labels.mean()).mean() < 0.05
