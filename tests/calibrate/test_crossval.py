"""Cross-validation that keeps tasks together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.calibrate import FEATURES
from grace_kp.calibrate._fit import PENALTIES, Samples, choose_penalty, group_folds, out_of_fold


@st.composite
def grouped_labels(draw):
    groups = draw(st.lists(st.integers(0, 30), min_size=5, max_size=200))
    numbers = np.unique(groups, return_inverse=True)[1].astype(np.intp)
    labels = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(groups), max_size=len(groups))))
    return numbers, labels


@given(grouped_labels(), st.integers(2, 6), st.integers(0, 5))
def test_a_group_is_in_a_single_fold(sample, folds, seed):
    """Every row has a fold, the number of folds is kept where there are groups for it, and the same seed gives the same folds."""
    groups, labels = sample
    found = group_folds(groups, labels, folds, np.random.default_rng(seed))
    assert all(len(set(found[groups == group])) == 1 for group in set(groups))
    assert set(found) <= set(range(min(folds, len(set(groups)))))
    assert np.array_equal(found, group_folds(groups, labels, folds, np.random.default_rng(seed)))


def test_sizes_and_successes_are_spread_evenly():
    """Folds of equal groups hold equally many rows and nearly equally many successes."""
    groups = np.repeat(np.arange(50, dtype=np.intp), 4)
    labels = (groups % 2).astype(float)
    folds = group_folds(groups, labels, 5, np.random.default_rng(0))
    assert [40] * 5 == np.bincount(folds).tolist()
    assert max(np.bincount(folds, weights=labels)) - min(np.bincount(folds, weights=labels)) <= 8


def samples(seed=0, rows=200, signal=1.0):
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, len(FEATURES)))
    labels = (random.random(rows) < 1 / (1 + np.exp(-signal * values[:, 0]))).astype(float)
    return Samples(values, [()] * rows, labels, np.ones(rows), np.arange(rows, dtype=np.intp) // 4)


def test_predictions_do_not_depend_on_the_labels_of_their_own_fold():
    """Turning all labels of a fold around leaves its predictions as they are."""
    original = samples()
    folds = group_folds(original.groups, original.labels, 5, np.random.default_rng(0))
    turned = np.where(folds == 2, 1 - original.labels, original.labels)
    changed = Samples(original.matrix, original.tools, turned, original.weights, original.groups)
    before, after = out_of_fold(original, folds, 10.0), out_of_fold(changed, folds, 10.0)
    assert np.array_equal(before[folds == 2], after[folds == 2])
    assert not np.array_equal(before[folds != 2], after[folds != 2])


def test_noise_is_penalised_more_than_a_signal():
    """Labels that no feature predicts get the strongest penalty."""
    folds = np.arange(200, dtype=np.intp) // 4 % 5
    assert PENALTIES[0] == choose_penalty(samples(signal=0.0), folds)
    assert PENALTIES[0] > choose_penalty(samples(signal=4.0), folds)
