"""What is accepted as confidences, labels, groups and weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from grace_kp import calibrate as cal

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
    """Assessing and choosing thresholds refuse the same values with the same words."""
    with pytest.raises(ValueError, match=message):
        use(confidence, correct)


def test_arrays_lists_and_iterators_are_the_same():
    """Of numpy's types and Python's."""
    scores, labels = [0.1, 0.9, 0.8], [False, True, True]
    expected = cal.assess(scores, labels)
    assert expected == cal.assess(np.array(scores), np.array(labels))
    assert expected == cal.assess(iter(scores), (int(label) for label in labels))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("groups", ["a"], r"groups must hold one group for each sample \(got 1 for 2\)"),
        ("groups", [[1], [2]], "groups must be hashable"),
        ("weights", [1], "weights must hold one number for each sample"),
        ("weights", [1, 0], r"weights\[1\] must be a finite number above 0 \(got 0.0\)"),
        ("weights", [math.inf, 1], r"weights\[0\] must be a finite number above 0"),
        ("weights", ["a", 1], "weights must be numbers"),
    ],
)
def test_groups_and_weights_are_checked(name, values, message):
    """There is one for each sample, and it can be used."""
    with pytest.raises(ValueError, match=message):
        cal.assess([0.5, 0.6], [0, 1], **{name: values})
