"""Real scorers of autoevals inside of a suite."""

from __future__ import annotations

import pytest

from grace_kp import scorers as sc
from grace_kp.integrations.autoevals import AutoevalsScorer

autoevals = pytest.importorskip("autoevals", reason="needs autoevals")
pytest.importorskip("regex", reason="needs the extra eval")


class Counted:
    """A scorer as autoevals' are called, that counts how often it is."""

    def __init__(self, score=0.5):
        self.calls, self.answer = [], score

    def eval(self, output, expected=None, **more):
        self.calls.append((output, expected, more))
        return autoevals.Score(name="Counted", score=self.answer, metadata={"why": "said so"})


@pytest.mark.parametrize(
    ("scorer", "output", "expected", "score"),
    [
        (autoevals.Levenshtein, "abcd", "abcd", 1.0),
        (autoevals.Levenshtein(), "abcd", "abce", 0.75),
        (autoevals.ExactMatch(), "a", "b", 0.0),
        (autoevals.NumericDiff(), 10, 10, 1.0),
        (autoevals.JSONDiff(), {"a": 1, "b": 2}, {"a": 1, "b": 2}, 1.0),
    ],
)
def test_its_score_is_the_score(scorer, output, expected, score):
    made = AutoevalsScorer(scorer)
    assert score == pytest.approx(made.score(output, expected))
    assert isinstance(made.details(output, expected)["metadata"], dict)


def test_in_a_suite_beside_ours():
    text = AutoevalsScorer(autoevals.Levenshtein(), expected=lambda case: "the total is 40", threshold=0.8)
    suite = sc.Suite([sc.Entry(text, weight=1.0), sc.Entry(sc.OperationAccuracy(), weight=3.0)])
    actual = sc.EditResult([sc.Operation("update", "a")], pages={"Invoice": "the total is 41"})
    report = suite.evaluate(actual, sc.EditExpectation([sc.Operation("update", "a")]))
    assert ["autoevals-levenshtein", "operation-accuracy"] == [one.type for one in report.results]
    assert (14 / 15 + 3) / 4 == pytest.approx(report.overall)
    assert report.passed
    worse = suite.evaluate(
        sc.EditResult([sc.Operation("update", "a")], pages={"Invoice": "no"}),
        sc.EditExpectation([sc.Operation("update", "a")]),
    )
    assert not worse.passed
    assert worse.diagnosis[0].startswith("autoevals-levenshtein: 0.")


def test_a_case_costs_one_evaluation_and_is_given_what_is_asked_for():
    counted = Counted()
    scorer = AutoevalsScorer(counted, input=lambda actual, expected: f"{actual}?", language="en")
    report = sc.Suite([sc.Entry(scorer)]).evaluate("out", "exp")
    assert [("out", "exp", {"input": "out?", "language": "en"})] == counted.calls
    assert {"name": "Counted", "metadata": {"why": "said so"}} == report.results[0].details


def test_a_case_that_was_skipped_has_no_score():
    report = sc.Suite([sc.Entry(AutoevalsScorer(Counted(score=None)))]).evaluate("a", "b")
    assert not report.passed
    assert "Counted skipped the case: {'why': 'said so'}" in report.results[0].error


def test_what_is_no_scorer():
    with pytest.raises(TypeError, match="str has none"):
        AutoevalsScorer("Levenshtein")
