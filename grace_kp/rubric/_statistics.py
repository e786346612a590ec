"""How sure a difference is: a paired permutation test, bootstrap intervals, and how many more runs would settle it.

Paired are the problems: what the runs of one variant found of a problem on average, and what those of the other did. For each document
its bonuses less its penalties are a pair too. So neither the order of the runs matters nor how many there are of each document.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance
from typing import TYPE_CHECKING, Any

from grace_kp.rubric._judgement import BONUS, MAX_BONUSES, PENALTY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.rubric._judgement import Run
    from grace_kp.rubric._summary import Variant

RESAMPLES = 10_000
EXACT_UP_TO = 14
"""Pairs up to which all sign changes are tried, 16,384 at the most."""
LEVEL = 0.95
POWER = 0.8
MAX_RUNS = 10_000
_SLICE = 1_000


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
    """Two-sided, of a paired permutation test over the problems; 1.0 where nothing differs."""
    pairs: int
    """How many pairs there are, those that do not differ included."""
    mean_difference: Interval | None
    """Of the variant's mean less the best's; None where there is but one problem and one run of it."""
    category_differences: Mapping[str, Interval | None]
    """The same for the rate of each category."""
    further_runs: int | None
    """How many more runs of each variant, over all documents, would make a difference as seen here significant at 0.05 with a power of 0.8.
    0 where it is already; None where there is no difference, where one run of each document does not tell how much runs differ, and where
    no number of runs would do, because there are fewer than six pairs or the problems speak against each other: more problems are needed."""

    @property
    def further_runs_text(self) -> str:
        """`further_runs` as reports show it."""
        return "cannot be told" if self.further_runs is None else f"{self.further_runs:,}"


@dataclass(frozen=True, slots=True)
class _Pair:
    """What two variants came to with one problem."""

    difference: float
    noise: float | None
    """The variance that the difference has because runs differ, times the runs of a document; None with one run."""


def evidence_of(best: Variant, variant: Variant, *, seed: int = 0) -> Evidence:
    """Evidence for the difference of two variants over the same test set."""
    pairs = _pairs(best, variant)
    p_value = permutation_p([pair.difference for pair in pairs], seed=seed)
    return Evidence(
        p_value=p_value,
        pairs=len(pairs),
        mean_difference=_interval((variant, best), None, seed),
        category_differences={
            category: _interval((variant, best), category, seed) for category in best.test_set.categories
        },
        further_runs=_further_runs(pairs, best, variant, p_value),
    )


def mean_interval(variant: Variant, *, seed: int = 0) -> Interval | None:
    """An interval for the mean of one variant, of the same kind as those for differences."""
    return _interval((variant,), None, seed)


def rate_interval(variant: Variant, category: str, *, seed: int = 0) -> Interval | None:
    """An interval for the detection rate of one category."""
    return _interval((variant,), category, seed)


def permutation_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """The two-sided p-value of a paired permutation test: how often signs drawn by chance give a sum as far from 0.

    Exact up to 14 pairs, from 10,000 draws beyond; the observed arrangement counts as one of them. 1.0 without pairs.
    """
    values = [value for value in differences if value]
    if not values:
        return 1.0
    seen = abs(math.fsum(values)) - 1e-9 * math.fsum(map(abs, values))
    if len(values) <= EXACT_UP_TO:
        signs = itertools.product((1, -1), repeat=len(values))
        sums = [abs(math.fsum(sign * value for sign, value in zip(one, values, strict=True))) for one in signs]
        return sum(total >= seen for total in sums) / len(sums)
    import numpy as np

    draws = np.random.default_rng(seed).choice((-1.0, 1.0), size=(RESAMPLES, len(values)))
    reached = int((np.abs(draws @ np.asarray(values)) >= seen).sum())
    return (reached + 1) / (RESAMPLES + 1)


def extra_of(run: Run) -> float:
    """What bonuses and penalties add to the score of a run."""
    return BONUS * min(run.bonuses, MAX_BONUSES) - PENALTY * run.penalties


def _runs_of(variant: Variant) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in variant.runs:
        found.setdefault(run.document, []).append(run)
    return found


def _pairs(best: Variant, variant: Variant) -> list[_Pair]:
    old, new = _runs_of(best), _runs_of(variant)
    pairs = []
    for document in best.test_set.documents:
        if document.id in old and document.id in new:
            before, after = old[document.id], new[document.id]
            pairs += [
                _pair(*([run.judgements[problem.id].value for run in runs] for runs in (before, after)))
                for problem in document.problems
            ]
            extras = [[extra_of(run) for run in runs] for runs in (before, after)]
            if any(extras[0]) or any(extras[1]):
                pairs.append(_pair(*extras))
    return pairs


def _pair(before: list[float], after: list[float]) -> _Pair:
    noise = None
    if len(before) > 1 and len(after) > 1:
        noise = variance(before) + variance(after)
    return _Pair(fmean(after) - fmean(before), noise)


def _further_runs(pairs: Sequence[_Pair], best: Variant, variant: Variant, p_value: float) -> int | None:
    """See `Evidence.further_runs`. The variance of the pairs' differences has a part that more runs make smaller, and one that they do not."""
    if p_value < 1 - LEVEL:
        return 0
    if any(pair.noise is None for pair in pairs):
        return None
    # Of pairs that differ, or may come to, n can have no p-value below 2/2^n, however many runs there are.
    moving = sum(bool(pair.difference or pair.noise) for pair in pairs)
    if 2 / 2**moving >= 1 - LEVEL or not any(pair.noise for pair in pairs):
        return None
    seen = abs(fmean(pair.difference for pair in pairs))
    if seen < 1e-12:
        return None
    documents = len(_runs_of(best))
    each = min(len(best.runs), len(variant.runs)) / documents
    noise = fmean(pair.noise or 0.0 for pair in pairs)
    between = max(0.0, variance([pair.difference for pair in pairs]) - noise / each)
    normal = NormalDist()
    reach = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)
    room = len(pairs) * (seen / reach) ** 2 - between
    if room <= 0:
        return None
    needed = max(1, math.ceil(noise / room - each)) * documents
    return needed if needed <= MAX_RUNS else None


def _interval(variants: Sequence[Variant], category: str | None, seed: int) -> Interval | None:
    """Of the mean score, or of a category's rate: of one variant, or of the first less the second.

    Resampled are problems (the same for both variants) and, within each document, the runs of each variant. For the mean the problems are
    those of each document; for a category, which may have but one in each, those of all documents together.

    None where nothing differs between resamples: that says how little there is to resample, and not that it is certain.
    """
    import numpy as np

    draw = np.random.default_rng(seed)
    tables = [_tables(variant, category) for variant in variants]
    documents = [name for name in tables[0] if all(name in table for table in tables)]
    found = np.zeros(RESAMPLES)
    for start in range(0, RESAMPLES, _SLICE):  # in slices, because of the memory
        means = _resampled(draw, tables, documents, pooled=category is not None)
        found[start : start + _SLICE] = means[0] if len(means) == 1 else means[0] - means[1]
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high)) if np.ptp(found) > 1e-12 else None


def _resampled(draw: Any, tables: Sequence[Any], documents: Sequence[str], *, pooled: bool) -> list[Any]:
    """A slice of resampled means, an array for each variant."""
    import numpy as np

    sizes = [tables[0][name][0].shape[1] for name in documents]
    if pooled:
        chosen = draw.integers(0, sum(sizes), (_SLICE, sum(sizes)))
    else:
        starts = np.cumsum([0, *sizes[:-1]])
        chosen = np.hstack(
            [first + draw.integers(0, size, (_SLICE, size)) for first, size in zip(starts, sizes, strict=True) if size]
            or [np.zeros((_SLICE, 0), int)]
        )
    means = []
    for table in tables:
        sums, extras, weights, runs = [], 0.0, [], 0
        for name in documents:
            values, extra = table[name]
            rows = draw.integers(0, len(values), (_SLICE, len(values)))
            sums.append(values[rows].sum(axis=1))
            extras = extras + extra[rows].sum(axis=1)
            weights += [len(values)] * values.shape[1]
            runs += len(values)
        total = np.take_along_axis(np.hstack(sums), chosen, axis=1).sum(axis=1)
        count = np.asarray(weights)[chosen].sum(axis=1) if pooled else runs
        means.append(total / count if pooled else (total + extras) / count)
    return means


def _tables(variant: Variant, category: str | None) -> dict[str, tuple[Any, Any]]:
    """By document: judgements, a row for each run and a column for each problem, and what bonuses and penalties add to each run."""
    import numpy as np

    found = {}
    for name, runs in _runs_of(variant).items():
        chosen = [one.id for one in variant.test_set.document(name).problems if category in (None, one.category)]
        if chosen or category is None:
            values = np.array([[run.judgements[problem].value for problem in chosen] for run in runs], dtype=float)
            found[name] = (values.reshape(len(runs), len(chosen)), np.array([extra_of(run) for run in runs]))
    return found
