"""Content-quality, operation-result and response-time with numbers worked by hand, also where nothing is expected."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
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

    def test_a_malformed_pattern_is_an_error_when_it_is_given(self):
        with pytest.raises(ValueError, match=r"page 'A': the pattern '\(' is malformed"):
            wanted(patterns={"A": ["("]})
        with pytest.raises(sc.PatternError, match="patterns, page 'A'"):
            sc.ContentQuality({"A": ["["]})
        with pytest.raises(ValueError, match="a pattern must be a text, not int"):
            wanted(patterns={"A": [3]})

    def test_a_pattern_that_runs_for_ever_counts_as_not_found(self):
        scorer = sc.ContentQuality({"A": [r"(a|aa)+$"]}, timeout=0.05)
        actual = done(pages={"A": "a" * 60 + "b"})
        assert 0.0 == scorer.score(actual, wanted())
        assert "not found within 0.05 s in content" in scorer.details(actual, wanted()).content_issues[0]


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

    @pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), "5"])
    def test_a_limit_that_is_none(self, limit):
        with pytest.raises(ValueError, match="max_acceptable_ms"):
            sc.ResponseTime(limit)

    def test_what_was_not_measured_is_no_score(self):
        with pytest.raises(ValueError, match="the duration of the result is unknown"):
            sc.ResponseTime(1_000).score(done(), wanted())
