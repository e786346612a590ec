"""Patterns: which are refused, and that a search ends in time."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import done, op, wanted


class TestPatterns:
    @pytest.mark.parametrize("make", [lambda given: wanted(patterns=given), sc.ContentQuality])
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"A": "thanks"}, "page 'A': a list of patterns is needed, not 'thanks'"),
            ({"A": {"x": 1}}, "page 'A': a list of patterns is needed, not an object of 1"),
            ({"A": 3}, "page 'A': a list of patterns is needed, not 3"),
            ({"A": ["x", 3]}, "page 'A': a pattern must be a text, not int"),
            ({3: ["x"]}, "a page title must be a text, not 3"),
            (["a"], "patterns must be lists of patterns by page title, not a list of 1"),
            ("a", "patterns must be lists of patterns by page title, not 'a'"),
            ({"A": ["x" * 10_001]}, "page 'A': the pattern 'x.* has 10,001 characters, more than 10,000"),
            ({"A": ["((a{1000}){1000}){1000}"]}, "repeats a part 1,000,000 times"),
            ({"A": [r"(?:[)]a{2,400}\)){0,300}"]}, "repeats a part 120,000 times"),
            ({"A": ["(ab){900000}"]}, "repeats a part"),
            ({"A": ["(a{1000}){100}" * 20]}, "unfolds to more than 1,000,000 parts"),
            ({"A": ["(" * 3_000 + ")" * 3_000]}, "page 'A': the pattern .* is nested too deeply"),
        ],
    )
    def test_what_is_refused(self, make, given, problem):
        with pytest.raises(sc.PatternError, match=problem):
            make(given)

    @pytest.mark.parametrize("text", ["(a{1000}){100}", r"\d{4}-\d{2}", "x{,3}", "{", "a{}", r"[({]{3}", r"\({200}(b{600})", "(cart){e<=1}", "x" * 10_000])  # fmt: skip
    def test_what_is_not(self, text):
        assert text == wanted(patterns={"A": [text]}).compiled[0][1]

    def test_any_timeout_is_one(self):
        scorer = sc.ContentQuality({"A": ["x$"]}, timeout=1e300)
        assert 1.0 == scorer.score(done(pages={"A": "ax" * 100_000}), wanted())

    def test_a_slow_pattern_counts_as_not_found_with_every_scorer(self):
        slow = wanted(op(), patterns={"A": [r"(a|aa)+$"]})
        actual = done(op(), pages={"A": "a" * 60 + "b"})
        suite = sc.Suite([sc.Entry(sc.ContentQuality(timeout=0.4)), sc.Entry(sc.OperationResult(timeout=0.4))])
        report = suite.evaluate(actual, slow)
        assert [0.0, 0.6] == [one.score for one in report.results]
        assert "not found within 0.4 s" in report.diagnosis[-1]
