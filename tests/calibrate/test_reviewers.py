"""`cal.reviewers` counts what people answered, and judges nobody without enough cases."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.gated import answered, decision, document, live, numbered

ANSWERS = ("proceed", "cancel", "modify", "input", "skip", "retry")


def only(report):
    (figures,) = report.reviewers
    return figures


def test_live_answers_are_counted_by_name():
    """As gates record them, with the time that each took."""
    script = iter(["proceed", "cancel", "skip", "proceed"] * 9)
    traces = live(
        [[True, False], [False], [True]],
        thresholds=gk.Thresholds(1.0, 1.0, 0.0),
        reviewer=lambda request: gk.InterventionResponse(
            next(script), reviewer="ana" if request.action == "pay" else "bo"
        ),
    )
    report = cal.reviewers(traces)
    assert ["ana", "bo"] == [figures.name for figures in report.reviewers]
    assert 8 == sum(figures.answered for figures in report.reviewers)
    ana, bo = report.reviewers
    assert (0, 2, 0, 0) == (ana.approved - 2, ana.refused, ana.modified, ana.other)
    assert (2, 0, 0, 2) == (bo.approved, bo.refused, bo.modified, bo.other)
    assert (4, 4) == (ana.seconds.count, ana.faster_than_reading.of)


def test_nobody_in_time_is_no_refusal():
    """Neither is a question that could not be put to anybody."""
    late = decision(response={"action": "cancel", "timeout_reached": True})
    named = decision(response={"action": "cancel", "timeout_reached": True, "reviewer": "ana"})
    nobody = decision(response={"action": "cancel", "timeout_reached": False})
    unnamed = decision(response={"action": "proceed", "timeout_reached": False})
    report = cal.reviewers([document(1, late, named, nobody, unnamed)])
    assert (1, 1, 1) == (report.timed_out, report.unanswered, report.unnamed)
    assert (1, 0, 0) == (only(report).timed_out, only(report).refused, only(report).answered)
    assert "1 timed out without a name; nobody refused them" in str(report)


def test_the_time_of_an_answer_is_the_reviewers_own():
    """The whole wait stands in for it only where nothing was asked again; what cannot be a time is left out."""
    answer = {"action": "proceed", "reviewer": "ana"}
    entries = [
        decision(response={**answer, "response_time_ms": 1_000.0}, waited_ms=9_000.0),
        decision(response=answer, waited_ms=3_000.0, attempt=1),
        decision(response=answer, waited_ms=50_000.0, attempt=2),
        decision(response={**answer, "response_time_ms": math.nan}),
        decision(response={**answer, "response_time_ms": -5.0}),
    ]
    figures = only(cal.reviewers([document(1, *entries)]))
    assert (5, 2, 2.0) == (figures.answered, figures.seconds.count, figures.seconds.median)


def test_answers_that_are_faster_than_reading_are_counted():
    """The length of the arguments counts, with what the record does not show of them."""
    fast = answered("proceed", "ana", ms=2_000.0, arguments={"text": "x" * 300})
    slow = answered("proceed", "ana", ms=4_000.0, arguments={"text": "x" * 300})
    hidden = answered("proceed", "ana", ms=4_000.0, arguments={"text": "x"}, hidden={"text": 10_000})
    share = only(cal.reviewers([document(1, fast, slow, hidden)])).faster_than_reading
    assert (2, 3) == (share.count, share.of)


def seeded(approved_wrong, wrong, approved_right, right, name="ana"):
    """Answers to questions that are known to be wrong or right."""
    entries = [(False, number < approved_wrong) for number in range(wrong)]
    entries += [(True, number < approved_right) for number in range(right)]
    return [
        document(
            number,
            answered("proceed" if approved else "cancel", name),
            feedback=[{"correct": is_right, "source": "seeded"}],
        )
        for number, (is_right, approved) in enumerate(entries)
    ]


@pytest.mark.parametrize(
    ("cases", "verdict"),
    [
        (
            (30, 30, 30, 30),
            "approves wrong and right actions alike (30 of 30 wrong and 30 of 30 right actions approved)",
        ),
        ((0, 30, 0, 30), "approves wrong and right actions alike (0 of 30 wrong and 0 of 30 right actions approved)"),
        (
            (3, 30, 27, 30),
            "approves right actions more often than wrong ones (3 of 30 wrong and 27 of 30 right actions approved)",
        ),
        (
            (27, 30, 3, 30),
            "approves wrong actions more often than right ones (27 of 30 wrong and 3 of 30 right actions approved)",
        ),
        ((12, 30, 18, 30), "no verdict: the intervals overlap (12 of 30 wrong and 18 of 30 right actions approved)"),
        ((3, 3, 27, 30), "not enough cases: 3 with a wrong action; 20 are needed"),
        ((20, 20, 0, 0), "not enough cases: 0 with a right action; 20 are needed"),
    ],
)
def test_a_verdict_needs_cases_and_intervals_that_settle_it(cases, verdict):
    """Otherwise the report says what is missing."""
    figures = only(cal.reviewers(seeded(*cases)))
    assert verdict == figures.verdict
    assert cases == (
        figures.approved_when_wrong.count, figures.approved_when_wrong.of, figures.approved_when_right.count, figures.approved_when_right.of,
    )  # fmt: skip


def test_more_reviewers_need_more_cases_each():
    """So that with 95 % all verdicts hold together."""
    traces = [trace for number in range(10) for trace in seeded(20, 20, 20, 20, name=f"r{number}")]
    assert {"not enough cases: 20 with a wrong action; 30 are needed"} == {
        figures.verdict for figures in cal.reviewers(traces).reviewers
    }


def test_how_a_run_ended_is_no_verdict_on_its_reviewer():
    """A run may fail for other reasons, and a refused action did not run; both are counted, and nothing follows."""
    traces = [document(number, answered("proceed", "ana"), correct=number % 2 == 0) for number in range(100)]
    traces.append(document(100, answered("cancel", "ana"), correct=False))
    figures = only(cal.reviewers(traces))
    assert {"approved_right": 50, "approved_wrong": 50, "refused_right": 0, "refused_wrong": 1} == figures.runs
    assert "not enough cases: 0 with a wrong action; 20 are needed" == figures.verdict


def test_nobody_is_measured_by_their_own_labels():
    """Neither by their approvals."""
    feedback = [
        {"correct": False, "source": "seeded", "by": "ana"},
        {"correct": True, "source": "user", "by": "ana"},
        {"correct": True, "source": "approval", "by": "bo"},
    ]
    ana, bo = cal.reviewers(
        [document(1, answered("proceed", "ana"), answered("proceed", "bo"), feedback=feedback)]
    ).reviewers
    assert (0, 0) == (ana.approved_when_wrong.of, sum(ana.runs.values()))
    assert (1, 1) == (bo.approved_when_wrong.of, bo.runs["approved_right"])
    assert {"right": 1, "wrong": 1, "between": 0} == ana.feedback
    assert {"right": 0, "wrong": 0, "between": 0} == bo.feedback


def test_neither_programs_nor_standing_approvals_are_reviewers():
    """And the label of the person who answered does not judge the answer, however the name is written."""
    answer = decision(response={"action": "proceed", "reviewer": "ana"})
    standing = decision(response={"action": "proceed", "reviewer": "cy"}, approval={"standing": "st-1"})
    trace = document(1, answer, standing)
    trace["grace"]["feedback"] = [
        {"correct": False, "source": "seeded", "by": "ben"},
        {"correct": True, "source": "seeded", "by": "ANA"},
        {"correct": True, "source": "seeded", "by": "bot", "program": True},
    ]
    report = cal.reviewers([trace])
    assert {"ana": 1, "ANA": 0, "ben": 0} == {figures.name: figures.answered for figures in report.reviewers}
    assert (1, 1) == next(
        (f.approved_when_wrong.count, f.approved_when_wrong.of) for f in report.reviewers if f.name == "ana"
    )


def test_labels_beside_the_traces_judge_the_questions():
    """Aligned with the traces; they take precedence over seeded feedback."""
    figures = only(
        cal.reviewers(
            [document(1, answered("proceed", "ana")), document(2, answered("cancel", "ana"))], labels=[False, None]
        )
    )
    assert (1, 1, 0) == (
        figures.approved_when_wrong.count,
        figures.approved_when_wrong.of,
        figures.approved_when_right.of,
    )


def test_the_same_question_is_the_same_action_with_the_same_arguments():
    """The first answer of each person counts, and a wish for a new decision is none."""
    groups = [
        [answered("proceed", "ana", digest="d1")],
        [
            answered("cancel", "bo", digest="d1"),
            answered("proceed", "bo", digest="d1"),
            answered("retry", "cy", digest="d1"),
        ],
        [answered("cancel", "bo", digest="d1", action="send")],
        [answered("cancel", "bo", digest=""), answered("cancel", "ana", digest="")],
    ]
    report = cal.reviewers(numbered(*groups))
    assert (0, 1) == (report.questions.same.count, report.questions.same.of)
    assert [("ana", "bo")] == [pair.names for pair in report.questions.pairs]


def test_people_who_labelled_the_same_run_are_compared():
    """By the newest label of each."""
    feedback = [
        {"correct": True, "source": "user", "by": "ana"},
        {"correct": False, "source": "user", "by": "bo"},
        {"correct": True, "source": "audit", "by": "bo"},
        {"correct": 0.5, "source": "user", "by": "cy"},
    ]
    report = cal.reviewers([document(number, feedback=feedback) for number in range(3)])
    assert (3, 3) == (report.feedback.same.count, report.feedback.same.of)
    assert {"cy": {"right": 0, "wrong": 0, "between": 3}} == {
        f.name: f.feedback for f in report.reviewers if f.name == "cy"
    }


def test_pseudonyms_show_no_name():
    """Neither in the text nor in the JSON; the figures stay the same."""
    names = ["ana@example.org", "Zoë", "bo\x1b[31m"]
    traces = numbered(*([answered("proceed", name, digest="d")] for name in names))
    report = cal.reviewers(traces, pseudonyms=True)
    text = str(report) + json.dumps(report.to_dict())
    assert [] == [name for name in names if name in text]
    assert ["reviewer 1", "reviewer 2", "reviewer 3"] == [figures.name for figures in report.reviewers]
    assert str(cal.reviewers(traces)).replace("\n", "").isprintable()


def test_reviewers_are_sorted_by_name():
    """Not by any figure; twelve pseudonyms by their number."""
    traces = numbered(*([answered("proceed", f"r{number:02d}")] * (number + 1) for number in range(12)))
    assert [f"r{number:02d}" for number in range(12)] == [figures.name for figures in cal.reviewers(traces).reviewers]
    assert [f"reviewer {number}" for number in range(1, 13)] == [
        figures.name for figures in cal.reviewers(traces, pseudonyms=True).reviewers
    ]


GARBAGE = st.sampled_from(
    ["text", None, 3, [], {}, {"action": "proceed"}, {"action": 5, "reviewer": "ana"}, {"action": "dance", "reviewer": "ana"},
     {"reviewer": "ana"}, {"action": "proceed", "reviewer": 7}, {"action": "proceed", "reviewer": "ana", "response_time_ms": "x"}]
)  # fmt: skip


@given(st.lists(st.lists(st.builds(answered, st.sampled_from(ANSWERS), st.sampled_from("abc"), digest=st.sampled_from("xyz")) | st.builds(
    lambda response: decision(response=response), GARBAGE), max_size=4), max_size=8))  # fmt: skip
def test_the_counts_add_up(groups):
    """Answers of each kind to all answers, whatever else stands in the traces."""
    report = cal.reviewers(numbered(*groups))
    for figures in report.reviewers:
        assert figures.answered == figures.approved + figures.refused + figures.modified + figures.other
        assert figures.approved_share.count == figures.approved
    assert len(groups) == report.traces
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert all(len(line) <= 80 for line in str(report).splitlines())


def test_a_stream_of_many_answers():
    """Twenty thousand, from a generator."""
    traces = (
        document(number, answered(ANSWERS[number % 2], "abc"[number % 3], digest=str(number // 3)))
        for number in range(20_000)
    )
    report = cal.reviewers(traces)
    assert 20_000 == sum(figures.answered for figures in report.reviewers)
    assert 6_667 >= report.questions.same.of >= 6_666
