"""Thresholds that move with feedback, and evaluations that may be fallbacks."""

import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.confidence import DynamicThresholds, Evaluation, Thresholds, decide
from grace_kp.levels import InterventionLevel


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


def test_nine_samples_are_too_few():
    """Nothing moves before the tenth sample."""
    assert Thresholds() == told(*[(0.95, False)] * 9)
    assert Thresholds(0.95, 0.75, 0.45) == told(*[(0.95, False)] * 10)


def test_more_than_three_of_ten_are_needed():
    """Three of ten do not move anything, four do."""
    assert Thresholds() == told(*[(0.95, False)] * 3, *[(0.5, True)] * 7)
    assert Thresholds(0.95, 0.75, 0.45) == told(*[(0.95, False)] * 4, *[(0.5, True)] * 6)
    assert Thresholds(0.85, 0.65, 0.35) == told(*[(0.1, True)] * 4, *[(0.5, True)] * 6)


def test_caution_wins():
    """When both happen, the thresholds rise."""
    assert Thresholds(0.95, 0.75, 0.45) == told(*[(0.1, True)] * 5, *[(0.95, False)] * 5)


def test_at_the_threshold_is_neither():
    """A confidence that equals a threshold is neither above nor below it, also after steps that add up."""
    assert Thresholds() == told(*[(0.7, False)] * 10)
    assert Thresholds() == told(*[(0.4, True)] * 10)
    raised = Thresholds(0.9, 0.8, 0.5)
    assert Thresholds(0.95, 0.85, 0.55) == told(*[(0.81, False)] * 10, initial=raised)
    assert Thresholds(0.95, 0.85, 0.55) == told(*[(0.81, False)] * 10, *[(0.85, False)] * 10, initial=raised)


def test_limits():
    """The thresholds rise to 0.95 / 0.85 / 0.6 and fall to 0.8 / 0.6 / 0.3, no further."""
    assert Thresholds(0.95, 0.85, 0.6) == told(*[(1.0, False)] * 40)
    assert Thresholds(0.8, 0.6, 0.3) == told(*[(0.0, True)] * 40)


def test_a_threshold_beyond_a_limit_stays():
    """A rise never lowers a threshold that began above its cap, nor the other way round."""
    assert Thresholds(0.99, 0.9, 0.8) == told(*[(1.0, False)] * 10, initial=Thresholds(0.99, 0.9, 0.8))
    assert Thresholds(0.5, 0.4, 0.1) == told(*[(0.0, True)] * 10, initial=Thresholds(0.5, 0.4, 0.1))


def test_steps_are_rounded():
    """0.4 - 0.05 is 0.35, and a confidence of 0.35 reaches it; without rounding it would be 0.35000000000000003."""
    lowered = told(*[(0.3, True)] * 10)
    assert 0.35 == lowered.confirm
    assert InterventionLevel.CONFIRM is decide(0.35, lowered).level


def test_never_stays_never():
    """Feedback does not move an infinite threshold."""
    never = Thresholds(math.inf, math.inf)
    assert Thresholds(math.inf, math.inf, 0.35) == told(*[(0.3, True)] * 10, initial=never)
    assert Thresholds(math.inf, 0.85, 0.6) == told(*[(1.0, False)] * 40, initial=Thresholds(math.inf))


feedback = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)
ordered = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(lambda parts: Thresholds(*sorted(parts)[::-1]))


@given(ordered, feedback)
def test_thresholds_stay_in_order(initial, samples):
    """Wherever they start and whatever they are told, the thresholds stay valid."""
    now = told(*samples, initial=initial)
    assert 1 >= now.silent >= now.notify >= now.confirm >= 0


@given(feedback)
def test_only_the_last_ten_count(samples):
    """From the defaults, feedback without anything noteworthy in the last ten moves nothing any more."""
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


def test_threads_share_thresholds():
    """Feedback from many threads at once is all counted, up to the limits."""
    dynamic = DynamicThresholds()
    threads = [
        threading.Thread(target=lambda: [dynamic.record_feedback(1.0, False) for _ in range(50)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Thresholds(0.95, 0.85, 0.6) == dynamic.current


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
