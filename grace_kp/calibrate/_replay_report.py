"""What a replay found: figures of both policies, their differences, the first runs where they differ, and all of it as text or JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.calibrate._comparison import OUTCOMES, Difference, PolicyFigures, Share, cut_text
from grace_kp.pages import count_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LABEL = 20
CELL = 29
"""Columns of a name and of each policy in the text; together fewer than 80."""
FEW_DIFFER = 0.1
"""Difference between the labelled shares of asked and unasked decisions from which a report warns."""
_SHARES = {
    "asked": ("questions", "of all decisions"),
    "let_through": ("errors let through", "of the unasked"),
    "caught": ("errors caught", "of the wrong"),
    "needless": ("needless questions", "of the questions"),
}
_EFFECTS = {
    "asked": "questions, of all decisions",
    "let_through": "errors let through, of labelled",
    "caught": "errors caught, of labelled",
    "needless": "needless questions, of labelled",
}


@dataclass(frozen=True, slots=True)
class Differing:
    """A decision on which the policies differ, the first of its run."""

    trace: str
    action: str
    """The name of the gated action; empty for a run as a whole."""
    level_a: str
    level_b: str
    score_a: float
    score_b: float
    label: float | None
    """Whether the run was right: 1, 0 or in between; None if unknown."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        name = printable(self.trace.removeprefix("kp:trace:"))[:8]
        action = f"{cut_text(self.action, 18)}  " if self.action else ""
        label = "" if self.label is None else f"  {_word(self.label)}"
        return f"{name}  {action}{self.level_a} / {self.level_b}  {self.score_a:.3f} / {self.score_b:.3f}{label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Both policies over the same decisions: gated actions, or runs as a whole."""

    runs: int
    """Number of runs that the decisions come from."""
    right: int
    """Decisions of runs that are labelled right."""
    wrong: int
    """Decisions of runs that are labelled wrong."""
    partly_right: int
    """Decisions of runs with a label between 0 and 1, which counts as neither."""
    a: PolicyFigures | None
    """None where nothing was recorded that could be compared: nothing is decided about a run as a whole."""
    b: PolicyFigures | None
    differences: Mapping[str, Difference] = field(default_factory=dict)
    """A less B: `asked` as a share of all decisions; with labels also `let_through`, `caught` and `needless` as shares of the labelled."""
    differing: int = 0
    """Number of decisions on which the levels differ."""
    differing_runs: int = 0
    first: tuple[Differing, ...] = ()
    """The first differing decision of each of the first 20 runs that have one."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of decisions that could not be replayed, by reason."""

    @property
    def decisions(self) -> int:
        """Number of decisions that were replayed."""
        return max((figures.decisions for figures in (self.a, self.b) if figures is not None), default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures has to know."""
        found = [f"{count:,} left out: {reason}" for reason, count in self.left_out.items()]
        labelled = self.right + self.wrong
        if self.decisions and not labelled:
            found.append(
                "no labels: errors cannot be counted; labels are the feedback in the traces, or labels= in Python"
            )
        if self.partly_right:
            found.append(
                f"{count_text(self.partly_right, 'decision')} with a label between 0 and 1, which counts as neither right nor wrong"
            )
        if self.decisions > self.runs:
            found.append(
                f"{self.decisions:,} decisions come from {count_text(self.runs, 'run')}; a label is that of the whole run, and the exact intervals "
                "take decisions for independent"
            )
        found += [
            f"{name}: {asked:.0%} of the asked decisions have a label, and {unasked:.0%} of the others; "
            "for shares of all decisions, replay the traces and labels of cal.thin(cal.labels(store))"
            for name, asked, unasked in self._uneven_labels()
        ]
        return tuple(found)

    def _uneven_labels(self) -> Iterator[tuple[str, float, float]]:
        for figures in (self.a, self.b):
            if figures is None or not self.right + self.wrong:
                continue
            asks, proceeds = figures.asked.count, figures.levels["silent"] + figures.levels["notify"]
            if asks and proceeds:
                asked, unasked = figures.needless.of / asks, figures.let_through.of / proceeds
                if abs(asked - unasked) > FEW_DIFFER:
                    yield figures.name, asked, unasked

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "decisions": self.decisions,
            **{name: getattr(self, name) for name in ("runs", "right", "wrong", "partly_right")},
            "a": None if self.a is None else self.a.to_dict(),
            "b": None if self.b is None else self.b.to_dict(),
            "differences": {name: difference.to_dict() for name, difference in self.differences.items()},
            "differing": self.differing,
            "differing_runs": self.differing_runs,
            "first": [differing.to_dict() for differing in self.first],
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }

    def lines(self, title: str) -> Iterator[str]:
        """Yield the figures as lines of fewer than 80 columns."""
        shown = [figures for figures in (self.a, self.b) if figures is not None]
        if not self.decisions:
            yield f"{title}: none that can be replayed"
        else:
            yield f"{title}: {count_text(self.decisions, 'decision')} of {count_text(self.runs, 'run')}, {self.right:,} right, {self.wrong:,} wrong"
            yield from self._figures(shown)
            yield from self._differences()
        for note in self.notes:
            yield f"  note: {note}"

    def _figures(self, shown: list[PolicyFigures]) -> Iterator[str]:
        for letter, figures in (("A", self.a), ("B", self.b)):
            if figures is not None:
                yield f"  {letter} = {cut_text(figures.name, 72)}"
        letters = [letter for letter, figures in (("A", self.a), ("B", self.b)) if figures is not None]
        yield _line("policy", letters)
        for level in OUTCOMES:
            if level != "denied" or any(figures.levels[level] for figures in shown):
                yield _line(level, [f"{figures.levels[level]:,}" for figures in shown])
        for name, (label, whole) in _SHARES.items():
            shares: list[Share] = [getattr(figures, name) for figures in shown]
            if name == "asked" or self.right + self.wrong:
                yield _line(label, [f"{share.count:,} of {share.of:,}" for share in shares])
                yield _line(f"  {whole}", [share.percent for share in shares])
        yield _line("reviewer hours", [f"{figures.minutes / 60:,.1f}" for figures in shown])
        if any(figures.price is not None for figures in shown):
            yield _line("price", ["-" if figures.price is None else f"{figures.price:,.2f}" for figures in shown])

    def _differences(self) -> Iterator[str]:
        if self.differences:
            yield "  A less B (95 % bootstrap interval over runs)"
            for name, difference in self.differences.items():
                yield f"    {_EFFECTS[name]:<32}{difference}"
        if self.a is None or self.b is None:
            return
        runs = f"in {count_text(self.differing_runs, 'run')}"
        yield (
            f"  the levels differ for {count_text(self.differing, 'decision')} {runs}"
            if self.differing
            else "  the levels never differ"
        )
        for differing in self.first:
            yield f"    {differing}"


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What two policies do with recorded decisions.

    `actions` are gated actions. `runs` are runs without gated actions, each a single decision on its confidence.
    """

    traces: int
    """Number of traces that were read."""
    actions: Replayed
    runs: Replayed
    mismatched_a: int = 0
    """Traces that differ in agent, model or tools from those that the profile of A was fitted on: its promise does not hold for them."""
    mismatched_b: int = 0
    """The same for the profile of B."""
    fitted: int = 0
    """Traces that were left out, because the profile of A or B was fitted on them."""
    unknown_fitted: str = ""
    """`a`, `b` or `ab`: the policies whose learned profile does not state which runs it was fitted on, so that none was left out for it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("traces", "mismatched_a", "mismatched_b", "fitted", "unknown_fitted")
        counts = {name: getattr(self, name) for name in names}
        return {**counts, "actions": self.actions.to_dict(), "runs": self.runs.to_dict()}

    def summary(self) -> str:
        """Return the report as text of at most 80 columns, notes aside."""
        lines = [count_text(self.traces, "trace")]
        for letter, count in (("A", self.mismatched_a), ("B", self.mismatched_b)):
            if count:
                lines.append(
                    f"note: {count_text(count, 'trace')} of another agent, model or tool than those that the profile of {letter} was fitted on"
                )
        if self.fitted:
            lines.append(
                f"note: {count_text(self.fitted, 'trace')} left out, because a profile was fitted on them; include_fitted=True or "
                "--include-fitted replays them, too"
            )
        lines += [
            f"note: the profile of {letter.upper()} does not state which runs it was fitted on; those that it was fitted on make it look too good"
            for letter in self.unknown_fitted
        ]
        for title, part in (("gated actions", self.actions), ("runs without gated actions", self.runs)):
            if part.decisions or part.left_out:
                lines += ["", *part.lines(title)]
        if "" not in lines:
            lines.append(
                f"nothing to replay: there are neither {'other ' if self.fitted else ''}gated actions nor runs"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def _line(label: str, cells: list[str]) -> str:
    return f"  {label:<{LABEL}}{''.join(f'{cell:<{CELL}}' for cell in cells)}".rstrip()


def _word(label: float) -> str:
    return {0.0: "wrong", 1.0: "right"}.get(label, f"{label:g} right")
