"""Coefficients of agreement, against independent implementations."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from grace_kp import calibrate as cal
from tests.calibrate.gated import answered, document

ACTIONS = ("proceed", "cancel", "modify", "skip")
PAIRS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(ACTIONS)), min_size=20, max_size=40)


def agreement(questions):
    """The agreement on questions: a list of answers by name for each."""
    traces = [
        document(number, *(answered(action, name, digest=f"d{number}") for name, action in answers.items()))
        for number, answers in enumerate(questions)
    ]
    return cal.reviewers(traces).questions


def alpha(questions):
    """Krippendorff's alpha, from all pairs of answers."""
    units = [list(answers.values()) for answers in questions if len(answers) > 1]
    observed = sum(sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    values = [value for unit in units for value in unit]
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (len(values) - 1)
    return 1 - observed / expected if expected else None


@given(PAIRS)
def test_kappa_is_that_of_scikit_learn(answers):
    """Of two people; the shares of equal answers are counted."""
    (pair,) = agreement([{"ana": first, "bo": second} for first, second in answers]).pairs
    assert (("ana", "bo"), sum(a == b for a, b in answers), len(answers)) == (pair.names, pair.same.count, pair.same.of)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cohen_kappa_score(*zip(*answers, strict=True))
    if np.isnan(expected):
        assert (None, "everybody always gave the same answer") == (pair.kappa.value, pair.kappa.why_none)
    else:
        assert np.isclose(expected, pair.kappa.value)
        assert pair.kappa.low <= pair.kappa.high


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(ACTIONS[:3]), min_size=1), min_size=25, max_size=40
    )
)
def test_alpha_is_that_of_all_pairs_of_answers(questions):
    """With any number of people for each question."""
    found = agreement(questions)
    shared = [answers for answers in questions if len(answers) > 1]
    assert len(shared) == found.same.of
    assert sum(len(set(answers.values())) == 1 for answers in shared) == found.same.count
    if len(shared) >= 20 and (expected := alpha(questions)) is not None:
        assert np.isclose(expected, found.alpha.value)
    elif len(shared) < 20:
        assert f"not enough questions: {len(shared)} of the 20 that are needed" == found.alpha.why_none


def test_the_interval_holds_the_agreement_of_a_larger_sample():
    """Over 40 draws of 100 questions, about 95 % of the intervals hold the kappa of the whole population."""
    generator = np.random.default_rng(2)

    def draw(count):
        truth = generator.integers(0, 2, count)
        flips = generator.random((2, count)) < 0.15
        return [{"ana": ACTIONS[t ^ a], "bo": ACTIONS[t ^ b]} for t, a, b in zip(truth, *flips, strict=True)]

    expected = agreement(draw(20_000)).pairs[0].kappa.value
    held = sum((kappa := agreement(draw(100)).pairs[0].kappa).low <= expected <= kappa.high for _ in range(40))
    assert held >= 33


@pytest.mark.parametrize("count", [0, 1, 19])
def test_few_questions_give_no_coefficient(count):
    """The message says how many there are, and how many are needed."""
    found = agreement([{"ana": "proceed", "bo": "cancel"}] * count)
    assert (None, f"not enough questions: {count} of the 20 that are needed") == (
        found.alpha.value,
        found.alpha.why_none,
    )
