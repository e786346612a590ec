"""`cal.replay` tells what other thresholds, profiles or policies would have done with recorded decisions."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.testing import ScriptedJudge, make_grace
from tests.calibrate.examples import decision, document, live

PLAN = [[True, False], [False], [True], [False, False, True], [True, True]]
UNIT = st.floats(0, 1).map(lambda value: round(value, 3))
LEVELS = st.lists(UNIT | st.just(math.inf), min_size=3, max_size=3).map(
    lambda v: gk.Thresholds(*sorted(v, reverse=True))
)


@st.composite
def recorded(draw):
    entry = st.builds(
        decision,
        score=UNIT,
        level=st.sampled_from(["silent", "notify", "confirm", "escalate"]),
        action=st.sampled_from(["pay", "send"]),
        floor=st.sampled_from([None, "notify", "confirm", "deny"]),
        evidence_gaps=st.sampled_from([[], ["recording is disabled"]]),
    )
    groups = draw(st.lists(st.lists(entry, max_size=3), max_size=12))
    labels = draw(st.lists(st.sampled_from([True, False, None, 0.5]), min_size=len(groups), max_size=len(groups)))
    return [
        document(number, *group, correct=label)
        for number, (group, label) in enumerate(zip(groups, labels, strict=True))
    ]


def test_policies_that_were_used_reproduce_the_recorded_levels():
    policies = {"send": gk.Policy(thresholds=gk.Thresholds(0.5, 0.45, 0.4)), "p*": "deny"}
    report = cal.replay(live(PLAN, policies=policies), cal.ReplayPolicy(policies=policies))
    assert (18, 0) == (report.actions.decisions, report.actions.differing)
    assert 9 == report.actions.a.levels["denied"]


def test_missing_evidence_asks_under_any_policy():
    for gaps in (["a tool was called in a foreign thread"], "text", {"a": 1}, [None]):
        report = cal.replay([document(1, decision(0.99, "confirm", evidence_gaps=gaps))], gk.Thresholds(0, 0, 0))
        assert 1 == report.actions.a.levels["confirm"]


def test_runs_without_gated_actions_are_counted_apart():
    report = cal.replay([document(1), document(2, decision())], gk.Thresholds(0.9, 0.85, 0.5))
    assert (1, 1) == (report.actions.decisions, report.runs.decisions)
    assert 1 == report.runs.a.levels["confirm"]
    assert report.runs.b is None


def test_an_unscored_run_has_no_confidence_to_replay():
    traces = [document(1, unscored=True), document(2, status="suspended")]
    report = cal.replay(traces, gk.Thresholds())
    assert {"no confidence is recorded; name a profile": 1, "the run has not ended": 1} == report.runs.left_out
    assert 1 == cal.replay(traces, "grace").runs.decisions


def test_errors_are_let_through_or_caught():
    traces = [
        document(1, decision(0.95, "silent"), correct=False),
        document(2, decision(0.95, "silent"), correct=True),
        document(3, decision(0.5), correct=False),
        document(4, decision(0.5), correct=True),
        document(5, decision(0.5)),
        document(6, decision(0.3), correct=0.5),
    ]
    actions = cal.replay(traces, gk.Thresholds(), price_per_hour=30, minutes_per_review=4).actions
    assert (2, 2, 1) == (actions.right, actions.wrong, actions.partly_right)
    figures = actions.a
    assert ((4, 6), (1, 2), (1, 2), (1, 2)) == tuple(
        (share.count, share.of) for share in (figures.asked, figures.let_through, figures.caught, figures.needless)
    )
    assert (16.0, 8.0) == (figures.minutes, figures.price)
    assert ((0.95, 0.5), (0.5, 1.0), (0.5, 0.5)) == (
        figures.curve.scores,
        figures.curve.coverage,
        figures.curve.risk,
    )


def test_the_first_runs_that_differ_are_named():
    traces = [
        document(number, decision(0.95, "silent"), decision(0.96, "silent"), correct=True) for number in range(30)
    ]
    actions = cal.replay(traces, gk.Thresholds(math.inf, math.inf, 0.5)).actions
    assert (60, 30, 20) == (actions.differing, actions.differing_runs, len(actions.first))
    expected = {
        "trace": "kp:trace:00000000", "action": "pay", "level_a": "confirm", "level_b": "silent", "score_a": 0.95,
        "score_b": 0.95, "label": 1.0,
    }  # fmt: skip
    assert expected == actions.first[0].to_dict()


def test_labels_beside_the_traces_replace_those_inside():
    traces = [document(1, decision(), correct=True), document(2, decision())]
    assert 2 == cal.replay(traces, gk.Thresholds(), labels=[False, 0]).actions.wrong
    assert 1 == cal.replay(traces, gk.Thresholds(), labels=[None, 1.0]).actions.right
    for labels, problem in (
        ([True], "1 labels and more traces"),
        ([True] * 3, "2 traces and more labels"),
        (["yes", 1], "label 1 must be"),
    ):
        with pytest.raises(ValueError, match=problem):
            cal.replay(traces, gk.Thresholds(), labels=labels)


def test_a_trace_without_steps_of_decisions_is_not_replayed_under_a_profile():
    report = cal.replay([document(1, decision())], "grace")
    assert (0, {"the step of the decision is not recorded, so the run before it is unknown": 1}) == (
        report.actions.decisions,
        report.actions.left_out,
    )


@pytest.mark.parametrize(("step", "score"), [(0, 0.7), (2, 0.7), (3, 0.7), (4, 0.315)])
def test_a_profile_sees_only_calls_that_had_ended(step, score):
    report = cal.replay([document(1, decision(0.1, step=step), correct=True)], "grace")
    assert (score,) == report.actions.a.curve.scores


GARBAGE = [
    "text", None, 3, [], {}, {"action": "a"}, decision(math.nan), decision(2), decision("0.5"), decision(True), decision(level="maybe"),
    decision(level=None), decision(score=None), decision(floor="sure"), decision(floor=7), decision(action=None), decision(outcome=[]),
    decision(at_least="never"),
]  # fmt: skip


def test_entries_that_cannot_be_read_are_counted():
    report = cal.replay([document(1, *GARBAGE, decision())], gk.Thresholds())
    assert (1, len(GARBAGE)) == (report.actions.decisions, sum(report.actions.left_out.values()))
    for decisions in ("text", {"a": 1}, 7, None):
        assert 1 == cal.replay([document(1, decisions=decisions)], gk.Thresholds()).runs.decisions
    for grace in (None, "text", []):
        assert 1 == cal.replay([{**document(1), "grace": grace}], gk.Thresholds()).runs.decisions


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="a trace must be a ReasoningTrace or its dict form, not str"):
        cal.replay(["kp:trace:1"], gk.Thresholds())
    for minutes in (-1, math.inf, math.nan, "2", True):
        with pytest.raises(ValueError, match="minutes_per_review must be a number of at least 0"):
            cal.replay([], gk.Thresholds(), minutes_per_review=minutes)
    with pytest.raises(ValueError, match="price_per_hour"):
        cal.replay([], gk.Thresholds(), price_per_hour=-1)


@given(recorded(), LEVELS, LEVELS)
def test_stricter_thresholds_never_ask_less(traces, first, second):
    strict = gk.Thresholds(*(max(a, b) for a, b in zip(values(first), values(second), strict=True)))
    for part in (cal.replay(traces, strict, first).actions, cal.replay(traces, strict, first).runs):
        assert part.a.asked.count >= part.b.asked.count
        assert part.a.let_through.count <= part.b.let_through.count


def values(thresholds):
    return thresholds.silent, thresholds.notify, thresholds.confirm


@given(recorded(), LEVELS)
def test_the_counts_add_up(traces, thresholds):
    """Levels to decisions, decisions of both kinds and those left out to entries and runs, labelled errors to all errors."""
    report = cal.replay(traces, thresholds)
    entries = [entry for trace in traces for entry in trace["grace"].get("decisions", ())]
    assert len(entries) == report.actions.decisions + sum(report.actions.left_out.values())
    assert sum(not trace["grace"].get("decisions") for trace in traces) == report.runs.decisions
    for part in (report.actions, report.runs):
        for figures in (figures for figures in (part.a, part.b) if figures is not None):
            assert part.decisions == sum(figures.levels.values()) == figures.asked.of
            assert figures.asked.count == figures.levels["confirm"] + figures.levels["escalate"]
            denied_wrong = part.wrong - figures.let_through.count - figures.caught.count
            assert 0 <= denied_wrong <= figures.levels["denied"]
            assert figures.needless.count <= part.right
            assert all(
                low <= high for low, high in zip(figures.curve.coverage, figures.curve.coverage[1:], strict=False)
            )
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()


def test_nothing_to_replay():
    """No traces, no labels, one class: a report, never an error."""
    assert "nothing to replay" in str(cal.replay([], gk.Thresholds()))
    for correct in (True, False, None):
        traces = [document(number, decision(), correct=correct) for number in range(12)]
        report = cal.replay(traces, gk.Thresholds(), gk.Thresholds(0.5, 0.5, 0.5))
        assert all(len(line) <= 80 for line in str(report).splitlines() if "note:" not in line)
        assert json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize("profile", ["grace", "strict"])
@pytest.mark.parametrize("judge", [None, 0.9, 0.3])
def test_the_profile_that_was_used_reproduces_scores_and_levels(profile, judge):
    thresholds = gk.Thresholds(0.8, 0.6, 0.4)
    evaluator = None if judge is None else ScriptedJudge(judge)
    with make_grace(
        profile=profile, thresholds=thresholds, evaluator=evaluator, reviewer=lambda request: "proceed"
    ) as grace:

        @grace.retriever
        def search(scores):
            return [{"text": "t", "score": score, "source": f"s{place}"} for place, score in enumerate(scores)]

        @grace.tool
        def look(ok):
            if not ok:
                raise ValueError("no such page")
            return "page"

        @grace.gate(judge="never" if judge is None else "always")
        @grace.tool
        def send(to):
            look(True)
            return "sent"

        @grace.agent
        def helper(ok):
            return look(ok)

        @grace.tool
        def outer(number):
            send(number)  # while this call is open
            return look(True)

        @grace.agent
        def agent(plan):
            grace.thought("first")
            for number, scores in enumerate(plan):
                search(scores)
                send(number)
                for step in (helper, look):
                    with contextlib.suppress(ValueError):
                        step(number % 2)
                outer(number)

        with grace.collect() as traces:
            for plan in ([[0.9, 0.8], [0.3]], [[], [0.7, 0.2, 0.9]], [[0.5], [0.5], [0.1]]):
                agent(plan)
        grace.flush()
        stored = [grace.store.get(trace.id) for trace in traces]
    policy = cal.ReplayPolicy(profile, thresholds)
    report = cal.replay(stored, policy, labels=[True] * len(stored))
    assert (14, 0, {}) == (report.actions.decisions, report.actions.differing, report.actions.left_out)
    assert report.actions.a.curve == report.actions.b.curve
    whole = cal.replay(stored, policy, cal.ReplayPolicy(thresholds=thresholds), labels=[True] * len(stored)).runs
    assert (7, 0) == (whole.decisions, whole.differing)
    assert whole.a.curve == whole.b.curve


def test_the_learned_profile_that_was_used_reproduces_scores_and_levels(tmp_path):
    profile = fitted().with_thresholds(gk.Thresholds(math.inf, 0.55, 0.45))
    profile.save(tmp_path / "profile.json")
    plan = [[True, False, True], [False] * 4, [True], [True] * 6]
    traces = [*live(plan, profile=profile), *live([[]], profile=profile)]
    report = cal.replay(traces, tmp_path / "profile.json", labels=[True] * len(traces))
    assert (28, 0, {}) == (report.actions.decisions, report.actions.differing, report.actions.left_out)
    assert report.actions.a.curve == report.actions.b.curve
    assert len(report.actions.a.curve.scores) > 5
    assert traces[-1].outcome.confidence == report.runs.a.curve.scores[0]


def test_runs_that_a_profile_was_fitted_on_are_left_out(tmp_path):
    profile = fitted().with_thresholds(gk.Thresholds(math.inf, 0.55, 0.45))
    seen, fresh = live(fitted_plan()), live([[True], [False, True]])
    for policies in ((profile,), ("grace", profile), (profile, profile)):
        report = cal.replay([*seen, *fresh], *policies, labels=[True] * 102)
        assert (102, 100, "", 6) == (report.traces, report.fitted, report.unknown_fitted, report.actions.decisions)
    assert "note: 100 traces left out, because a profile was fitted on them" in report.summary()
    everything = cal.replay([*seen, *fresh], profile, include_fitted=True)
    assert (0, 102) == (everything.fitted, everything.actions.runs)
    assert "nothing to replay: there are neither other gated actions nor runs" in cal.replay(seen, profile).summary()
    profile.save(tmp_path / "profile.json")
    assert 100 == cal.replay([*seen, *fresh], tmp_path / "profile.json").to_dict()["fitted"]


def test_a_profile_of_an_earlier_version_does_not_know_its_runs():
    """The report says so, because the figures may be too good."""
    old = dataclasses.replace(fitted(), fitted_runs=None)
    report = cal.replay(live([[True]]), "grace", old)
    assert (0, "b") == (report.fitted, report.unknown_fitted)
    assert "note: the profile of B does not state which runs it was fitted on" in report.summary()


def test_a_replay_asks_where_a_mismatch_makes_a_gate_ask():
    lenient = fitted().with_thresholds(gk.Thresholds(0, 0, 0))
    foreign = dataclasses.replace(lenient, fitted_on={**lenient.fitted_on, "tools": ["look", "pay"]})
    traces = live([[True, False]])
    assert {"silent": 2, "confirm": 2}.items() <= cal.replay(traces, lenient).actions.a.levels.items()
    assert 4 == cal.replay(traces, foreign).actions.a.levels["confirm"]
    reported = cal.replay(traces, cal.ReplayPolicy(foreign, on_mismatch="report")).actions.a.levels
    assert {"silent": 2, "confirm": 2}.items() <= reported.items()
    live_levels = [decision.level for trace in live([[True, False]], profile=foreign) for decision in trace.decisions]
    assert ["confirm"] * 4 == live_levels
    with pytest.raises(ValueError, match="on_mismatch must be tighten or report, not 'loose'"):
        cal.ReplayPolicy(on_mismatch="loose")


def fitted_plan():
    generator = random.Random(1)
    return [[generator.random() < 0.5 for _ in range(generator.randint(1, 6))] for _ in range(100)]


def fitted():
    """A profile that was fitted on live runs, which are right where more calls succeeded."""
    plan = fitted_plan()
    labels = [sum(outcomes) > len(outcomes) / 2 for outcomes in plan]
    return cal.fit(live(plan), labels, groups=list(range(100)))


def test_a_profile_does_not_share_the_gaps_of_another():
    class Failing:
        name = "failing"

        def calculate(self, factors):
            raise ValueError("no")

        def confidence(self, document, *, moment):
            raise ValueError("no")

    traces = live([[True]], profile=Failing(), unmeasured="silent")
    lenient = gk.Thresholds(0.1, 0.1, 0.0)
    assert 1 == cal.replay(traces, lenient).actions.a.asked.count - 1
    assert 1 == cal.replay(traces, cal.ReplayPolicy("grace", lenient)).actions.a.levels["silent"]


def report():
    scores = [0.95, 0.8, 0.6, 0.3]
    traces = [
        document(number, decision(scores[number % 4], action="send \x1b[31m" + "x" * 60), correct=number % 3 > 0)
        for number in range(24)
    ]
    return cal.replay([*traces, document(99)], gk.Thresholds(math.inf, 0.9, 0.5), gk.Thresholds(), price_per_hour=60)


def test_the_text_fits_80_columns_and_hides_nothing_dangerous():
    text = str(report())
    assert max(len(line) for line in text.splitlines() if "note:" not in line) <= 80
    assert text.replace("\n", "").isprintable()
    assert "A = never / 0.9 / 0.5" in text
    assert text == report().summary()


def test_the_text_has_each_figure():
    lines = str(report()).splitlines()
    assert "gated actions: 24 decisions of 24 runs, 16 right, 8 wrong" in lines
    for begins in (
        "  silent ",
        "  questions ",
        "  errors let through ",
        "  errors caught ",
        "  needless questions ",
        "  reviewer hours ",
    ):
        assert any(line.startswith(begins) for line in lines)
    assert any(line.startswith("    questions, of all decisions     +25.0%  (+8.3% to +4") for line in lines)
    assert any(
        line.startswith("    00000001  send") and line.endswith("confirm / notify  0.800 / 0.800  right")
        for line in lines
    )


def test_a_difference_without_spread_has_no_interval():
    few = [document(number, decision(0.8)) for number in range(9)]
    alike = [document(number, decision(0.8)) for number in range(30)]
    for traces in (few, alike):
        found = cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds()).actions.differences["asked"]
        assert (1.0, None, None) == (found.value, found.low, found.high)


def test_notes_say_what_the_figures_rest_on():
    several = [document(1, decision(0.5), decision(0.5))]
    assert any(
        "no labels: errors cannot be counted" in note for note in cal.replay(several, gk.Thresholds()).actions.notes
    )
    assert any("2 decisions come from 1 run;" in note for note in cal.replay(several, gk.Thresholds()).actions.notes)
    asked = [document(1, decision(0.5), correct=True), document(2, decision(0.95, "silent"))]
    assert any(
        "recorded: 100% of the asked decisions have a label, and 0% of the others" in note
        for note in cal.replay(asked, gk.Thresholds()).actions.notes
    )


def test_calls_of_another_form_are_no_evidence():
    trace = document(1, decision(step=4), correct=True)
    before = cal.replay([trace], "grace").actions.a.curve.scores
    trace["grace"]["calls"] += [
        "text",
        None,
        {},
        {"observation": "1", "status": "ok"},
        {"observation": True, "status": "error"},
    ]
    trace["steps"] = "text"
    assert before == cal.replay([trace], "grace").actions.a.curve.scores


def test_an_undecided_entry_is_left_out_by_its_own_reason():
    entry = {"action": "pay", "outcome": "cancelled", "arguments": {}}
    assert {"no decision was made": 1} == cal.replay([document(1, entry)], gk.Thresholds()).actions.left_out


def labelled(rows):
    return [document(number, decision(score), correct=right) for number, (score, right) in enumerate(rows)]


def test_the_bootstrap_resamples_runs():
    """The same interval as drawing whole runs by hand; with all decisions of a run alike it is wider than over decisions."""
    generator = np.random.default_rng(4)
    groups = [[decision(0.8 if generator.random() < 0.3 else 0.95)] * int(generator.integers(1, 6)) for _ in range(60)]
    traces = [document(number, *group) for number, group in enumerate(groups)]
    found = cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds()).actions.differences["asked"]
    sizes = np.array([len(group) for group in groups])
    asked = np.array([len(group) * (group[0]["score"] == 0.8) for group in groups])
    drawn = generator.integers(0, 60, size=(20_000, 60))
    low, high = np.quantile(asked[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
    assert np.isclose(asked.sum() / sizes.sum(), found.value)
    assert np.allclose((low, high), (found.low, found.high), atol=0.02)
    naive = stats.binomtest(int(asked.sum()), int(sizes.sum())).proportion_ci()
    assert found.high - found.low > naive.high - naive.low
    again = cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds()).actions.differences["asked"]
    assert (
        found
        == again
        != cal.replay(traces, gk.Thresholds(0.9, 0.9, 0.4), gk.Thresholds(), seed=1).actions.differences["asked"]
    )


def test_an_action_counts_with_its_own_label():
    """Where it has one, else with that of its run; labels that are passed in are those of runs."""
    stated = [
        {"action": "a", "correct": False, "source": "user", "at": "2026-01-02T03:04:05.000Z"},
        {"action": "2", "correct": True, "source": "test", "at": "2026-01-02T03:04:05.000Z"},
        {"action": "c", "correct": True, "source": "user", "by": "una", "at": "2026-01-02T03:04:05.000Z"},
    ]
    entries = (decision(step=1, id="a"), decision(step=2), decision(step=3, id="c"))
    trace = document(1, *entries, correct=True, action_feedback=stated, user="una")
    assert (2, 1) == right_and_wrong(cal.replay([trace], gk.Thresholds()))
    assert (0, 3) == right_and_wrong(cal.replay([trace], gk.Thresholds(), labels=[False]))
    del trace["grace"]["feedback"]
    assert (1, 1) == right_and_wrong(cal.replay([trace], gk.Thresholds()))


def right_and_wrong(report):
    return report.actions.right, report.actions.wrong
