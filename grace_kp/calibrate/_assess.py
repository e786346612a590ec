"""The worth of a confidence on labelled runs: whether it separates right from wrong, whether it means what it says, and its risk at each threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grace_kp.calibrate._binomial import clopper_pearson
from grace_kp.calibrate._risk import OVERALL
from grace_kp.calibrate._samples import (
    JsonRecord,
    check_inside,
    group_numbers,
    independent,
    json_form,
    samples,
    weights_of,
)
from grace_kp.confidence import FREE, LOWERING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from grace_kp.calibrate._samples import Floats
    from grace_kp.confidence import ActionFeatures

    Counts = NDArray[np.intp]


BINS = 10
RESAMPLES = 1_000
LEAST_CLUSTERS = 10
"""Fewer clusters say nothing by resampling. The interval of the accuracy then counts each as one sample."""
LEAST_IN_CELL = 5
"""Tasks in each cell of a two-by-two table; with fewer, resamples that miss the rarest cell make intervals of odds ratios too short."""
MAX_CELLS = 20_000
"""Distinct confidences up to which intervals rest on the exact values; beyond it, on values rounded to this many steps."""


@dataclass(frozen=True, slots=True)
class Bin(JsonRecord):
    """One bar of a reliability diagram."""

    low: float
    high: float
    """The bin holds confidences from `low` to below `high`; the last includes 1."""
    n: int
    confidence: float
    """Mean confidence in the bin, 0 to 1."""
    accuracy: float
    """Share of correct samples in the bin, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Assessment(JsonRecord):
    """How good a confidence is, with bootstrap intervals."""

    auroc: float | None
    """Probability that a correct sample has a higher confidence than a wrong one, ties counted half: 0.5 says nothing, 1 separates all.
    None where all samples are correct, or all are wrong."""
    ece: float
    """Expected calibration error: mean distance of confidence and accuracy over the bins, 0 to 1. Few samples overstate it."""
    brier: float
    """Mean squared distance of confidence and label, 0 to 1; lower is better."""
    accuracy: float
    """Share of correct samples, 0 to 1."""
    n: int
    intervals: Mapping[str, tuple[float, float] | None]
    """Intervals of auroc, ece, brier and accuracy: percentiles of a bootstrap; for the accuracy of independent labels of 0 and 1, and of few
    clusters, Clopper-Pearson. None where resamples do not define the figure, or do not vary, and with fewer than ten clusters."""
    bins: tuple[Bin, ...]
    """The bins of equal width that hold samples."""
    by_group: Mapping[Any, Assessment] = field(default_factory=lambda: MappingProxyType({}))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; `by_group` only where there are groups."""
        return {name: json_form(getattr(self, name)) for name in self.__slots__[: None if self.by_group else -1]}

    def _repr_html_(self) -> str:
        from grace_kp.calibrate._html import assessment_html
        from grace_kp.pages import notebook

        return notebook(assessment_html(self))


def assess(
    confidence: Iterable[Any],
    correct: Iterable[Any],
    *,
    groups: Iterable[Any] | None = None,
    clusters: Iterable[Any] | None = None,
    weights: Iterable[Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Assessment:
    """Return how good a confidence is on labelled samples.

    Args:
        confidence: confidences from 0 to 1, of shape (n,).
        correct: labels: booleans, or numbers from 0 to 1; a fraction counts as partly correct.
        groups: a group of each sample, such as its model or source, to be assessed on its own too (`by_group`).
        clusters: what belongs together, such as trials of one task. The bootstrap then draws whole clusters, because samples of one
            cluster are alike and intervals would be too narrow.
        weights: weights of the samples, for example inverse probabilities with which they were labelled.
        level: coverage of the intervals, above 0 and below 1.
        seed: for the bootstrap.

    Raises:
        ValueError: a value cannot be used, or there are none.
    """
    scores, labels = samples(confidence, correct)
    check_inside("level", level)
    n = len(scores)
    inverse = np.ones(n) if weights is None else weights_of(weights, n)
    drawn = None if clusters is None else group_numbers("clusters", clusters, n)[0]
    whole = _assess_group(scores, labels, inverse, drawn, level, seed)
    if groups is None:
        return whole
    numbers, names = group_numbers("groups", groups, n)
    by_group = {}
    for number, name in enumerate(names):
        own = numbers == number
        within = None if drawn is None else np.unique(drawn[own], return_inverse=True)[1]
        by_group[name] = _assess_group(scores[own], labels[own], inverse[own], within, level, seed)
    return replace(whole, by_group=MappingProxyType(by_group))


def _assess_group(
    scores: Floats, labels: Floats, weights: Floats, clusters: Any, level: float, seed: int
) -> Assessment:
    total = weights.sum()
    order = np.argsort(scores, kind="stable")
    scores, labels, weights = scores[order], labels[order], weights[order]
    clusters = None if clusters is None else clusters[order]
    figures = {name: float(found[0]) for name, found in _Cells(scores, labels).figures(weights[None, :]).items()}
    place = _bin_of(scores)
    mass = np.bincount(place, weights, BINS)
    means = np.bincount(place, weights * scores, BINS), np.bincount(place, weights * labels, BINS)
    counts = np.bincount(place, minlength=BINS)
    bins = tuple(
        Bin(i / BINS, (i + 1) / BINS, int(counts[i]), float(means[0][i] / mass[i]), float(means[1][i] / mass[i]))
        for i in range(BINS)
        if counts[i]
    )
    auroc = figures["auroc"]
    tasks = None if clusters is None else int(clusters.max()) + 1
    intervals = _intervals(scores, labels, weights, clusters, level, seed)
    if tasks is not None and tasks < LEAST_CLUSTERS:
        intervals = dict.fromkeys(intervals)
    if tasks is not None and intervals["accuracy"] is None:
        intervals["accuracy"] = clopper_pearson(round(tasks * float(weights @ labels / total)), tasks, level)
    elif clusters is None and (weights == weights[0]).all() and np.isin(labels, (0, 1)).all():
        intervals["accuracy"] = clopper_pearson(int(labels.sum()), len(labels), level)
    return Assessment(
        auroc=None if np.isnan(auroc) else auroc,
        ece=figures["ece"],
        brier=figures["brier"],
        accuracy=float(weights @ labels / total),
        n=len(scores),
        intervals=MappingProxyType(intervals),
        bins=bins,
    )


def _bin_of(scores: Floats) -> Any:
    return np.minimum((scores * BINS).astype(np.int64), BINS - 1)


class _Cells:
    """Sorted samples for which the figures are computed under many weightings at once."""

    def __init__(self, scores: Floats, labels: Floats) -> None:
        self._scores, self._labels = scores, labels
        self._starts = np.flatnonzero(np.concatenate(([True], np.diff(scores) > 0)))
        self._bins = np.flatnonzero(np.concatenate(([True], np.diff(_bin_of(scores)) > 0)))

    def figures(self, weights: Floats) -> dict[str, Floats]:
        """Return the figures for weights of shape (m, n) as arrays of shape (m,); the AUROC is NaN where it is not defined."""
        labels, scores = self._labels, self._scores
        total = weights.sum(axis=1)
        right = weights * labels
        wrong = weights - right
        tied_right = np.add.reduceat(right, self._starts, axis=1)
        tied_wrong = np.add.reduceat(wrong, self._starts, axis=1)
        below = np.cumsum(tied_wrong, axis=1) - tied_wrong / 2
        pairs = right.sum(axis=1) * wrong.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            auroc = np.where(pairs > 0, (tied_right * below).sum(axis=1) / pairs, np.nan)
        gap = np.add.reduceat(weights * (labels - scores), self._bins, axis=1)
        return {
            "auroc": auroc,
            "ece": np.abs(gap).sum(axis=1) / total,
            "brier": weights @ ((labels - scores) ** 2) / total,
            "accuracy": right.sum(axis=1) / total,
        }


def _intervals(
    scores: Floats, labels: Floats, weights: Floats, clusters: Any, level: float, seed: int
) -> dict[str, tuple[float, float] | None]:
    """Return percentile intervals: each resample draws as many samples, or clusters, with replacement."""
    random = np.random.default_rng(seed)
    units = len(scores) if clusters is None else int(clusters.max()) + 1
    counts = None
    if clusters is None and units > MAX_CELLS:
        scores, labels, weights, counts = _merge_samples(scores, labels, weights)
    cells = _Cells(scores, labels)
    found: dict[str, list[Floats]] = {}
    batch = max(1, min(RESAMPLES, 2_000_000 // len(scores)))
    for start in range(0, RESAMPLES, batch):
        rows = min(batch, RESAMPLES - start)
        if counts is not None:
            drawn = random.multinomial(units, counts / units, size=rows).astype(float)
        else:
            picks = random.integers(0, units, size=(rows, units))
            drawn = np.stack([np.bincount(row, minlength=units) for row in picks]).astype(float)
            drawn = drawn if clusters is None else drawn[:, clusters]
        drawn = drawn[drawn.sum(axis=1) > 0]
        for name, values in cells.figures(drawn * weights).items():
            found.setdefault(name, []).append(values)
    tail = (1 - level) / 2
    intervals: dict[str, tuple[float, float] | None] = dict.fromkeys(found)
    for name, batches in found.items():
        values = np.concatenate(batches)
        values = values[~np.isnan(values)]
        if len(values) >= RESAMPLES / 2:
            low, high = np.quantile(values, (tail, 1 - tail))
            intervals[name] = (float(low), float(high)) if high > low else None
    return intervals


def _merge_samples(scores: Floats, labels: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Merge samples of nearly equal confidence and label; return the confidence, label, mean weight and size of each cell."""
    keys = np.round(scores * (MAX_CELLS // 4)).astype(np.int64) * 101 + np.round(labels * 100).astype(np.int64)
    _, first, place, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    mean_weights = np.bincount(place, weights) / counts
    order = np.argsort(scores[first], kind="stable")
    first = first[order]
    return scores[first], labels[first], mean_weights[order], counts[order].astype(float)


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """One threshold of the curve."""

    confidence: float
    """The threshold: runs with this confidence or more act."""
    coverage: float
    """Their share of the sample, 0 to 1."""
    risk: float
    """The share of them that is wrong; of all runs for an overall promise."""
    low: float
    """From `low` to `high`: the Clopper-Pearson interval of the risk at this threshold alone."""
    high: float


def risk_curve(
    confidence: Iterable[Any],
    correct: Iterable[Any],
    promise: Literal["selective", "overall"] = "selective",
    *,
    groups: Iterable[Any] | None = None,
    weights: Iterable[Any] | None = None,
    seed: int = 0,
    points: int = 60,
    level: float = 0.95,
) -> tuple[RiskPoint, ...]:
    """Return the risk at each threshold, from strict to mild. The other arguments are those of `risk_thresholds`.

    Args:
        promise: what the risk is a share of: "selective" of the runs that act, "overall" of all.
        points: at most so many thresholds, from 2; evenly spread where there are more.
        level: coverage of the intervals, above 0 and below 1.

    Raises:
        ValueError: an argument cannot be used, or no label of 0 or 1 is left.
    """
    scores, labels = samples(confidence, correct)
    kept, _ = independent(labels, groups, weights, seed)
    thresholds, reached, errors = threshold_counts(scores[kept], labels[kept])
    total = int(reached[-1])
    places = np.unique(np.linspace(0, len(reached) - 1, min(points, len(reached))).round().astype(np.intp))
    found = []
    for place in places.tolist():
        count, wrong = int(reached[place]), int(errors[place])
        of = total if promise == OVERALL else count
        low, high = clopper_pearson(wrong, of, level)
        found.append(
            RiskPoint(confidence=float(thresholds[place]), coverage=count / total, risk=wrong / of, low=low, high=high)
        )
    return tuple(found)


def threshold_counts(scores: Floats, labels: Floats) -> tuple[Floats, Counts, Floats]:
    """Return the distinct confidences from strict to mild, how many samples reach each, and how many of those are wrong."""
    order = np.argsort(-scores, kind="stable")
    ordered, wrong = scores[order], np.cumsum(1.0 - labels[order])
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    return ordered[ends], ends + 1, wrong[ends]


def bin_interval(found: Bin, level: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of the share of correct samples in a bin, for independent labels of 0 and 1 with equal weights."""
    return clopper_pearson(round(found.accuracy * found.n), found.n, level)


NOWHERE = {"nowhere": "an identifier or address without a source"}


@dataclass(frozen=True, slots=True)
class Predictor(JsonRecord):
    """How often actions with a feature are wrong, beside all others."""

    name: str
    words: str
    flagged: int
    """Labelled actions with the feature: where it is a figure, above its median, or at it where nothing is above."""
    n: int
    """All labelled actions."""
    wrong: int
    """How many of the flagged are wrong."""
    wrong_others: int
    """How many of the others are wrong."""
    odds_ratio: float
    """Odds of an error among the flagged, divided by those among the others; half an action is added to each of the four counts if one is 0."""
    interval: tuple[float, float] | None
    """Its 95 % interval over resamples of whole tasks; None where fewer than ten tasks have the feature or lack it, or fewer than five
    have an error, or a right action, with or without it."""

    @property
    def clearness(self) -> float:
        """How far the interval is from 1, in log-odds; below 0 if it includes 1."""
        low, high = self.interval or (0.0, math.inf)
        return max(math.log(low) if low else -math.inf, -math.log(high))

    @property
    def odds(self) -> str:
        """The odds ratio with its interval: "5.5 (2.1 to 20)"."""
        shown, *ends = (
            f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}" for value in (self.odds_ratio, *(self.interval or ()))
        )
        return f"{shown} ({' to '.join(ends)})" if ends else shown

    @property
    def shares(self) -> tuple[str, str]:
        """The share of wrong ones among the flagged, and among the others."""
        return f"{self.wrong / self.flagged:.0%}", f"{self.wrong_others / (self.n - self.flagged):.0%}"

    def __str__(self) -> str:
        wrong, else_wrong = self.shares
        has = "has" if self.flagged == 1 else "have"
        return f"{self.words}: {self.flagged:,} of {self.n:,} actions {has} it: {wrong} wrong, others {else_wrong}; odds ratio {self.odds}"


def predictors_of(
    actions: Sequence[ActionFeatures], labels: Floats, groups: Sequence[Hashable], seed: int = 0
) -> tuple[Predictor, ...]:
    """Return what predicts errors, the clearest first: by the end of the interval that is nearer to 1. Resamples are drawn of tasks, `groups`.
    Only labels of 1 and 0 count."""
    kept = np.flatnonzero(np.isin(labels, (0, 1))).tolist()
    if not kept:
        return ()
    wrong, numbers = labels[kept] == 0, group_numbers("groups", groups, len(labels))[0]
    tasks = np.unique(numbers[kept], return_inverse=True)[1]
    values = np.array(
        [[*actions[place].values, any(each.name == "nowhere" for each in actions[place].alarms)] for place in kept]
    )
    count, medians = int(tasks.max()) + 1, np.median(values, axis=0)
    columns = np.where((values > medians).any(axis=0), values > medians, values == medians).T
    cells = np.stack([columns & wrong, columns & ~wrong, ~columns & wrong, ~columns & ~wrong], axis=1)
    per_task = np.array([[np.bincount(tasks, cell, count) for cell in four] for four in cells])
    random, chances = np.random.default_rng(seed), np.full(count, 1 / count)
    draws = (random.multinomial(count, chances, RESAMPLES // 10).T for _ in range(10))  # all at once need much memory
    totals = np.concatenate([per_task.sum(axis=2, keepdims=True), *(per_task @ drawn for drawn in draws)], axis=2)
    a, b, c, d = np.moveaxis(totals + 0.5 * (totals == 0).any(axis=1, keepdims=True), 1, 0)
    ratios = a * d / (b * c)
    lows, highs = np.quantile(ratios[:, 1:], (0.025, 0.975), axis=1).tolist()
    found = []
    for place, (name, words) in enumerate((LOWERING | FREE | NOWHERE).items()):
        flagged, others = per_task[place, :2], per_task[place, 2:]
        if others.any():
            fewest = min(flagged.any(axis=0).sum(), others.any(axis=0).sum())
            is_enough = fewest >= LEAST_CLUSTERS and (per_task[place] > 0).sum(axis=1).min() >= LEAST_IN_CELL
            counts = (int(flagged.sum()), len(kept), int(flagged[0].sum()), int(others[0].sum()))
            interval = (lows[place], highs[place]) if is_enough else None
            found.append(Predictor(name, words, *counts, float(ratios[place, 0]), interval))
    return tuple(sorted(found, key=lambda each: -each.clearness))
