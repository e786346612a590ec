"""Thresholds that keep a promise: their order, their bounds, what is said where there are none, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import grace_kp as gk
from grace_kp import calibrate as cal

RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}


def runs(n, seed=0):
    """Confidences that mean what they say, with labels."""
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, random.random(n) < scores


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=200),
    st.sampled_from(["selective", "overall"]),
)
def test_the_result_states_what_can_be_counted(pairs, promise):
    """Whatever the sample: ordered thresholds, and coverage, errors and bounds that follow from them."""
    scores, labels = np.array([pair[0] for pair in pairs]) / 20, np.array([pair[1] for pair in pairs])
    found = cal.risk_thresholds(scores, labels, RISKS, promise=promise)
    assert found.thresholds.silent >= found.thresholds.notify >= found.thresholds.confirm
    for level, risk in RISKS.items():
        reached = scores >= getattr(found.thresholds, level)
        assert reached.mean() == pytest.approx(found.coverage[level])
        assert (reached & ~labels).sum() == found.errors[level]
        if getattr(found.thresholds, level) == math.inf:
            assert found.bounds[level] is None
            assert any(note.startswith(f"{level} is never used") for note in found.notes)
        else:
            trials = reached.sum() if promise == "selective" else len(scores)
            errors = found.errors[level]
            bound = 1.0 if errors == trials else stats.beta.ppf(1 - 0.1 / 3, errors + 1, trials - errors)
            assert bound == pytest.approx(found.bounds[level], abs=1e-9)
            assert found.bounds[level] <= risk + 1e-9


def test_labels_without_an_error():
    """203 of them allow a risk of 0.02 at a third of 0.05, and 202 do not; the report says that one is lacking."""
    risks = {"silent": 0.02, "notify": 0.05, "confirm": 0.1}
    assert [203, 80, 39] == [cal.labels_needed(risk, 0.05) for risk in risks.values()]
    enough = cal.risk_thresholds([0.9] * 203, [True] * 203, risks, 0.05)
    assert gk.Thresholds(0.0, 0.0, 0.0) == enough.thresholds
    lacking = cal.risk_thresholds([0.9] * 202, [True] * 202, risks, 0.05)
    assert gk.Thresholds(math.inf, 0.0, 0.0) == lacking.thresholds
    assert (
        "silent is never used: a risk of 0.02 needs at least 203 labels, all of them correct; 1 more than there are.",
    ) == lacking.notes


def test_more_labels_are_foretold():
    """Where the shares of errors allow a level, the note says about how many labels it takes; with twice as many alike it is used."""
    scores, labels = runs(120)
    (note,) = (note for note in cal.risk_thresholds(scores, labels, RISKS).notes if note.startswith("silent"))
    more = int(note.split("About ")[1].split(" ")[0].replace(",", ""))
    assert 50 < more < 5_000
    copies = 1 + 2 * more // 120
    assert math.inf > cal.risk_thresholds(np.tile(scores, copies), np.tile(labels, copies), RISKS).thresholds.silent


def test_labels_that_cannot_help():
    """A confidence that says nothing of an agent that is wrong half of the time allows no level, however many labels there are."""
    found = cal.risk_thresholds([0.9] * 4_000, [True, False] * 2_000, RISKS)
    assert gk.Thresholds(math.inf, math.inf, math.inf) == found.thresholds
    assert all("More labels alone would not change that" in note for note in found.notes)
    assert 3 == len(found.notes)


@pytest.mark.parametrize("labels", [[True], [False, True, False], [True] * 3], ids=["one", "three", "three right"])
def test_few_labels_allow_nothing(labels):
    """And the notes say how many there have to be."""
    found = cal.risk_thresholds([0.9] * len(labels), labels, RISKS)
    assert gk.Thresholds(math.inf, math.inf, math.inf) == found.thresholds
    assert {"silent": 0.0, "notify": 0.0, "confirm": 0.0} == found.coverage


def test_what_is_safe_for_a_stricter_level_is_so_for_a_milder():
    """Equal risks lead to equal thresholds."""
    found = cal.risk_thresholds(*runs(2_000), {"silent": 0.2, "notify": 0.2, "confirm": 0.2})
    assert found.thresholds.silent == found.thresholds.notify == found.thresholds.confirm < 1


@pytest.mark.parametrize(
    ("risks", "never"),
    [({"silent": 0.2}, ()), ({"notify": 0.2}, ("silent",)), ({"confirm": 0.4}, ("silent", "notify"))],
)
def test_a_level_without_a_promise_lets_nothing_through(risks, never):
    """Nothing acts unasked that no promise covers; asking needs no promise."""
    thresholds = cal.risk_thresholds(*runs(2_000), risks).thresholds
    assert all(math.inf == getattr(thresholds, level) for level in never)
    if "silent" in risks:
        assert thresholds.silent == thresholds.notify
    assert thresholds.confirm <= 1


def test_the_overall_promise_allows_more_where_most_is_right():
    """An agent that is right in 98 of 100 runs breaks it nowhere, while too few labels show the selective one."""
    labels = [True] * 98 + [False] * 2
    scores = [0.9] * 98 + [0.1] * 2
    assert 1.0 == cal.risk_thresholds(scores, labels, {"notify": 0.1}, promise="overall").coverage["notify"]
    few = cal.risk_thresholds(scores[60:], labels[60:], {"notify": 0.08}, promise="selective")
    assert few.coverage["notify"] <= 1


def test_fractions_are_left_out():
    """A guarantee uses only 0 and 1, and the notes say how many labels it does without."""
    scores, labels = [0.9] * 300, [1.0] * 200 + [0.5] * 100
    found = cal.risk_thresholds(scores, labels, RISKS)
    assert 200 == found.n
    assert "100 labels between 0 and 1 were left out: a guarantee uses only 0 and 1." in found.notes
    with pytest.raises(ValueError, match="no label of 0 or 1 is left"):
        cal.risk_thresholds([0.9], [0.5], RISKS)


def test_trials_of_one_task_count_once():
    """A hundred copies of ten runs are ten labels."""
    scores, labels = [0.9] * 1_000, [True] * 1_000
    found = cal.risk_thresholds(scores, labels, RISKS, groups=[i % 10 for i in range(1_000)])
    assert 10 == found.n
    assert math.inf == found.thresholds.notify
    assert any("one label of each of 10 groups" in note for note in found.notes)


def test_weights_undo_a_biased_collection():
    """Errors are labelled ten times as often: with weights, the promise holds for all runs, and without them nothing would be allowed."""
    random = np.random.default_rng(0)
    wrong = random.random(40_000) < 0.1
    asked = random.random(40_000) < np.where(wrong, 1.0, 0.1)  # as if a person saw whatever went wrong
    weights = np.where(wrong, 1.0, 10.0)[asked]
    scores, labels = np.full(40_000, 0.9)[asked], ~wrong[asked]
    assert math.inf == cal.risk_thresholds(scores, labels, {"notify": 0.15}).thresholds.notify
    found = cal.risk_thresholds(scores, labels, {"notify": 0.15}, weights=weights)
    assert 0.0 == found.thresholds.notify
    assert 0.1 == pytest.approx(found.errors["notify"] / found.n, abs=0.02)
    assert any("remain after thinning" in note for note in found.notes)


def test_a_million_labels():
    """Have a result too."""
    found = cal.risk_thresholds(*runs(1_000_000), RISKS)
    assert 1_000_000 == found.n
    assert 0.09 < found.coverage["silent"] < 0.1


def test_the_json_form():
    """Has "never" for infinity and no other word that JSON lacks."""
    found = cal.risk_thresholds(*runs(200), RISKS)
    assert "never" == found.to_dict()["thresholds"]["silent"]
    assert found.to_dict() == json.loads(json.dumps(found.to_dict(), allow_nan=False))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"risks": {}}, "got none"),
        ({"risks": {"escalate": 0.1}}, "levels silent, notify, confirm"),
        ({"risks": {"silent": 0}}, "above 0 and below 1"),
        ({"risks": {"silent": math.nan}}, "silent"),
        ({"risks": {"silent": 0.2, "confirm": 0.1}}, "must not fall"),
        ({"delta": 0}, "delta"),
        ({"delta": 1.5}, "delta"),
        ({"promise": "mostly"}, '"selective" or "overall"'),
        ({"groups": ["a"]}, "one group for each sample"),
        ({"weights": [1.0, -1.0]}, r"weights\[1\]"),
    ],
)
def test_arguments_are_checked(arguments, message):
    """Each with its name."""
    with pytest.raises(ValueError, match=message):
        cal.risk_thresholds([0.5, 0.6], [True, False], **{"risks": RISKS, **arguments})
    with pytest.raises(ValueError, match="risk must be above 0"):
        cal.labels_needed(0.0)
