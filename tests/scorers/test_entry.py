"""Entries of a suite: what they hold, and what becomes of a scorer that fails or is replaced in part."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from tests.scorers.records import GOOD, Odd, done, op, wanted

ACTUAL = sc.EditResult([sc.Operation("update", "a")], pages={"A": "y"}, duration_ms=7)


EXPECTED = sc.EditExpectation([sc.Operation("update", "a")], patterns={"A": ["x"]})


def test_an_entry_holds_a_scorer():
    for scorer in (None, "content-quality", object()):
        with pytest.raises(ValueError, match="a scorer has a type and score"):
            sc.Entry(scorer)


def test_an_error_that_cannot_be_shown_is_told_all_the_same():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    class Broken(Odd):
        def score(self, actual, expected):
            raise Mute

    (result,) = sc.Suite([sc.Entry(Broken())]).evaluate(ACTUAL, EXPECTED).results
    assert (0.0, True) == (result.score, result.error.startswith("Mute: "))


class TestEvaluate:
    def test_a_subclass_scores_as_it_says(self):
        """What a scorer of the library offers besides does not pass by what a subclass of it replaces."""

        class Half(sc.OperationAccuracy):
            def score(self, actual, expected):
                return super().score(actual, expected) / 2

        class Mute(sc.OperationAccuracy):
            def details(self, actual, expected):
                return "nothing"

        report = sc.Suite([sc.Entry(Half()), sc.Entry(Mute())]).evaluate(ACTUAL, EXPECTED)
        assert [0.5, 1.0] == [one.score for one in report.results]
        assert "nothing" == report.results[1].details

    def test_a_threshold_that_is_met_exactly_is_met(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), threshold=1 / 3)])
        assert suite.evaluate(done(op("update", "a")), wanted(op("update", "a"), op("x"), op("y"))).passed

    def test_a_scorer_that_fails_is_told(self):
        report = sc.Suite([sc.Entry(sc.ResponseTime(5)), sc.Entry(sc.OperationAccuracy())]).evaluate(*GOOD)
        assert (False, 0.5, 0.0) == (report.passed, report.overall, report.results[0].score)
        assert "could not be scored: ValueError: the duration of the result is unknown" in report.diagnosis[0]
