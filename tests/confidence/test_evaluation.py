"""An evaluation: a judgement with its cost, or a fallback of 0.5 that says so."""

import math

import pytest

from grace_kp.confidence import Evaluation


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
