"""Labelled actions to a confidence, thresholds with a promise about actions, and what predicts errors; as figures, as a page."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.calibrate._assess import predictors_of
from grace_kp.confidence import ACTION_FEATURES, ActionAlarm, ActionFeatures
from grace_kp.testing import make_grace
from tests.calibrate.examples import acted

HOSTILE = "<script>alert(1)</script>\u202e"
PROMISE = cal.Promise(risks={"silent": 0.1, "notify": 0.25}, unit="action")


def test_thresholds_are_chosen_on_tasks_that_were_not_fitted():
    """One action of each held-back task; the profile states the promise and that it is about actions."""
    found = cal.calibrate_actions(acted(200), PROMISE)
    sample = found.sample
    assert (400, 200, 240, 160, 80) == (
        sample["actions"], sample["tasks"], sample["fitted_actions"], sample["assessed_actions"], sample["tested"],
    )  # fmt: skip
    assert found.thresholds.n == 80
    promise = found.profile.promise
    assert ("action", "action", 80) == (promise["unit"], promise["moment"], promise["n"])
    assert found.profile.thresholds == found.thresholds.thresholds
    assert found.assessments["learned"].auroc > 0.7
    assert {"pay", "send"} == set(found.by_group["tool"]) == set(found.tools)
    assert () == found.objections


def test_a_perfect_confidence_is_no_reason_against_the_profile():
    """All resamples then agree, so that there is no interval; with fewer than ten tasks nothing is known."""
    labelled = acted(200)
    actions = [
        dataclasses.replace(each, correct="note0" not in each.trace.decisions[each.position].arguments)
        for each in labelled.actions
    ]
    found = cal.calibrate_actions(dataclasses.replace(labelled, actions=actions), PROMISE)
    assert (1.0, None, ()) == (
        found.assessments["learned"].auroc, found.assessments["learned"].intervals["auroc"], found.objections,
    )  # fmt: skip
    few = dataclasses.replace(found, sample={**found.sample, "assessed_tasks": 9})
    assert (
        "its AUROC has no interval on these labels, so it may not tell right actions from wrong ones" in few.objections
    )


def test_the_same_labels_and_seed_give_the_same_figures():
    first, second = (cal.calibrate_actions(acted(60), PROMISE, seed=3).to_dict() for _ in range(2))
    assert first == second == json.loads(json.dumps(first, allow_nan=False))


def test_only_audited_labels_enter_the_promise():
    """Others are fitted on, and however many there are, they change no threshold and no count of the promise."""
    mixed = cal.calibrate_actions(acted(120, is_audited=lambda number: number % 2 == 1), PROMISE)
    assert any("240 labels" not in note and "left out of the promise" in note for note in mixed.notes)
    assert {"send"} == {name for name, each in mixed.tools.items() if each.n} or mixed.thresholds.n <= 48
    none = cal.calibrate_actions(acted(120, is_audited=lambda number: False), PROMISE)
    assert (0, {}, gk.Thresholds(math.inf, math.inf, math.inf)) == (
        none.thresholds.n,
        none.tools,
        dataclasses.replace(none.profile.thresholds, confirm=math.inf),
    )
    assert ("every level is never, so gates would escalate every action",) == none.objections[-1:]
    alone = cal.calibrate_actions(acted(120, is_audited=lambda number: False), PROMISE, per_tool=True)
    assert none.notes == alone.notes
    assert not any("for each tool alone" in note for note in alone.notes)
    assert [29, 11] == [level.more for level in none.levels] == list(none.promise.needed.values())


def test_thresholds_of_each_tool():
    """The profile has them for each tool, and at each level the strictest of them for all other tools."""
    found = cal.calibrate_actions(acted(400), PROMISE, per_tool=True)
    own = found.profile.action.thresholds
    assert {name: each.thresholds for name, each in found.tools.items()} == own
    for level in ("silent", "notify", "confirm"):
        assert max(getattr(each, level) for each in own.values()) == getattr(found.profile.thresholds, level)
    assert any("for each tool alone" in note for note in found.notes)
    assert {"pay", "send"} == set(own)


@pytest.mark.parametrize("holdout", [0.4, 0])
def test_few_labels_say_what_is_missing(holdout):
    """The rate of the tool is the confidence, no level is used, and nothing that was not measured has a figure."""
    found = cal.calibrate_actions(acted(6, seed=1), PROMISE, holdout=holdout)
    rate = "the confidence in an action is the rate of its tool: "
    assert any(note.startswith(rate) and "a regression needs at least 50 labels" in note for note in found.notes)
    assert all(level.threshold is None and level.more for level in found.levels)
    assert found.assessments["learned"].intervals["auroc"] is None
    assert all(each.interval is None for each in found.predictors)
    page = cal.calibration_page(found)
    assert "nan" not in page
    assert "Do not use this profile: every level is never" in page


def test_labels_that_cannot_be_used_are_refused():
    with pytest.raises(ValueError, match=r"there are no labelled actions \(3 no label\); grace.feedback"):
        cal.calibrate_actions(acted(0), PROMISE)
    with pytest.raises(ValueError, match="must be about actions"):
        cal.calibrate_actions(acted(10), cal.Promise(risks={"silent": 0.1}))
    with pytest.raises(
        ValueError, match="the only task is held back to choose the thresholds; label actions in more tasks"
    ):
        cal.calibrate_actions(acted(1), PROMISE)
    with pytest.raises(ValueError, match="moment must be action"):
        cal.Promise(risks={"silent": 0.1}, unit="action", moment="end")


def test_an_action_of_which_too_little_is_recorded_is_left_out():
    """It is counted with the reason."""
    labelled = acted(40)
    hidden = acted(2, hidden={"order": 4}, seed=2)
    found = cal.calibrate_actions(dataclasses.replace(labelled, actions=labelled.actions + hidden.actions), PROMISE)
    assert (80, 3, 4) == (found.sample["actions"], *found.sample["left_out"].values())


def test_the_page_has_every_part_and_hides_nothing_dangerous():
    page = cal.calibration_page(cal.calibrate_actions(acted(60, tools=(HOSTILE, "send")), PROMISE), "Actions")
    for words in ("120 labelled actions", "The learned confidence by tool", "Labels still needed, by tool", "What predicts errors", "many arguments", "share of actions that run", "not within each tool, source", "no label"):  # fmt: skip
        assert words in page
    assert "<script" not in page
    assert "\u202e" not in page
    own = cal.calibration_page(cal.calibrate_actions(acted(60), PROMISE, per_tool=True))
    assert "It holds for each tool" in own


def features(**values):
    return ActionFeatures("pay", tuple(float(values.get(name, 0.0)) for name in ACTION_FEATURES))


def test_what_predicts_errors_has_counts_first():
    """60 of 200 flagged, 40 of them wrong; of the other 140, 14."""
    actions = [features(beside=number < 60) for number in range(200)]
    labels = np.array([float(not (number < 40 or 60 <= number < 74)) for number in range(200)])
    (found,) = predictors_of(actions, labels, list(range(200)))
    assert found.odds_ratio == 40 * 126 / (20 * 14)
    assert found.interval[0] < found.odds_ratio < found.interval[1]
    assert str(found).startswith(
        "a value beside instructions: 60 of 200 actions have it: 67% wrong, others 10%; odds ratio 18 ("
    )


def test_a_feature_that_makes_no_difference_predicts_nothing():
    """Half an action is added only where a count is 0, so that equal shares have the odds ratio 1."""
    actions = [features(beside=number % 9 < 3) for number in range(360)]
    labels = np.array([float(number % 3 > 0) for number in range(360)])
    (found,) = predictors_of(actions, labels, [number // 9 for number in range(360)])
    assert (("33%", "33%"), 1.0, (1.0, 1.0)) == (found.shares, found.odds_ratio, found.interval)
    assert found.clearness == 0


def test_the_interval_of_an_odds_ratio_rests_on_tasks():
    """Ten alike actions in each task are no more evidence than one, and fewer than ten tasks give no interval."""
    flagged, labels = [number < 15 for number in range(40)], [float(number % 3 > 0) for number in range(40)]
    (one,) = predictors_of([features(beside=each) for each in flagged], np.array(labels), list(range(40)))
    tasks = [number for number in range(40) for _ in range(10)]
    (ten,) = predictors_of([features(beside=flagged[n]) for n in tasks], np.array([labels[n] for n in tasks]), tasks)
    width = [math.log(each.interval[1] / each.interval[0]) for each in (one, ten)]
    assert width[1] > 0.8 * width[0]
    (few,) = predictors_of(
        [features(beside=flagged[n]) for n in tasks], np.array([labels[n] for n in tasks]), [n % 9 for n in tasks]
    )
    assert few.interval is None
    assert -math.inf == few.clearness


@pytest.mark.parametrize(("wrong", "has_interval"), [(0, False), (4, False), (5, True)])
def test_an_odds_ratio_has_an_interval_only_with_some_tasks_in_each_cell(wrong, has_interval):
    """Without one error in a hundred tasks, resamples all say the same, which would look like knowledge."""
    actions = [features(beside=number < 30) for number in range(100)]
    labels = np.array([float(number >= wrong and not 30 <= number < 40) for number in range(100)])
    (found,) = predictors_of(actions, labels, list(range(100)))
    assert has_interval == (found.interval is not None)


def test_the_alarm_that_is_no_feature_is_looked_at_too():
    alarm = ActionAlarm("nowhere", "order", "pay", (), False)
    actions = [dataclasses.replace(features(), alarms=(alarm,) * (number % 4 == 0)) for number in range(80)]
    (found,) = predictors_of(actions, np.array([float(number % 4 > 0) for number in range(80)]), list(range(80)))
    assert ("nowhere", 20, 20, 0) == (found.name, found.flagged, found.wrong, found.wrong_others)


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 20)), max_size=60
)


@given(ROWS)
def test_predictors_are_sorted_and_their_counts_add_up(rows):
    actions = [features(beside=first > 1, errors=second) for first, second, _, _ in rows]
    found = predictors_of(actions, np.array([row[2] for row in rows]), [row[3] for row in rows])
    plain = [row for row in rows if row[2] in (0, 1)]
    assert sorted((each.clearness for each in found), reverse=True) == [each.clearness for each in found]
    for each in found:
        assert (len(plain), sum(row[2] == 0 for row in plain)) == (each.n, each.wrong + each.wrong_others)
        assert 0 < each.flagged < each.n
        assert math.isfinite(each.odds_ratio)
        assert each.odds_ratio > 0


def agreed(request):
    return gk.InterventionResponse("proceed", reviewer="ben")


def paying(grace, runs):
    """Record runs of one payment each, and state of each whether it was right."""

    @grace.gate(name="pay", floor="silent")
    def pay(order, note=""):
        return "paid"

    for number in range(runs):
        right = number % 6 > 0
        with grace.run(f"Pay order {1000 + number}") as run:
            grace.thought("I pay.")
            pay(1000 + number if right else 77_000, note="" if right else "another order, " * 9)
        grace.flush()
        grace.feedback(run.id, right, action=run.trace.decisions[0].id, by="ana", probability=1)
    return run.trace


@pytest.mark.parametrize("per_tool", [False, True])
def test_what_is_calibrated_decides_at_gates_and_is_watched(tmp_path, per_tool):
    """Labels of actions become a profile; gates use its thresholds, a replay reproduces them, and the monitor counts later labels of actions."""
    store, file = f"sqlite:///{tmp_path}/t.db", tmp_path / "p.json"
    with make_grace(store=store, reviewer=agreed) as grace:
        paying(grace, 90)
        found = cal.calibrate_actions(
            cal.action_labels(grace), cal.Promise(risks={"notify": 0.35}, unit="action"), per_tool=per_tool
        )
    assert found.thresholds.thresholds.notify < math.inf
    found.profile.save(file)
    with make_grace(store=store, profile=file, monitor=True, reviewer=agreed) as grace:
        trace = paying(grace, 2)
        (decided,) = trace.decisions
        assert ("notify", ()) == (decided.level, decided.evidence_gaps)
        assert decided.score >= found.thresholds.thresholds.notify
        assert {"*": 2, "pay": 2} == {row["action"]: row["n"] for row in grace.status()["promise"]["figures"]}
        report = cal.replay([trace], str(file), include_fitted=True)  # the ids of both runtimes are the same
        assert (1, 0, {}) == (report.actions.decisions, report.actions.differing, report.actions.left_out)
