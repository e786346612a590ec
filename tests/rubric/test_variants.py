"""Scores of runs, balanced test sets, and the summary of a variant, with numbers worked by hand."""

from __future__ import annotations

import math

import pytest

from grace_kp import rubric as rb
from tests.rubric.variants import O, P, X, documents_over, variant


class TestRunScore:
    @pytest.mark.parametrize(
        ("judgements", "bonuses", "penalties", "score"),
        [
            ([O, P, X], 0, 0, 1.5),
            ([], 0, 0, 0.0),
            ([O, O], 5, 0, 4.5),
            ([O, O], 6, 0, 4.5),
            ([X], 0, 9, -4.5),
            ([O, P], 2, 3, 1.0),
        ],
    )
    def test_by_hand(self, judgements, bonuses, penalties, score):
        assert score == rb.run_score(judgements, bonuses, penalties)

    @pytest.mark.parametrize(
        ("value", "member"),
        [
            ("○", "DETECTED"), ("detected", "DETECTED"), ("Detected ", "DETECTED"), ("△", "PARTIAL"), ("partial", "PARTIAL"),
            ("×", "MISSED"), ("missed", "MISSED"), ("x", "MISSED"), ("◯", "DETECTED"), (rb.Detection.PARTIAL, "PARTIAL"),
        ],
    )  # fmt: skip
    def test_symbols_words_and_members(self, value, member):
        assert rb.Detection[member] is rb.Detection.of(value)

    @pytest.mark.parametrize("value", ["", "maybe", 1, 0.5, None, "○○", ["○"]])
    def test_what_is_no_judgement(self, value):
        with pytest.raises(ValueError, match="a judgement must be one of ○ △ ×"):
            rb.run_score([value])

    @pytest.mark.parametrize("counts", [{"bonuses": -1}, {"penalties": 1.5}, {"bonuses": True}, {"penalties": "2"}])
    def test_counts_are_whole(self, counts):
        with pytest.raises(ValueError, match=f"{next(iter(counts))} must be a whole number >= 0"):
            rb.run_score([O], **counts)


def balanced(**changes):
    kinds = ["main"] * 6 + ["adjacent"] * 2 + ["subtle"] * 2
    severities = ["critical"] * 3 + ["medium"] * 4 + ["minor"] * 3
    problems = tuple(rb.Problem(f"p{n}", *one) for n, one in enumerate(zip(kinds, severities, strict=True)))
    documents = [rb.Document("a", "law", problems, 3), rb.Document("b", "code", problems, 5)]
    return rb.TestSet(**{"documents": tuple(documents), **changes})


class TestTestSet:
    def test_a_balanced_one_has_no_warnings(self):
        assert [] == balanced().check()

    def test_it_may_be_told_in_the_words_of_the_source(self):
        problem = rb.Problem("p", "責任", "重大", "主要観点")
        assert rb.Problem("p", "責任", "critical", "main") == problem
        assert "subtle" == rb.Problem("p", "微妙な問題", "軽微").kind
        assert 3 == rb.Document("d", "law", (problem,), ["a", "b", "c"]).bonus_candidates
        assert [1.0, 0.5, 0.0] == [rb.run_score([word]) for word in ("検出", "部分検出", "未検出")]

    def test_every_departure_is_told(self):
        problems = (rb.Problem("x", "style", "minor"), *(rb.Problem(f"m{n}", "main", "minor") for n in range(3)))
        odd = rb.TestSet(
            (rb.Document("a", "law", problems, 9), *(rb.Document(one, "law", problems, 0) for one in "bc")), 3
        )
        told = "\n".join(odd.check())
        for what in (
            "2 documents, not 3", "different domains", "2 runs for each", "10 problems, not 4", "3 problems should be critical, not 0",
            "4 problems should be medium, not 0", "3 problems should be minor, not 4", "1 problems have no kind", "6 to 7 problems should be main, not 3",
            "2 problems should be adjacent, not 0", "1 to 2 problems should be subtle, not 0", "3 to 5 bonus candidates, not 9",
        ):  # fmt: skip
            assert what in told

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda: rb.Problem("p", "c", "grave"), "severity of p"),
            (lambda: rb.Problem("p", "c", "minor", "odd"), "kind of p"),
            (lambda: rb.Document("d", "x", (rb.Problem("p", "c", "minor"),) * 2), "problem p twice"),
            (lambda: rb.TestSet((rb.Document("d", "x", ()),) * 2), "document d is there twice"),
        ],
    )
    def test_what_cannot_be(self, make, problem):
        with pytest.raises(ValueError, match=problem):
            make()


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
            (1.0, "medium"),
            (1.001, "low"),
        ],
    )
    def test_stability(self, sd, stability):
        assert stability == rb.Summary(1.0, sd, 0.0, {}, 0.0, {}, 2).stability

    @pytest.mark.parametrize(
        ("runs", "problem"),
        [
            ([], "has no runs"),
            ([rb.Run("z", {})], "the document 'z' is unknown"),
            ([rb.Run("a", {"p0": O, "zz": O})], "judges 'zz'"),
            ([rb.Run("a", {"p0": O})], "does not judge 'p1'"),
        ],
    )
    def test_runs_that_do_not_fit(self, runs, problem):
        with pytest.raises(ValueError, match=problem):
            rb.Variant("v", tuple(runs), documents_over())
