"""Pages with plots, for a comparison and for a history."""

from __future__ import annotations

import importlib.util
import re

import pytest

import grace_kp as gk
from grace_kp import rubric as rb
from tests.rubric.variants import O, P, X, variant

pytest.importorskip("scipy", reason="needs the extra eval")


def variants():
    best = variant("old <1>", ("a", [O, P, X, X]), ("a", [P, P, X, X]), ("b", [O, X, X, X]), ("b", [P, X, X, X]))
    new = variant("new", ("a", [O, O, O, X]), ("a", [O, O, O, X]), ("b", [O, O, O, X]), ("b", [O, O, P, X]))
    return best, new


def test_a_comparison_shows_the_verdict_the_evidence_and_two_plots():
    """Names are text, not markup."""
    best, new = variants()
    page = rb.comparison_page(best, new, rb.compare(best, new))
    assert "Continue with <b>new</b>: the variant is better by" in page
    assert page.count("<svg") == 4
    assert "1: old &lt;1&gt;" in page
    assert "old &lt;1&gt;" in page
    assert "old <1>" not in page
    assert "p of a permutation test, 8 pairs" in page


def test_a_history_shows_every_round_and_its_decision(tmp_path):
    """The best variant stands on top."""
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
    assert "There are no rounds yet." in page
    assert "<svg" not in page


def test_rates_have_intervals_and_variants_their_numbers():
    """In the table beside the bars; two variants of one name differ by their number."""
    best, _ = variants()
    page = rb.comparison_page(best, best, rb.compare(best, best))
    assert "Detection rates with 95 % bootstrap intervals" in page
    assert re.search(r"0\.\d\d \(0\.\d\d to 0\.\d\d\)", page)
    assert "2: old &lt;1&gt;" in page


def test_a_missing_package_is_an_error_that_names_the_pip_command(monkeypatch):
    """Before anything is computed or judged."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "scipy" else find(name))
    with pytest.raises(gk.MissingExtra, match=r"pip install 'grace-kp\[eval\]'"):
        rb.require_plots()
