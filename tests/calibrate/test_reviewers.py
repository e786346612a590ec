"""`cal.reviewers` counts what people answered, and judges nobody."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.examples import answered, decision, document, live, numbered

ANSWERS = ("proceed", "cancel", "modify", "input", "skip", "retry")


def only(report):
    (figures,) = report.reviewers
    return figures


def test_live_answers_are_counted_by_name():
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
    assert 4 == ana.seconds.count


def test_nobody_in_time_is_no_refusal():
    late = decision(response={"action": "cancel", "timeout_reached": True})
    named = decision(response={"action": "cancel", "timeout_reached": True, "reviewer": "ana"})
    nobody = decision(response={"action": "cancel", "timeout_reached": False})
    unnamed = decision(response={"action": "proceed", "timeout_reached": False})
    report = cal.reviewers([document(1, late, named, nobody, unnamed)])
    assert (1, 1, 1) == (report.timed_out, report.unanswered, report.unnamed)
    assert (1, 0, 0) == (only(report).timed_out, only(report).refused, only(report).answered)
    assert "1 timed out without a name; these are not refusals" in str(report)


def test_the_time_of_an_answer_is_the_reviewers_own():
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


def test_neither_programs_nor_standing_approvals_are_reviewers():
    answer = decision(response={"action": "proceed", "reviewer": "ana"})
    standing = decision(response={"action": "proceed", "reviewer": "cy"}, approval={"standing": "st-1"})
    trace = document(1, answer, standing)
    trace["grace"]["feedback"] = [
        {"correct": False, "source": "seeded", "by": "ben"},
        {"correct": True, "source": "approval", "by": "cy"},
        {"correct": True, "source": "seeded", "by": "bot", "program": True},
    ]
    report = cal.reviewers([trace])
    assert {"ana": 1} == {figures.name: figures.answered for figures in report.reviewers}


def test_the_same_question_is_the_same_action_with_the_same_arguments():
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


def test_pseudonyms_show_no_name():
    names = ["ana@example.org", "Zoë", "bo\x1b[31m"]
    traces = numbered(*([answered("proceed", name, digest="d")] for name in names))
    report = cal.reviewers(traces, pseudonyms=True)
    text = str(report) + json.dumps(report.to_dict())
    assert [] == [name for name in names if name in text]
    assert ["reviewer 1", "reviewer 2", "reviewer 3"] == [figures.name for figures in report.reviewers]
    assert str(cal.reviewers(traces)).replace("\n", "").isprintable()


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


def test_the_text_has_counts_first():
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


ACTIONS = ("proceed", "cancel", "modify", "skip")


def agreement(questions):
    groups = (
        [answered(action, name, digest=f"d{number}") for name, action in answers.items()]
        for number, answers in enumerate(questions)
    )
    return cal.reviewers(numbered(*groups)).questions


def alpha(questions):
    units = [list(answers.values()) for answers in questions if len(answers) > 1]
    observed = sum(sum(a != b for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    values = [value for unit in units for value in unit]
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (len(values) - 1)
    return 1 - observed / expected if expected else None


QUESTIONS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(ACTIONS[:3]), min_size=1)


@given(st.lists(QUESTIONS, min_size=25, max_size=40))
def test_alpha_is_that_of_all_pairs_of_answers(questions):
    found = agreement(questions)
    shared = [answers for answers in questions if len(answers) > 1]
    assert len(shared) == found.same.of
    assert sum(len(set(answers.values())) == 1 for answers in shared) == found.same.count
    expected = alpha(questions) if len(shared) >= 20 else None
    assert found.alpha is expected is None or math.isclose(expected, found.alpha, abs_tol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 19])
def test_few_questions_give_no_coefficient(count):
    assert agreement([{"ana": "proceed", "bo": "cancel"}] * count).alpha is None
    assert agreement([{"ana": "proceed", "bo": "cancel"}] * 20).alpha is not None
