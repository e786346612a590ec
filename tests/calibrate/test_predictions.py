"""Predictions of profiles for runs that they were not fitted on."""

from __future__ import annotations

import numpy as np
import pytest

from grace_kp import calibrate as cal
from grace_kp.calibrate._predictions import LEARNED, LabelledRows, held_back
from tests.calibrate.examples import labelled_runs


def test_whole_tasks_are_held_back():
    """A share of the tasks, drawn at random, with all of their runs."""
    groups = [number // 4 for number in range(100)]
    held = held_back(groups, 0.4, seed=1)
    assert 10 == len({group for group, is_held in zip(groups, held, strict=True) if is_held})
    assert 40 == held.sum()
    assert held.tolist() == held_back(groups, 0.4, seed=1).tolist()
    assert held.tolist() != held_back(groups, 0.4, seed=2).tolist()
    assert 0 == held_back(groups, 0).sum()


@pytest.mark.parametrize("share", [1.0, -0.1, float("nan"), "half", True])
def test_a_share_that_is_none_is_refused(share):
    """The message says what it must be."""
    with pytest.raises(ValueError, match="holdout must be a share of the tasks from 0 to below 1"):
        held_back([1, 2], share)


def test_predictions_are_exactly_those_of_the_profile_that_is_saved():
    """Rounded as it rounds them, so that gates compare the same numbers with the thresholds."""
    labelled = labelled_runs(200)
    held = held_back(labelled.groups, 0.4)
    found = LabelledRows(labelled, labelled.groups, "end", 0).held_back(held, 0)
    runs = [trace for trace, is_held in zip(labelled.traces, held, strict=True) if is_held]
    assert [found.profile.confidence(each).score for each in runs] == found.confidence[LEARNED].tolist()
    assert np.flatnonzero(held).tolist() == found.places.tolist()


def test_before_an_action_one_action_of_each_run_is_drawn():
    """Another seed draws others, and early ones are among them."""
    labelled = labelled_runs(200)
    held = held_back(labelled.groups, 0.4)
    first, second = (
        LabelledRows(labelled, labelled.groups, "action", seed).held_back(held, 0).confidence[LEARNED]
        for seed in (0, 1)
    )
    assert len(first) == held.sum()
    assert first.tolist() != second.tolist()


def test_cross_validation_predicts_every_run_without_its_task():
    """So that a label that is unlike the rest of its kind does not predict itself."""
    labelled = labelled_runs(150)
    found = LabelledRows(labelled, labelled.groups, "end", 0).cross_validated(0)
    fitted = [found.profile.confidence(each).score for each in labelled.traces]
    truth = np.array(labelled.labels)
    assert 150 == len(found.places)
    assert cal.assess(found.confidence[LEARNED], truth).auroc < cal.assess(fitted, truth).auroc
