"""Every formula and every row of the rubric's tables, with numbers worked by hand; and what holds for all of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import rubric as rb

O, P, X = "○", "△", "×"  # noqa: E741


def documents_over(documents=("a", "b"), categories=("main", "main", "adjacent", "subtle")):
    return rb.TestSet(
        tuple(
            rb.Document(
                name,
                f"domain {name}",
                tuple(rb.Problem(f"p{n}", category, "medium") for n, category in enumerate(categories)),
            )
            for name in documents
        )
    )


def variant(name, *runs, test_set=None):
    """A variant from (document, judgements, bonuses, penalties)."""
    tests = test_set or documents_over()
    made = [
        rb.Run(document, {f"p{n}": one for n, one in enumerate(signs)}, *counts) for document, signs, *counts in runs
    ]
    return rb.Variant(name, tuple(made), tests)


class TestRunScore:
    @pytest.mark.parametrize(
        ("judgements", "bonuses", "penalties", "score"),
        [
            ([O], 0, 0, 1.0),
            ([P], 0, 0, 0.5),
            ([X], 0, 0, 0.0),
            ([O, P, X], 0, 0, 1.5),
            ([O] * 10, 0, 0, 10.0),
            ([], 0, 0, 0.0),
            ([O, O], 1, 0, 2.5),
            ([O, O], 5, 0, 4.5),
            ([O, O], 6, 0, 4.5),
            ([O, O], 50, 0, 4.5),
            ([O, O], 0, 1, 1.5),
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
        with pytest.raises(ValueError, match="a judgement is one of ○ △ ×"):
            rb.run_score([value])

    @pytest.mark.parametrize("counts", [{"bonuses": -1}, {"penalties": 1.5}, {"bonuses": True}, {"penalties": "2"}])
    def test_counts_are_whole(self, counts):
        with pytest.raises(ValueError, match=f"{next(iter(counts))} must be a whole number from 0"):
            rb.run_score([O], **counts)

    @given(st.lists(st.sampled_from([O, P, X])), st.integers(0, 20), st.integers(0, 20))
    def test_more_never_lowers_it(self, judgements, bonuses, penalties):
        score = rb.run_score(judgements, bonuses, penalties)
        assert rb.run_score([*judgements, O], bonuses, penalties) == score + 1
        assert rb.run_score([*judgements, P], bonuses, penalties) == score + 0.5
        assert rb.run_score(judgements, bonuses + 1, penalties) >= score
        assert rb.run_score(judgements, bonuses, penalties + 1) == score - 0.5
        assert rb.run_score(judgements[::-1], bonuses, penalties) == score


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


def figures(mean, *, sd=0.3, gap=0.0, rates=(0.5, 0.5)):
    return rb.Summary(mean, sd, gap, dict(zip("ab", rates, strict=True)), 1.0, {}, 4)


class TestVerdict:
    """One row of the table of SPEC §9 after the other, and its boundaries."""

    @pytest.mark.parametrize(
        ("diff", "sds", "gap", "rates", "choice", "why"),
        [
            (1.01, (0.3, 0.3), 0.0, (0.5, 0.5), "variant", "evenly"),
            (1.01, (0.3, 0.3), 1.49, (0.5, 0.5), "variant", "evenly"),
            (1.01, (0.3, 0.3), 1.5, (0.5, 0.5), "best", "uneven across documents"),
            (3.0, (0.3, 0.3), 2.0, (0.5, 0.5), "best", "uneven across documents"),
            (1.0, (0.3, 0.2), 0.0, (0.5, 0.5), "variant", "steadier"),
            (1.0, (0.3, 0.4), 0.0, (0.5, 0.5), "best", "no steadier"),
            (1.0, (0.3, 0.3), 0.0, (0.5, 0.5), "best", "no steadier"),
            (0.5, (0.3, 0.2), 0.0, (0.5, 0.5), "variant", "steadier"),
            (0.5, (0.2, 0.3), 0.0, (0.5, 0.5), "best", "no steadier"),
            (0.49, (0.3, 0.1), 0.0, (0.5, 0.5), "best", "less than 0.5"),
            (0.0, (0.3, 0.1), 0.0, (0.5, 0.5), "best", "less than 0.5"),
            (-2.0, (0.3, 0.1), 0.0, (0.5, 0.5), "best", "less than 0.5"),
            (3.0, (0.3, 0.3), 0.0, (0.5, 0.35), "best", "regresses in b by 0.15"),
            (3.0, (0.3, 0.3), 0.0, (0.5, 0.36), "variant", "evenly"),
            (3.0, (0.3, 0.3), 0.0, (0.1, 0.2), "best", "regresses in a by 0.40, b by 0.30"),
        ],
    )
    def test_rows(self, diff, sds, gap, rates, choice, why):
        found = rb.compare(figures(5.0, sd=sds[0]), figures(5.0 + diff, sd=sds[1], gap=gap, rates=rates))
        assert (choice, diff) == (found.choice, pytest.approx(found.raw_diff))
        assert why in found.reason

    def test_regressions_weigh_one_and_a_half(self):
        """Drops 0.4 and 0.15 (0.1 is none): 2.0 − 1.5·0.55 = 1.175."""
        old = rb.Summary(5.0, 0.3, 0.0, {"a": 0.9, "b": 0.35, "c": 0.6}, 1.0, {}, 4)
        new = rb.Summary(7.0, 0.3, 0.0, {"a": 0.5, "b": 0.2, "c": 0.5}, 1.0, {}, 4)
        found = rb.compare(old, new)
        assert 1.175 == pytest.approx(found.adjusted_diff)
        assert {"a": pytest.approx(0.4), "b": pytest.approx(0.15)} == dict(found.regressions)

    @given(st.floats(0, 1), st.floats(-5, 5))
    def test_a_regression_never_lets_the_variant_through(self, rate, diff):
        found = rb.compare(figures(5.0, rates=(1.0, 0.5)), figures(5.0 + diff, rates=(rate, 0.5)))
        assert found.adjusted_diff <= found.raw_diff
        if rate <= 0.85:
            assert found.choice == "best"
            assert "a" in found.regressions

    @pytest.mark.parametrize(
        ("improvements", "expected"),
        [
            ([], False), ([0.1, 0.1], False), ([0.1, 0.2, 0.3], True), ([0.49, 0.0, -2.0], True), ([0.5, 0.1, 0.1], False),
            ([0.1, 0.1, 0.5], False), ([5.0, 0.1, 0.1, 0.1], True), ([0.1, 0.1, 0.1, 5.0], False),
        ],
    )  # fmt: skip
    def test_convergence(self, improvements, expected):
        assert expected is rb.converged(improvements)


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
            "4 problems should be medium, not 0", "3 problems should be minor, not 4", "1 problems do not say", "6 to 7 problems should be main, not 3",
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

    def test_more_of_the_same_narrows_the_interval(self):
        runs = [("a", [O, P, X, X]), ("a", [P, P, X, O]), ("b", [O, X, X, X]), ("b", [P, X, O, X])]
        best, new = variant("old", *runs), variant("new", *[(name, [O, *signs[1:]]) for name, signs in runs])
        few = rb.compare(best, new).evidence.category_differences["adjacent"]
        many = rb.compare(
            variant("old", *runs * 10), variant("new", *[(name, [O, *signs[1:]]) for name, signs in runs] * 10)
        )
        more = many.evidence.category_differences["adjacent"]
        assert more.high - more.low < few.high - few.low

    def test_one_problem_in_one_run_has_no_interval(self):
        tests = documents_over(("a",), ("main",))
        best, new = variant("old", ("a", [X]), test_set=tests), variant("new", ("a", [O]), test_set=tests)
        found = rb.compare(best, new).evidence
        assert (None, {"main": None}) == (found.mean_difference, found.category_differences)

    def test_what_cannot_be_compared(self):
        other = variant("x", ("a", [O, O]), test_set=documents_over(categories=("main", "main")))
        best = variant("old", ("a", [O] * 4), ("b", [O] * 4))
        with pytest.raises(ValueError, match="old and x were run on different test sets"):
            rb.compare(best, other)
        with pytest.raises(ValueError, match="the best was run on a, b, the variant on a; that cannot be compared"):
            rb.compare(best, variant("half", ("a", [O] * 4)))
        less = variant("x", ("a", [O, O]), ("b", [O, O]), test_set=documents_over(categories=("main", "main")))
        with pytest.raises(ValueError, match="not measured in the category 'adjacent'"):
            rb.compare(best.summary, less.summary)

    def test_runs_that_are_not_spread_alike_are_told(self):
        best = variant("old", ("a", [O] * 4), *[("b", [X] * 4)] * 5)
        new = variant("new", *[("a", [O] * 4)] * 5, ("b", [P] * 4))
        first, *more = rb.compare(best, new).warnings
        assert "the runs are not spread alike over the documents (a 1, b 5 and a 5, b 1)" in first
        assert "new has 1 runs of b, and 2 are asked for" == more[-1]
        even = [("a", [O] * 4)] * 2 + [("b", [O] * 4)] * 2
        assert () == rb.compare(variant("old", *even), variant("new", *even)).warnings

    def test_a_category_of_which_each_document_has_one_problem(self):
        """Missed by all runs of one, found by all of the other: two problems are no certainty."""
        tests = documents_over(categories=("main", "subtle"))
        best, new = (
            variant(name, *[(d, [O, sign]) for d in "aabb"], test_set=tests) for name, sign in (("old", X), ("new", O))
        )
        found = rb.compare(best, new).evidence
        assert found.category_differences["subtle"] is None
        assert found.category_differences["main"] is None

    def test_runs_that_never_differ_do_not_settle_anything(self):
        tests = documents_over(("a",), ("main",) * 6)
        best = variant("old", *[("a", [X] * 6)] * 2, test_set=tests)
        new = variant("new", *[("a", [O] * 5 + [X])] * 2, test_set=tests)
        found = rb.compare(best, new).evidence
        assert (2 / 32, None) == (found.p_value, found.further_runs)

    def test_records_can_be_copied_and_sent(self):
        import copy
        import pickle
        from dataclasses import asdict

        best = variant("old", ("a", [O, P, X, X], 1, 2), ("b", [O] * 4))
        found = rb.compare(best, best)
        for one in (best, best.summary, found, found.evidence):
            assert one == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)
        assert {"main", "adjacent", "subtle"} == asdict(found)["evidence"]["category_differences"].keys()


class TestHistory:
    def rounds(self):
        yield variant(
            "base line | one",
            ("a", [O, P, X, X], 1, 0),
            ("a", [P, P, X, X]),
            ("b", [O, X, X, X], 0, 2),
            ("b", [P, X, X, X]),
        )
        yield variant("better", ("a", [O, O, O, X]), ("a", [O, O, O, X]), ("b", [O, O, O, X]), ("b", [O, O, P, X]))
        yield variant("worse", ("a", [X] * 4), ("a", [X] * 4), ("b", [X] * 4), ("b", [P, X, X, X]))

    def test_a_page_reads_back_as_it_was(self, tmp_path):
        path = tmp_path / "history.md"
        history = rb.History.load(path)
        assert history.best is None
        choices = [history.record(rb.Round(one, notes="Some prose.")) for one in self.rounds()]
        history.save()
        assert [None, "variant", "best"] == [one and one.choice for one in choices]

        again = rb.History.load(path)
        assert history.rounds == again.rounds
        assert history.test_set == again.test_set
        assert "better" == again.best.name
        assert again.text == path.read_text("utf-8")
        again.save()
        assert rb.History.load(path).text == history.text

    def test_prose_and_tables_of_people_stay(self, tmp_path):
        path = tmp_path / "history.md"
        history = rb.History.load(path)
        *first, last = self.rounds()
        for one in first:
            history.record(rb.Round(one))
        history.save()
        page = path.read_text("utf-8")
        page = page.replace(
            "## Round 2", "We met on Tuesday.\n\n| who | what |\n|---|---|\n| Ann | agreed |\n\n## Round 2"
        )
        page = page.replace("# History", "# Our prompts\n\nWhy we do this: *quality*.")
        path.write_text(page, "utf-8")
        again = rb.History.load(path)
        again.record(rb.Round(last))
        again.save()
        text = path.read_text("utf-8")
        assert text.startswith(page.rstrip("\n"))
        assert 3 == len(rb.History.load(path).rounds)

    def test_people_may_decide_otherwise(self, tmp_path):
        path = tmp_path / "history.md"
        history = rb.History.load(path)
        base, better, _ = self.rounds()
        history.record(rb.Round(base))
        history.record(rb.Round(better))
        history.save()
        text = path.read_text("utf-8")
        path.write_text(
            text.replace("| base line \\| one | better |", "| base line \\| one | base line \\| one |"), "utf-8"
        )
        again = rb.History.load(path)
        assert base.name == again.best.name
        assert "by hand" in again.rounds[1].recommendation.reason

    @pytest.mark.parametrize(
        ("old", "new", "problem"),
        [
            ("| a | 1 | ○△×× | 1 | 0 | 2 |", "| a | 1 | ○△× | 1 | 0 | 2 |", "a has 4 problems, and 3 are judged"),
            ("| a | 1 | ○△×× | 1 | 0 | 2 |", "| a | 1 | ○△×? | 1 | 0 | 2 |", "a judgement is one of"),
            (
                "| a | 1 | ○△×× | 1 | 0 | 2 |",
                "| a | 1 | ○△×× | 1 | 0 | 9 |",
                "the score is said to be 9, and the run comes to 2",
            ),
            ("| a | 1 | ○△×× | 1 | 0 | 2 |", "| a | 1 | ○△×× | one | 0 | 2 |", "a number is needed, not 'one'"),
            ("| a | 1 | ○△×× | 1 | 0 | 2 |", "| a | 1 | ○△×× | -1 | 0 | 2 |", "a whole number is needed"),
            (
                "| a | 1 | ○△×× | 1 | 0 | 2 |",
                "| a | 1 | ○△×× | 1 | 2 |",
                "the row has 5 cells, and the table 6 columns",
            ),
            ("| a | 1 | ○△×× | 1 | 0 | 2 |", "| z | 1 | ○△×× | 1 | 0 | 2 |", "there is no document 'z'"),
            ("## Round 2", "## Round 5", "this should be round 2"),
            (
                "| document | run | judgements",
                "| document | run | verdicts",
                "the table with the columns document, run, judgements",
            ),
        ],
    )
    def test_a_table_that_cannot_be_read_is_an_error_with_its_line(self, tmp_path, old, new, problem):
        path = tmp_path / "history.md"
        history = rb.History.load(path)
        for one in self.rounds():
            history.record(rb.Round(one))
        page = history.text
        assert old in page
        path.write_text(page.replace(old, new, 1), "utf-8")
        with pytest.raises(ValueError, match=problem) as caught:
            rb.History.load(path)
        line = page[: page.index(old)].count("\n") + 1
        assert abs(caught.value.line - line) <= 5
        assert str(caught.value).startswith(f"{path}:{caught.value.line}: ")

    def test_another_test_set_and_another_variant_of_the_same_name(self, tmp_path):
        history = rb.History.load(tmp_path / "h.md")
        base, *_ = self.rounds()
        history.record(rb.Round(base))
        with pytest.raises(ValueError, match="already"):
            history.record(rb.Round(base))
        other = variant("x", ("a", [O, O]), test_set=documents_over(categories=("main", "main")))
        with pytest.raises(ValueError, match="another test set"):
            history.record(rb.Round(other))

    @given(
        st.lists(
            st.tuples(st.lists(st.sampled_from([O, P, X]), min_size=16, max_size=16), st.integers(0, 9), st.integers(0, 9)),
            min_size=1, max_size=4,
        ),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12).filter(str.strip),
    )  # fmt: skip
    def test_any_rounds_read_back(self, tmp_path_factory, given_rounds, name):
        path = tmp_path_factory.mktemp("h") / "history.md"
        history = rb.History.load(path)
        for number, (signs, bonuses, penalties) in enumerate(given_rounds):
            runs = [("a", signs[:4], bonuses, penalties), ("a", signs[4:8]), ("b", signs[8:12]), ("b", signs[12:])]
            history.record(rb.Round(variant(f"{name.strip()} {number}", *runs)))
        history.save()
        again = rb.History.load(path)
        assert history.rounds == again.rounds
        assert history.test_set == again.test_set
