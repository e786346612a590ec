"""What thresholds are asked to promise."""

from __future__ import annotations

import pytest

from grace_kp import calibrate as cal


def test_it_says_how_many_labels_it_needs():
    """Before anyone collects them: delta is shared among the levels."""
    promise = cal.Promise(risks={"confirm": 0.35, "silent": 0.05})
    assert {"silent": cal.labels_needed(0.05, 0.1, 2), "confirm": cal.labels_needed(0.35, 0.1, 2)} == promise.needed
    assert ["silent", "confirm"] == list(promise.risks)
    (sentence,) = promise.lacking(10)
    assert "silent at 0.05 needs at least 59 labels without an error, and there are 10" == sentence
    assert () == promise.lacking(59)


@pytest.mark.parametrize(
    ("kind", "moment", "words"),
    [
        ("selective", "action", "of all actions at the level or a milder one, at most this share is wrong"),
        ("overall", "end", "of all runs, at most this share both reaches the level or a milder one and is wrong"),
    ],
)
def test_it_states_itself(kind, moment, words):
    """The two kinds of promise are different sentences."""
    promise = cal.Promise(risks={"silent": 0.02}, kind=kind, moment=moment)
    assert words in promise.in_words
    assert "silent 0.02" in promise.in_words


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"risks": {}}, "risks must name one or more of the levels silent, notify, confirm"),
        ({"risks": {"loud": 0.1}}, "'loud'"),
        ({"risks": {"silent": 0.2, "notify": 0.1}}, "must not fall"),
        ({"risks": {"silent": 1.0}}, "above 0 and below 1"),
        ({"delta": 0.0}, "delta must be above 0"),
        ({"kind": "conformal"}, "promise must be selective or overall"),
        ({"moment": "start"}, "moment must be end or action"),
    ],
)
def test_what_cannot_be_promised_is_refused(fields, problem):
    """The message names the argument."""
    with pytest.raises(ValueError, match=problem):
        cal.Promise(**{"risks": {"silent": 0.05}, **fields})
