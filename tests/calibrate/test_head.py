"""A regression at one moment: its parts add up to what it predicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from grace_kp import calibrate as cal
from grace_kp.calibrate import FEATURES, Explanation, Features, Part
from grace_kp.calibrate._features import TABLE
from grace_kp.calibrate._fit import PENALTIES, Samples
from grace_kp.calibrate._head import Columns, weights_of_head
from grace_kp.calibrate._logistic import cross_fit, fit_calibration, fit_logistic, probability
from grace_kp.calibrate._samples import group_folds
from tests.calibrate.examples import drawn_runs, run


@pytest.fixture(scope="module")
def profile():
    return cal.fit(*drawn_runs(150))


@pytest.mark.parametrize("moment", ["end", "action"])
def test_the_parts_add_up_to_the_log_odds(profile, moment):
    for trace in drawn_runs(20, seed=7)[0]:
        found = profile.explain(trace, moment=moment)
        assert found.logit == math.fsum([found.intercept, *(part.contribution for part in found.parts)])
        assert found.confidence == profile.predict(trace, moment=moment)
        assert found.confidence == pytest.approx(1 / (1 + math.exp(-found.logit - found.calibration)), abs=1e-12)


STEPS, SEARCH, STATED = (FEATURES.index(name) for name in ("steps", "search_quality", "stated"))


def matrix(rows=40):
    values = np.full((rows, len(FEATURES)), np.nan)
    values[:, STEPS] = np.arange(rows)
    values[::2, SEARCH] = 0.5
    values[::4, SEARCH] = 0.7
    return values


TOOLS = [("find", "rare") if number == 0 else ("find",) if number % 3 else () for number in range(40)]


def test_a_column_for_each_feature_each_lack_and_each_frequent_tool():
    columns = Columns.fit(matrix(), TOOLS)
    assert ("steps", "search_quality", "missing:search_quality", "tool:find") == columns.names


def test_columns_have_mean_0_and_spread_1():
    """A missing value counts as the mean, so that it adds nothing."""
    rows = Columns.fit(matrix(), TOOLS).rows(matrix(), TOOLS)
    assert np.allclose(0, rows.mean(axis=0))
    assert np.allclose(1, rows.std(axis=0))
    assert np.allclose(0, rows[1::2, 1])


def test_values_beyond_the_usual_ones_count_as_the_outermost():
    """A run of a million steps is predicted like the longest twentieth of the fitted runs."""
    columns = Columns.fit(matrix(), TOOLS)
    longest, endless = (
        columns.row(Features("end", tuple(value if place == STEPS else None for place in range(len(FEATURES)))))
        for value in (38.5, 1e300)
    )
    assert np.array_equal(longest, endless)
    assert np.isfinite(endless).all()


@pytest.mark.parametrize("name", ["unheard_of", "missing:unheard_of", "other:steps", ""])
def test_an_unknown_column_is_refused(name):
    with pytest.raises(ValueError, match="not a feature of this version"):
        Columns.build([name], np.zeros((5, 1)))


def explanation(*parts):
    return Explanation(confidence=0.7, moment="end", intercept=0.1, parts=parts, logit=0.9, calibration=0.0, runs=124)


def test_the_reason_names_the_largest_parts_of_each_direction():
    found = explanation(
        Part("hedging", 1.0, -0.52, True), Part("error_rate", 0.1, 0.8, False), Part("steps", 2.0, 0.01, True),
        Part("tool:refund", 1.0, -0.6, True), Part("missing:search_quality", 1.0, 0.3, True),
    )  # fmt: skip
    assert (
        "Learned from 124 runs: raised by a low share of errors (+0.8), no search quality (+0.3); lowered by refund was called (−0.6), hedging (−0.5)"
        == found.reason
    )
    assert ["error_rate", "tool:refund"] == [part.name for part in found.largest[:2]]


def test_every_feature_has_words():
    """A new feature needs words for a high and for a low value, and how it is measured."""
    assert all(
        len({high, low}) == 2 and kind in {"count", "share", "flag", "mean"} for high, low, kind in TABLE.values()
    )


PROFILE = cal.fit(*drawn_runs(300))


def test_a_weight_says_what_its_step_does_to_the_odds():
    found = {each.name: each for each in weights_of_head(PROFILE.heads["end"])}
    steps = [("tool_call", ("find", {"order": 1})), ("observation", "order 1 is ready")]
    row = cal.features(run(steps))
    called, other = (PROFILE.explain(cal.Features("end", row.values, tools)).confidence for tools in (("send",), ()))
    odds = called / (1 - called) / (other / (1 - other))
    assert found["tool:send"].odds == pytest.approx(odds, rel=1e-6)
    assert ("send was called", "yes instead of no") == (found["tool:send"].words, found["tool:send"].step)


def test_a_step_is_no_larger_than_what_was_seen():
    found = {each.name: each for each in weights_of_head(PROFILE.heads["end"])}["objective_length"]
    columns = PROFILE.heads["end"].columns
    place = columns.names.index("objective_length")
    most = abs(found.spread) * (columns.high - columns.low)[place] / columns.scale[place]
    assert "from the lowest to the highest" == found.step
    assert abs(math.log(found.odds)) == pytest.approx(most)


def sample(seed, rows=200, columns=5):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, columns))
    labels = (random.random(rows) < probability(values @ random.normal(size=columns))).astype(float)
    return values, labels, random.uniform(0.1, 3, rows)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 30.0, 1000.0]), st.booleans())
def test_weights_are_those_of_scikit_learn(seed, penalty, is_weighted):
    values, labels, weights = sample(seed)
    weights = weights if is_weighted else None
    if len(set(labels)) < 2:
        return
    oracle = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(values, labels, sample_weight=weights)
    fitted = fit_logistic(values, labels, penalty, weights=weights)
    assert np.allclose(oracle.coef_[0], fitted.weights, atol=2e-4)
    assert np.isclose(oracle.intercept_[0], fitted.intercept, atol=2e-4)
    assert np.allclose(oracle.decision_function(values), fitted.logits(values), atol=1e-3)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_single_class_ends_at_a_finite_intercept(label):
    values, _, _ = sample(3)
    fitted = fit_logistic(values, np.full(200, label), 1.0)
    assert np.isfinite(fitted.weights).all()
    assert abs(probability(fitted.logits(values)) - label).max() < 0.05
    parted = fit_logistic(values * 100, (values[:, 0] > 0).astype(float), 0.01)
    assert np.isfinite([parted.intercept, *parted.weights]).all()


def test_overconfident_scores_are_calibrated():
    """With many labels, slope and offset are those that the labels were drawn with."""
    random = np.random.default_rng(0)
    logits = random.normal(0, 3, 40_000)
    labels = (random.random(40_000) < probability(0.4 * logits - 0.5)).astype(float)
    slope, offset = fit_calibration(logits, labels)
    assert (0.4, -0.5) == (pytest.approx(slope, abs=0.03), pytest.approx(offset, abs=0.05))


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_few_labels_change_the_scores_little(seed, rows):
    random = np.random.default_rng(seed)
    logits, labels = random.normal(0, 2, rows), random.integers(0, 2, rows).astype(float)
    slope, offset = fit_calibration(logits, labels)
    assert 0 < slope < 4
    assert abs(offset) < 3


def test_scores_that_rank_the_wrong_way_round_become_nearly_constant():
    random = np.random.default_rng(0)
    logits = random.normal(0, 2, 5_000)
    labels = (random.random(5_000) < probability(-logits)).astype(float)
    slope, offset = fit_calibration(logits, labels)
    assert 0 < slope <= 0.05
    assert abs(probability(slope * logits + offset) - labels.mean()).mean() < 0.05


@st.composite
def grouped_labels(draw):
    groups = draw(st.lists(st.integers(0, 30), min_size=5, max_size=200))
    numbers = np.unique(groups, return_inverse=True)[1].astype(np.intp)
    labels = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(groups), max_size=len(groups))))
    return numbers, labels


@given(grouped_labels(), st.integers(2, 6), st.integers(0, 5))
def test_a_group_is_in_a_single_fold(sample, folds, seed):
    groups, labels = sample
    found = group_folds(groups, labels, folds, np.random.default_rng(seed))
    assert all(len(set(found[groups == group])) == 1 for group in set(groups))
    assert set(found) <= set(range(min(folds, len(set(groups)))))
    assert np.array_equal(found, group_folds(groups, labels, folds, np.random.default_rng(seed)))


def samples(seed=0, rows=200, signal=1.0):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, len(FEATURES)))
    labels = (random.random(rows) < 1 / (1 + np.exp(-signal * values[:, 0]))).astype(float)
    return Samples(values, [()] * rows, labels, np.ones(rows), np.arange(rows, dtype=np.intp) // 4)


def test_predictions_do_not_depend_on_the_labels_of_their_own_fold():
    original = samples()
    folds = group_folds(original.groups, original.labels, 5, np.random.default_rng(0))
    turned = np.where(folds == 2, 1 - original.labels, original.labels)
    changed = Samples(original.matrix, original.tools, turned, original.weights, original.groups)
    for fold, is_same in ((2, True), (1, False)):
        test = folds == fold
        before, after = (each.predictions(~test, test) for each in (original, changed))
        assert is_same == np.array_equal(before, after)


def chosen_penalty(samples, folds):
    return cross_fit(samples.predictions, PENALTIES, folds, samples.labels, samples.weights)[0]


def test_noise_is_penalised_more_than_a_signal():
    folds = np.arange(200, dtype=np.intp) // 4 % 5
    assert PENALTIES[0] == chosen_penalty(samples(signal=0.0), folds)
    assert PENALTIES[0] > chosen_penalty(samples(signal=4.0), folds)
