"""A confidence in words."""

from __future__ import annotations

from grace_kp.calibrate import FEATURES, Explanation, Part
from grace_kp.calibrate._head import _WORDS


def explanation(*parts):
    return Explanation(confidence=0.7, moment="end", intercept=0.1, parts=parts, logit=0.9, calibration=0.0, runs=124)


def test_the_reason_names_the_largest_parts_of_each_direction():
    """With their log-odds; what adds next to nothing is left out."""
    found = explanation(
        Part("hedging", 1.0, -0.52, True), Part("error_rate", 0.1, 0.8, False), Part("steps", 2.0, 0.01, True),
        Part("tool:refund", 1.0, -0.6, True), Part("missing:search_quality", 1.0, 0.3, True),
    )  # fmt: skip
    assert (
        "Learned from 124 runs: raised by a low share of errors (+0.8), no search quality (+0.3); lowered by refund was called (−0.6), hedging (−0.5)"
        == found.reason
    )
    assert ["error_rate", "tool:refund"] == [part.name for part in found.largest[:2]]


def test_a_run_without_anything_unusual_says_so():
    """No part is large enough for a word."""
    assert "Learned from 124 runs: nothing stands out" == explanation(Part("steps", 2.0, 0.01, True)).reason


def test_every_feature_has_words():
    """A new feature needs words for a high and for a low value."""
    assert set(FEATURES) == set(_WORDS)
