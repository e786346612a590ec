"""What `cal.replay` accepts as a policy, and the level that it gives."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.confidence import ConfidenceFactors, ConfidenceScore, history_of_document
from tests.calibrate.examples import decision, document, live


class Fixed:
    """A profile that gives every run the same confidence."""

    name = "fixed"
    thresholds = gk.Thresholds(math.inf, 0.6, 0.5)

    def calculate(self, factors):
        return ConfidenceScore(0.65, factors)


class Learned(Fixed):
    """A profile that reads documents, and notes them."""

    def __init__(self):
        self.seen = []

    def confidence(self, document, *, moment):
        self.seen.append((moment, document))
        return ConfidenceScore(0.65, ConfidenceFactors())


class Unfitted(Fixed):
    """A profile that knows only finished runs."""

    def confidence(self, document, *, moment):
        if moment == "action":
            raise ValueError("it was fitted for the moment 'end' only")
        return ConfidenceScore(0.65, ConfidenceFactors())


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (gk.Thresholds(math.inf, 0.8, 0.5), "never / 0.8 / 0.5"),
        (SimpleNamespace(thresholds=gk.Thresholds()), "0.9 / 0.7 / 0.4"),
        ("grace", "grace"),
        (Fixed(), "fixed"),
        (cal.ReplayPolicy("strict", gk.Thresholds(1.0, 1.0, 1.0)), "strict, 1.0 / 1.0 / 1.0"),
        (cal.ReplayPolicy(policies={"pay*": "deny"}), "0.9 / 0.7 / 0.4, policies for pay*"),
        (cal.ReplayPolicy("grace", name="today"), "today"),
        ("recorded", "recorded"),
        (None, "recorded"),
    ],
)
def test_a_policy_has_a_name(value, name):
    assert name == cal.replay([], value).actions.a.name


def test_an_unknown_name_is_refused():
    with pytest.raises(
        ValueError, match="'nonsense' is not a policy; known are 'recorded', the profiles 'grace', 'strict'"
    ):
        cal.replay([], "nonsense")
    with pytest.raises(ValueError, match="unknown profile 'nonsense'"):
        cal.ReplayPolicy("nonsense")
    with pytest.raises(FileNotFoundError):
        cal.replay([], "missing.json")
    with pytest.raises(ValueError, match="policy 'pay': floor must be one of"):
        cal.ReplayPolicy(policies={"pay": "sure"})
    with pytest.raises(TypeError, match="thresholds must be a Thresholds"):
        cal.ReplayPolicy(thresholds={"silent": 0.9})


def test_a_profile_brings_its_thresholds():
    traces = [document(1, decision(step=4)), document(2)]
    report = cal.replay(traces, Fixed(), cal.ReplayPolicy(Fixed(), gk.Thresholds(0.6, 0.5, 0.5)))
    assert (1, 1) == (report.actions.a.levels["notify"], report.actions.b.levels["silent"])
    assert (1, 1) == (report.runs.a.levels["notify"], report.runs.b.levels["silent"])


def test_thresholds_for_ended_runs_ask_as_a_live_gate_does():
    """A replay asks where a gate would; other thresholds do without the gap that was recorded for those of the profile."""
    profile = Learned()
    profile.thresholds, profile.promise = gk.Thresholds(0.1, 0.1, 0.1), {"moment": "end"}
    traces = live([[True]], profile=profile)
    assert all(decision.evidence_gaps for decision in traces[0].decisions)
    own, others = cal.ReplayPolicy(profile), cal.ReplayPolicy(thresholds=profile.thresholds)
    report = cal.replay(traces, own, others)
    assert (2, 1) == (report.actions.a.levels["confirm"], report.actions.b.levels["silent"])
    assert 0 == cal.replay(traces, own).actions.differing


def test_a_learned_profile_sees_the_run_as_it_stood():
    profile = Learned()
    trace = document(
        1, decision(step=3), correct=True, value={"score": 1}, evaluation={"self_evaluation": {"score": 1.0}}
    )
    cal.replay([trace, document(2)], profile)
    (moment, seen), (other, whole) = profile.seen
    assert ("action", "end") == (moment, other)
    assert ["tool_call", "observation", "tool_call"] == [step["type"] for step in seen["steps"]]
    assert {"status", "calls"} == set(seen["grace"])
    assert [{"call_id", "name", "tool_call", "status", "observation"}, {"call_id", "name", "tool_call"}] == list(
        map(set, seen["grace"]["calls"])
    )
    assert ("", 0.5, 0.0) == (
        seen["outcome"]["result_summary"], seen["outcome"]["confidence"], seen["metadata"]["quality_score"]
    )  # fmt: skip
    assert document(2) == whole


def test_a_profile_cannot_change_the_traces():
    class Greedy(Fixed):
        def confidence(self, document, *, moment):
            document["steps"].clear()
            document["grace"]["calls"][0].clear()
            return ConfidenceScore(0.65, ConfidenceFactors())

    traces = [document(1, decision(step=4), decision(step=4)), document(2)]
    cal.replay(traces, Greedy())
    assert [document(1, decision(step=4), decision(step=4)), document(2)] == traces


def test_a_profile_without_the_moment_leaves_decisions_out():
    report = cal.replay([document(1, decision(step=4)), document(2)], Unfitted())
    assert {"the profile has no confidence: it was fitted for the moment 'end' only": 1} == report.actions.left_out
    assert 1 == report.runs.decisions


@pytest.mark.parametrize(
    ("policies", "level"),
    [
        (None, "escalate"),
        ({"send": "silent"}, "escalate"),
        ({"pay": gk.Policy()}, "silent"),
        ({"p*": "notify"}, "notify"),
        ({"pay": "deny"}, "denied"),
        ({"pay": gk.Policy(thresholds=gk.Thresholds(1.0, 1.0, 0.5))}, "confirm"),
    ],
)
def test_an_entry_replaces_the_recorded_floor(policies, level):
    trace = document(1, decision(0.95, "escalate", floor="escalate"))
    assert 1 == cal.replay([trace], cal.ReplayPolicy(policies=policies)).actions.a.levels[level]


def test_a_recorded_requirement_of_the_call_holds():
    trace = document(1, decision(1.0, "confirm", at_least="confirm"))
    assert 1 == cal.replay([trace], cal.ReplayPolicy(policies={"pay": gk.Policy()})).actions.a.levels["confirm"]


def test_recorded_judgements_count():
    """Those of a gate for its decision, those of a run for the run; a fallback does not count in `strict`."""
    judged = {
        "self_evaluation": {"score": 0.9, "spread": 0.2},
        "coverage": {"score": 0.8},
        "source_agreement": {"score": 1.0},
    }
    failed = {"self_evaluation": {"score": 0.5, "fallback": True}}

    def scores(**fields):
        traces = [document(1, decision(step=4, **fields), correct=True), document(2, correct=True, **fields)]
        report = cal.replay(traces, "strict", "grace")
        return [part.curve.scores[0] for part in (report.actions.a, report.actions.b, report.runs.a, report.runs.b)]

    assert scores() == scores(evaluation=failed) == scores(evaluation={"self_evaluation": {"score": math.nan}})
    assert all(after > before for before, after in zip(scores(), scores(evaluation=judged), strict=True))


def test_an_action_outside_of_any_run_is_not_replayed_under_a_learned_profile():
    trace = document(1, decision(step=0), name="pay")
    assert 1 == cal.replay([trace], "grace").actions.decisions
    left_out = {"the action was called outside of any run, and a learned profile reads recorded runs": 1}
    assert left_out == cal.replay([trace], Learned()).actions.left_out
    assert 1 == cal.replay([document(1, decision(step=0), name="agent")], Learned()).actions.decisions


def test_runs_that_a_profile_was_not_fitted_on_are_counted():
    class Fitted(Learned):
        def mismatches(self, document):
            return ("the tool is now 'look'",) if document["id"].endswith("1") else ()

    report = cal.replay([document(1), document(2), document(11)], Fitted(), "grace")
    assert (
        (2, 0) == (report.mismatched_a, report.mismatched_b) == tuple(report.to_dict()[f"mismatched_{x}"] for x in "ab")
    )
    assert "note: 2 traces of an agent, model or tool that the profile of A was not fitted on" in str(report)


class ActionModel:
    """A confidence in actions that notes what it saw."""

    def __init__(self, thresholds=None):
        self.seen, self.thresholds = [], thresholds or {}

    def predict(self, features):
        self.seen.append(features)
        return 0.65

    def mismatches(self, features):
        return () if features.tool != "mail" else ("no labels of this tool",)


def judging_actions(**thresholds):
    profile = Fixed()
    profile.action = ActionModel(thresholds)
    return profile


def test_a_profile_for_actions_judges_the_action_by_what_was_before_it():
    profile = judging_actions()
    trace = document(1, decision(step=3, arguments={"order": 7}))
    report = cal.replay([trace], profile)
    (seen,) = profile.action.seen
    assert history_of_document(trace, 3).features("pay", {"order": 7}) == seen
    assert {"notify": 1} == {level: count for level, count in report.actions.a.levels.items() if count}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (decision(step=3), "the step and the arguments of the action are not recorded"),
        (
            decision(step=3, arguments={"order": "[REDACTED]"}, hidden={"order": 4}),
            "the step and the arguments of the action are not recorded",
        ),
        (decision(arguments={}, step=None), "the step of the decision is not recorded"),
    ],
)
def test_an_action_of_which_too_little_is_recorded_is_left_out(entry, reason):
    """And counted with the reason; its features are not guessed."""
    profile = judging_actions()
    (found,) = cal.replay([document(1, entry)], profile).actions.left_out.items()
    assert (True, 1, []) == (found[0].startswith(reason), found[1], profile.action.seen)


def test_an_action_that_its_model_has_not_seen_asks():
    """As at a gate, unless mismatches are only reported."""
    profile = judging_actions(mail=gk.Thresholds(0.6, 0.5, 0.4))
    trace = document(1, decision(action="mail", step=3, arguments={}))
    report = cal.replay([trace], profile, cal.ReplayPolicy(profile, on_mismatch="report"))
    assert (1, 1) == (report.actions.a.levels["confirm"], report.actions.b.levels["silent"])


def test_a_tool_has_its_own_thresholds():
    """Where the profile has some for it; thresholds that are stated beside the profile hold for all tools."""
    profile = judging_actions(pay=gk.Thresholds(0.6, 0.5, 0.4))
    trace = document(1, decision(step=3, arguments={}), decision(action="send", step=3, arguments={}))
    report = cal.replay([trace], profile, cal.ReplayPolicy(profile, gk.Thresholds(1.0, 0.9, 0.6)))
    assert (1, 1, 2) == (
        report.actions.a.levels["silent"],
        report.actions.a.levels["notify"],
        report.actions.b.levels["confirm"],
    )
