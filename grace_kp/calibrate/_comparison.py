"""Figures of policies over the same decisions: levels, questions, errors let through and caught, the risk-coverage curve, differences.

A decision is an index into columns of numbers, so that a hundred thousand of them fit into a few megabytes.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from grace_kp.calibrate._assess import threshold_counts
from grace_kp.calibrate._binomial import clopper_pearson
from grace_kp.levels import InterventionLevel
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

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
"""The code of a denied action, beside the severities of the levels."""
OUTCOMES = (*(level.value for level in InterventionLevel), "denied")
ASKS = InterventionLevel.CONFIRM.severity


def cut_text(text: str, width: int) -> str:
    """Return a text without control characters, cut to the width of a column."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 3] + "..."


@dataclass(frozen=True, slots=True)
class Share:
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
        """The share and its interval as text; a dash of nothing."""
        if not self.of:
            return "-"
        low, high = self.interval
        return f"{self.count / self.of:.1%} ({low:.1%} to {high:.1%})"


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The share of labelled decisions at or above each score, and the share of these that are wrong."""

    scores: tuple[float, ...] = ()
    coverage: tuple[float, ...] = ()
    risk: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"scores": list(self.scores), "coverage": list(self.coverage), "risk": list(self.risk)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """What a policy did, or would have done."""

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
        shares = {name: getattr(self, name).to_dict() for name in ("asked", "let_through", "caught", "needless")}
        figures = {"name": self.name, "decisions": self.decisions, "levels": dict(self.levels), **shares}
        return {**figures, "minutes": self.minutes, "price": self.price, "risk_coverage": self.curve.to_dict()}


@dataclass(frozen=True, slots=True)
class Difference:
    """What policy A has more than policy B, as a share, with a bootstrap interval at 95 % that resamples runs."""

    value: float
    low: float | None
    """None below 10 runs, and where all resamples agree: that is too little data, not certainty."""
    high: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"value": self.value, "low": self.low, "high": self.high}

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
        asks, proceeds = outcomes >= ASKS, outcomes < ASKS
        asks &= outcomes != DENIED
        right, wrong, labelled = labels == 1, labels == 0, labels >= 0
        time = minutes * int(asks.sum())
        return PolicyFigures(
            name=name,
            levels={word: int((outcomes == code).sum()) for code, word in enumerate(OUTCOMES)},
            asked=_share(asks, np.ones(len(asks), dtype=bool)),
            let_through=_share(wrong, proceeds & labelled),
            caught=_share(asks, wrong),
            needless=_share(right, asks & labelled),
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


def _share(part: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> Share:
    return Share(int((part & whole).sum()), int(whole.sum()))


def _curve(scores: npt.NDArray[np.float64], wrong: npt.NDArray[np.bool_]) -> RiskCoverage:
    if not len(scores):
        return RiskCoverage()
    points = np.stack(threshold_counts(scores, (~wrong).astype(np.float64)))
    if points.shape[1] > MAX_CURVE:
        points = points[:, np.unique(np.linspace(0, points.shape[1] - 1, MAX_CURVE).round().astype(int))]
    thresholds, reached, errors = points
    found = thresholds, reached / len(scores), errors / reached
    return RiskCoverage(*(tuple(column.tolist()) for column in found))


DIFFERENCES = ("asked", "let_through", "caught", "needless")


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
    shares = (drawn @ kinds[:, 1]) / (drawn @ kinds[:, 0])
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Difference(value, float(low), float(high)) if low < high else Difference(value, None, None)
