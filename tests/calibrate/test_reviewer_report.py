"""The report on reviewers in words."""

from __future__ import annotations

from grace_kp import calibrate as cal
from tests.calibrate.gated import answered, document


def test_the_text_has_counts_first():
    """A table of counts, then the evidence for each person, then agreement."""
    traces = [
        document(number, answered("proceed", "ana", ms=1_500.0, digest="d"), answered("cancel", "bo", digest="d"), correct=True,
                 arguments={}) for number in range(25)
    ]  # fmt: skip
    lines = str(cal.reviewers(traces)).splitlines()
    assert "25 traces, 2 reviewers" == lines[0]
    assert "ana                       25        25         0         0         0         0" == lines[3]
    assert "  approved          25 of 25, 100.0% (86.3% to 100.0%)" in lines
    assert "  time to decide    median 1.5 s, middle half 1.5 to 1.5 s (25)" in lines
    assert "same question, several people: 1" in lines


def test_a_long_name_is_shortened():
    """The JSON keeps it."""
    report = cal.reviewers([document(1, answered("proceed", "n" * 100))])
    assert max(map(len, str(report).splitlines())) <= 80
    assert "n" * 100 == report.to_dict()["reviewers"][0]["name"]


def test_nobody_is_a_report_too():
    """Without traces, and without answers."""
    assert "0 traces, 0 reviewers" == str(cal.reviewers([]))
    assert "1 trace, 0 reviewers" == str(cal.reviewers([document(1)]))
