"""Fitting a learned confidence, and refusing where that is not possible."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from grace_kp import ReasoningTrace
from grace_kp import calibrate as cal
from grace_kp.calibrate._calibration import LEARNED, formula_confidence, held_back, length_confidences, predict_others
from tests.calibrate.examples import drawn_runs, labelled_runs, run

RUNS, LABELS = drawn_runs(200)


def test_confidence_ranks_runs_that_were_not_fitted():
    profile = cal.fit(RUNS, LABELS)
    others, labels = drawn_runs(400, seed=1)
    for moment, least in (("end", 0.75), ("action", 0.6)):
        confidence = [profile.predict(run, moment=moment) for run in others]
        assert all(0 <= value <= 1 for value in confidence)
        assert least < roc_auc_score(labels, confidence)
    assert abs(np.mean([profile.predict(run) for run in others]) - np.mean(labels)) < 0.1


def test_out_of_fold_predictions_are_kept():
    profile = cal.fit(RUNS, LABELS, groups=[number // 4 for number in range(200)])
    confidence, correct, groups = profile.out_of_fold("end")
    assert (200, 200, 50) == (len(confidence), len(correct), len(set(groups)))
    assert [float(label) for label in LABELS] == correct.tolist()
    assert 0.7 < roc_auc_score(correct, confidence)
    assert len(profile.out_of_fold("action")[0]) > 300


def test_the_same_labels_give_the_same_profile():
    first = cal.fit(RUNS, LABELS, seed=3)
    second = cal.fit([ReasoningTrace.model_validate(run) for run in RUNS], LABELS, seed=3)
    assert {**first.to_dict(), "fitted_on": 0} == {**second.to_dict(), "fitted_on": 0}


def test_runs_without_signal_get_the_share_of_successes():
    runs, _ = drawn_runs(300, seed=2)
    profile = cal.fit(runs, [number % 3 > 0 for number in range(300)], groups=range(300))
    assert all(0.55 < profile.predict(run) < 0.8 for run in runs)


def test_labels_may_be_shares_and_may_have_weights():
    shares = [0.9 if label else 0.2 for label in LABELS]
    plain = cal.fit(RUNS, shares)
    wary = cal.fit(RUNS, shares, weights=[1.0 if label else 3.0 for label in LABELS])
    assert np.mean([plain.predict(run) for run in RUNS]) == pytest.approx(np.mean(shares), abs=0.05)
    assert np.mean([wary.predict(run) for run in RUNS]) < np.mean(shares) - 0.05


def test_what_it_was_fitted_on_is_recorded():
    found = cal.fit(RUNS, LABELS, sources=["test"] * 150 + ["user"] * 50).fitted_on
    assert (200, 20) == (found["runs"], found["tasks"])
    assert (["kp:agent:clerk"], ["find", "pay", "send"]) == (found["agents"], found["tools"])
    assert {"test": 150, "user": 50} == found["labels"]
    assert ("2026-11-01T00:00:00Z",) * 2 == (found["from"], found["to"])


def test_runs_of_the_same_objective_are_tasks_of_their_own():
    runs, labels = drawn_runs(80, tasks=1)
    found = cal.fit(runs, labels).fitted_on
    assert 80 == found["tasks"]
    assert "pass groups=" in found["notes"][0]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([True] * 3, "there are 3, 3 correct and 0 wrong; at least 50 are needed, 15 of each. Collect 47 more labels, 15 more of them wrong"),
        ([True] * 80, "80 correct and 0 wrong; .* Collect 15 more of them wrong"),
        ([True] * 20 + [False] * 20, "Collect 10 more labels$"),
        ([0.5] * 79 + [float("nan")], "labels\\[79\\] must be a number from 0 to 1"),
        ([2] * 80, "labels\\[0\\] must be a number from 0 to 1"),
        (["yes"] * 80, "labels\\[0\\] must be a number from 0 to 1"),
    ],
)  # fmt: skip
def test_too_few_or_unusable_labels_are_refused(labels, problem):
    with pytest.raises(ValueError, match=problem):
        cal.fit(RUNS[: len(labels)], labels)


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"groups": [1]}, "200 runs and 1 groups"),
        ({"groups": [1, 2] * 100}, "runs of 5 different tasks are needed, and these are of 2"),
        ({"weights": [1.0]}, "200 runs and 1 weights"),
        ({"weights": [0.0] * 200}, r"weights\[0\] must be a number above 0"),
        ({"weights": [1e300] * 200}, "weights"),
        ({"sources": []}, "200 runs and 0 sources"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(how, problem):
    with pytest.raises(ValueError, match=problem):
        cal.fit(RUNS, LABELS, **how)
    with pytest.raises(ValueError, match="200 runs and 199 labels"):
        cal.fit(RUNS, LABELS[:-1])
    with pytest.raises(ValueError, match="run 1 is 'text'"):
        cal.fit([RUNS[0], "text", *RUNS[2:]], LABELS)


def test_whole_tasks_are_held_back():
    groups = [number // 4 for number in range(100)]
    held = held_back(groups, 0.4, seed=1)
    assert 10 == len({group for group, is_held in zip(groups, held, strict=True) if is_held})
    assert 40 == held.sum()
    assert held.tolist() == held_back(groups, 0.4, seed=1).tolist()
    assert held.tolist() != held_back(groups, 0.4, seed=2).tolist()
    assert 0 == held_back(groups, 0).sum()


@pytest.mark.parametrize("share", [1.0, -0.1, float("nan"), "half", True])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="holdout must be a share of the tasks from 0 to below 1"):
        held_back([1, 2], share)


def test_predictions_are_exactly_those_of_the_profile_that_is_saved():
    """Rounded as it rounds them, so that gates compare the same numbers with the thresholds."""
    labelled = labelled_runs(200)
    held = held_back(labelled.groups, 0.4)
    found = predict_others(labelled, labelled.groups, "end", held, 0)
    runs = [trace for trace, is_held in zip(labelled.traces, held, strict=True) if is_held]
    assert [found.profile.confidence(each).score for each in runs] == found.confidence[LEARNED].tolist()
    assert np.flatnonzero(held).tolist() == found.places.tolist()


def test_before_an_action_one_action_of_each_run_is_drawn():
    labelled = labelled_runs(200)
    held = held_back(labelled.groups, 0.4)
    first, second = (
        predict_others(labelled, labelled.groups, "action", held, seed).confidence[LEARNED] for seed in (0, 1)
    )
    assert len(first) == held.sum()
    assert first.tolist() != second.tolist()


def test_cross_validation_predicts_every_run_without_its_task():
    labelled = labelled_runs(150)
    found = predict_others(labelled, labelled.groups, "end", np.zeros(150, dtype=bool), 0)
    fitted = [found.profile.confidence(each).score for each in labelled.traces]
    truth = np.array(labelled.labels)
    assert 150 == len(found.places)
    assert cal.assess(found.confidence[LEARNED], truth).auroc < cal.assess(fitted, truth).auroc


CALL = ("tool_call", ("find", {"order": 1}))


def test_before_an_action_the_formula_sees_no_later_call():
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
        found = [formula_confidence(each, 2) for each in (long, short)]
        assert found[0] == found[1]
        assert found[0] != formula_confidence(long, None)


def test_run_length_predicts_by_the_number_of_steps_alone():
    rows = [cal.features(run([("thought", "x")] * count)) for count in (1, 1, 8, 8)] * 20
    found = length_confidences(rows, np.array([1.0, 1.0, 0.0, 0.0] * 20), np.ones(80), rows[:4])
    assert found[0] == found[1] > 0.7
    assert found[2] == found[3] < 0.3
