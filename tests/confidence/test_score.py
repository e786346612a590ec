"""Scores: number, sub-scores and penalties in words, aggregates, and judgements, which are asked for only where they could change the level."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.confidence import (
    ConfidenceAggregator,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    Evaluation,
    Thresholds,
    could_change,
    decide,
    part_text,
    penalties_text,
    with_judgements,
)
from grace_kp.pages import penalty_text
from tests.exhaustive import examples
from tests.pages.reading import Elements, problems


@pytest.mark.parametrize(
    ("penalty", "text"),
    [
        ("tool_failures(rate=0.83)", "tools succeeded: 83 %"),
        ("tool_failures(rate=0.07)", "tools succeeded: 7 %"),
        ("tool_failures(rate=1.00)", "tools succeeded: over 99 %"),
        ("no_search_results", "the search found nothing"),
        ("no_sources", "no sources"),
        ("late_payment(days=3)", "late_payment(days=3)"),
    ],
)
def test_penalties_in_words(penalty, text):
    assert text == penalty_text(penalty)


@given(st.floats(0, 1, exclude_max=True))
def test_every_tool_penalty_has_words(rate):
    """No success rate shows its pinned name to a reader, and none below 1 reads as 100 %."""
    score = ConfidenceCalculator().calculate(ConfidenceFactors(tool_success_rate=rate))
    words = penalties_text(score.penalties_applied)
    assert "tools succeeded: " in words
    assert "rate=" not in words
    assert ": 100 %" not in words


def test_what_was_not_evaluated_has_no_figure():
    score = ConfidenceCalculator().calculate(ConfidenceFactors(tool_execution_count=1, tool_success_count=1))
    assert 0.5 == score.breakdown["llm_self_eval"]
    expected = dict.fromkeys(("search_quality", "source_agreement", "llm_self_eval", "query_coverage"))
    assert expected | {"tool_success": 1.0} == score.evaluated


def test_a_score_by_hand():
    """Score and factors suffice to build one; its level is a word."""
    words = [ConfidenceScore(score=s, factors=ConfidenceFactors()).level for s in (1, 0.9, 0.8, 0.7, 0.4, 0.399, 0)]
    assert ["high", "high", "medium", "medium", "low", "very_low", "very_low"] == words
    assert {} == ConfidenceScore(0.8, ConfidenceFactors()).breakdown
    assert 1 == len({ConfidenceScore(0.8, ConfidenceFactors()), ConfidenceScore(0.8, ConfidenceFactors())})


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True])
def test_a_score_is_a_number_from_0_to_1(bad):
    with pytest.raises(ValueError, match="score"):
        ConfidenceScore(bad, ConfidenceFactors())


@pytest.mark.parametrize(("value", "text"), [(None, "not evaluated"), (0.5, "0.500"), (1, "1.000"), (0.12345, "0.123")])
def test_sub_scores_in_words(value, text):
    assert text == part_text(value)


@pytest.mark.parametrize(
    ("contributions", "message"),
    [
        ({"steps": math.nan}, "the contribution of 'steps' must be a finite number, not nan"),
        ({"steps": -math.inf}, "must be a finite number, not -inf"),
        ({"steps": True}, "must be a finite number, not True"),
        ({"steps": "much"}, "must be a finite number, not 'much'"),
        ({1: 0.5}, "must have the name of its feature, not 1"),
    ],
)
def test_a_contribution_is_a_finite_number_with_a_name(contributions, message):
    with pytest.raises(ValueError, match=message):
        ConfidenceScore(0.5, ConfidenceFactors(), contributions=contributions)


HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'
FACTORS = gk.ConfidenceFactors(
    search_result_count=3,
    search_avg_score=0.7,
    search_max_score=0.9,
    search_score_variance=0.1,
    tool_execution_count=4,
    tool_success_count=2,
    tool_success_rate=0.5,
)


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_a_confidence_shows_what_it_is_made_of(profile):
    score = gk.ConfidenceCalculator(profile).calculate(FACTORS)
    found = score._repr_html_()
    page = Elements(found)
    for words in (f"{score.score:.3f}", score.level.replace("_", " "), "search quality", "not evaluated", "no sources", "tools succeeded: 50 %", "search avg score"):  # fmt: skip
        assert words in page.text
    assert [] == problems(found)


def test_a_part_that_counts_without_having_been_evaluated_shows_its_fallback():
    score = gk.ConfidenceCalculator().calculate(
        gk.ConfidenceFactors(source_count=2, source_agreement=0.5, agreement_evaluated=False)
    )
    assert "source agreementfallback 0.5" in " ".join(Elements(score._repr_html_()).text.split())


def test_contributions_of_a_learned_profile_are_listed_strongest_first():
    weights = {"agreement": 0.1, "failures": -1.25, **{f"feature {place}": 0.01 for place in range(60)}}
    text = Elements(ConfidenceScore(0.5, FACTORS, contributions=weights)._repr_html_()).text
    assert text.index("−1.25") < text.index("+0.10")
    assert "2 weaker ones are not shown." in text


def test_every_text_is_text_and_the_size_is_bounded():
    """Whatever a profile of the user's wrote."""
    found = ConfidenceScore(
        0.5,
        FACTORS,
        breakdown={HOSTILE: 0.5},
        penalties_applied=[HOSTILE],
        reason=HOSTILE,
        contributions={HOSTILE: 1.0},
    )._repr_html_()
    assert 4 == found.count("&lt;img src=x")
    assert [] == problems(found)
    many = {"x" * 999 + str(place): 0.5 for place in range(3_000)}
    penalties = ["y" * 9_999] * 999
    large = ConfidenceScore(0.5, FACTORS, many, penalties, reason="z" * 999_999, contributions=many)
    assert len(large._repr_html_()) < 60_000


def test_factors_of_another_kind_are_left_out():
    assert "factors" not in ConfidenceScore(0.5, object())._repr_html_()


METHODS = ("mean", "min", "weighted")
aggregator = ConfidenceAggregator()
lists = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_golden_aggregates(vectors):
    for number, vector in enumerate(vectors("aggregate")):
        scores, expected = vector["scores"], vector["expected"]
        for method in METHODS:
            assert expected[method] == pytest.approx(aggregator.aggregate(scores, method), abs=1e-9), number
        value, critical = aggregator.aggregate_with_critical_check(scores, vector["critical_threshold"])
        assert expected["critical"] == [pytest.approx(value, abs=1e-9), critical], number


@given(lists)
def test_order_of_the_aggregates(scores):
    lowest, mean, weighted = (aggregator.aggregate(scores, method) for method in ("min", "mean", "weighted"))
    assert min(scores) == lowest <= mean <= max(scores)
    assert lowest <= weighted <= max(scores)


@given(lists, st.data())
def test_a_worse_step_never_raises_an_aggregate(scores, data):
    at = data.draw(st.integers(0, len(scores) - 1))
    worse = [*scores[:at], data.draw(st.floats(0, scores[at])), *scores[at + 1 :]]
    for method in METHODS:
        assert aggregator.aggregate(worse, method) <= aggregator.aggregate(scores, method) + 1e-15
    assert aggregator.aggregate_with_critical_check(worse)[0] <= (
        aggregator.aggregate_with_critical_check(scores)[0] + 1e-15
    )


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 1 / 3])
def test_equal_scores_aggregate_to_themselves(value):
    for method in METHODS:
        assert value == aggregator.aggregate([value] * 3, method)


def test_nothing_aggregates_to_zero():
    assert [0.0] * 3 == [aggregator.aggregate([], method) for method in METHODS]
    assert (0.0, False) == aggregator.aggregate_with_critical_check([])
    assert (0.3, False) == aggregator.aggregate_with_critical_check([0.3])  # at the threshold


def test_scores_may_be_objects():
    scores = (ConfidenceScore(0.25, ConfidenceFactors()), 0.75)
    assert 0.5 == aggregator.aggregate(iter(scores))
    assert (0.35, True) == aggregator.aggregate_with_critical_check(iter(scores))


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="mean, min, weighted"):
        aggregator.aggregate([], "median")  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True])
def test_bad_scores_are_refused_by_place(bad):
    for method in METHODS:
        with pytest.raises(ValueError, match=r"^scores\[1\] must be"):
            aggregator.aggregate([0.5, bad], method)
    with pytest.raises(ValueError, match="critical_threshold"):
        aggregator.aggregate_with_critical_check([0.5], bad)


unit = st.floats(0, 1).map(lambda x: round(x, 4)) | st.sampled_from([0.0, 0.1, 0.5, 0.6, 0.8, 0.9, 1.0])


@st.composite
def factors(draw):
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
    three = sorted(draw(st.lists(unit, min_size=3, max_size=3)), reverse=True)
    return Thresholds(*three)


judgements = (
    st.none() | st.builds(lambda score: Evaluation(score=score), unit) | st.just(Evaluation.failed("no answer"))
)


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


@pytest.mark.parametrize("bad", [math.nan, 1.2, "0.5", True])
def test_an_evaluation_is_a_number_from_0_to_1(bad):
    with pytest.raises(ValueError, match="score"):
        Evaluation(score=bad)


def test_the_spread_makes_a_judgement_cautious():
    """The score less its spread, never below 0; a single judgement has none."""
    assert 0.8 == Evaluation(score=0.8).cautious
    assert 0.6 == pytest.approx(Evaluation(score=0.8, spread=0.2, samples=3).cautious)
    assert 0.0 == Evaluation(score=0.1, spread=0.3, samples=3).cautious


def test_an_evaluation_as_json_leaves_out_what_is_not_known():
    assert {"score": 0.0, "attempts": 0, "samples": 1} == Evaluation(score=0.0, attempts=0).to_dict()
    cost = {"attempts": 2, "latency_ms": 0.0, "model": "m", "tokens_in": 0, "tokens_out": 3}
    expected = {"score": 0.5, "reason": "not evaluated: no key", "fallback": True, "error": "no key", "samples": 1}
    assert expected | cost == Evaluation.failed("no key", **cost).to_dict()
