"""A learned profile in use: predictions, mismatches, factors alone."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

from grace_kp import ConfidenceCalculator, ConfidenceFactors, Thresholds
from grace_kp import calibrate as cal
from tests.calibrate.examples import drawn_run, drawn_runs, run


@pytest.fixture(scope="module")
def profile():
    return cal.fit(*drawn_runs(150))


def test_the_confidence_is_a_score_with_a_reason(profile):
    """Rounded to three decimals, with the factors of the run."""
    trace = drawn_run(5, correct=False)
    score = profile.confidence(trace, moment="end")
    assert score.score == round(profile.predict(trace), 3)
    assert score.reason.startswith("Learned from 150 runs: ")
    assert math.log(score.score / (1 - score.score)) == pytest.approx(sum(score.contributions.values()), abs=0.02)
    assert score.factors.tool_execution_count == sum(step["type"] == "tool_call" for step in trace["steps"])


@pytest.mark.parametrize("moment", cal.MOMENTS)
def test_any_run_gets_a_confidence(profile, moment):
    """Runs without steps, of other dialects, and very long ones."""
    odd = [
        {},
        {"steps": None},
        run([]),
        run([("tool_call", ("new", {"x": "y" * 100_000}))] * 5_000, answer="?" * 1_000_000),
    ]
    assert all(0 <= profile.predict(trace, moment=moment) <= 1 for trace in odd)


def test_factors_alone_give_a_confidence(profile):
    """It is a profile for `ConfidenceCalculator`; more failures give no higher confidence."""
    calculator = ConfidenceCalculator(profile=profile)
    assert "calibrated" == calculator.profile
    fine, poor = (calculator.calculate(ConfidenceFactors(tool_execution_count=5, tool_success_count=n)) for n in (5, 0))
    assert poor.score <= fine.score
    assert 0 <= calculator.calculate(ConfidenceFactors()).score <= 1


def test_a_run_of_another_agent_model_or_tool_is_noticed(profile):
    """Each difference is a sentence, also where the fitted runs or the run do not name what the other does."""
    trace = run([("tool_call", ("refund", {}))], model_calls=[{"model": "m-2"}])
    model = "the model is now 'm-2'; the profile was fitted on runs that name none"
    tool = "the tool is now 'refund'; the profile was fitted on 'find', 'pay', 'send'"
    assert (model, tool) == profile.mismatches(trace)
    trace["metadata"].update(agent_id="kp:agent:other", task_domain="medical")
    agent = "the agent is now 'kp:agent:other'; the profile was fitted on 'kp:agent:clerk'"
    domain = "the domain is now 'medical'; the profile was fitted on 'default'"
    assert (agent, model, tool, domain) == profile.mismatches(trace)
    assert () == profile.mismatches(drawn_run(1, correct=True))
    assert (
        "the agent is not recorded; the profile was fitted on 'kp:agent:clerk'",
        "the domain is not recorded; the profile was fitted on 'default'",
    ) == profile.mismatches({})


def test_a_gated_action_is_a_tool(profile):
    """Also if no step records its call."""
    trace = run([], decisions=[{"action": "wire"}, {"action": "pay"}, {"action": 3}, "?"])
    assert ("the tool is now 'wire'; the profile was fitted on 'find', 'pay', 'send'",) == profile.mismatches(trace)
    trace["grace"]["decisions"] = {"action": "wire"}
    assert () == profile.mismatches(trace)


@pytest.mark.parametrize("fitted_on", [
    {}, {"agents": []}, {"agents": [], "models": [], "tools": []}, {"agents": ["kp:agent:clerk"]},
    {"agents": "kp:agent:clerk", "models": [], "tools": ["find"]}, {"agents": {"kp:agent:clerk": 1}, "models": [], "tools": []},
    {"agents": ["kp:agent:clerk"], "models": ["m-1"], "tools": ["find"]}, {"agents": ["kp:agent:*"], "models": [], "tools": ["find"]},
    {"agents": ["kp:agent:clerk"], "models": [], "tools": []}, {"agents": None, "models": None, "tools": None},
    {"agents": ["kp:agent:clerk"], "models": [], "tools": ["find"], "domains": []},
])  # fmt: skip
def test_what_a_profile_does_not_state_is_a_mismatch(profile, fitted_on):
    """Names that are missing, of another type or only similar never fit."""
    trace = run([("tool_call", ("find", {}))])
    assert dataclasses.replace(profile, fitted_on=fitted_on).mismatches(trace)
    whole = {"agents": ["kp:agent:clerk"], "models": [], "tools": ["find"]}
    assert () == dataclasses.replace(profile, fitted_on=whole).mismatches(trace)


def test_the_digest_is_that_of_the_content(profile):
    """Not of its layout, nor of the predictions that are not saved; every change of the content changes it."""
    digest = profile.digest
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
    assert digest == dataclasses.replace(profile, predictions={}).digest
    changes = [
        {"fitted_on": {**profile.fitted_on, "agents": ["kp:agent:other"]}}, {"quality": {}}, {"fitted_runs": None},
        {"thresholds": Thresholds()}, {"promise": {}}, {"heads": {"end": profile.heads["end"]}},
        {"heads": {**profile.heads, "end": dataclasses.replace(profile.heads["end"], offset=0.25)}},
    ]  # fmt: skip
    digests = [dataclasses.replace(profile, **change).digest for change in changes]
    assert len(changes) + 1 == len({digest, *digests})


def test_a_profile_knows_its_runs(profile):
    """By id and objective; a run without an id is unknown."""
    runs, _ = drawn_runs(150)
    assert all(profile.was_fitted_on(each) for each in runs)
    other = {**runs[0], "id": "kp:trace:other"}
    assert not profile.was_fitted_on(other)
    assert not profile.was_fitted_on({**runs[0], "id": ""})
    assert not profile.was_fitted_on({**runs[0], "task": {"objective": "Something else"}})
    assert not dataclasses.replace(profile, fitted_runs=None).was_fitted_on(runs[0])


def test_thresholds_and_their_promise_stay_with_the_profile(profile):
    """The profile itself does not change."""
    chosen = Thresholds(silent=math.inf, notify=0.9, confirm=0.2)
    changed = profile.with_thresholds(chosen, {"kind": "selective", "delta": 0.1})
    assert (None, None) == (profile.thresholds, profile.promise)
    assert (chosen, "selective") == (changed.thresholds, changed.promise["kind"])
    assert profile.predict(drawn_run(1, correct=True)) == changed.predict(drawn_run(1, correct=True))


def test_features_may_be_passed_instead_of_a_trace(profile):
    """They must be of the moment that is asked for."""
    trace = drawn_run(3, correct=True)
    assert profile.predict(trace) == profile.predict(cal.features(trace))
    with pytest.raises(ValueError, match="features of the moment 'end', not of 'action'"):
        profile.predict(cal.features(trace), moment="action")
    with pytest.raises(ValueError, match="moment must be 'end' or 'action'"):
        profile.predict(trace, moment="later")
