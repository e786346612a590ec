"""p-values, intervals and further runs, with numbers worked by hand and properties that hold for all variants."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import rubric as rb
from tests.rubric.variants import O, P, X, documents_over, variant


class TestEvidence:
    def test_the_permutation_test_by_hand(self):
        """Three differences of one sign: 2 of 8 arrangements are as far out; four with one against: the sums 4 and more."""
        assert 0.25 == rb.permutation_p([1, 1, 1])
        assert 1.0 == rb.permutation_p([1, -1])
        assert 10 / 16 == rb.permutation_p([1, 1, 1, -1])
        assert 2 / 64 == rb.permutation_p([1, 2, 3, 4, 5, 6])
        assert 1.0 == rb.permutation_p([]) == rb.permutation_p([0, 0])

    def test_many_pairs_are_drawn_and_the_same_each_time(self):
        values = [0.5] * 20 + [-0.5] * 5
        exact = sum(math.comb(25, k) for k in range(26) if abs(25 - 2 * k) >= 15) / 2**25
        assert exact == pytest.approx(rb.permutation_p(values), abs=0.003)
        assert rb.permutation_p(values, seed=7) == rb.permutation_p(values, seed=7)

    @given(st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), min_size=1, max_size=8))
    def test_p_values_are_shares_and_have_no_side(self, values):
        p = rb.permutation_p(values)
        assert 0 < p <= 1
        assert p == rb.permutation_p([-value for value in values])

    def test_problems_are_the_pairs(self):
        """Differences by problem: ¼ ½ 1 0 in one document, ¼ 1 ¾ 0 in the other; six of one sign: 2 of 64."""
        best = variant("old", ("a", [O, P, X, X]), ("a", [P, P, X, X]), ("b", [O, X, X, X]), ("b", [P, X, X, X]))
        new = variant("new", ("a", [O, O, O, X]), ("a", [O, O, O, X]), ("b", [O, O, O, X]), ("b", [O, O, P, X]))
        found = rb.compare(best, new)
        assert ("variant", 8) == (found.choice, found.evidence.pairs)
        assert 2 / 64 == found.evidence.p_value
        assert 0 == found.evidence.further_runs
        assert {"main", "adjacent", "subtle"} == found.evidence.category_differences.keys()
        assert 0 < found.evidence.mean_difference.low < found.raw_diff < found.evidence.mean_difference.high
        assert rb.compare(best.summary, new.summary).evidence is None

    def test_bonuses_less_penalties_are_a_pair_of_each_document(self):
        best = variant("old", ("a", [O] * 4), ("b", [O] * 4))
        new = variant("new", ("a", [O] * 4, 4, 0), ("b", [O] * 4, 0, 2))
        assert (10, 1.0) == (rb.compare(best, new).evidence.pairs, rb.compare(best, new).evidence.p_value)

    @given(
        st.permutations(range(4)),
        st.lists(st.lists(st.sampled_from([O, P, X]), min_size=4, max_size=4), min_size=8, max_size=8),
    )
    def test_the_order_of_the_runs_does_not_matter(self, order, signs):
        runs = [("a", signs[0]), ("a", signs[1]), ("b", signs[2]), ("b", signs[3])]
        best = variant("old", *[("a", signs[4]), ("a", signs[5]), ("b", signs[6]), ("b", signs[7])])
        plain, mixed = (
            rb.compare(best, variant("new", *runs)),
            rb.compare(best, variant("new", *[runs[n] for n in order])),
        )
        assert plain.evidence.p_value == pytest.approx(mixed.evidence.p_value)
        assert plain.evidence.further_runs == mixed.evidence.further_runs

    def test_tiny_differences_are_differences(self):
        assert 2 / 1024 == rb.permutation_p([1e-13] * 10)

    def test_how_many_more_runs_by_hand(self):
        """Five differences of ½ and one of −½, each with a variance of ½ between runs: mean ⅓, p = 14/64.

        6·(⅓ / (1.960 + 0.842))² = 0.0849, and ½ / 0.0849 = 5.89 runs of each document are needed: 4 more than 2, in two documents.
        """
        tests = documents_over(categories=("main", "main", "adjacent"))
        best = variant("old", ("a", [X, X, X]), ("a", [O, O, O]), ("b", [X, X, O]), ("b", [O, O, O]), test_set=tests)
        new = variant("new", ("a", [O, O, O]), ("a", [O, O, O]), ("b", [O, O, X]), ("b", [O, O, O]), test_set=tests)
        found = rb.compare(best, new).evidence
        assert 14 / 64 == found.p_value
        assert 8 == found.further_runs

    def test_no_number_of_runs_would_do(self):
        tests = documents_over(categories=("main", "main", "adjacent"))
        same = [("a", [X, X, X]), ("a", [X, X, X]), ("b", [X, O, O]), ("b", [X, O, O])]
        more = [("a", [O, O, O]), ("a", [O, O, O]), ("b", [O, X, X]), ("b", [O, X, X])]
        best, new = variant("old", *same, test_set=tests), variant("new", *more, test_set=tests)
        assert rb.compare(best, new).evidence.further_runs is None
        assert rb.compare(best, best).evidence.further_runs is None
        assert (
            rb.compare(
                variant("x", *same[::2], test_set=tests), variant("y", *more[::2], test_set=tests)
            ).evidence.further_runs
            is None
        )
        few = documents_over(categories=("main",))
        one, two = (
            variant(str(s), ("a", [s[0]]), ("a", [s[1]]), ("b", [s[0]]), ("b", [s[1]]), test_set=few)
            for s in ([X, O], [O, O])
        )
        assert rb.compare(one, two).evidence.further_runs is None

    @given(st.lists(st.lists(st.sampled_from([O, P, X]), min_size=4, max_size=4), min_size=8, max_size=8))
    def test_what_is_settled_needs_no_more_runs_and_nothing_else_does(self, signs):
        names = ["a", "a", "b", "b"]
        best, new = (variant(str(n), *zip(names, signs[n * 4 : n * 4 + 4], strict=True)) for n in (0, 1))
        found = rb.compare(best, new).evidence
        assert (found.p_value < 0.05) == (found.further_runs == 0)

    def test_the_interval_of_a_category_is_about_its_rate(self):
        """One problem of main in one document, nine in the other: the rates are 0.1 and 0.9."""
        problems = [tuple(rb.Problem(f"p{n}", "main", "medium") for n in range(count)) for count in (1, 9)]
        tests = rb.TestSet((rb.Document("a", "x", problems[0]), rb.Document("b", "y", problems[1])))

        def made(name, first, second):
            runs = [rb.Run("a", {"p0": first})] * 2 + [rb.Run("b", {f"p{n}": second for n in range(9)})] * 2
            return rb.Variant(name, runs, tests)

        found = rb.compare(made("old", O, X), made("new", X, O)).evidence.category_differences["main"]
        assert found.low <= 0.8 <= found.high

    def test_one_problem_in_one_run_has_no_interval(self):
        tests = documents_over(("a",), ("main",))
        best, new = variant("old", ("a", [X]), test_set=tests), variant("new", ("a", [O]), test_set=tests)
        found = rb.compare(best, new).evidence
        assert (None, {"main": None}) == (found.mean_difference, found.category_differences)

    def test_runs_that_never_differ_do_not_settle_anything(self):
        tests = documents_over(("a",), ("main",) * 6)
        best = variant("old", *[("a", [X] * 6)] * 2, test_set=tests)
        new = variant("new", *[("a", [O] * 5 + [X])] * 2, test_set=tests)
        found = rb.compare(best, new).evidence
        assert (2 / 32, None) == (found.p_value, found.further_runs)


class TestWithoutScipy:
    @pytest.fixture(autouse=True)
    def no_scipy(self, monkeypatch):
        """Makes importing scipy fail as if it were not installed."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "scipy", None)

    def test_the_verdict_stands_without_evidence(self):
        """Nothing about it changes but the evidence, and a warning says what is missing."""
        best = variant("old", ("a", [O, P, X, X]), ("a", [P, P, X, X]), ("b", [O, X, X, X]), ("b", [P, X, X, X]))
        new = variant("new", ("a", [O, O, O, X]), ("a", [O, O, O, X]), ("b", [O, O, O, X]), ("b", [O, O, P, X]))
        found = rb.compare(best, new)
        assert found == rb.compare(best.summary, new.summary)
        assert (found.choice, found.evidence) == ("variant", None)
        (warning,) = found.warnings
        assert warning == "the evidence for a difference needs an optional package: pip install 'grace-kp[eval]'"
