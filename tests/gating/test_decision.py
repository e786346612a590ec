"""Levels are computed in one place: from the confidence, raised by policy, gaps in the evidence, and what a call requires."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.confidence import ConfidenceFactors, ConfidenceScore
from grace_kp.gating import FACTS, Basis, Decision, Rules, RunConfidence, ShadowAssessment, audit_probability

THRESHOLDS = gk.Thresholds(0.9, 0.7, 0.4)
LEVELS = ["silent", "notify", "confirm", "escalate"]


def rules(floor=None, **fields):
    return Rules(gk.Policy(floor=floor), THRESHOLDS, **fields)


@pytest.mark.parametrize(("score", "level"), [(0.95, "silent"), (0.8, "notify"), (0.5, "confirm"), (0.1, "escalate")])
def test_the_confidence_gives_the_level(score, level):
    decision = rules().decide(score)
    assert (level, score) == (decision.level, decision.confidence_score)


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


def test_a_policy_s_own_thresholds_count():
    policy = gk.Policy(thresholds=gk.Thresholds(0.2, 0.1, 0.05))
    assert "silent" == Rules(policy, THRESHOLDS).decide(0.3).level


def test_deny_is_no_level():
    """The engine refuses the call; its level follows from the confidence."""
    assert "silent" == rules("deny").decide(0.95).level


def test_without_a_confidence_a_person_helps():
    decision = Decision.without_confidence("the store is gone", rules("notify"))
    assert ("escalate", 0.0, "the store is gone", "request_clarification", None) == (
        decision.level,
        decision.action.confidence_score,
        decision.action.reason,
        decision.action.suggested_action,
        decision.confidence,
    )


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
    """A decision that was kept, as it is read again."""
    stated = {"digest": "d", "level": level, "score": score, "breakdown": dict(breakdown), "penalties": penalties}
    return Decision.from_dict({**stated, "reason": "because", **more})


def test_decisions_of_earlier_versions_are_read():
    decision = kept("confirm", 0.7, {"tool_success": None, "search_quality": 0.5}, penalties=["no_sources"])
    assert ("confirm", 0.7, "because", ()) == (
        decision.level,
        decision.action.confidence_score,
        decision.action.reason,
        decision.gaps,
    )
    assert {"tool_success": None, "search_quality": 0.5} == decision.confidence.evaluated
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
        "profile": "learned",
        "step": 3,
        "mismatches": ["x"],
        "fallback": True,
        "fitted_at": "2026",
        "profile_digest": "sha256:0",
        "profile_gaps": ["y"],
        "evidence": {"has_failed": True},
    }
    basis = Basis(pessimistic=0.1, has_failed=True)
    shadow = ShadowAssessment("other", NEVER, 0.5)
    required = gk.InterventionLevel.NOTIFY
    decision = Decision.of(assessed(facts=facts, shadow=shadow, audit_rate=0.5, basis=basis), rules(at_least=required))
    kept = json.loads(json.dumps(decision.to_dict("d"), allow_nan=False))
    assert decision.facts == Decision.from_dict(kept).facts
    assert {*FACTS} - {"audit", "fallbacks"} == {*decision.facts}
    assert {} == Decision.from_dict({**kept, "facts": None}).facts
    assert "facts" not in Decision.of(assessed(), rules()).to_dict("d")


def test_what_a_call_requires_is_a_fact():
    """So is the level of a call whose confidence could not be computed: neither follows from the score."""
    confirm = gk.InterventionLevel.CONFIRM
    assert {"at_least": "confirm"} == Decision.of(assessed(), rules(at_least=confirm)).facts
    assert {"at_least": "escalate"} == Decision.without_confidence("the store is gone", rules()).facts


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


def test_a_kept_decision_is_never_made_milder():
    decision = kept("escalate", 0.2, facts={"measured": []})
    assert "escalate" == Rules(gk.Policy(unmeasured="silent"), THRESHOLDS).apply_again(decision).level


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
