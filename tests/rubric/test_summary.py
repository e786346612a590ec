"""Mean, spread, gap, rates and balance of a variant, with numbers worked by hand."""

from __future__ import annotations

import math

import pytest

from grace_kp import rubric as rb
from tests.rubric.variants import O, P, X, documents_over, variant


class TestSummary:
    def test_by_hand(self):
        """Scores 3.5, 2.5, 1.0, 2.0: mean 2.25; SD √((1.5625+0.0625+1.5625+0.0625)/3); gap |3.0 − 1.5|."""
        one = variant("v", ("a", [O, O, O, P]), ("a", [O, P, O, X]), ("b", [P, P, X, X]), ("b", [O, O, X, X]))
        assert (3.5, 2.5, 1.0, 2.0) == one.scores
        summary = one.summary
        assert 2.25 == summary.mean
        assert math.sqrt(3.25 / 3) == pytest.approx(summary.sd)
        assert 1.5 == summary.cross_doc_gap
        # main: 2 problems × 4 runs: 1+1, 1+0.5, 0.5+0.5, 1+1 = 6.5 of 8; adjacent 1+1+0+0 of 4; subtle 0.5 of 4.
        assert {"main": 0.8125, "adjacent": 0.5, "subtle": 0.125} == dict(summary.category_rates)
        assert 0.125 / 0.8125 == pytest.approx(summary.balance)
        assert "low" == summary.stability

    def test_one_run_has_no_spread(self):
        summary = variant("v", ("a", [O, O, X, X])).summary
        assert (2.0, 0.0, 0.0, "high") == (summary.mean, summary.sd, summary.cross_doc_gap, summary.stability)

    def test_three_documents_take_the_largest_less_the_smallest(self):
        tests = documents_over(("a", "b", "c"))
        summary = variant("v", ("a", [O] * 4), ("b", [O, O, X, X]), ("c", [O, O, O, X]), test_set=tests).summary
        assert 2.0 == summary.cross_doc_gap

    def test_nothing_found_is_not_balanced(self):
        assert 0.0 == variant("v", ("a", [X] * 4), ("b", [X] * 4)).summary.balance

    @pytest.mark.parametrize(
        ("sd", "stability"),
        [
            (0.0, "high"),
            (0.5, "high"),
            (0.5 + 1e-12, "high"),
            (0.501, "medium"),
            (1.0, "medium"),
            (1.001, "low"),
            (9.0, "low"),
        ],
    )
    def test_stability(self, sd, stability):
        assert stability == rb.Summary(1.0, sd, 0.0, {}, 0.0, {}, 2).stability

    @pytest.mark.parametrize(
        ("runs", "problem"),
        [
            ([], "has no runs"),
            ([rb.Run("z", {})], "no document 'z'"),
            ([rb.Run("a", {"p0": O, "zz": O})], "judges 'zz'"),
            ([rb.Run("a", {"p0": O})], "does not judge 'p1'"),
        ],
    )
    def test_runs_that_do_not_fit(self, runs, problem):
        with pytest.raises(ValueError, match=problem):
            rb.Variant("v", tuple(runs), documents_over())
