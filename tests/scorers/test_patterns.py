"""Patterns: which are refused, and that a search ends in time."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from grace_kp.scorers import ContentQuality, EditExpectation, EditResult
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

    def test_a_slow_pattern_counts_as_not_found_with_every_scorer(self):
        slow = wanted(op(), patterns={"A": [r"(a|aa)+$"]})
        actual = done(op(), pages={"A": "a" * 60 + "b"})
        suite = sc.Suite([sc.Entry(sc.ContentQuality(timeout=0.4)), sc.Entry(sc.OperationResult(timeout=0.4))])
        report = suite.evaluate(actual, slow)
        assert [0.0, 0.6] == [one.score for one in report.results]
        assert "not found within 0.4 s" in report.diagnosis[-1]


def is_found(pattern, content, **options):
    scorer = ContentQuality({"P": [pattern]}, **options)
    return scorer.score(EditResult([], pages={"P": content}), EditExpectation()) == 1.0


@pytest.mark.parametrize(
    ("pattern", "content", "expected"),
    [
        ("done$", "done", True),
        ("done$", "done\n", False),
        ("done\n$", "done\n", True),
        ("done$", "done\nmore", False),
        ("^$", "", True),
        ("^$", "\n", False),
        ("a$|b", "a\n", False),
        ("a$|b", "b\n", True),
        ("(?:a$)", "a\n", False),
        ("a$*", "a\n", True),
        ("(?i)DONE$", "done\n", False),
        # In multi-line mode, the end of each line and of the text.
        ("(?m)done$", "done\n", True),
        ("(?m)done$", "done\nmore", True),
        ("(?m)done$", "done.\nmore", False),
        ("(?im)DONE$", "done\nmore", True),
        ("(?m:a$)\n.*b$", "a\nb", True),
        ("(?m:a$)\n.*b$", "a\nb\n", False),
        ("(?m:(?-m:a$))", "a\n", False),
        # No anchor at all.
        (r"5\$", "5$\n", True),
        (r"5\\$", "5\\\n", False),
        (r"5\\$", "5\\", True),
        ("5[$]", "5$\n", True),
        ("5[^$]", "5\n", True),
        ("5[]$]", "5$\n", True),
        ("5[^]$]", "5$\n", False),
        (r"5[\]$]", "5$\n", True),
        ("5[[:digit:]$]", "5$\n", True),
        ("(?V1)5[[a]$]", "5$\n", True),
        ("(?V1)5[[a]||[$]]$", "5$\n", False),
        # Comments may hold anything.
        ("(?#costs 5$ [)a$", "a\n", False),
        ("(?x) a # 5$ [each\n $", "a\n", False),
        ("(?x) a # 5$ [each\n $", "a", True),
        ("(?x:a # [\n)$", "a\n", False),
        ("a#[$]", "a#$\n", True),
        ("(?x: b )? a#[$]", " a#$\n", True),
    ],
)
def test_a_dollar_is_the_end(pattern, content, expected):
    """A final newline belongs to the text; escapes, classes and comments keep their dollar signs."""
    assert expected == is_found(pattern, content)


PIECES = st.lists(
    st.sampled_from(
        ["a", "b", "\n", "$", "$", r"\$", r"\\", "[$]", "[^$]", "[]$]", "(?:", ")", "|", "*", "(?=", "(?#$)", "#", "."]
    ),
    max_size=12,
)


@given(PIECES, st.text("ab\n$\\#", max_size=8))
def test_a_dollar_is_python_s_end_of_text(pieces, content):
    r"""Any pattern finds what it finds with `\Z` in place of each `$` that is an anchor."""
    strict = "".join(r"\Z" if piece == "$" else piece for piece in pieces)
    try:
        expected = regex.search(strict, content) is not None
    except regex.error:
        return
    # `\` directly before a piece would escape it; the pieces that end in one are pairs.
    assert expected == is_found("".join(pieces), content, ignore_case=False)


@given(
    st.lists(st.sampled_from(["a", "\n", "$", "^", ".", "(?:", ")", "|", "*"]), max_size=10),
    st.text("a\nb", max_size=8),
)
def test_in_multi_line_mode_nothing_changes(pieces, content):
    """With `(?m)`, Python's own meaning is the intended one."""
    pattern = "(?m)" + "".join(pieces)
    try:
        expected = regex.search(pattern, content) is not None
    except regex.error:
        return
    assert expected == is_found(pattern, content, ignore_case=False)
