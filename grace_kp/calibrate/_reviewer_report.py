"""The report on reviewers: figures of each, and agreement among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from grace_kp.calibrate._agreement import Agreement
    from grace_kp.calibrate._comparison import Share

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
    feedback: Mapping[str, int]
    """Labels that this reviewer gave to runs: `right`, `wrong`, `between`."""

    @property
    def answered(self) -> int:
        """Number of answers."""
        return self.approved_share.of

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "answered": self.answered,
            **{name: getattr(self, name) for name in _COUNTS},
            "approved_share": self.approved_share.to_dict(),
            "seconds": None if self.seconds is None else self.seconds.to_dict(),
            "feedback": dict(self.feedback),
        }

    def lines(self) -> Iterator[str]:
        """Yield the figures beside the counts as lines of at most 80 columns."""
        yield _short(self.name, 78)
        if self.answered:
            yield _line("approved", f"{self.approved:,} of {self.answered:,}, {self.approved_share.percent}")
        if self.seconds is not None:
            around = f"{self.seconds.lower:,.1f} to {self.seconds.upper:,.1f} s"
            yield _line(
                "time to decide", f"median {self.seconds.median:,.1f} s, middle half {around} ({self.seconds.count:,})"
            )
        if any(self.feedback.values()):
            between = f", {self.feedback['between']:,} in between" if self.feedback["between"] else ""
            yield _line("labels stated", f"{self.feedback['right']:,} right, {self.feedback['wrong']:,} wrong{between}")


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
        """Return the report as text of at most 80 columns."""
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


def _line(label: str, value: str) -> str:
    return f"  {label:<18}{value}"


def _row(name: str, *cells: str) -> str:
    return f"{name:<{NAME}}" + "".join(f"{cell.replace('_', ' '):>10}" for cell in cells)


def _short(text: str, width: int) -> str:
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."
