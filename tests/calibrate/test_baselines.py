"""The formula and the run length, which a learned confidence must beat."""

from __future__ import annotations

import numpy as np

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.calibrate._predictions import formula_confidence, length_confidences
from tests.calibrate.examples import drawn_runs, run

CALL = ("tool_call", ("find", {"order": 1}))


def test_the_formula_is_that_of_a_finished_run():
    """The confidence that `grace` computes."""
    for each in drawn_runs(20)[0]:
        expected = gk.ConfidenceCalculator("grace").calculate(gk.confidence.factors_from_trace(each)).score
        assert expected == formula_confidence(each, None, cal.features(each))


def test_before_an_action_the_formula_sees_no_later_call():
    """Whatever follows does not change it, with recorded calls and without."""
    calls = [
        {"tool_call": 0, "observation": 1, "name": "find", "status": "ok", "kind": "tool"},
        {"tool_call": 2, "observation": 3, "name": "find", "status": "error", "kind": "tool"},
    ]
    steps = [
        CALL,
        ("observation", "found"),
        CALL,
        ("observation", "Error: no"),
        ("error_recovery", "again"),
        ("thought", "x"),
    ]
    for recorded in (calls, None):
        long, short = run(steps, calls=recorded), run(steps[:2], calls=recorded and recorded[:1])
        found = [formula_confidence(each, 2, cal.features(each, moment="action", upto=2)) for each in (long, short)]
        assert found[0] == found[1]
        assert found[0] != formula_confidence(long, None, cal.features(long))


def test_judgements_count_in_the_formula():
    """A good self-evaluation raises it, as it did when the run was recorded."""
    steps = [CALL, ("observation", "found")]
    plain, judged = run(steps), run(steps, evaluation={"self_evaluation": {"score": 0.9}})
    low, high = (formula_confidence(each, None, cal.features(each)) for each in (plain, judged))
    assert low < high


def test_run_length_predicts_by_the_number_of_steps_alone():
    """Runs of the same length have the same confidence, and it follows the labels."""
    rows = [cal.features(run([("thought", "x")] * count)) for count in (1, 1, 8, 8)] * 20
    found = length_confidences(rows, np.array([1.0, 1.0, 0.0, 0.0] * 20), np.ones(80), rows[:4])
    assert found[0] == found[1] > 0.7
    assert found[2] == found[3] < 0.3


def test_runs_of_one_length_have_the_share_of_successes():
    """There is nothing to learn from."""
    rows = [cal.features(run([("thought", "x")]))] * 10
    found = length_confidences(rows, np.array([1.0] * 7 + [0.0] * 3), np.ones(10), rows[:1])
    assert abs(found[0] - 0.7) < 0.05
