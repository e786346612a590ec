"""Scorers of the outcome: content, patterns in it, applied operations and duration."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from grace_kp.scorers import ContentQuality, EditExpectation, EditResult
from tests.scorers.records import done, op, wanted


class TestContentQuality:
    def test_by_hand(self):
        actual = done(pages={"A": "The SUMMARY of it", "B": "Cart, Cart and Cart again"})
        expected = wanted(patterns={"A": ["summary|overview", "^no$"], "B": ["Cart.*Cart.*Cart"], "C": ["x"]})
        scorer = sc.ContentQuality()
        assert 0.5 == scorer.score(actual, expected)
        assert (
            "Page 'A': Pattern '^no$' not found in content: 'The SUMMARY of it...'",
            "Page 'C': Pattern 'x' not found in content: '...'",
        ) == scorer.details(actual, expected).content_issues

    @pytest.mark.parametrize(("ignore_case", "score"), [(True, 1.0), (False, 0.0)])
    def test_capitals(self, ignore_case, score):
        expected = wanted(patterns={"A": ["summary"]}, ignore_case=ignore_case)
        assert score == sc.ContentQuality().score(done(pages={"A": "SUMMARY"}), expected)


class TestOperationResult:
    @pytest.mark.parametrize(
        ("applied", "pages", "score"),
        [
            ([True, True], {"A": "x"}, 1.0),
            ([True, False], {"A": "x"}, 0.7),
            ([False, False], {"A": "x"}, 0.4),
            ([True, True], {"A": "-"}, 0.6),
            ([True, False], {}, 0.3),
            (None, {"A": "x"}, 1.0),
        ],
    )
    def test_by_hand(self, applied, pages, score):
        actual = done(op(target="a"), op(target="b"), applied=applied, pages=pages)
        expected = wanted(op(target="a"), patterns={"A": ["x"]})
        assert score == pytest.approx(sc.OperationResult().score(actual, expected))
        assert (applied is not None) is sc.OperationResult().details(actual, expected).application_known

    def test_flags_that_do_not_fit(self):
        with pytest.raises(ValueError, match="applied has 1 values for 2 operations"):
            done(op(), op(), applied=[True])


class TestNothingExpected:
    scorers = (sc.OperationAccuracy(), sc.TargetBlockPrecision(), sc.ContentQuality(), sc.OperationResult())

    @pytest.mark.parametrize("scorer", scorers, ids=lambda one: one.type)
    def test_something_done_is_0_and_is_named(self, scorer):
        assert 1.0 == scorer.score(done(), wanted())
        assert 0.0 == scorer.score(done(op("update", "a")), wanted())
        (line, *evidence) = sc.Suite([sc.Entry(scorer)]).evaluate(done(op("update", "a")), wanted()).diagnosis
        assert "nothing was expected" in line
        assert ["  not expected: {'type': 'update', 'target_block_id': 'a'}"] == evidence

    def test_where_only_patterns_are_absent_the_content_is_as_it_should_be(self):
        actual = done(op("update", "a"))
        assert 1.0 == sc.ContentQuality().score(actual, wanted(op("update", "a")))
        assert 1.0 == sc.OperationResult().score(actual, wanted(op("update", "a")))


class TestResponseTime:
    @pytest.mark.parametrize(
        ("taken", "score"),
        [(0, 1.0), (999, 1.0), (1_000, 1.0), (1_500, 0.5), (1_999, 0.001), (2_000, 0.0), (9_000, 0.0)],
    )
    def test_by_hand(self, taken, score):
        assert score == pytest.approx(sc.ResponseTime(1_000).score(done(duration_ms=taken), wanted()))

    def test_what_was_not_measured_is_no_score(self):
        with pytest.raises(ValueError, match="the duration of the result is unknown"):
            sc.ResponseTime(1_000).score(done(), wanted())


class TestPatterns:
    @pytest.mark.parametrize("make", [lambda given: wanted(patterns=given), sc.ContentQuality])
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"A": ["("]}, r"page 'A': the pattern '\(' is malformed"),
            ({"A": "thanks"}, "page 'A': a list of patterns is needed, not 'thanks'"),
            ({"A": {"x": 1}}, "page 'A': a list of patterns is needed, not an object of 1"),
            ({"A": 3}, "page 'A': a list of patterns is needed, not 3"),
            ({"A": ["x", 3]}, "page 'A': a pattern must be a string, not int"),
            ({3: ["x"]}, "a page title must be a string, not 3"),
            (["a"], "patterns must be lists of patterns by page title, not a list of 1"),
            ("a", "patterns must be lists of patterns by page title, not 'a'"),
            ({"A": ["x" * 10_001]}, "page 'A': the pattern 'x.* has 10,001 characters, more than 10,000"),
            ({"A": ["((a{1000}){1000}){1000}"]}, "repeats a part 1,000,000 times"),
            ({"A": [r"(?:[)]a{2,400}\)){0,300}"]}, "repeats a part 120,000 times"),
            ({"A": ["(ab){900000}"]}, "repeats a part"),
            ({"A": ["(a{1000}){100}" * 20]}, "unfolds to more than 1,000,000 parts"),
            ({"A": ["[[:é:]((a{1000}){100}){50}]"]}, "unfolds to more|repeats a part"),
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
def test_in_multi_line_mode_a_dollar_keeps_python_s_meaning(pieces, content):
    pattern = "(?m)" + "".join(pieces)
    try:
        expected = regex.search(pattern, content) is not None
    except regex.error:
        return
    assert expected == is_found(pattern, content, ignore_case=False)
