"""A confidence score: its number, its sub-scores for people, and its penalties in words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import (
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    part_text,
    penalties_text,
)
from grace_kp.pages import penalty_text


@pytest.mark.parametrize(
    ("penalty", "text"),
    [
        ("tool_failures(rate=0.83)", "tools succeeded: 83 %"),
        ("tool_failures(rate=0.00)", "tools succeeded: 0 %"),
        ("tool_failures(rate=0.07)", "tools succeeded: 7 %"),
        ("tool_failures(rate=1.00)", "tools succeeded: over 99 %"),
        ("no_search_results", "the search found nothing"),
        ("no_sources", "no sources"),
        ("late_payment(days=3)", "late_payment(days=3)"),
    ],
)
def test_penalties_in_words(penalty, text):
    """People read what a penalty means; a name from elsewhere stays as it is."""
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
    """`evaluated` holds None where the calculator's own breakdown holds a default."""
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
    """Nothing else becomes a confidence."""
    with pytest.raises(ValueError, match="score"):
        ConfidenceScore(bad, ConfidenceFactors())


@pytest.mark.parametrize(("value", "text"), [(None, "not evaluated"), (0.5, "0.500"), (1, "1.000"), (0.12345, "0.123")])
def test_sub_scores_in_words(value, text):
    """Three decimals, or the words that stand for a missing evaluation."""
    assert text == part_text(value)


def test_contributions_are_kept_as_they_are():
    score = ConfidenceScore(0.5, ConfidenceFactors(), contributions={"steps": -1.25, "bias": 0})
    assert {"steps": -1.25, "bias": 0} == score.contributions
    assert {} == ConfidenceScore(0.5, ConfidenceFactors()).contributions


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
    """What JSON cannot hold never reaches a trace."""
    with pytest.raises(ValueError, match=message):
        ConfidenceScore(0.5, ConfidenceFactors(), contributions=contributions)
