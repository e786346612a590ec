"""How sure a difference is: a paired permutation test, bootstrap intervals, and how many more runs would settle it.

Paired are the problems: what the runs of one variant found of a problem on average, and what those of the other did. For each document
its bonuses less its penalties are a pair too. So neither the order of the runs matters nor how many there are of each document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra
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
_BATCH = 1_000


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
    """Return a bootstrap interval of the mean score, or of a category's rate: of one variant, or of the first less the second.

    Resampled are problems (the same for both variants) and, within each document, the runs of each variant. For the mean score the problems
    are those of each document; for a category, which may have but one in each, those of all documents together.

    None where nothing differs between resamples: there is too little to resample, which is no certainty.
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

    # Numbers of problems and of runs are drawn. scipy asks for two at least; a single one is given twice, which changes no mean.
    samples = [*groups, *(np.arange(len(table)) for found in tables for table in found)]
    found = _scipy_stats().bootstrap(
        [np.resize(sample, max(2, len(sample))) for sample in samples], statistic, vectorized=True, n_resamples=RESAMPLES,
        batch=_BATCH, confidence_level=LEVEL, method="percentile", rng=seed,
    )  # fmt: skip
    low, high = found.confidence_interval
    return Interval(float(low), float(high)) if np.ptp(found.bootstrap_distribution) > 1e-12 else None


def _mean(tables: Sequence[Any], rows: Sequence[Any], groups: Sequence[Any]) -> Any:
    """Return the mean score of a variant, or its rate, in each resample.

    Args:
        tables: of each document, as `_tables` returns them.
        rows: the runs drawn of each document.
        groups: the problems drawn, counted over all documents: of each document for the mean score, or in one group for a rate.
    """
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
    for name, runs in sorted(_runs_of(variant).items()):
        problems = [one.id for one in variant.test_set.document(name).problems if category in (None, one.category)]
        table = np.array([[run.judgements[problem].value for problem in problems] or [0.0] for run in runs])
        if category is None:
            tables.append(table * table.shape[1] + np.array([[extra_of(run)] for run in runs]))
        elif problems:
            tables.append(table)
    return tables
