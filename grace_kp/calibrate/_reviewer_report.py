"""What is known about reviewers: figures of each, agreement among them, and the words that these figures allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grace_kp.calibrate._binomial import clopper_pearson
from grace_kp.calibrate._comparison import LEVEL, Share
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from grace_kp.calibrate._agreement import Agreement

LEAST_CASES = 20
"""Cases with a wrong action, and with a right one, that a verdict needs at least."""
ALIKE = 0.2
"""Largest difference of the approved shares that still counts as alike."""
NAME = 18
_COUNTS = ("approved", "refused", "modified", "other", "timed_out")


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The middle half of some figures."""

    count: int
    """Number of figures."""
    lower: float
    median: float
    upper: float

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> Self | None:
        """Return the quartiles; None of nothing."""
        if not len(values):
            return None
        lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75])
        return cls(len(values), float(lower), float(median), float(upper))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerFigures:
    """What is recorded about one reviewer."""

    name: str
    approved: int
    refused: int
    modified: int
    other: int
    """Answers that are none of these: words for the agent, a skipped action, a wish for a new decision."""
    timed_out: int
    """Questions that ran out of time in this reviewer's name. They are no refusals."""
    approved_share: Share
    """Approved as shown, of all answers."""
    seconds: Quartiles | None
    """Time to decide, in seconds, over the answers that state it."""
    characters: Quartiles | None
    """Length of the arguments of these questions, in characters."""
    faster_than_reading: Share
    """Answers that came before the arguments could be read at 100 characters per second, of those that state the time."""
    approved_when_wrong: Share
    """Approved, of the questions whose proposed action is known to be wrong."""
    approved_when_right: Share
    """Approved, of the questions whose proposed action is known to be right."""
    runs: Mapping[str, int]
    """`approved_right`, `approved_wrong`, `refused_right`, `refused_wrong`: answers by the later label of the run, this reviewer's own
    labels aside."""
    feedback: Mapping[str, int]
    """Labels that this reviewer gave to runs: `right`, `wrong`, `between`."""
    verdict: str
    """What the labelled questions show, or how many more would be needed."""

    @property
    def answered(self) -> int:
        """Number of answers."""
        return self.approved_share.of

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        shares = ("approved_share", "faster_than_reading", "approved_when_wrong", "approved_when_right")
        return {
            "name": self.name,
            "answered": self.answered,
            **{name: getattr(self, name) for name in _COUNTS},
            **{name: getattr(self, name).to_dict() for name in shares},
            "seconds": None if self.seconds is None else self.seconds.to_dict(),
            "characters": None if self.characters is None else self.characters.to_dict(),
            "runs": dict(self.runs),
            "feedback": dict(self.feedback),
            "verdict": self.verdict,
        }

    def lines(self) -> Iterator[str]:
        """Yield the figures beside the counts as lines of at most 80 columns."""
        yield _short(self.name, 78)
        if self.answered:
            yield _line("approved", f"{self.approved:,} of {self.answered:,}, {self.approved_share.percent}")
        if self.seconds is not None and self.characters is not None:
            around = f"{self.seconds.lower:,.1f} to {self.seconds.upper:,.1f} s"
            yield _line(
                "time to decide", f"median {self.seconds.median:,.1f} s, middle half {around} ({self.seconds.count:,})"
            )
            fast = self.faster_than_reading
            yield _line("too fast to read", f"{fast.count:,} of {fast.of:,}, {fast.percent}")
            yield _line("", f"(the arguments have a median of {self.characters.median:,.0f} characters)")
        if any(self.runs.values()):
            yield _line("runs afterwards", f"approved: {self.runs['approved_right']:,} right, {self.runs['approved_wrong']:,} wrong; "
                        f"refused: {self.runs['refused_right']:,} right, {self.runs['refused_wrong']:,} wrong")  # fmt: skip
        if any(self.feedback.values()):
            between = f", {self.feedback['between']:,} in between" if self.feedback["between"] else ""
            yield _line("labels stated", f"{self.feedback['right']:,} right, {self.feedback['wrong']:,} wrong{between}")
        if self.answered:
            yield _line("verdict", self.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerReport:
    """What is recorded about all reviewers, sorted by name."""

    traces: int
    reviewers: tuple[ReviewerFigures, ...]
    timed_out: int
    """Questions that nobody answered in time, recorded without a name."""
    unanswered: int
    """Questions that could not be put to anybody."""
    unnamed: int
    """Answers without a name."""
    unreadable: int
    """Answers that cannot be read."""
    questions: Agreement
    """Agreement on questions that several people answered: the same action with the same arguments."""
    feedback: Agreement
    """Agreement on runs that several people labelled."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        counts = ("traces", "timed_out", "unanswered", "unnamed", "unreadable")
        return {
            **{name: getattr(self, name) for name in counts},
            "reviewers": [figures.to_dict() for figures in self.reviewers],
            "questions": self.questions.to_dict(),
            "feedback": self.feedback.to_dict(),
        }

    def summary(self) -> str:
        """Return the report as text of at most 80 columns, verdicts aside."""
        lines = [
            f"{self.traces:,} trace{'' if self.traces == 1 else 's'}, {len(self.reviewers):,} reviewer{'' if len(self.reviewers) == 1 else 's'}"
        ]
        if self.reviewers:
            lines += ["", _row("reviewer", "answers", *_COUNTS)]
            lines += [
                _row(
                    _short(figures.name, NAME),
                    f"{figures.answered:,}",
                    *(f"{getattr(figures, name):,}" for name in _COUNTS),
                )
                for figures in self.reviewers
            ]
        for figures in self.reviewers:
            lines += ["", *figures.lines()]
        for title, agreement in (
            ("same question, several people", self.questions),
            ("same run, several labels", self.feedback),
        ):
            if agreement.same.of:
                lines += ["", *_agreement_lines(title, agreement)]
        others = (
            (self.timed_out, "timed out without a name; nobody refused them"),
            (self.unanswered, "had nobody to ask"),
            (self.unnamed, "answered without a name"),
            (self.unreadable, "cannot be read"),
        )
        lines += (
            ["", *(f"{count:,} {words}" for count, words in others if count)]
            if any(count for count, _ in others)
            else []
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def _agreement_lines(title: str, agreement: Agreement) -> Iterator[str]:
    yield f"{title}: {agreement.same.of:,}"
    yield _line("all agree", f"{agreement.same.count:,} of {agreement.same.of:,}, {agreement.same.percent}")
    yield _line("alpha", str(agreement.alpha))
    for pair in agreement.pairs:
        names = " and ".join(_short(name, 24) for name in pair.names)
        yield f"  {names}"
        yield _line("  same answer", f"{pair.same.count:,} of {pair.same.of:,}, {pair.same.percent}")
        yield _line("  kappa", str(pair.kappa))


def joint_level(reviewers: int) -> float:
    """Return the level of the intervals behind verdicts, so that with 95 % all verdicts hold together."""
    return 1 - (1 - LEVEL) / (2 * max(1, reviewers))


def cases_needed(level: float) -> int:
    """Return the cases of each kind that a verdict needs: even if all were approved, fewer could not show that the shares are alike."""
    return max(LEAST_CASES, math.ceil(math.log((1 - level) / 2) / math.log1p(-ALIKE)))


def verdict_on(wrong: Share, right: Share, level: float) -> str:
    """Return what the approved shares of wrong and of right actions show about a reviewer.

    Args:
        wrong: approved, of the actions known to be wrong.
        right: approved, of the actions known to be right.
        level: the level of both intervals.
    """
    needed = cases_needed(level)
    for cases, word in ((wrong, "wrong"), (right, "right")):
        if cases.of < needed:
            return f"not enough cases: {cases.of:,} with a {word} action; {needed} are needed"
    (low_wrong, high_wrong), (low_right, high_right) = (clopper_pearson(s.count, s.of, level) for s in (wrong, right))
    figures = f"{wrong.count:,} of {wrong.of:,} wrong and {right.count:,} of {right.of:,} right actions approved"
    if low_right > high_wrong:
        return f"approves right actions more often than wrong ones ({figures})"
    if low_wrong > high_right:
        return f"approves wrong actions more often than right ones ({figures})"
    if max(high_right - low_wrong, high_wrong - low_right) <= ALIKE:
        return f"approves wrong and right actions alike ({figures})"
    return f"no verdict: the intervals overlap ({figures})"


def _line(label: str, value: str) -> str:
    return f"  {label:<18}{value}"


def _row(name: str, *cells: str) -> str:
    return f"{name:<{NAME}}" + "".join(f"{cell.replace('_', ' '):>10}" for cell in cells)


def _short(text: str, width: int) -> str:
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."
