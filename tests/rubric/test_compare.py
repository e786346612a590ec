"""Comparisons of variants: the verdict, and the pages that show it."""

from __future__ import annotations

import importlib.util
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import rubric as rb
from grace_kp.rubric import Evidence, Interval, Recommendation
from tests.pages.reading import Elements, problems
from tests.rubric.variants import O, P, X, documents_over, variant


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
            (1.0, (0.3, 0.4), 0.0, (0.5, 0.5), "best", "not steadier"),
            (1.0, (0.3, 0.3), 0.0, (0.5, 0.5), "best", "not steadier"),
            (0.5, (0.3, 0.2), 0.0, (0.5, 0.5), "variant", "steadier"),
            (0.5, (0.2, 0.3), 0.0, (0.5, 0.5), "best", "not steadier"),
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


class TestCompare:
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
        assert "the runs are spread differently over the documents (a 1, b 5 and a 5, b 1)" in first
        assert "new has 1 runs of b, and 2 are planned" == more[-1]
        even = [("a", [O] * 4)] * 2 + [("b", [O] * 4)] * 2
        assert () == rb.compare(variant("old", *even), variant("new", *even)).warnings


HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


def evidence(categories):
    interval = Interval(-0.5, 1.25)
    return Evidence(mean_difference=interval, p_value=0.0004, pairs=12, category_differences=dict.fromkeys(categories, interval), further_runs=20)  # fmt: skip


@pytest.mark.parametrize(("choice", "words"), [("best", "the current best"), ("variant", "the variant")])
def test_a_comparison_says_what_to_continue_with(choice, words):
    found = Recommendation(choice, "it is steadier", 0.75, 0.3, {"rate": 0.3}, None, ("few runs",))._repr_html_()
    text = Elements(found).text
    for part in (
        f"Continue with {words}: it is steadier.",
        "few runs.",
        "+0.75",
        "+0.30",
        "regression in rate",
        "−0.30",
    ):
        assert part in text
    assert [] == problems(found)


def test_every_text_is_text_and_the_size_is_bounded():
    """Names of categories may hold anything."""
    names = [f"{place} {HOSTILE}" for place in range(2_000)]
    found = Recommendation("best", HOSTILE, 0.1, 0.1, dict.fromkeys(names, 0.2), evidence(names), (HOSTILE,))._repr_html_()  # fmt: skip
    assert [] == problems(found)
    assert "categories that are not shown" in found
    assert "&lt; 0.001" in found
    assert len(found) < 150_000


pytest.importorskip("scipy", reason="needs the extra eval")


def variants():
    best = variant("old <1>", ("a", [O, P, X, X]), ("a", [P, P, X, X]), ("b", [O, X, X, X]), ("b", [P, X, X, X]))
    new = variant("new", ("a", [O, O, O, X]), ("a", [O, O, O, X]), ("b", [O, O, O, X]), ("b", [O, O, P, X]))
    return best, new


def test_a_comparison_shows_the_verdict_the_evidence_and_two_plots():
    best, new = variants()
    page = rb.comparison_page(best, new, rb.compare(best, new))
    assert "Continue with <b>new</b>: the variant is better by" in page
    assert page.count("<svg") == 4
    assert "1: old &lt;1&gt;" in page
    assert "old &lt;1&gt;" in page
    assert "old <1>" not in page
    assert "p of a permutation test, 8 pairs" in page
    assert "Detection rates with 95 % bootstrap intervals" in page
    assert re.search(r"0\.\d\d \(0\.\d\d to 0\.\d\d\)", page)


def test_a_history_shows_every_round_and_its_decision(tmp_path):
    history = rb.History(tmp_path / "history.md")
    for item in variants():
        history.record(rb.Round(item))
    page = rb.history_page(history)
    assert "The best of 2 rounds is <b>new</b>, mean" in page
    assert "the first" in page
    assert "<h2>Round 2: new</h2>" in page


def test_a_history_without_rounds_has_a_page(tmp_path):
    """It has nothing to plot."""
    page = rb.history_page(rb.History(tmp_path / "history.md"))
    assert "No round is recorded yet." in page
    assert "<svg" not in page


def test_a_missing_package_is_an_error_that_names_the_pip_command(monkeypatch):
    """Before anything is computed or judged."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "scipy" else find(name))
    with pytest.raises(gk.MissingExtra, match=r"pip install 'grace-kp\[eval\]'"):
        rb.require_plots()
