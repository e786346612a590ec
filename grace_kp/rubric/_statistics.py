"""How sure a difference is: a paired permutation test, bootstrap intervals, and how many more runs would settle it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.rubric._summary import Variant

RESAMPLES = 10_000
EXACT_UP_TO = 14
"""Pairs up to which all sign changes are tried, 16,384 at the most."""
LEVEL = 0.95
POWER = 0.8
MAX_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap interval."""

    low: float
    high: float
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a difference besides the rule."""

    p_value: float
    """Two-sided, of a paired permutation test over the runs of the same document; 1.0 where nothing can be paired."""
    pairs: int
    mean_difference: Interval
    """Of the variant's mean less the best's."""
    category_differences: Mapping[str, Interval]
    further_runs: int | None
    """How many more runs of each variant would make a difference as seen here significant at 0.05 with a power of 0.8; 0 where it
    is already, None where the means are equal or more than 10,000 would be needed."""


def evidence_of(best: Variant, variant: Variant, *, seed: int = 0) -> Evidence:
    """Evidence for the difference of two variants over the same test set."""
    pairs = _pairs(best, variant)
    p_value = permutation_p([new - old for old, new in pairs], seed=seed)
    categories = {
        category: bootstrap_difference(old, new, seed=seed)
        for category, old in best.category_scores().items()
        if old and (new := variant.category_scores().get(category))
    }
    return Evidence(
        p_value=p_value,
        pairs=len(pairs),
        mean_difference=bootstrap_difference(best.scores, variant.scores, seed=seed),
        category_differences=MappingProxyType(categories),
        further_runs=further_runs(best.scores, variant.scores, p_value),
    )


def _pairs(best: Variant, variant: Variant) -> list[tuple[float, float]]:
    """Runs of the same document, in their order; what one of the two has more is left out."""
    found: list[tuple[float, float]] = []
    for document in dict.fromkeys(run.document for run in best.runs):
        old = [run.score for run in best.runs if run.document == document]
        new = [run.score for run in variant.runs if run.document == document]
        found += zip(old, new, strict=False)
    return found


def permutation_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """The two-sided p-value of a paired permutation test: how often signs drawn by chance give a sum as far from 0.

    Exact up to 14 pairs, from 10,000 draws beyond; the observed arrangement counts as one of them. 1.0 without pairs.
    """
    values = [value for value in differences if value]
    if not values:
        return 1.0
    seen = abs(math.fsum(values)) - 1e-12
    if len(values) <= EXACT_UP_TO:
        signs = itertools.product((1, -1), repeat=len(values))
        sums = [abs(math.fsum(sign * value for sign, value in zip(one, values, strict=True))) for one in signs]
        return sum(total >= seen for total in sums) / len(sums)
    import numpy as np

    draws = np.random.default_rng(seed).choice((-1.0, 1.0), size=(RESAMPLES, len(values)))
    reached = int((np.abs(draws @ np.asarray(values)) >= seen).sum())
    return (reached + 1) / (RESAMPLES + 1)


def bootstrap_difference(old: Sequence[float], new: Sequence[float], *, seed: int = 0) -> Interval:
    """A percentile bootstrap interval for mean(new) − mean(old), each resampled for itself.

    Raises:
        ValueError: one of them is empty.
    """
    if not old or not new:
        raise ValueError("an interval needs at least one value on each side")
    import numpy as np

    draw = np.random.default_rng(seed)
    before, after = np.asarray(old, float), np.asarray(new, float)
    means = [values[draw.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1) for values in (before, after)]
    low, high = np.quantile(means[1] - means[0], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def further_runs(old: Sequence[float], new: Sequence[float], p_value: float) -> int | None:
    """How many more runs of each variant would settle a difference as large as the one seen; see `Evidence.further_runs`."""
    if p_value < 1 - LEVEL:
        return 0
    difference = math.fsum(new) / len(new) - math.fsum(old) / len(old)
    spread = _variance(old) + _variance(new)
    if abs(difference) < 1e-12:
        return None
    normal = NormalDist()
    reach = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)
    # A permutation test of n pairs has no p-value below 2/2^n, so six pairs are needed in any case.
    needed = max(6, math.ceil(reach**2 * spread / difference**2))
    if needed > MAX_RUNS:
        return None
    return max(0, needed - min(len(old), len(new)))


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    middle = math.fsum(values) / len(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
