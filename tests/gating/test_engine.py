"""From a call to a decision to a consent: one place computes levels, and only a consent lets the action run. Also decisions outside of a gate."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.confidence import ConfidenceFactors, ConfidenceScore
from grace_kp.gating import (
    FACTS,
    Basis,
    Decision,
    Rules,
    RunConfidence,
    ShadowAssessment,
    _engine,
    attempt,
    audit_probability,
    drive,
    drive_async,
    resumable,
)
from grace_kp.gating._drivers import Ask, NoAnswer, Work
from grace_kp.record import HOST, Framework
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.gating.inboxes import gated, request_for

R = gk.InterventionResponse


def test_the_decision_is_frozen_with_the_arguments_digest():
    reviewer = ScriptedReviewer("proceed")
    act, _ = gated(make_grace(reviewer=reviewer), floor="confirm")
    with capture() as captured:
        act("ana")
    entry = captured.only.grace["decisions"][0]
    request = reviewer.requests[0]
    assert (request.digest, request.policy_version) == (entry["digest"], entry["policy_version"])
    assert (entry["level"], entry["score"], entry["floor"], entry["outcome"]) == ("confirm", 0.7, "confirm", "executed")
    assert entry["response"]["reviewer"] == "script"
    assert entry["arguments"] == {"it": "ana"}
    with pytest.raises(TypeError):
        request.arguments["it"] = "eve"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("cancel", "cancelled"),
        ("skip", "skipped"),
        (R("input", user_input="later"), "redirected"),
        (R("cancel", timeout_reached=True), "timed_out"),
        ("proceed", "executed"),
        (R("modify", modified={"it": 1}), "executed_modified"),
        (None, "denied"),
    ],
)
def test_the_record_states_the_outcome_of_each_answer(answer, outcome):
    act, _ = gated(make_grace(reviewer=ScriptedReviewer(answer)), floor="confirm" if answer else "deny")
    with capture() as captured, contextlib.suppress(gk.ActionNotApproved):
        act("ana")
    assert outcome == captured.only.decisions[0].outcome


def test_the_wait_for_the_reviewer_is_recorded_in_milliseconds(monkeypatch):
    """A clock that a quarter of a second passes on between two looks."""
    looks = iter([5.0, 5.25])
    monkeypatch.setattr(_engine, "time", SimpleNamespace(time=lambda: 0.0, perf_counter=lambda: next(looks)))
    grace = make_grace(reviewer=ScriptedReviewer("proceed"))
    act, ran = gated(grace, floor="confirm")
    with grace.run("act") as run:
        act("ana")
    (entry,) = run.trace.grace["decisions"]
    assert (["ana"], 250.0) == (ran, entry["waited_ms"])


@pytest.mark.parametrize("blocks", [False, True])
def test_work_that_blocks_is_kept_off_the_event_loop(blocks):
    def engine():
        return (yield Work(threading.current_thread, blocks))

    here = threading.current_thread()
    assert here is drive(engine())
    assert blocks == (here is not asyncio.run(drive_async(engine())))


def asked(world, reviewer, timeout=None):
    step = Ask(request_for({}, timeout=timeout), reviewer)
    return step.perform() if world == "sync" else asyncio.run(step.perform_async())


worlds = pytest.mark.parametrize("world", ["sync", "async"])


@worlds
def test_a_plain_reviewer_may_return_a_coroutine_and_state_its_own_time(world):
    async def later():
        return R("skip")

    assert "skip" == asked(world, lambda _request: later()).action
    assert 7.0 == asked(world, lambda _request: R("proceed", response_time_ms=7.0)).response_time_ms


@worlds
def test_an_attempt_gives_the_error_instead_of_raising_it(world):
    error = gk.ActionDenied("no")

    def engine():
        raise error
        yield

    assert error is (drive(attempt(engine())) if world == "sync" else asyncio.run(drive_async(attempt(engine()))))


def test_an_async_reviewer_is_cancelled_when_time_is_up():
    left = []

    async def reviewer(_request):
        try:
            await asyncio.Event().wait()
        finally:
            left.append("cancelled")

    assert NoAnswer() == asked("async", reviewer, timeout=0.01)
    assert ["cancelled"] == left


VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "intervention.jsonl"
both = pytest.mark.parametrize("is_async", [False, True])


def decide(level):
    return gk.ActionDecision(gk.InterventionLevel(level), 0.5, "because", "proceed")


def test_golden_vectors():
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        callback = None if row["handler_action"] is None else (lambda request, row=row: R(row["handler_action"]))
        handler = gk.InterventionHandler(
            on_notify=lambda request: None, on_confirm=callback, on_escalate=callback,
            auto_proceed_on_timeout=row["auto_proceed_on_timeout"],
        )  # fmt: skip
        response = handler.handle(decide(row["level"]))
        assert row["expected"] == {name: getattr(response, name) for name in row["expected"]}, row
        assert row["expected"]["action"] == asyncio.run(handler.ahandle(decide(row["level"]))).action


def handled(handler, decision, is_async):
    return asyncio.run(handler.ahandle(decision)) if is_async else handler.handle(decision)


def fails(request):
    raise ConnectionError("no network")


def waits(request):
    threading.Event().wait()


@both
@pytest.mark.parametrize("callback", [None, fails, waits, lambda request: True])
@pytest.mark.parametrize(("proceeds", "action"), [(False, "cancel"), (True, "proceed")])
def test_without_an_answer(callback, proceeds, action, is_async):
    handler = gk.InterventionHandler(
        on_confirm=callback, timeout=0.01 if callback is waits else 30.0, auto_proceed_on_timeout=proceeds
    )
    response = handled(handler, decide("confirm"), is_async)
    assert (action, True) == (response.action, response.timeout_reached)


def test_callbacks_get_a_request():
    requests, decision = [], decide("confirm")
    handler = gk.InterventionHandler(on_confirm=lambda request: requests.append(request) or "cancel", timeout=7.5)
    handler.handle(decision)
    handler.handle(decision)
    first, second = requests
    assert (decision, decision.level, "because", 7.5) == (first.decision, first.level, first.reason, first.timeout)
    assert ("", {}, 64) == (first.action, dict(first.arguments), len(first.digest))
    assert first.id != second.id
    requests = []
    request = request_for({"to": "ana"}, "escalate", timeout=30)
    handler = gk.InterventionHandler(on_escalate=lambda request: requests.append(request) or "proceed", timeout=0)
    assert "proceed" == handler.handle(request).action
    assert requests[0] is request


PROGRAM = object()


@pytest.mark.parametrize(
    ("package", "programs", "found"),
    [("a_package_that_nobody_has_imported", [PROGRAM], None), ("sys", [None], None), ("sys", [None, PROGRAM], PROGRAM)],
)
def test_the_program_of_a_framework_that_is_loaded_is_found(package, programs, found, monkeypatch):
    adapters = [SimpleNamespace(resumable=lambda program=program: program) for program in programs]
    frameworks = [Framework("fake", package=package, load=lambda it=it: it, signals={}) for it in adapters]
    monkeypatch.setattr(HOST, "frameworks", dict(enumerate(frameworks)))
    assert found is resumable()


THRESHOLDS = gk.Thresholds(0.9, 0.7, 0.4)
LEVELS = ["silent", "notify", "confirm", "escalate"]


def rules(floor=None, **fields):
    return Rules(gk.Policy(floor=floor), THRESHOLDS, **fields)


@pytest.mark.parametrize(
    ("floor", "at_least", "gaps"), list(itertools.product([None, *LEVELS], [None, *LEVELS], [(), ("gap",)]))
)
def test_the_strictest_rule_holds(floor, at_least, gaps):
    """For each level of the confidence; what is raised is explained, and suggests what its level does."""
    for score, own in ((0.95, "silent"), (0.8, "notify"), (0.5, "confirm"), (0.1, "escalate")):
        required = gk.InterventionLevel(at_least) if at_least else None
        decision = rules(floor, gaps=gaps, at_least=required).decide(score)
        expected = max(
            LEVELS.index(level) for level in (own, floor or own, at_least or own, "confirm" if gaps else own)
        )
        assert LEVELS[expected] == decision.level
        assert gk.ActionDecision(decision.level, score).suggested_action == decision.suggested_action
        if gaps:
            assert "Evidence is missing" in decision.reason


def score_of(**factors):
    return gk.ConfidenceCalculator(thresholds=THRESHOLDS).calculate(gk.ConfidenceFactors(**factors))


def test_a_decision_that_was_kept_comes_back():
    """Level, score, reasons and gaps; parts that nothing was evaluated for stay that way."""
    assessment = RunConfidence(score_of(tool_success_rate=0.9), ("2 scores cannot be used",))
    decision = Decision.of(assessment, rules("notify"))
    kept = decision.to_dict("d1")
    assert {"digest", "level", "score", "breakdown", "penalties", "reason", "evidence_gaps"} == kept.keys()
    assert ("d1", "confirm", ["2 scores cannot be used"]) == (kept["digest"], kept["level"], kept["evidence_gaps"])
    again = Decision.from_dict(kept)
    assert (decision.level, decision.gaps, kept["reason"]) == (again.level, again.gaps, again.action.reason)
    assert decision.confidence.evaluated == again.confidence.evaluated
    assert kept == {**again.to_dict("d1"), "reason": kept["reason"]}


def test_a_kept_decision_names_the_fallbacks_that_count():
    decision = Decision.of(
        RunConfidence(score_of(source_count=2, source_agreement=0.5, agreement_evaluated=False)), rules("confirm")
    )
    assert {"source_agreement": 0.5} == decision.confidence.fallbacks
    assert decision.confidence.fallbacks == Decision.from_dict(decision.to_dict("d1")).confidence.fallbacks


def kept(level, score, breakdown=(), penalties=(), **more):
    stated = {"digest": "d", "level": level, "score": score, "breakdown": dict(breakdown), "penalties": penalties}
    return Decision.from_dict({**stated, "reason": "because", **more})


def test_decisions_of_earlier_versions_are_read():
    decision = kept("confirm", 0.7, {"tool_success": None, "search_quality": 0.5}, penalties=["no_sources"])
    action = decision.action
    assert ("confirm", 0.7, "because", ()) == (action.level, action.confidence_score, action.reason, decision.gaps)
    assert {"tool_success": None, "search_quality": 0.5} == decision.confidence.evaluated
    assert {"tool_success": 0.0, "search_quality": 0.5} == decision.confidence.breakdown
    assert ["no_sources"] == decision.confidence.penalties_applied


NEVER = gk.Thresholds(math.inf, math.inf, math.inf)


def assessed(score=0.95, **more):
    return RunConfidence(ConfidenceScore(score, ConfidenceFactors()), **more)


@pytest.mark.parametrize(
    ("floor", "gaps", "at_least", "thresholds", "level"),
    [
        (None, (), None, THRESHOLDS, "notify"), ("confirm", (), None, THRESHOLDS, "confirm"),
        (None, ("gap",), None, THRESHOLDS, "confirm"), (None, (), "escalate", THRESHOLDS, "escalate"),
        (None, (), None, NEVER, "escalate"),
    ],
)  # fmt: skip
def test_a_shadow_is_under_the_same_rules(floor, gaps, at_least, thresholds, level):
    """Its level follows from its own score, thresholds and gaps; the decision stays that of the first profile."""
    shadow = ShadowAssessment("other", thresholds, 0.75, gaps)
    required = gk.InterventionLevel(at_least) if at_least else None
    decision = Decision.of(assessed(shadow=shadow), rules(floor, at_least=required))
    assert {"profile": "other", "score": 0.75, "level": level} == decision.facts["shadow"]
    assert Decision.of(assessed(), rules(floor, at_least=required)).action == decision.action


def test_a_shadow_without_a_score_states_why():
    shadow = ShadowAssessment("other", THRESHOLDS, error="it failed")
    assert {"profile": "other", "error": "it failed"} == Decision.of(assessed(shadow=shadow), rules()).facts["shadow"]


@pytest.mark.parametrize(
    ("score", "floor", "is_drawn"),
    [(0.95, None, True), (0.75, None, True), (0.95, "confirm", False), (0.95, "deny", False)],
)
def test_what_runs_unasked_is_drawn_for_an_audit(score, floor, is_drawn):
    decision = Decision.of(assessed(score, audit_rate=1.0), rules(floor))
    assert ({"rate": 1.0, "selected": True} if is_drawn else None) == decision.facts.get("audit")


def test_a_kept_decision_has_its_facts():
    """The draw of an audit is made once, however often the program runs again."""
    facts = {
        name: ["x"]
        for name in (
            "profile",
            "fallback",
            "fitted_at",
            "profile_digest",
            "mismatches",
            "profile_gaps",
            "step",
            "evidence",
            "action_confidence",
        )
    }
    basis = Basis(pessimistic=0.1, has_failed=True)
    shadow = ShadowAssessment("other", NEVER, 0.5)
    required = gk.InterventionLevel.NOTIFY
    decision = Decision.of(assessed(facts=facts, shadow=shadow, audit_rate=0.5, basis=basis), rules(at_least=required))
    kept = json.loads(json.dumps(decision.to_dict("d"), allow_nan=False))
    assert decision.facts == Decision.from_dict(kept).facts
    assert {*FACTS} - {"audit", "fallbacks", "alarms"} == {*decision.facts}
    assert {} == Decision.from_dict({**kept, "facts": None}).facts
    assert "facts" not in Decision.of(assessed(), rules()).to_dict("d")


def test_what_a_call_requires_is_a_fact():
    """So is the level of a call whose confidence could not be computed: neither follows from the score."""
    confirm = gk.InterventionLevel.CONFIRM
    assert {"at_least": "confirm"} == Decision.of(assessed(), rules(at_least=confirm)).facts
    unknown = Decision.without_confidence("the store is gone", rules("notify"))
    assert ({"at_least": "escalate"}, None) == (unknown.facts, unknown.confidence)
    assert ("escalate", "the store is gone") == (unknown.level, unknown.action.reason)


@pytest.mark.parametrize(
    ("facts", "breakdown", "stated", "level"),
    [
        ({"measured": []}, {}, None, "confirm"), ({"measured": []}, {}, "notify", "notify"),
        ({"measured": []}, {}, "silent", "silent"), ({"measured": ["search scores"]}, {}, None, "silent"),
        ({}, {"search_quality": None, "llm_self_eval": None, "query_coverage": None}, None, "confirm"),
        ({}, {"search_quality": 0.9, "llm_self_eval": None, "query_coverage": None}, None, "silent"),
        ({"profile": "learned"}, {"search_quality": None, "llm_self_eval": None, "query_coverage": None}, None, "silent"),
    ],
)  # fmt: skip
def test_a_kept_decision_follows_what_is_stated_now(facts, breakdown, stated, level):
    """Also one that an earlier version kept, as far as its sub-scores show that nothing was measured."""
    decision = kept("silent", 0.95, breakdown, facts=facts)
    again = Rules(gk.Policy(unmeasured=stated), THRESHOLDS).apply_again(decision)
    assert level == again.level
    assert 0.95 == again.action.confidence_score


def test_a_kept_decision_is_never_made_milder_and_thresholds_of_a_policy_count():
    decision = kept("escalate", 0.2, facts={"measured": []})
    assert "escalate" == Rules(gk.Policy(unmeasured="silent"), THRESHOLDS).apply_again(decision).level
    policy = gk.Policy(thresholds=gk.Thresholds(0.2, 0.1, 0.05))
    assert "silent" == Rules(policy, THRESHOLDS).decide(0.3).level


def silent(rate, level="silent"):
    return {"level": level, "audit": {"rate": rate, "selected": False}}


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([], None),
        ([{"level": "silent"}], None),
        ([silent(0.05)], 0.05),
        ([silent(0.05, "notify")], 0.05),
        ([{"level": "confirm"}], 1.0),
        ([silent(0.05), {"level": "escalate"}], 1.0),
        ([silent(1)], 1.0),
        ([silent(0)], None),
        ([silent(float("nan")), silent("0.5"), {"level": ["x"][0], "audit": 3}, {}], None),
    ],
)
def test_of_single_decisions(decisions, expected):
    """A question makes it certain; a rate that cannot be used is none."""
    found = audit_probability(decisions)
    assert expected == (found if found is None else round(found, 12))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_of_several_actions(rates):
    expected = 1 - math.prod(1 - rate for rate in rates)
    assert (expected or None) == audit_probability([silent(rate) for rate in rates])
