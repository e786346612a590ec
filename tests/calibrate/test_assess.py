"""What a confidence is worth, against scikit-learn."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from grace_kp import calibrate as cal

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
    """As if nothing else were there."""
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


RISKS = {"silent": 0.2}


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
        ([], [], r"there are no labels"),
    ],
)
@pytest.mark.parametrize("use", [cal.assess, lambda c, y: cal.risk_thresholds(c, y, RISKS)])
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
