"""Evidence for a difference: a paired permutation test, bootstrap intervals, and how many further runs would settle it.

The pairs are problems: the mean judgement of a problem over the runs of each variant. For each document its
bonuses less its penalties are a pair too. So the result depends neither on the order of the runs nor on their number for each document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra
from grace_kp.rubric._variants import extra_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.rubric._variants import Run, Variant

RESAMPLES = 10_000
EXACT_UP_TO = 14
"""Pairs up to which all combinations of signs are counted, at most 16,384."""
LEVEL = 0.95
POWER = 0.8
MAX_RUNS = 10_000
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap interval."""

    low: float
    high: float
    level: float = LEVEL


@dataclass(frozen=True, slots=True)
class Evidence:
    """How certain a difference is, besides the rule."""

    p_value: float
    """Two-sided, of a paired permutation test over the problems; 1.0 where nothing differs."""
    pairs: int
    """The number of pairs, including those without a difference."""
    mean_difference: Interval | None
    """Of the variant's mean less the best's; None where nothing differs between resamples."""
    category_differences: Mapping[str, Interval | None]
    """The same for the rate of each category."""
    further_runs: int | None
    """The number of further runs of each variant, over all documents, that would make this difference significant at 0.05 with a power of
    0.8; 0 if it already is. None without a difference, with a single run of each document, and where no number of runs would suffice,
    because there are fewer than six pairs or the problems contradict each other: then add problems."""

    @property
    def further_runs_text(self) -> str:
        """`further_runs` as reports show it."""
        return "cannot be told" if self.further_runs is None else f"{self.further_runs:,}"


@dataclass(frozen=True, slots=True)
class _Pair:
    """The difference of two variants for one problem."""

    difference: float
    noise: float | None
    """The variance of the difference between runs, times the runs of a document; None with a single run."""


def evidence_of(best: Variant, variant: Variant, *, seed: int = 0) -> Evidence:
    """Return the evidence for the difference of two variants over the same test set."""
    pairs = _pairs(best, variant)
    p_value = permutation_p([pair.difference for pair in pairs], seed=seed)
    return Evidence(
        p_value=p_value,
        pairs=len(pairs),
        mean_difference=bootstrap_interval((variant, best), seed=seed),
        category_differences={
            category: bootstrap_interval((variant, best), category, seed=seed) for category in best.test_set.categories
        },
        further_runs=_further_runs(pairs, best, variant, p_value),
    )


def permutation_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """Return the two-sided p-value of a paired permutation test: how often random signs give a sum at least as far from 0.

    Exact for up to 14 differences other than 0. Beyond, 10,000 combinations of signs are drawn with the seed, and the observed one counts
    too. 1.0 without differences.

    Raises:
        MissingExtra: scipy is not installed.
    """
    import numpy as np

    values = np.array([value for value in differences if value])
    if len(values) < 2:
        return 1.0
    # Sums that differ by rounding alone are the same.
    reach = abs(values.sum()) - 1e-9 * np.abs(values).sum()
    found = _scipy_stats().permutation_test(
        (values,),
        lambda signed, axis: (np.abs(signed.sum(axis)) >= reach).astype(float),
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**EXACT_UP_TO if len(values) <= EXACT_UP_TO else RESAMPLES,
        alternative="greater",
        rng=seed,
    )
    return float(found.pvalue)


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtra("the evidence for a difference", "eval") from None
    return stats


def _runs_by_document(variant: Variant) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {}
    for run in variant.runs:
        runs.setdefault(run.document, []).append(run)
    return runs


def _points_of(run: Run) -> float:
    return extra_points(run.bonuses, run.penalties)


def _pairs(best: Variant, variant: Variant) -> list[_Pair]:
    old, new = _runs_by_document(best), _runs_by_document(variant)
    pairs = []
    for document in best.test_set.documents:
        if document.id in old and document.id in new:
            before, after = old[document.id], new[document.id]
            pairs += [
                _pair(*([run.judgements[problem.id].value for run in runs] for runs in (before, after)))
                for problem in document.problems
            ]
            extras = [list(map(_points_of, runs)) for runs in (before, after)]
            if any(extras[0]) or any(extras[1]):
                pairs.append(_pair(*extras))
    return pairs


def _pair(before: list[float], after: list[float]) -> _Pair:
    noise = variance(before) + variance(after) if len(before) > 1 and len(after) > 1 else None
    return _Pair(fmean(after) - fmean(before), noise)


def _further_runs(pairs: Sequence[_Pair], best: Variant, variant: Variant, p_value: float) -> int | None:
    """Return `Evidence.further_runs`. Further runs reduce one part of the variance between pairs, and not the other."""
    if p_value < 1 - LEVEL:
        return 0
    if any(pair.noise is None for pair in pairs):
        return None
    # With n pairs that differ, or may differ in further runs, no p-value is below 2/2^n.
    moving = sum(bool(pair.difference or pair.noise) for pair in pairs)
    if 2 / 2**moving >= 1 - LEVEL or not any(pair.noise for pair in pairs):
        return None
    seen = abs(fmean(pair.difference for pair in pairs))
    if seen < 1e-12:
        return None
    documents = len(_runs_by_document(best))
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


def bootstrap_interval(variants: Sequence[Variant], category: str | None = None, *, seed: int = 0) -> Interval | None:
    """Return a bootstrap interval of the mean score, or of the rate of a category.

    Resampled are problems (the same for both variants) and, within each document, the runs of each variant. For the mean score the problems
    are drawn within each document; for a category, which may have a single one in each, over all documents together.

    Args:
        variants: one variant, or two for the first less the second, run on the same documents.
    """
    import numpy as np

    tables = [_tables(variant, category) for variant in variants]
    if not tables[0]:
        return None
    sizes = [table.shape[1] for table in tables[0]]
    columns = np.arange(sum(sizes))
    groups = np.split(columns, np.cumsum(sizes)[:-1]) if category is None else [columns]

    def statistic(*drawn: Any, axis: int) -> Any:  # noqa: ARG001 - always the last
        rows = iter(drawn[len(groups) :])
        means = [_mean(found, [next(rows) for _ in found], drawn[: len(groups)]) for found in tables]
        return means[0] if len(means) == 1 else means[0] - means[1]

    # Indices of problems and of runs are drawn. scipy needs at least two; a single index is repeated, which changes no mean.
    samples = [*groups, *(np.arange(len(table)) for found in tables for table in found)]
    found = _scipy_stats().bootstrap(
        [np.resize(sample, max(2, len(sample))) for sample in samples], statistic, vectorized=True, n_resamples=RESAMPLES,
        batch=_BATCH, confidence_level=LEVEL, method="percentile", rng=seed,
    )  # fmt: skip
    low, high = found.confidence_interval
    return Interval(float(low), float(high)) if np.ptp(found.bootstrap_distribution) > 1e-12 else None


def _mean(tables: Sequence[Any], rows: Sequence[Any], groups: Sequence[Any]) -> Any:
    import numpy as np

    runs = np.repeat([len(table) for table in tables], [table.shape[1] for table in tables])
    sums = runs * np.concatenate([table[chosen].mean(-2) for table, chosen in zip(tables, rows, strict=True)], -1)
    means = [np.take_along_axis(sums, chosen, -1).sum(-1) / runs[chosen].sum(-1) for chosen in groups]
    return np.average(means, axis=0, weights=[len(table) for table in tables[: len(groups)]])


def _tables(variant: Variant, category: str | None) -> list[Any]:
    """Return an array for each document, with a row for each run and a column for each problem.

    The mean of a row is the rate of the category in that run; without a category it is the score of the run.
    """
    import numpy as np

    tables = []
    for name, runs in sorted(_runs_by_document(variant).items()):
        document = variant.test_set.document(name)
        problems = [problem.id for problem in document.problems if category in (None, problem.category)]
        table = np.array([[run.judgements[problem].value for problem in problems] or [0.0] for run in runs])
        if category is None:
            tables.append(table * table.shape[1] + np.array([[_points_of(run)] for run in runs]))
        elif problems:
            tables.append(table)
    return tables
