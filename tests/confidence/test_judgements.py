"""`when_needed`: the judge is asked only where its answer could change the level, and then no level is ever another one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import (
    ConfidenceCalculator,
    ConfidenceFactors,
    Evaluation,
    Thresholds,
    could_change,
    decide,
    with_judgements,
)
from tests.exhaustive import examples

unit = st.floats(0, 1).map(lambda x: round(x, 4)) | st.sampled_from([0.0, 0.1, 0.5, 0.6, 0.8, 0.9, 1.0])


@st.composite
def factors(draw):
    """What may be known of a run without a judgement."""
    given: dict = {}
    if draw(st.booleans()):
        executed = draw(st.integers(1, 8))
        good = draw(st.integers(0, executed))
        given |= {"tool_execution_count": executed, "tool_success_count": good, "tool_success_rate": good / executed}
    if draw(st.booleans()):
        best = draw(unit)
        given |= {
            "search_result_count": draw(st.integers(0, 9)),
            "search_max_score": best,
            "search_avg_score": min(best, draw(unit)),
            "search_score_variance": draw(unit),
        }
    if draw(st.booleans()):
        given |= {"source_count": draw(st.integers(0, 4)), "source_agreement": draw(unit)}
    return ConfidenceFactors(is_search_step=draw(st.booleans()), **given)


@st.composite
def thresholds(draw):
    """Three that descend."""
    three = sorted(draw(st.lists(unit, min_size=3, max_size=3)), reverse=True)
    return Thresholds(*three)


judgements = (
    st.none() | st.builds(lambda score: Evaluation(score=score), unit) | st.just(Evaluation.failed("no answer"))
)
GRID = [None, Evaluation.failed("x"), *(Evaluation(score=number / 40) for number in range(41))]


@pytest.mark.parametrize("profile", ["grace", "strict"])
@given(factors(), thresholds(), judgements, judgements)
@examples(400)
def test_where_it_is_not_needed_no_judgement_changes_the_level(profile, known, at, own, coverage):
    calculator = ConfidenceCalculator(profile, at)
    if could_change(calculator, known):
        return
    without = decide(calculator.calculate(known).score, at).level
    judged = with_judgements(known, own, coverage, cautious=profile == "strict")
    assert without == decide(calculator.calculate(judged).score, at).level


@pytest.mark.parametrize("profile", ["grace", "strict"])
@given(factors(), thresholds(), judgements, judgements)
@examples(400)
def test_the_second_judgement_is_left_out_only_where_it_cannot_matter(profile, known, at, own, coverage):
    calculator = ConfidenceCalculator(profile, at)
    judged = with_judgements(known, own, None)
    if own is None or could_change(calculator, judged, own_is_known=True):
        return
    without = decide(calculator.calculate(judged).score, at).level
    assert without == decide(calculator.calculate(with_judgements(judged, None, coverage)).score, at).level


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_the_same_on_a_fine_grid(profile):
    """All pairs of judgements in steps of 1/40, for runs of every usual kind."""
    calculator = ConfidenceCalculator(profile)
    runs = [
        ConfidenceFactors(),
        ConfidenceFactors(tool_execution_count=4, tool_success_count=4, tool_success_rate=1.0),
        ConfidenceFactors(tool_execution_count=4, tool_success_count=1, tool_success_rate=0.25),
        ConfidenceFactors(search_result_count=0, search_made=True, tool_execution_count=1, tool_success_count=1),
        ConfidenceFactors(search_result_count=5, search_max_score=0.97, search_avg_score=0.9, source_count=3,
                          source_agreement=0.9, tool_execution_count=9, tool_success_count=9),
        ConfidenceFactors(search_result_count=5, search_max_score=0.2, search_avg_score=0.1, source_count=1,
                          tool_execution_count=3, tool_success_count=0, tool_success_rate=0.0),
        ConfidenceFactors(search_result_count=2, search_max_score=0.99, search_avg_score=0.9, is_search_step=True),
    ]  # fmt: skip
    needed = []
    for known in runs:
        levels = {
            decide(calculator.calculate(with_judgements(known, own, coverage)).score, calculator.thresholds).level
            for own, coverage in itertools.product(GRID, GRID)
        }
        needed.append(could_change(calculator, known))
        if len(levels) > 1:
            assert could_change(calculator, known)
    assert not needed[-1]  # a search step is judged by what it found alone
    assert any(needed)


def test_a_floor_can_make_it_unneeded():
    calculator = ConfidenceCalculator("grace")
    known = ConfidenceFactors(tool_execution_count=2, tool_success_count=2)
    assert could_change(calculator, known)
    assert not could_change(calculator, known, level_of=lambda factors: "escalate")


def test_of_a_profile_of_ones_own_nothing_is_known():
    class Own:
        name = "grace"

        def calculate(self, factors):
            return ConfidenceCalculator("grace").calculate(factors)

    assert could_change(ConfidenceCalculator(Own()), ConfidenceFactors(is_search_step=True))


def test_judgements_are_put_in_as_made_or_as_fallbacks():
    """A fallback is 0.5 and marked; a judgement that was not asked for leaves everything as it is."""
    known = ConfidenceFactors(source_count=1)
    assert known == with_judgements(known, None, None)
    judged = with_judgements(known, Evaluation(score=0.9), Evaluation.failed("x"))
    assert (0.9, True, 0.5, False) == (
        judged.llm_self_confidence, judged.self_evaluated, judged.query_coverage, judged.coverage_evaluated
    )  # fmt: skip
    spread = replace(Evaluation(score=0.9), spread=0.2, samples=3)
    assert 0.9 == with_judgements(known, spread, None).llm_self_confidence
    assert 0.7 == pytest.approx(with_judgements(known, spread, None, cautious=True).llm_self_confidence)


def test_a_failed_evaluation_is_a_marked_half():
    """A fallback is 0.5, says it is one, and keeps what is known of the attempt."""
    failed = Evaluation.failed("no key", attempts=3, latency_ms=12.5, model="m")
    assert (0.5, True, "no key", 3, 12.5, "m") == (
        failed.score,
        failed.fallback,
        failed.error,
        failed.attempts,
        failed.latency_ms,
        failed.model,
    )
    assert "no key" in failed.reason
    made = Evaluation(score=0.8, reason="fine", tokens_in=10, tokens_out=2)
    assert (False, None) == (made.fallback, made.error)


@pytest.mark.parametrize("bad", [math.nan, 1.2, "0.5", True])
def test_an_evaluation_is_a_number_from_0_to_1(bad):
    """Nothing else becomes a judgement."""
    with pytest.raises(ValueError, match="score"):
        Evaluation(score=bad)


def test_the_spread_makes_a_judgement_cautious():
    """The score less its spread, never below 0; a single judgement has none."""
    assert 0.8 == Evaluation(score=0.8).cautious
    assert 0.6 == pytest.approx(Evaluation(score=0.8, spread=0.2, samples=3).cautious)
    assert 0.0 == Evaluation(score=0.1, spread=0.3, samples=3).cautious


def test_an_evaluation_as_json_leaves_out_what_is_not_known():
    """Numbers that are 0 stay; empty reasons, None and False go."""
    assert {"score": 0.0, "attempts": 0, "samples": 1} == Evaluation(score=0.0, attempts=0).to_dict()
    expected = {
        "score": 0.5,
        "reason": "not evaluated: no key",
        "fallback": True,
        "error": "no key",
        "attempts": 2,
        "latency_ms": 0.0,
        "model": "m",
        "tokens_in": 0,
        "tokens_out": 3,
        "samples": 1,
    }
    failed = Evaluation.failed("no key", attempts=2, latency_ms=0.0, model="m", tokens_in=0, tokens_out=3)
    assert expected == failed.to_dict()
