"""The profiles: `grace` to the letter, `strict` without its optimism."""

import dataclasses
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grace_kp.confidence import (
    PROFILES,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    LearnedProfile,
)
from grace_kp.pages import penalty_text
from tests.exhaustive import examples

units = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.59, 0.6, 0.61, 0.8, 1.0])
counts = st.integers(0, 5)
FLAGS = ("search_made", "self_evaluated", "agreement_evaluated", "coverage_evaluated")


@st.composite
def factors(draw):
    executed = draw(counts)
    return ConfidenceFactors(
        search_result_count=draw(counts),
        search_avg_score=draw(units),
        search_max_score=draw(units),
        search_score_variance=draw(st.floats(0, 2)),
        source_agreement=draw(units),
        source_count=draw(counts),
        llm_self_confidence=draw(units),
        tool_success_rate=draw(units),
        tool_execution_count=executed,
        tool_success_count=draw(st.integers(0, executed)),
        query_coverage=draw(units),
        is_search_step=draw(st.booleans()),
        **{flag: draw(st.booleans() | st.none()) for flag in FLAGS},
        search_avg_with_unusable=draw(units | st.none()),
        search_variance_with_unusable=draw(st.floats(0, 2) | st.none()),
    )


def score(given, profile="strict"):
    return ConfidenceCalculator(profile).calculate(given).score


def test_golden_confidences(vectors):
    """Every recorded set of factors gives its score, parts, penalties, word and decision."""
    calculator = ConfidenceCalculator()
    for number, vector in enumerate(vectors("confidence")):
        expected = vector["expected"]
        result = calculator.calculate(ConfidenceFactors(**vector["factors"]))
        assert expected["score"] == pytest.approx(result.score, abs=1e-9), number
        assert expected["breakdown"] == pytest.approx(dict(result.breakdown), abs=1e-9), number
        assert expected["penalties"] == list(result.penalties_applied), number
        assert expected["level_word"] == result.level, number
        decision = calculator.decide_action(result)
        assert {name: expected[name] for name in DECIDED} == {
            "decision": str(decision.level),
            "suggested_action": decision.suggested_action,
            "should_proceed": decision.should_proceed,
            "needs_confirmation": decision.needs_confirmation,
            "needs_user_input": decision.needs_user_input,
        }, number
        assert result.score == decision.confidence_score


DECIDED = ("decision", "suggested_action", "should_proceed", "needs_confirmation", "needs_user_input")


@pytest.mark.parametrize("profile", ["grace", "strict"])
@given(given=factors())
def test_bounds(profile, given):
    """Every score lies in 0 to 1, has three decimals, parts from 0 to 1, and a reason that names its penalties."""
    result = ConfidenceCalculator(profile).calculate(given)
    assert 0.0 <= result.score <= 1.0
    assert round(result.score, 3) == result.score
    assert 5 == len(result.breakdown)
    assert all(0.0 <= part <= 1.0 for part in result.breakdown.values())
    assert given == result.factors
    assert result.reason.endswith(".")
    assert all(penalty_text(penalty) in result.reason for penalty in result.penalties_applied)


def test_nothing_known():
    """Without any evidence `grace` lets an action go ahead with a notice, `strict` says 0.5 and why."""
    nothing = ConfidenceFactors()
    grace = ConfidenceCalculator().calculate(nothing)
    assert (0.7, ["no_sources"]) == (grace.score, grace.penalties_applied)
    strict = ConfidenceCalculator("strict").calculate(nothing)
    assert (0.5, []) == (strict.score, strict.penalties_applied)
    assert strict.reason.startswith("No evidence")
    assert set(strict.breakdown) == set(strict.not_evaluated)


def test_fallbacks_are_no_evidence_in_strict():
    """Evaluations that failed are flagged, and the score is what it would be without them."""
    fallbacks = ConfidenceFactors(
        llm_self_confidence=0.5,
        self_evaluated=False,
        source_agreement=0.5,
        agreement_evaluated=False,
        query_coverage=0.5,
        coverage_evaluated=False,
        source_count=2,
        tool_execution_count=1,
        tool_success_count=1,
    )
    result = ConfidenceCalculator("strict").calculate(fallbacks)
    assert 1.0 == result.score
    assert ("search_quality", "source_agreement", "llm_self_eval", "query_coverage") == result.not_evaluated


def test_what_was_made_counts_in_strict_however_badly_it_went():
    tool = {"tool_execution_count": 1, "tool_success_count": 1, "source_count": 2}
    assert round((0.4 + 0.3 * 0.2) / 0.7, 3) == score(ConfidenceFactors(**tool, llm_self_confidence=0.2))
    assert round((0.4 + 0.1 * 0.05) / 0.5, 3) == score(ConfidenceFactors(**tool, query_coverage=0.05))
    assert round(0.4 / 1.0, 3) == score(ConfidenceFactors(**tool, search_result_count=0))
    assert round((0.4 + 0.2 * 0.3) / 0.6, 3) == score(ConfidenceFactors(**tool, source_agreement=0.3))
    tool["source_count"] = 1
    assert 1.0 == score(ConfidenceFactors(**tool, llm_self_confidence=0.2, query_coverage=0.05), "grace")


def test_tools_count_in_strict_only_if_one_ran():
    own = {"llm_self_confidence": 0.9}
    assert 0.9 == score(ConfidenceFactors(**own))
    assert 0.9 == score(ConfidenceFactors(**own, tool_success_rate=0.2))
    assert 0.9 > score(ConfidenceFactors(**own, tool_execution_count=1))


def test_grace_keeps_its_quirk_of_the_self_evaluation():
    """In `grace` a self-evaluation that rises from 0.60 to 0.61 lowers the score: below, it is not looked at."""
    low, high = (ConfidenceFactors(llm_self_confidence=own, source_count=1) for own in (0.60, 0.61))
    assert score(low, "grace") > score(high, "grace")
    assert score(low) < score(high)


def worse_versions(before):
    """Every way to make one factor worse by a step, as changes."""
    for name in ("search_avg_score", "search_max_score", "source_agreement", "llm_self_confidence"):
        yield name, getattr(before, name)
    for name in ("tool_success_rate", "query_coverage"):
        yield name, getattr(before, name)
    if before.search_avg_with_unusable is not None:
        yield "search_avg_with_unusable", before.search_avg_with_unusable


@examples(400)
@given(factors(), st.data())
def test_strict_is_monotone_in_every_rate(before, data):
    for name, value in worse_versions(before):
        worse = data.draw(st.floats(0, value) | st.sampled_from([0.0, value, math.nextafter(value, 0)]), label=name)
        assert score(dataclasses.replace(before, **{name: worse})) <= score(before), name


@examples(400)
@given(factors(), st.floats(0, 2))
def test_strict_is_monotone_in_the_variance(before, more):
    after = dataclasses.replace(before, search_score_variance=before.search_score_variance + more)
    assert score(after) <= score(before)


@examples(400)
@given(factors())
@example(ConfidenceFactors(source_count=2, source_agreement=0.1, llm_self_confidence=0.9))
@example(ConfidenceFactors(search_result_count=1, search_max_score=0.1, llm_self_confidence=0.9))
def test_strict_is_monotone_in_every_count(before):
    for name in ("search_result_count", "source_count", "tool_success_count"):
        for fewer in range(getattr(before, name)):
            assert score(dataclasses.replace(before, **{name: fewer})) <= score(before), name
    one_more_failure = dataclasses.replace(before, tool_execution_count=before.tool_execution_count + 1)
    assert score(one_more_failure) <= score(before)


@examples(300)
@given(st.floats(0.55, 0.65), st.floats(0, 1), st.floats(0, 0.5), st.booleans())
def test_strict_is_monotone_where_the_search_turns_good(best, average, variance, is_search):
    """Around a best result of 0.6, where the formula changes, the confidence never falls as the result gets better."""
    scores = [
        score(ConfidenceFactors(3, average, value, variance, source_count=1, is_search_step=is_search))
        for value in sorted([best, 0.6, math.nextafter(0.6, 0), math.nextafter(0.6, 1)])
    ]
    assert sorted(scores) == scores


@given(factors())
def test_grace_does_not_ask_what_was_made(given):
    flipped = dataclasses.replace(given, **{flag: not getattr(given, flag) for flag in FLAGS})
    assert score(given, "grace") == score(flipped, "grace")


def test_a_search_step_is_judged_by_its_search():
    """On a search step the other factors play no part, and the evaluations are shown as 0."""
    step = ConfidenceFactors(4, 0.5, 0.8, 0.1, llm_self_confidence=0.9, query_coverage=0.9, is_search_step=True)
    for profile in ("grace", "strict"):
        result = ConfidenceCalculator(profile).calculate(step)
        assert 0.8 == result.score
        assert (0.0, 0.0) == (result.breakdown["llm_self_eval"], result.breakdown["query_coverage"])
        assert "Search quality 0.80." == result.reason


def test_a_reason_tells_what_counted_and_what_lowered():
    given = ConfidenceFactors(
        tool_execution_count=2, tool_success_count=1, tool_success_rate=0.5, llm_self_confidence=0.7
    )
    reason = ConfidenceCalculator().calculate(given).reason
    assert (
        "Weighted mean of tool success 0.50, self-evaluation 0.70, lowered (tools succeeded: 50 %, no sources)."
        == reason
    )


@pytest.mark.parametrize("profile", ["grace", "strict"])
@given(given=factors())
def test_a_reason_mentions_no_tools_that_were_not_called(profile, given):
    """Tools appear in a reason only where one was executed, or a success rate below 1 was passed."""
    idle = dataclasses.replace(given, tool_execution_count=0, tool_success_count=0, tool_success_rate=1.0)
    assert "tool" not in ConfidenceCalculator(profile).calculate(idle).reason


def test_a_reason_without_evidence_says_so():
    assert (
        "No evidence: nothing was searched, executed or evaluated; the formula starts at 1.00, lowered (no sources)."
        == ConfidenceCalculator().calculate(ConfidenceFactors()).reason
    )
    searched = ConfidenceFactors(2, 0.7, 0.8, 0.01, source_count=1)
    assert (
        "Weighted mean of search quality 0.80 and a default of 1.00."
        == ConfidenceCalculator().calculate(searched).reason
    )


def test_a_reason_marks_what_was_assumed():
    assumed = ConfidenceFactors(
        tool_execution_count=1,
        tool_success_count=1,
        source_count=2,
        source_agreement=0.5,
        agreement_evaluated=False,
        query_coverage=0.5,
        coverage_evaluated=False,
    )
    expected = "Weighted mean of tool success 1.00, source agreement (fallback 0.5), query coverage (fallback 0.5)"
    found, strict = (ConfidenceCalculator(profile).calculate(assumed) for profile in ("grace", "strict"))
    assert found.reason.startswith(expected)
    assert ({"source_agreement": 0.5, "query_coverage": 0.5}, {}) == (found.fallbacks, strict.fallbacks)


def test_a_learned_profile_reads_runs():
    class Learned:
        name = "mine"

        def calculate(self, factors):
            return ConfidenceScore(0.5, factors)

        def confidence(self, document, *, moment):
            return ConfidenceScore(0.25, ConfidenceFactors())

    assert isinstance(Learned(), LearnedProfile)
    assert not any(isinstance(profile, LearnedProfile) for profile in PROFILES.values())
    assert 0.5 == ConfidenceCalculator(Learned()).calculate(ConfidenceFactors()).score


def test_a_search_with_unusable_scores_only_was_not_evaluated():
    """`grace` leaves it out, and `strict` counts the 0 that stands for it; a usable score of 0 was evaluated."""
    unusable = ConfidenceFactors(2, tool_execution_count=1, tool_success_count=1, search_avg_with_unusable=0.0)
    zero = dataclasses.replace(unusable, search_score_variance=0.0)
    for profile, fallbacks in (("grace", {}), ("strict", {"search_quality": 0.0})):
        found, usable = (ConfidenceCalculator(profile).calculate(each) for each in (unusable, zero))
        assert ("search_quality" in found.not_evaluated, "search_quality" in usable.not_evaluated) == (True, False)
        assert (found.score, 0.0, fallbacks) == (usable.score, found.breakdown["search_quality"], found.fallbacks)
