"""The report of a suite on one case in a notebook."""

from __future__ import annotations

from grace_kp.scorers import Result, SuiteReport
from tests.pages.reading import Elements, problems

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


def report(*results, overall=0.4):
    lines = tuple(line for result in results for line in result.diagnosis)
    return SuiteReport(all(result.passed for result in results), overall, results, lines)


def test_a_report_shows_each_scorer_and_where_to_look():
    """Score, threshold, weight and result as a table; the diagnosis below."""
    found = report(
        Result("content-quality", 0.25, 1.0, 0.6, False), Result("response-time", 1.0, 2.0, 0.5, True)
    )._repr_html_()
    text = Elements(found).text
    for words in (
        "0.400",
        "fails",
        "content-quality",
        "0.250",
        "0.60",
        "✗ fails",
        "passes",
        "where to look",
        "see whether the patterns",
    ):
        assert words in text
    assert [] == problems(found)


def test_a_report_that_passes_has_nothing_to_look_for():
    """And says so in a word."""
    text = Elements(report(Result("response-time", 1.0, 2.0, 0.5, True), overall=1.0)._repr_html_()).text
    assert "passes" in text
    assert "where to look" not in text


def test_a_scorer_that_failed_has_no_score():
    """The error stands in the diagnosis."""
    text = Elements(report(Result("own", 0.0, 1.0, 0.5, False, error="boom"))._repr_html_()).text
    assert "not scored" in text
    assert "boom" in text


def test_every_text_is_text_and_the_size_is_bounded():
    """Names and errors of the user's scorers may hold anything."""
    result = Result(HOSTILE * 99, float("nan"), 1.0, 0.5, False, error=HOSTILE * 9_999)
    found = report(*[result] * 300, overall=float("nan"))._repr_html_()
    assert [] == problems(found)
    assert len(found) < 200_000
    assert "200 more scorers are not shown." in found
    assert "more characters are not shown" in found
