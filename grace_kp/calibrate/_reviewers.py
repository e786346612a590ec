"""Reviewers: how many questions each person answered and how, how long it took, and whether people agree with each other.

Nobody is ranked or judged. How a run ended says nothing about its reviewer: it may fail for another reason than the approved action, and a
refused action did not run at all.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._agreement import agreement_of
from grace_kp.calibrate._comparison import Share
from grace_kp.calibrate._gated import gated_actions, grace_of
from grace_kp.calibrate._label_sources import correctness, counts_unnamed, feedback_in, is_standing
from grace_kp.calibrate._reviewer_report import Quartiles, ReviewerFigures, ReviewerReport
from grace_kp.store import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grace_kp.calibrate._gated import Document
    from grace_kp.trace import DecisionRecord, ReasoningTrace

APPROVED, REFUSED, MODIFIED, OTHER = range(4)
_CATEGORIES = {
    "proceed": APPROVED,
    "cancel": REFUSED,
    "modify": MODIFIED,
    "input": OTHER,
    "skip": OTHER,
    "retry": OTHER,
}
_RIGHT, _WRONG = "right", "wrong"


def reviewers(
    traces: Iterable[ReasoningTrace | Document],
    *,
    pseudonyms: bool = False,
    seed: int = 0,
) -> ReviewerReport:
    """Return what is recorded about the people who answered gates and gave feedback.

    A reviewer is a name in the record; that of a policy in code stands beside those of people. Two people answered the same question
    if the same action was proposed with the same arguments (by digest) to both.

    Args:
        traces: traces or their dict form; they are read once, one at a time.
        pseudonyms: show `reviewer 1`, `reviewer 2`, … instead of names.
        seed: makes the bootstrap intervals repeatable.

    Raises:
        TypeError: a trace of another type.
    """
    found = _Collection()
    for trace in traces:
        grace = grace_of(trace)
        found.traces += 1
        found.add_feedback(feedback_in(grace))
        for action in gated_actions(grace):
            if not isinstance(action, str):
                found.add_answer(action.record)
    return found.report(pseudonyms=pseudonyms, seed=seed)


@dataclass(slots=True)
class _Reviewer:
    """What is recorded about one person so far."""

    answers: Counter[int] = field(default_factory=Counter)
    timed_out: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    feedback: Counter[str] = field(default_factory=Counter)

    def figures(self, name: str) -> ReviewerFigures:
        """Return the figures of this person."""
        return ReviewerFigures(
            name=name,
            approved=self.answers[APPROVED],
            refused=self.answers[REFUSED],
            modified=self.answers[MODIFIED],
            other=self.answers[OTHER],
            timed_out=self.timed_out,
            approved_share=Share(self.answers[APPROVED], sum(self.answers.values())),
            seconds=Quartiles.of(np.array(self.seconds)),
            feedback={word: self.feedback[word] for word in (_RIGHT, _WRONG, "between")},
        )


@dataclass(slots=True)
class _Collection:
    """What is recorded about everybody so far."""

    traces: int = 0
    people: dict[str, _Reviewer] = field(default_factory=dict)
    unanswered: int = 0
    timed_out: int = 0
    unnamed: int = 0
    unreadable: int = 0
    _questions: dict[int, dict[str, int]] = field(default_factory=dict)
    _rated: list[dict[str, int]] = field(default_factory=list)

    def add_feedback(self, feedback: list[Mapping[str, Any]]) -> None:
        """Add the labels that people gave to a run."""
        stated: dict[str, int] = {}
        for entry in feedback:
            name, label = entry.get("by"), correctness(entry["correct"])
            if not isinstance(name, str) or not name or not counts_unnamed(entry.get("source")) or entry.get(PROGRAM):
                continue
            self._person(name).feedback[_word(label) or "between"] += 1
            if _word(label):
                stated[name] = int(label or 0)
        if len(stated) > 1:
            self._rated.append(stated)

    def add_answer(self, record: DecisionRecord) -> None:
        """Add the answer to a question, if it was asked and answered."""
        response = record.response
        if response is None:
            self.unreadable += record.data.get("response") is not None
            return
        if is_standing(record):
            return  # its author answered another question
        name = response.reviewer
        if response.timeout_reached:
            if name:
                self._person(name).timed_out += 1
            else:
                self.timed_out += 1
            return
        if not name:
            self.unanswered += response.action == "cancel"
            self.unnamed += response.action != "cancel"
            return
        category = _CATEGORIES.get(response.action)
        if category is None:
            self.unreadable += 1
            return
        person = self._person(name)
        person.answers[category] += 1
        milliseconds = _time_of(record)
        if milliseconds is not None:
            person.seconds.append(milliseconds / 1_000)
        if record.digest and response.action != "retry":
            # The first answer of a person to a question counts: a second one may rest on the first.
            self._questions.setdefault(hash((record.action, record.digest)), {}).setdefault(name, category)

    def _person(self, name: str) -> _Reviewer:
        return self.people.setdefault(name, _Reviewer())

    def report(self, *, pseudonyms: bool, seed: int) -> ReviewerReport:
        """Return the report on everybody."""
        shown = _pseudonyms(self.people) if pseudonyms else {name: name for name in self.people}
        figures = [person.figures(shown[name]) for name, person in self.people.items()]
        questions, rated = (
            agreement_of([{shown[name]: code for name, code in unit.items()} for unit in units], seed=seed)
            for units in (self._questions.values(), self._rated)
        )
        return ReviewerReport(
            traces=self.traces,
            reviewers=tuple(sorted(figures, key=_order)),
            timed_out=self.timed_out,
            unanswered=self.unanswered,
            unnamed=self.unnamed,
            unreadable=self.unreadable,
            questions=questions,
            feedback=rated,
        )


def _word(label: float | None) -> str:
    """Return the word for a label; empty for none, and for one between right and wrong."""
    return {0.0: _WRONG, 1.0: _RIGHT}.get(label, "") if label is not None else ""


def _time_of(record: DecisionRecord) -> float | None:
    """Return the milliseconds until the answer; the whole wait stands in for it where nothing was asked again."""
    response = record.response
    stated = None if response is None else response.response_time_ms
    if stated is None and record.attempt in {None, 1}:
        stated = record.waited_ms
    return stated if stated is not None and 0 <= stated < math.inf else None


def _pseudonyms(names: Iterable[str]) -> dict[str, str]:
    """Number the names in an order that is not that of the alphabet."""
    ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
    return {name: f"reviewer {number}" for number, name in enumerate(ordered, 1)}


def _order(figures: ReviewerFigures) -> tuple[str, int, str]:
    """Sort by name, and pseudonyms by number."""
    head, _, number = figures.name.rpartition(" ")
    return (head, int(number), "") if number.isdecimal() else (figures.name, 0, "")
