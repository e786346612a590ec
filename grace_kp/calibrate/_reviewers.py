"""Reviewers: how many questions each person answered and how, how long it took, and whether people agree with each other.

It compares no reviewer with the result of a run. A run may fail for another reason than the approved action, and a refused action did not
run at all. Labels that people gave to runs are not part of the report.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from grace_kp.calibrate._comparison import Share, cut_text
from grace_kp.calibrate._gated import gated_actions, grace_of
from grace_kp.calibrate._labels import is_standing
from grace_kp.calibrate._samples import JsonRecord
from grace_kp.pages import count_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from grace_kp.calibrate._gated import Document
    from grace_kp.trace import DecisionRecord, ReasoningTrace

LEAST_SHARED = 20
"""Questions with several answers that Krippendorff's alpha needs: a few can give any value."""
NAME = 18
"""Width of the column of names."""
_CATEGORIES = {"proceed": "approved", "cancel": "refused", "modify": "modified"} | dict.fromkeys(
    ("input", "skip", "retry"), "other"
)
_COUNTS = ("approved", "refused", "modified", "other", "timed_out")


@dataclass(frozen=True, slots=True)
class Quartiles(JsonRecord):
    """The middle half of some figures."""

    count: int
    """Number of figures."""
    lower: float
    median: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self | None:
        """Return the quartiles; None without values."""
        if not len(values):
            return None
        lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
        return cls(len(values), float(lower), float(median), float(upper))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerFigures(JsonRecord):
    """The recorded answers of one reviewer."""

    _json = ("name", "answered", *_COUNTS, "approved_share", "seconds")

    name: str
    approved: int
    refused: int
    modified: int
    other: int
    """All other answers: words for the agent, a skipped action, a wish for a new decision."""
    timed_out: int
    """Questions that ran out of time in this reviewer's name. They are not refusals."""
    approved_share: Share
    """Approved as shown, of all answers."""
    seconds: Quartiles | None
    """Time to decide, in seconds, over the answers that state it."""

    @classmethod
    def of(cls, name: str, answers: Counter[str], seconds: Sequence[float]) -> Self:
        """Return the figures of answers by category, and of the times to decide."""
        share = Share(answers["approved"], answers.total() - answers["timed_out"])
        counts = {each: answers[each] for each in _COUNTS}
        return cls(name=name, approved_share=share, seconds=Quartiles.of(seconds), **counts)

    @property
    def answered(self) -> int:
        """Number of answers."""
        return self.approved_share.of

    def lines(self) -> Iterator[str]:
        """Yield the share of approvals and the time to decide as lines of at most 80 columns."""
        yield cut_text(self.name, 78)
        if self.answered:
            yield _line("approved", f"{self.approved:,} of {self.answered:,}, {self.approved_share.percent}")
        if self.seconds is not None:
            around = f"{self.seconds.lower:,.1f} to {self.seconds.upper:,.1f} s"
            words = f"median {self.seconds.median:,.1f} s, middle half {around} ({self.seconds.count:,})"
            yield _line("time to decide", words)


@dataclass(frozen=True, slots=True)
class ReviewerAgreement(JsonRecord):
    """Agreement on the questions that at least two people answered: the same action with the same arguments."""

    same: Share
    """Questions to which all who answered gave the same answer."""
    alpha: float | None
    """Krippendorff's alpha for nominal data: 1 is perfect, 0 is chance. None with fewer than 20 questions, or if all answers are the same."""

    @classmethod
    def of(cls, questions: Iterable[Collection[str]]) -> Self:
        """Return the agreement over questions, each a collection of its answers."""
        shared = [Counter(answers) for answers in questions if len(answers) > 1]
        same = sum(len(answers) == 1 for answers in shared)
        return cls(Share(same, len(shared)), _alpha(shared) if len(shared) >= LEAST_SHARED else None)

    def lines(self) -> Iterator[str]:
        """Yield the agreement as lines of at most 80 columns."""
        yield f"same question, several people: {self.same.of:,}"
        yield _line("all agree", f"{self.same.count:,} of {self.same.of:,}, {self.same.percent}")
        if self.alpha is not None:
            yield _line("alpha", f"{self.alpha:.2f}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerReport(JsonRecord):
    """The recorded answers of all reviewers, sorted by name."""

    _json = ("traces", "timed_out", "unanswered", "unnamed", "unreadable", "reviewers", "questions")

    traces: int
    reviewers: tuple[ReviewerFigures, ...]
    timed_out: int
    """Questions that timed out and are recorded without a name."""
    unanswered: int
    """Questions for which no reviewer was available."""
    unnamed: int
    """Answers without a name."""
    unreadable: int
    """Answers that cannot be read."""
    questions: ReviewerAgreement

    def summary(self) -> str:
        """Return the report as plain lines of at most 80 columns."""
        lines = [f"{count_text(self.traces, 'trace')}, {count_text(len(self.reviewers), 'reviewer')}"]
        if self.reviewers:
            lines += ["", _row("reviewer", "answers", *_COUNTS)]
        for each in self.reviewers:
            counts = (each.answered, *(getattr(each, name) for name in _COUNTS))
            lines.append(_row(cut_text(each.name, NAME), *(f"{count:,}" for count in counts)))
        for each in self.reviewers:
            lines += ["", *each.lines()]
        if self.questions.same.of:
            lines += ["", *self.questions.lines()]
        others = (
            (self.timed_out, "timed out without a name; these are not refusals"),
            (self.unanswered, "had no reviewer available"),
            (self.unnamed, "answered without a name"),
            (self.unreadable, "cannot be read"),
        )
        if any(count for count, _ in others):
            lines += ["", *(f"{count:,} {words}" for count, words in others if count)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def reviewers(traces: Iterable[ReasoningTrace | Document], *, pseudonyms: bool = False) -> ReviewerReport:
    """Return what is recorded about the people who answered gates.

    A reviewer is a name in the record; the name of a policy in code is listed like that of a person. Two people answered the same question
    if the same action was proposed with the same arguments (by digest) to both.

    Args:
        traces: traces or their dict form; they are read once, one at a time.
        pseudonyms: show `reviewer 1`, `reviewer 2`, … instead of names.

    Raises:
        TypeError: a trace of another type.
    """
    others = Counter[str]()
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seconds: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
    questions: dict[int, dict[str, str]] = {}
    for trace in traces:
        others["traces"] += 1
        for record in (action.record for action in gated_actions(grace_of(trace)) if not isinstance(action, str)):
            response = record.response
            if response is None or is_standing(record):  # whose author answered another question
                others["unreadable"] += response is None and record.data.get("response") is not None
                continue
            name, category = response.reviewer, _CATEGORIES.get(response.action)
            if response.timeout_reached:
                (answers[name] if name else others)["timed_out"] += 1
            elif not name:
                others["unanswered" if response.action == "cancel" else "unnamed"] += 1
            elif category is None:
                others["unreadable"] += 1
            else:
                answers[name][category] += 1
                if (milliseconds := _time_of(record)) is not None:
                    seconds[name].append(milliseconds / 1_000)
                if record.digest and response.action != "retry":
                    # The first answer of a person to a question counts: a second one may rest on the first.
                    questions.setdefault(hash((record.action, record.digest)), {}).setdefault(name, category)
    shown = {name: name for name in sorted(answers)}
    if pseudonyms:  # numbered in an order that is not that of the alphabet
        ordered = sorted(shown, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
        shown = {name: f"reviewer {number}" for number, name in enumerate(ordered, 1)}
    return ReviewerReport(
        reviewers=tuple(ReviewerFigures.of(word, answers[name], seconds[name]) for name, word in shown.items()),
        questions=ReviewerAgreement.of(each.values() for each in questions.values()),
        **{each: others[each] for each in ("traces", "timed_out", "unanswered", "unnamed", "unreadable")},
    )


def _time_of(record: DecisionRecord) -> float | None:
    """Return the milliseconds until the answer; or of the whole wait where nothing was asked again."""
    response = record.response
    stated = None if response is None else response.response_time_ms
    if stated is None and record.attempt in {None, 1}:
        stated = record.waited_ms
    return stated if stated is not None and 0 <= stated < math.inf else None


def _alpha(questions: Sequence[Counter[str]]) -> float | None:
    """Return Krippendorff's alpha (Content Analysis, 2004, chapter 11) for nominal data with any number of answers to a question."""
    observed = sum(_disagreeing(answers) for answers in questions)
    expected = _disagreeing(sum(questions, Counter()))
    return 1 - observed / expected if expected else None


def _disagreeing(answers: Counter[str]) -> float:
    """Return the ordered pairs of different answers, divided by the number of answers less 1."""
    total = answers.total()
    return (total**2 - sum(count**2 for count in answers.values())) / (total - 1)


def _line(label: str, value: str) -> str:
    return f"  {label:<18}{value}"


def _row(name: str, *cells: str) -> str:
    return f"{name:<{NAME}}" + "".join(f"{cell.replace('_', ' '):>10}" for cell in cells)
