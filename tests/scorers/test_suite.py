"""Suites: presets, the weighted average for any weights, and what a report says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp import scorers as sc
from tests.scorers.records import BAD, GOOD, done, op, wanted

ACTUAL = sc.EditResult([sc.Operation("update", "a")], pages={"A": "y"}, duration_ms=7)


EXPECTED = sc.EditExpectation([sc.Operation("update", "a")], patterns={"A": ["x"]})


class TestSuite:
    @pytest.mark.parametrize(
        ("name", "entries"),
        [
            ("standard", [("operation-accuracy", 1.0, 0.8), ("target-block-precision", 1.0, 0.75), ("content-quality", 1.0, 0.6)]),
            ("strict", [("operation-accuracy", 1.0, 0.9), ("target-block-precision", 1.0, 0.9), ("content-quality", 1.0, 0.8), ("anti-hallucination", 2.0, 1.0)]),
            ("operation-focused", [("operation-accuracy", 2.0, 0.9), ("target-block-precision", 1.5, 0.85), ("content-quality", 0.5, 0.5)]),
        ],
    )  # fmt: skip
    def test_presets(self, name, entries, tmp_path):
        suite = sc.Suite.preset(name)
        assert entries == [(one.scorer.type, one.weight, one.threshold) for one in suite.entries]
        path = tmp_path / "suite.yaml"
        path.write_text(suite.to_yaml(), "utf-8")
        assert suite.to_yaml() == sc.Suite.from_yaml(path).to_yaml()
        assert sc.Suite.preset(name).evaluate(*GOOD).passed

    @pytest.mark.parametrize(
        ("scorer", "threshold"),
        [(sc.OperationAccuracy(), 0.8), (sc.TargetBlockPrecision(), 0.75), (sc.ContentQuality(), 0.6), (sc.OperationResult(), 0.8), (sc.AntiHallucination(), 1.0)],
    )  # fmt: skip
    def test_thresholds_of_their_own(self, scorer, threshold):
        assert threshold == sc.Entry(scorer).threshold

    def test_the_overall_figure_is_the_weighted_average(self):
        """Accuracy 1 of 2, weight 2; precision 1 of 2, weight 1.5; content 0, weight 0.5: 1.75 of 4."""
        actual = done(op("update", "a"), pages={"A": "y"})
        expected = wanted(op("update", "a"), op("update", "b"), patterns={"A": ["x"]})
        report = sc.Suite.preset("operation-focused").evaluate(actual, expected)
        assert (0.4375, False) == (report.overall, report.passed)
        assert [0.5, 0.5, 0.0] == [one.score for one in report.results]

    def test_for_tests_of_the_user_s(self):
        assert sc.assert_passes(sc.Suite.preset("standard"), *GOOD).passed
        with pytest.raises(AssertionError, match="type mismatch: expected"):
            sc.assert_passes(sc.Suite.preset("standard"), *BAD)

    def test_an_unknown_preset(self):
        with pytest.raises(sc.SuiteError, match="a preset must be one of standard, strict, operation-focused"):
            sc.Suite.preset("harsh")


class TestOverall:
    @given(st.lists(st.floats(0, 1e308), min_size=3, max_size=3).filter(any))
    def test_is_between_the_scores_whatever_the_weights(self, weights):
        scorers = sc.OperationAccuracy(), sc.ContentQuality(), sc.TargetBlockPrecision()
        suite = sc.Suite([sc.Entry(one, weight) for one, weight in zip(scorers, weights, strict=True)])
        overall = suite.evaluate(ACTUAL, EXPECTED).overall
        assert 0.0 <= overall <= 1.0
        assert (weights[1] == 0) <= (overall == 1.0)

    def test_the_largest_weights_there_are(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), 1.7e308), sc.Entry(sc.ContentQuality(), 1.7e308)])
        assert 0.5 == suite.evaluate(ACTUAL, EXPECTED).overall

    def test_what_is_all_right_is_1(self):
        suite = sc.Suite([sc.Entry(sc.OperationAccuracy(), weight) for weight in (0.1, 0.2, 0.3, 0.7, 1e-9)])
        assert 1.0 == suite.evaluate(ACTUAL, EXPECTED).overall
