"""Thresholds: in order, in JSON, infinite, and moving with feedback."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import (
    PROFILES,
    ActionDecision,
    ConfidenceCalculator,
    ConfidenceFactors,
    ConfidenceScore,
    DynamicThresholds,
    Thresholds,
    decide,
)
from grace_kp.levels import InterventionLevel


@pytest.mark.parametrize("bad", [(0.7, 0.9, 0.4), (0.9, 0.4, 0.7), (0.3, 0.7, 0.4)])
def test_thresholds_out_of_order_are_refused(bad):
    with pytest.raises(ValueError, match="silent >= notify >= confirm"):
        Thresholds(*bad)


@pytest.mark.parametrize("name", ["silent", "notify", "confirm"])
@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, -math.inf, None, "0.5", "never", True])
def test_bad_thresholds_are_refused_by_name(name, bad):
    """A threshold is a number from 0 to 1, or infinite."""
    with pytest.raises(ValueError, match=f"^{name} must be a number from 0 to 1, or math.inf"):
        Thresholds(**{name: bad})


def test_infinity_keeps_the_order():
    """What never goes ahead with a notice never goes ahead silently."""
    with pytest.raises(ValueError, match=r"silent >= notify >= confirm \(got silent=0.9, notify=never, confirm=0.4"):
        Thresholds(notify=math.inf)


limits_of_any_kind = st.lists(st.floats(0, 1) | st.just(math.inf), min_size=3, max_size=3).map(
    lambda parts: Thresholds(*sorted(parts)[::-1])
)


@given(limits_of_any_kind)
def test_thresholds_in_json(limits):
    """The JSON form reads back to the same thresholds; infinity is the word never, because JSON has no infinity."""
    text = json.dumps(limits.to_dict(), allow_nan=False)
    assert limits == Thresholds.from_dict(json.loads(text))


def test_a_threshold_that_json_leaves_out_is_the_default():
    assert Thresholds(silent=math.inf) == Thresholds.from_dict({"silent": "never"})
    with pytest.raises(ValueError, match="unknown threshold 'confrim'; known are silent, notify, confirm"):
        Thresholds.from_dict({"confrim": 0.5})
    with pytest.raises(ValueError, match=r"silent must be a number .*'always'"):
        Thresholds.from_dict({"silent": "always"})


def told(*samples, initial=None):
    dynamic = DynamicThresholds() if initial is None else DynamicThresholds(initial)
    for confidence, right in samples:
        dynamic.record_feedback(confidence, right)
    return dynamic.current


def test_golden_thresholds(vectors):
    """After every recorded piece of feedback the thresholds are the recorded ones."""
    for number, vector in enumerate(vectors("thresholds")):
        dynamic = DynamicThresholds()
        for event in vector["events"]:
            dynamic.record_feedback(event["confidence"], event["was_correct"])
            now = dynamic.current
            assert event["expected"] == pytest.approx(
                {"silent": now.silent, "notify": now.notify, "confirm": now.confirm}, abs=1e-9
            ), number


RIGHT, WRONG = True, False
HIGH, LOW = (0.99, 0.9, 0.8), (0.5, 0.4, 0.1)


@pytest.mark.parametrize(
    ("initial", "samples", "expected"),
    [
        pytest.param((), [(0.95, WRONG)] * 9, (), id="nine samples are too few"),
        pytest.param((), [(0.95, WRONG)] * 10, (0.95, 0.75, 0.45), id="ten are enough"),
        pytest.param((), [(0.95, WRONG)] * 3 + [(0.5, RIGHT)] * 7, (), id="three of ten move nothing"),
        pytest.param((), [(0.95, WRONG)] * 4 + [(0.5, RIGHT)] * 6, (0.95, 0.75, 0.45), id="four of ten raise"),
        pytest.param((), [(0.1, RIGHT)] * 4 + [(0.5, RIGHT)] * 6, (0.85, 0.65, 0.35), id="four of ten lower"),
        pytest.param(
            (), [(0.1, RIGHT)] * 5 + [(0.95, WRONG)] * 5, (0.95, 0.75, 0.45), id="where both happen they rise"
        ),
        pytest.param((), [(0.7, WRONG)] * 10, (), id="at the threshold is not above"),
        pytest.param((), [(0.4, RIGHT)] * 10, (), id="at the threshold is not below"),
        pytest.param((0.9, 0.8, 0.5), [(0.81, WRONG)] * 10, (0.95, 0.85, 0.55), id="one step"),
        pytest.param(
            (0.9, 0.8, 0.5),
            [(0.81, WRONG)] * 10 + [(0.85, WRONG)] * 10,
            (0.95, 0.85, 0.55),
            id="at a threshold that steps add up to",
        ),
        pytest.param((), [(1.0, WRONG)] * 40, (0.95, 0.85, 0.6), id="up to the caps"),
        pytest.param((), [(0.0, RIGHT)] * 40, (0.8, 0.6, 0.3), id="down to the floors"),
        pytest.param(HIGH, [(1.0, WRONG)] * 10, HIGH, id="a rise never lowers"),
        pytest.param(LOW, [(0.0, RIGHT)] * 10, LOW, id="a fall never raises"),
        pytest.param((math.inf, math.inf), [(0.3, RIGHT)] * 10, (math.inf, math.inf, 0.35), id="never stays never"),
        pytest.param((math.inf,), [(1.0, WRONG)] * 40, (math.inf, 0.85, 0.6), id="never stays never in a rise"),
    ],
)
def test_feedback_moves_thresholds(initial, samples, expected):
    """Four wrong and confident samples among the last ten raise all thresholds by a step, four right and unconfident ones lower them."""
    assert Thresholds(*expected) == told(*samples, initial=Thresholds(*initial))


feedback = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


ordered = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(lambda parts: Thresholds(*sorted(parts)[::-1]))


@given(ordered, feedback)
def test_thresholds_stay_in_order(initial, samples):
    """Wherever they start and whatever they are told, the thresholds stay valid."""
    now = told(*samples, initial=initial)
    assert 1 >= now.silent >= now.notify >= now.confirm >= 0


@given(feedback)
def test_only_the_last_ten_count(samples):
    dynamic = DynamicThresholds()
    for confidence, right in [*samples, *[(0.65, True)] * 9]:
        dynamic.record_feedback(confidence, right)
    settled = dynamic.current
    for _ in range(5):
        dynamic.record_feedback(0.65, True)
    assert settled == dynamic.current


@pytest.mark.parametrize(
    ("confidence", "right"), [(math.nan, True), (1.1, True), ("1", True), (0.5, None), (0.5, "no")]
)
def test_bad_feedback_is_refused(confidence, right):
    """Feedback that makes no sense is an error, and counts for nothing."""
    dynamic = DynamicThresholds()
    for _ in range(20):
        with pytest.raises(ValueError, match="must be"):
            dynamic.record_feedback(confidence, right)
    assert Thresholds() == dynamic.current


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
    decision = ActionDecision(InterventionLevel(level), 0.5)
    assert answers == (decision.should_proceed, decision.needs_confirmation, decision.needs_user_input)
    assert decision == ActionDecision(level, 0.5)  # type: ignore[arg-type]


@given(ordered, st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_is_never_gated_harder(limits, one, other):
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
    with pytest.raises(ValueError, match="maybe"):
        ActionDecision("maybe", 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["lenient", "", "Grace", None, 3, object()])
def test_unknown_profiles_are_refused(bad):
    """A profile that does not exist is a ValueError that says which do."""
    with pytest.raises(ValueError, match="profile"):
        ConfidenceCalculator(bad)


def test_a_profile_of_ones_own():
    class Constant:
        name = "constant"

        def calculate(self, factors):
            return ConfidenceScore(0.25, factors)

    calculator = ConfidenceCalculator(Constant(), Thresholds(0.2, 0.1, 0.0))
    assert "constant" == calculator.profile
    assert "silent" == calculator.decide_action(calculator.calculate(ConfidenceFactors())).level


def test_only_the_named_profiles_are_known():
    class Grace:
        name = "grace"

        def calculate(self, factors):
            return ConfidenceScore(1.0, factors)

    assert [True, True] == [ConfidenceCalculator(name).is_known for name in PROFILES]
    assert not ConfidenceCalculator(Grace()).is_known


@pytest.mark.parametrize(
    ("thresholds", "hint"),
    [
        (None, "pass Thresholds(silent=0.9, notify=0.7, confirm=0.4)"),
        ({"silent": 0.9}, "pass Thresholds.from_dict(...)"),
        (DynamicThresholds(), "pass its .current"),
    ],
)
def test_thresholds_of_another_type_are_refused(thresholds, hint):
    with pytest.raises(TypeError) as caught:
        ConfidenceCalculator(thresholds=thresholds)
    assert f"thresholds must be a Thresholds, not {type(thresholds).__name__}; {hint}" == str(caught.value)
