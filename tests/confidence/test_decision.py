"""The decision for a confidence: four levels, three thresholds, and a reason."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import (
    ActionDecision,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    Thresholds,
    decide,
)
from grace_kp.levels import InterventionLevel


@pytest.mark.parametrize(
    ("score", "level", "action"),
    [
        (1.0, "silent", "proceed"),
        (0.9, "silent", "proceed"),
        (0.899, "notify", "proceed_with_status"),
        (0.7, "notify", "proceed_with_status"),
        (0.699, "confirm", "ask_confirmation"),
        (0.4, "confirm", "ask_confirmation"),
        (0.399, "escalate", "request_clarification"),
        (0, "escalate", "request_clarification"),
    ],
)
def test_levels_at_the_default_thresholds(score, level, action):
    """A threshold that is met exactly counts as met; each level suggests its action and says why."""
    decision = decide(score, Thresholds())
    assert (level, action, score) == (decision.level, decision.suggested_action, decision.confidence_score)
    assert str(score) in decision.reason
    assert decision == ConfidenceCalculator().decide_action(score)
    assert decision == ConfidenceCalculator().decide_action(ConfidenceScore(score, ConfidenceFactors()))


@pytest.mark.parametrize(
    ("level", "answers"),
    [
        ("silent", (True, False, False)),
        ("notify", (True, False, False)),
        ("confirm", (False, True, False)),
        ("escalate", (False, False, True)),
    ],
)
def test_the_questions_asked_of_a_decision(level, answers):
    """Exactly one of going ahead, a yes and help is needed."""
    decision = ActionDecision(InterventionLevel(level), 0.5)
    assert answers == (decision.should_proceed, decision.needs_confirmation, decision.needs_user_input)
    assert decision == ActionDecision(level, 0.5)  # type: ignore[arg-type]


thresholds = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(lambda parts: Thresholds(*sorted(parts)[::-1]))


@given(thresholds, st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_gated_harder(limits, one, other):
    """For any thresholds, a higher confidence never needs more of a person."""
    low, high = sorted([one, other])
    assert decide(high, limits).level.severity <= decide(low, limits).level.severity


@pytest.mark.parametrize(
    ("limits", "level", "reason"),
    [
        (Thresholds(silent=math.inf), "notify", "reaches the notify threshold 0.7"),
        (Thresholds(math.inf, math.inf), "confirm", "cannot reach the notify threshold, which is set to never"),
        (Thresholds(math.inf, math.inf, math.inf), "escalate", "cannot reach the confirm threshold"),
    ],
)
def test_an_infinite_threshold_is_never_reached(limits, level, reason):
    """Not even by full confidence."""
    decision = decide(1.0, limits)
    assert level == decision.level
    assert reason in decision.reason


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "0.5", None, True])
def test_no_decision_without_a_confidence(bad):
    """What is no number from 0 to 1 leads to an error, never to a decision."""
    with pytest.raises(ValueError, match="score must be a number"):
        decide(bad, Thresholds())
    with pytest.raises(ValueError, match="score must be a number"):
        ActionDecision(InterventionLevel.SILENT, bad)


def test_an_unknown_level_is_refused():
    """A decision has one of the four levels."""
    with pytest.raises(ValueError, match="maybe"):
        ActionDecision("maybe", 0.5)  # type: ignore[arg-type]
