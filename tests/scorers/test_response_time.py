"""Response-time with numbers worked by hand."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import done, wanted


class TestResponseTime:
    @pytest.mark.parametrize(
        ("taken", "score"),
        [(0, 1.0), (999, 1.0), (1_000, 1.0), (1_500, 0.5), (1_999, 0.001), (2_000, 0.0), (9_000, 0.0)],
    )
    def test_by_hand(self, taken, score):
        assert score == pytest.approx(sc.ResponseTime(1_000).score(done(duration_ms=taken), wanted()))

    @pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), "5"])
    def test_a_limit_that_is_none(self, limit):
        with pytest.raises(ValueError, match="max_acceptable_ms"):
            sc.ResponseTime(limit)

    def test_what_was_not_measured_is_no_score(self):
        with pytest.raises(ValueError, match="the duration of the result is unknown"):
            sc.ResponseTime(1_000).score(done(), wanted())
