"""Thresholds that keep a promise: their order, their bounds, what is said where there are none, and what is refused."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binom

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.calibrate._risk import Ranking, ladder, strictest

RISKS = {"silent": 0.05, "notify": 0.15, "confirm": 0.35}


def runs(n, seed=0):
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, random.random(n) < scores


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=200),
    st.sampled_from(["selective", "overall"]),
)
def test_the_result_states_what_can_be_counted(pairs, promise):
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


@pytest.mark.parametrize("promise", ["selective", "overall"])
@pytest.mark.parametrize(
    ("right", "wrong", "more"),
    [
        (12, 0, {"silent": 17, "notify": 0}),
        (5, 0, {"silent": 24, "notify": 6}),
        (0, 12, {"silent": None, "notify": None}),
        (0, 200, {"silent": None, "notify": None}),
        (6, 6, {"silent": None, "notify": None}),
        (5, 31, {"silent": None, "notify": None}),
    ],
)
def test_few_labels_foretell_by_their_errors_too(right, wrong, more, promise):
    """The least number of labels is enough only where none is wrong, also while there are fewer."""
    labels = [True] * right + [False] * wrong
    found = cal.risk_thresholds([0.9] * len(labels), labels, {"silent": 0.1, "notify": 0.25}, promise=promise)
    assert more == found.more


def test_an_error_among_few_labels_costs_more_than_one_label():
    found = cal.risk_thresholds([0.9] * 20, [True] * 19 + [False], {"silent": 0.1})
    assert found.more["silent"] > found.levels[0].needed - 20
    assert "with the errors of this sample, about" in found.notes[-1]


def test_labels_that_cannot_help():
    """A confidence that says nothing of an agent that is wrong half of the time allows no level, however many labels there are."""
    found = cal.risk_thresholds([0.9] * 4_000, [True, False] * 2_000, RISKS)
    assert gk.Thresholds(math.inf, math.inf, math.inf) == found.thresholds
    assert all("More labels alone would not change that" in note for note in found.notes)
    assert 3 == len(found.notes)


@pytest.mark.parametrize("labels", [[True], [False, True, False], [True] * 3], ids=["one", "three", "three right"])
def test_few_labels_allow_nothing(labels):
    found = cal.risk_thresholds([0.9] * len(labels), labels, RISKS)
    assert gk.Thresholds(math.inf, math.inf, math.inf) == found.thresholds
    assert {"silent": 0.0, "notify": 0.0, "confirm": 0.0} == found.coverage


@pytest.mark.parametrize(
    ("risks", "never"),
    [({"silent": 0.2}, ()), ({"notify": 0.2}, ("silent",)), ({"confirm": 0.4}, ("silent", "notify"))],
)
def test_a_level_without_a_promise_lets_nothing_through(risks, never):
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
    scores, labels = [0.9] * 300, [1.0] * 200 + [0.5] * 100
    found = cal.risk_thresholds(scores, labels, RISKS)
    assert 200 == found.n
    assert "100 labels between 0 and 1 were left out: a guarantee uses only 0 and 1." in found.notes
    with pytest.raises(ValueError, match="no label of 0 or 1 is left"):
        cal.risk_thresholds([0.9], [0.5], RISKS)


def test_trials_of_one_task_count_once():
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


def test_the_json_form():
    """Has "never" for infinity and no other word that JSON lacks."""
    found = cal.risk_thresholds(*runs(200), RISKS)
    assert "never" == found.to_dict()["thresholds"]["silent"]
    assert found.to_dict() == json.loads(json.dumps(found.to_dict(), allow_nan=False))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"risks": {}}, "got none"),
        ({"risks": {"escalate": 0.1}}, "one or more of silent, notify, confirm"),
        ({"risks": {"silent": 0}}, "above 0 and below 1"),
        ({"risks": {"silent": 0.2, "confirm": 0.1}}, "must not fall"),
        ({"delta": 0}, "delta"),
        ({"promise": "mostly"}, '"selective" or "overall"'),
        ({"groups": ["a"]}, "one group for each sample"),
        ({"weights": [1.0, -1.0]}, r"weights\[1\]"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        cal.risk_thresholds([0.5, 0.6], [True, False], **{"risks": RISKS, **arguments})
    with pytest.raises(ValueError, match="risk must be above 0"):
        cal.labels_needed(0.0)


DELTA = 0.1
LADDERS = functools.cache(ladder)


def drawn(n, chance, seed):
    """A sample of which a confidence c is right with the probability chance(c), and a function from a threshold to its true risk."""
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, (random.random(n) >= chance(scores)).astype(float)


def risk_above(chance, threshold):
    grid = np.linspace(min(threshold, 1 - 1e-9), 1, 4_001)
    return 1 - float(chance(grid).mean())


@given(st.integers(1, 100_000), st.floats(0.01, 0.6), st.floats(0.001, 0.2))
def test_the_parts_of_delta_sum_to_delta(n, risk, delta):
    ranks, shares = ladder(n, risk, delta)
    assert delta == pytest.approx(sum(shares))
    assert sorted(ranks) == ranks
    assert n == ranks[-1]
    assert min(shares) >= 0


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=80), st.floats(0.05, 0.6))
def test_what_is_found_passes_the_test_itself(pairs, risk):
    scores, wrong = map(np.array, zip(*pairs, strict=True))
    scores = scores / 10
    ranking = Ranking(scores, wrong.astype(float))
    threshold = ranking.selective(risk, DELTA)
    if threshold < math.inf:
        n, errors = ranking.at(threshold)
        assert n == (scores >= threshold).sum()
        assert errors == wrong[scores >= threshold].sum()
        assert binom.cdf(errors, n, risk) <= DELTA + 1e-12


@pytest.mark.parametrize(
    "chance", [np.sqrt, np.square, lambda c: c, lambda c: 0.5 + 0 * c], ids=["under", "over", "right", "constant"]
)
def test_a_promise_is_broken_in_at_most_delta_of_the_samples(chance, monkeypatch):
    """400 samples of known risk: the share of broken promises has delta within its own sampling error of one in 10,000."""
    monkeypatch.setattr("grace_kp.calibrate._risk.ladder", LADDERS)  # depends on the sample size alone
    risk, broken = 0.3, 0
    for seed in range(400):
        threshold = Ranking(*drawn(300, chance, seed)).selective(risk, DELTA)
        broken += threshold < math.inf and risk_above(chance, threshold) > risk
    assert binom.sf(broken - 1, 400, DELTA) > 1e-4


def test_overall_counts_errors_among_all_samples():
    scores, wrong = np.arange(100) / 100, np.zeros(100)
    wrong[[80, 60, 40]] = 1
    ranking = Ranking(scores, wrong)
    assert binom.cdf(2, 100, 0.07) <= 0.05 < binom.cdf(3, 100, 0.07)
    threshold = ranking.overall(0.07, 0.05)
    assert 0.4 < threshold < 0.41
    assert (59, 2) == ranking.at(threshold)
    assert 0.0 == ranking.overall(0.1, 0.05)  # three are few enough
    assert math.inf == ranking.overall(0.01, 0.05)  # even none would be too many


def test_a_tie_is_left_out_whole():
    ranking = Ranking(np.array([0.9] * 50 + [0.5] * 50), np.array([0.0] * 50 + [1.0] * 10 + [0.0] * 40))
    assert (50, 0) == ranking.at(ranking.overall(0.07, 0.05))
    assert (50, 0) == ranking.at(ranking.selective(0.07, 0.05))


SAMPLES = st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=1, max_size=60)


@given(SAMPLES, st.sampled_from(["selective", "overall"]))
def test_each_point_is_the_share_of_wrong_runs_at_its_threshold(rows, promise):
    points = cal.risk_curve([row[0] for row in rows], [row[1] for row in rows], promise)
    assert sorted({row[0] for row in rows}, reverse=True) == [point.confidence for point in points]
    for point in points:
        reached = [right for confidence, right in rows if confidence >= point.confidence]
        wrong = len(reached) - sum(reached)
        assert point.coverage == pytest.approx(len(reached) / len(rows))
        assert point.risk == pytest.approx(wrong / (len(rows) if promise == "overall" else len(reached)))
        assert 0 <= point.low <= point.risk <= point.high <= 1
    assert 1.0 == points[-1].coverage


def test_it_says_how_many_labels_it_needs():
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
    promise = cal.Promise(risks={"silent": 0.02}, kind=kind, moment=moment)
    assert words in promise.in_words
    assert "silent 0.02" in promise.in_words


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"risks": {}}, "risks must have a rate for one or more of silent, notify, confirm"),
        ({"delta": 0.0}, "delta must be above 0"),
        ({"kind": "conformal"}, "promise must be selective or overall"),
        ({"moment": "start"}, "moment must be end or action"),
    ],
)
def test_what_cannot_be_promised_is_refused(fields, problem):
    with pytest.raises(ValueError, match=problem):
        cal.Promise(**{"risks": {"silent": 0.05}, **fields})


def alike(tasks, random, tools=("pay",)):
    """Actions whose confidence c is right with the probability √c. Those of a task, 1 to 15, are nearly all the same."""
    size = random.permutation(np.arange(tasks) % 15 + 1)
    task = np.repeat(np.arange(tasks), size)
    scores, right = random.random(tasks), random.random(tasks)
    own = random.random(len(task)) < 0.05  # an action that is unlike the others of its task
    confidence = np.where(own, random.random(len(task)), scores[task])
    correct = np.where(own, random.random(len(task)), right[task]) < np.sqrt(confidence)
    return confidence, correct, task, np.asarray(tools)[random.integers(0, len(tools), len(task))]


def is_broken(thresholds, risk):
    """Whether more than this share of the actions at the level or a milder one is wrong in the long run."""
    return thresholds.notify < math.inf and risk_above(np.sqrt, thresholds.notify) > risk


def test_a_promise_about_actions_holds_by_task(monkeypatch):
    """2,000 samples of actions that are alike within a task: the promise holds by task. If each action counted, it would be broken far more often."""
    monkeypatch.setattr("grace_kp.calibrate._risk.ladder", LADDERS)
    broken, by_action, used = 0, 0, 0
    for seed in range(2_000):
        confidence, correct, task, _ = alike(100, np.random.default_rng(seed))
        found = cal.risk_thresholds(confidence, correct, {"notify": 0.15}, DELTA, groups=task, seed=seed).thresholds
        broken += is_broken(found, 0.15)
        used += found.notify < math.inf
        if seed < 200:
            found = cal.risk_thresholds(confidence, correct, {"notify": 0.15}, DELTA).thresholds
            by_action += is_broken(found, 0.15)
    assert used > 1_000
    assert binom.sf(broken - 1, 2_000, DELTA) > 1e-4
    assert binom.sf(by_action - 1, 200, DELTA) < 1e-4


RISK_OF_TOOLS = cal.Promise(risks={"notify": 0.15}, delta=DELTA)


def test_promises_of_tools_hold_together(monkeypatch):
    """In at most delta of the samples any tool breaks its own."""
    monkeypatch.setattr("grace_kp.calibrate._risk.ladder", LADDERS)
    broken, used = 0, 0
    for seed in range(200):
        confidence, correct, task, tools = alike(150, np.random.default_rng(seed), ("pay", "pay", "send", "void"))
        found = cal.tool_thresholds(confidence, correct, tools, RISK_OF_TOOLS, groups=task, seed=seed)
        broken += any(is_broken(each.thresholds, 0.15) for each in found.values())
        used += any(each.thresholds.notify < math.inf for each in found.values())
    assert used > 50
    assert binom.sf(broken - 1, 200, DELTA) > 1e-4


def lacking(level):
    return math.inf if level.more is None else level.more


TOOL_ROWS = st.lists(
    st.tuples(st.integers(0, 20), st.booleans(), st.sampled_from(["pay", "send", "void"]), st.integers(0, 60)),
    min_size=1,
    max_size=300,
)


@given(TOOL_ROWS, st.sampled_from(["selective", "overall"]))
def test_each_tool_has_its_own_thresholds(rows, promise):
    """They share delta, a tool with too few labels is never let through, and a tool without labels has the strictest level of all."""
    scores, labels, tools, tasks = zip(*rows, strict=True)
    wanted = cal.Promise(risks=RISKS, kind=promise)
    found = cal.tool_thresholds(
        np.array(scores) / 20, labels, tools, cal.Promise(risks=RISKS, kind=promise), groups=tasks
    )
    assert set(tools) == set(found)
    used = [each for each in found.values() if each.thresholds.confirm < math.inf]
    assert sum(each.delta for each in used) <= 0.1 + 1e-12
    for name, each in found.items():
        own = {task for tool, task in zip(tools, tasks, strict=True) if tool == name}
        assert len(own) == each.n
        for level in each.levels:
            assert (level.threshold is None) == (level.more != 0)
            if each.n < level.needed:
                assert level.more is None or level.more >= level.needed - each.n
        assert sorted(lacking(level) for level in each.levels)[::-1] == [lacking(level) for level in each.levels]
    whole = strictest(found, wanted)
    lowest = whole.thresholds
    assert (sum(each.n for each in found.values()), sum(each.errors["notify"] for each in found.values())) == (
        whole.n,
        whole.errors["notify"],
    )
    for each in found.values():
        assert lowest.silent >= each.thresholds.silent
        assert lowest.notify >= each.thresholds.notify
        assert lowest.confirm >= each.thresholds.confirm


def test_tools_with_too_few_labels_take_no_share():
    """Forty tools with one label each leave the whole delta to the one that has enough."""
    names = ["pay"] * 100 + [f"rare {number}" for number in range(40)]
    found = cal.tool_thresholds(
        [0.9] * 140, [True] * 140, names, cal.Promise(risks={"notify": 0.05}), groups=range(140)
    )
    assert (0.1, 0.0) == (found["pay"].delta, found["pay"].thresholds.notify)
    assert {"58 more"} == {each.levels[0].state for name, each in found.items() if name != "pay"}
