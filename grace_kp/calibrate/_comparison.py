"""Figures of policies over the same decisions, and the result of a replay: differences, the first runs where they differ, as plain lines or JSON.

A decision is an index into columns of numbers, so that a hundred thousand of them fit into a few megabytes.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._assess import threshold_counts
from grace_kp.calibrate._binomial import clopper_pearson
from grace_kp.calibrate._samples import JsonRecord, json_form
from grace_kp.levels import InterventionLevel
from grace_kp.pages import count_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

LEVEL = 0.95
"""Level of all intervals."""
RESAMPLES = 2_000
LEAST_RUNS = 10
"""Runs below which resampling says nothing about a difference."""
MAX_CURVE = 1_001
"""Points of a risk-coverage curve; scores with three decimals need no more."""
DENIED = 4
"""The code of a denied action; the other codes are the severities of the levels."""
OUTCOMES = (*(level.value for level in InterventionLevel), "denied")
ASKS = InterventionLevel.CONFIRM.severity
DIFFERENCES = ("asked", "let_through", "caught", "needless")
"""The shares of each policy, and what is compared of two."""


def cut_text(text: str, width: int) -> str:
    """Return a string without control characters, cut to the width of a column."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."


@dataclass(frozen=True, slots=True)
class Share(JsonRecord):
    """A count, what it is a part of, and the exact Clopper-Pearson interval of the share at 95 %."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """The share, 0 to 1; None of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval; (0, 1) of nothing."""
        return clopper_pearson(self.count, self.of, LEVEL)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        low, high = self.interval
        return {"count": self.count, "of": self.of, "share": self.share, "low": low, "high": high}

    @property
    def percent(self) -> str:
        """The share and its interval as a string; a dash if there is nothing to share."""
        if not self.of:
            return "-"
        low, high = self.interval
        return f"{self.count / self.of:.1%} ({low:.1%} to {high:.1%})"


@dataclass(frozen=True, slots=True)
class RiskCoverage(JsonRecord):
    """The share of labelled decisions at or above each score, and the share of these that are wrong."""

    scores: tuple[float, ...] = ()
    coverage: tuple[float, ...] = ()
    risk: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures(JsonRecord):
    """The figures of one policy, as recorded or replayed."""

    name: str
    levels: Mapping[str, int]
    """Number of decisions by level; `denied` for actions that are blocked without asking."""
    asked: Share
    """Decisions that ask a person, of all."""
    let_through: Share
    """Wrong ones among the labelled decisions that proceed unasked."""
    caught: Share
    """Asked ones among the labelled decisions that are wrong."""
    needless: Share
    """Right ones among the labelled decisions that ask."""
    minutes: float
    """Time of reviewers for all questions."""
    price: float | None
    """The price of that time; None without an hourly price."""
    curve: RiskCoverage

    @property
    def decisions(self) -> int:
        """Number of decisions."""
        return sum(self.levels.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = ("name", "decisions", "levels", *DIFFERENCES, "minutes", "price")
        return {**{name: json_form(getattr(self, name)) for name in names}, "risk_coverage": self.curve.to_dict()}


@dataclass(frozen=True, slots=True)
class Difference(JsonRecord):
    """The figure of policy A less that of policy B, as a share, with a 95 % bootstrap interval that resamples runs."""

    value: float
    low: float | None
    """None below 10 runs, and where all resamples agree: that is too little data, not certainty."""
    high: float | None

    def __str__(self) -> str:
        around = "" if self.low is None or self.high is None else f"  ({self.low:+.1%} to {self.high:+.1%})"
        return f"{self.value:+.1%}{around}"


@dataclass(slots=True)
class PolicyOutcomes:
    """The decisions of one policy."""

    outcomes: array[int] = field(default_factory=lambda: array("b"))
    """Severity of the level, or `DENIED`."""
    scores: array[float] = field(default_factory=lambda: array("d"))

    def figures(self, name: str, labels: Ints, minutes: float, price_per_hour: float | None) -> PolicyFigures:
        """Return the figures of these decisions; a label is 1 for right, 0 for wrong, -1 for none."""
        outcomes, scores = np.array(self.outcomes, dtype=np.int64), np.array(self.scores, dtype=float)
        asks, proceeds = (outcomes >= ASKS) & (outcomes != DENIED), outcomes < ASKS
        wrong, labelled = labels == 0, labels >= 0
        wholes = (len(asks), *(int(whole.sum()) for whole in (proceeds & labelled, wrong, asks & labelled)))
        shares = map(Share, self.effects(labels).sum(axis=0).tolist(), wholes)
        time = minutes * int(asks.sum())
        return PolicyFigures(
            name=name,
            levels={word: int((outcomes == code).sum()) for code, word in enumerate(OUTCOMES)},
            **dict(zip(DIFFERENCES, shares, strict=True)),
            minutes=time,
            price=None if price_per_hour is None else time / 60 * price_per_hour,
            curve=_curve(scores[labelled], wrong[labelled]),
        )

    def effects(self, labels: Ints) -> Ints:
        """Return for each decision whether it asks, lets an error through, catches one, and asks needlessly."""
        outcomes = np.array(self.outcomes, dtype=np.int64)
        asks = (outcomes >= ASKS) & (outcomes != DENIED)
        effects = (asks, (outcomes < ASKS) & (labels == 0), asks & (labels == 0), asks & (labels == 1))
        return np.stack(effects, axis=1).astype(np.int64)


def _curve(scores: npt.NDArray[np.float64], wrong: npt.NDArray[np.bool_]) -> RiskCoverage:
    if not len(scores):
        return RiskCoverage()
    points = np.stack(threshold_counts(scores, (~wrong).astype(np.float64)))
    if points.shape[1] > MAX_CURVE:
        points = points[:, np.unique(np.linspace(0, points.shape[1] - 1, MAX_CURVE).round().astype(int))]
    thresholds, reached, errors = points
    found = thresholds, reached / len(scores), errors / reached
    return RiskCoverage(*(tuple(column.tolist()) for column in found))


def differences(a: PolicyOutcomes, b: PolicyOutcomes, labels: Ints, runs: Ints, seed: int) -> dict[str, Difference]:
    """Return A less B: questions as a share of all decisions, the other figures as shares of the labelled ones.

    Without labels, only the questions are compared.
    """
    more = a.effects(labels) - b.effects(labels)
    labelled = labels >= 0
    found = {"asked": _difference(more[:, 0], runs, seed)}
    if labelled.any():
        for place, name in enumerate(DIFFERENCES[1:], 1):
            found[name] = _difference(more[labelled, place], runs[labelled], seed)
    return found


def _difference(more: Ints, runs: Ints, seed: int) -> Difference:
    """Resample runs, each with all its decisions.

    Runs with equal sums and sizes are drawn together, which is the same bootstrap with far fewer numbers.
    """
    value = float(more.sum() / len(more))
    _, places = np.unique(runs, return_inverse=True)
    sizes, sums = np.bincount(places), np.bincount(places, weights=more).round().astype(np.int64)
    kinds, counts = np.unique(np.stack([sizes, sums], axis=1), axis=0, return_counts=True)
    number = len(sizes)
    if number < LEAST_RUNS:
        return Difference(value, None, None)
    drawn = np.random.default_rng(seed).multinomial(number, counts / number, size=RESAMPLES)
    low, high = np.quantile((drawn @ kinds[:, 1]) / (drawn @ kinds[:, 0]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(value, float(low), float(high)) if low < high else Difference(value, None, None)


LABEL = 20
CELL = 29
"""Columns of a name and of each policy in a line; together fewer than 80."""
FEW_DIFFER = 0.1
"""Difference between the labelled shares of asked and unasked decisions from which a report warns."""
_SHARES = {
    "asked": ("questions", "of all decisions"),
    "let_through": ("errors let through", "of the unasked"),
    "caught": ("errors caught", "of the wrong"),
    "needless": ("needless questions", "of the questions"),
}


@dataclass(frozen=True, slots=True)
class Differing(JsonRecord):
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

    def __str__(self) -> str:
        name = printable(self.trace.removeprefix("kp:trace:"))[:8]
        action = f"{cut_text(self.action, 18)}  " if self.action else ""
        label = (
            "" if self.label is None else "  " + {0.0: "wrong", 1.0: "right"}.get(self.label, f"{self.label:g} right")
        )
        return f"{name}  {action}{self.level_a} / {self.level_b}  {self.score_a:.3f} / {self.score_b:.3f}{label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(JsonRecord):
    """Both policies over the same decisions: gated actions, or runs as a whole."""

    _json = (
        "decisions", "runs", "right", "wrong", "partly_right", "a", "b", "differences", "differing", "differing_runs", "first", "left_out",
        "notes",
    )  # fmt: skip

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
        """Caveats for readers of the figures."""
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
        for figures in (self.a, self.b):
            if figures is None or not labelled:
                continue
            asks, proceeds = figures.asked.count, figures.levels["silent"] + figures.levels["notify"]
            asked, unasked = figures.needless.of / max(1, asks), figures.let_through.of / max(1, proceeds)
            if asks and proceeds and abs(asked - unasked) > FEW_DIFFER:
                found.append(
                    f"{figures.name}: {asked:.0%} of the asked decisions have a label, and {unasked:.0%} of the others; "
                    "for shares of all decisions, replay the traces and labels of cal.thin(cal.labels(store))"
                )
        return tuple(found)

    def lines(self, title: str) -> Iterator[str]:
        """Yield the figures as lines of fewer than 80 columns."""
        if not self.decisions:
            yield f"{title}: none that can be replayed"
        else:
            yield f"{title}: {count_text(self.decisions, 'decision')} of {count_text(self.runs, 'run')}, {self.right:,} right, {self.wrong:,} wrong"
            yield from self._figures(
                {letter: each for letter, each in (("A", self.a), ("B", self.b)) if each is not None}
            )
            yield from self._differences()
        for note in self.notes:
            yield f"  note: {note}"

    def _figures(self, by_letter: Mapping[str, PolicyFigures]) -> Iterator[str]:
        shown = list(by_letter.values())
        for letter, figures in by_letter.items():
            yield f"  {letter} = {cut_text(figures.name, 72)}"
        yield _line("policy", list(by_letter))
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
                effect = f"{_SHARES[name][0]}, of {'all decisions' if name == 'asked' else 'labelled'}"
                yield f"    {effect:<32}{difference}"
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
class ReplayReport(JsonRecord):
    """The decisions of two policies over recorded actions and runs.

    `actions` are gated actions. `runs` are runs without gated actions, each a single decision on its confidence.
    """

    _json = ("traces", "mismatched_a", "mismatched_b", "fitted", "unknown_fitted", "actions", "runs")

    traces: int
    """Number of traces that were read."""
    actions: Replayed
    runs: Replayed
    mismatched_a: int = 0
    """Traces whose agent, model or tools the profile of A was not fitted on; its promise does not hold for them."""
    mismatched_b: int = 0
    """The same for the profile of B."""
    fitted: int = 0
    """Traces that were left out, because the profile of A or B was fitted on them."""
    unknown_fitted: str = ""
    """`a`, `b` or `ab`: the policies whose learned profile does not state which runs it was fitted on, so that none was left out for it."""

    def summary(self) -> str:
        """Return the report as plain lines of at most 80 columns, notes aside."""
        lines = [count_text(self.traces, "trace")]
        for letter, count in (("A", self.mismatched_a), ("B", self.mismatched_b)):
            if count:
                lines.append(
                    f"note: {count_text(count, 'trace')} of an agent, model or tool that the profile of {letter} was not fitted on"
                )
        if self.fitted:
            lines.append(
                f"note: {count_text(self.fitted, 'trace')} left out, because a profile was fitted on them; include_fitted=True or "
                "--include-fitted replays them, too"
            )
        lines += [
            f"note: the profile of {letter.upper()} does not state which runs it was fitted on; these runs make it look too good"
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
