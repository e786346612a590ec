"""Risk against coverage: which share of the runs acts at a threshold, and which share of them is wrong; and how sure both figures are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grace_kp.calibrate._binomial import clopper_pearson
from grace_kp.calibrate._risk import OVERALL
from grace_kp.calibrate._samples import independent, samples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from grace_kp.calibrate._assess import Bin
    from grace_kp.calibrate._samples import Floats

    Counts = NDArray[np.intp]


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
    """Return the risk at each threshold, from strict to mild.

    Args:
        confidence: confidences from 0 to 1, of shape (n,).
        correct: whether each was correct: booleans, or 0 and 1. Fractions are left out.
        promise: what the risk is a share of: "selective" of the runs that act, "overall" of all.
        groups: what runs belong together, such as trials of one task; one of each is drawn.
        weights: inverse probabilities with which the labels were collected; the sample is thinned to equal ones.
        seed: for both draws.
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
    """Return the distinct confidences from strict to mild, how many samples reach each, and how many of those are wrong.

    Args:
        scores: confidences, of shape (n,) with n above 0.
        labels: 1 where a sample is correct, else 0, of the same shape.
    """
    order = np.argsort(-scores, kind="stable")
    ordered, wrong = scores[order], np.cumsum(1.0 - labels[order])
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    return ordered[ends], ends + 1, wrong[ends]


def bin_interval(found: Bin, level: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of the share of correct samples in a bin.

    It holds for independent labels of 0 and 1 with equal weights.

    Args:
        found: a bin of an `Assessment`.
        level: coverage of the interval, above 0 and below 1.
    """
    return clopper_pearson(round(found.accuracy * found.n), found.n, level)
