"""Comparison of two variants: the verdict by the rule of SPEC §9, shown as HTML, and the evidence for their difference.

The evidence is a paired permutation test, bootstrap intervals, and how many further runs would settle the difference. The pairs are problems:
the mean judgement of a problem over the runs of each variant. For each document its bonuses less its penalties are a pair too. So the
result depends neither on the order of the runs nor on their number for each document.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from statistics import NormalDist, fmean, variance
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra
from grace_kp.pages import safe, table
from grace_kp.rubric._variants import TOLERANCE, Summary, Variant, extra_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grace_kp.rubric._variants import Run


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


REGRESSION = 0.15
WEIGHT = 1.5
CLEAR, SLIGHT = 1.0, 0.5
UNEVEN = 1.5
ROUNDS = 3
BEST, VARIANT = "best", "variant"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which variant to continue with, and why."""

    choice: str
    """`best` or `variant`."""
    reason: str
    raw_diff: float
    """Mean of the variant less mean of the current best."""
    adjusted_diff: float
    """raw_diff − 1.5·Σ(drops of the categories that regressed)."""
    regressions: Mapping[str, float]
    """By category, how far its rate is below the current best's, where that is 0.15 or more."""
    evidence: Evidence | None = field(default=None, compare=False)
    """How certain the difference is; the verdict does not depend on it. None where runs or scipy (extra `eval`) are missing."""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """Reasons for caution, such as runs that are spread unevenly over the documents, or missing evidence."""

    def _repr_html_(self) -> str:
        from grace_kp.pages import notebook

        chosen = "the variant" if self.choice == VARIANT else "the current best"
        return notebook(f"{verdict_html(chosen, self.reason)}{warnings_html(self.warnings)}{evidence_table(self)}")


def compare(best: Variant | Summary, variant: Variant | Summary, *, seed: int = 0) -> Recommendation:
    """Compare a variant with the current best.

    Args:
        best: the current best, or its figures from the history.
        variant: the variant, or its figures.
        seed: makes the resampling behind the evidence repeatable.

    Returns:
        The recommendation, with evidence where both are variants with their runs.

    Raises:
        ValueError: they were not run on the same documents of the same test set, or a category of the best was not measured.
    """
    with_runs = (best, variant) if isinstance(best, Variant) and isinstance(variant, Variant) else None
    if with_runs is not None and with_runs[0].test_set != with_runs[1].test_set:
        names = " and ".join(item.name for item in with_runs)
        raise ValueError(f"{names} were run on different test sets and cannot be compared")
    old = best.summary if isinstance(best, Variant) else best
    new = variant.summary if isinstance(variant, Variant) else variant
    if old.document_means and new.document_means and old.document_means.keys() != new.document_means.keys():
        first, second = (", ".join(summary.document_means) for summary in (old, new))
        raise ValueError(f"the best was run on {first}, the variant on {second}; that cannot be compared")
    missing = [category for category in old.category_rates if category not in new.category_rates]
    if missing:
        raise ValueError(f"the variant was not measured in the category {missing[0]!r}, and the best was")
    drops = {category: rate - new.category_rates[category] for category, rate in old.category_rates.items()}
    regressions = {category: drop for category, drop in drops.items() if drop >= REGRESSION - TOLERANCE}
    difference = new.mean - old.mean
    adjusted = difference - WEIGHT * sum(regressions.values())
    choice, reason = _verdict(old, new, adjusted, regressions)
    evidence, warnings = None, []
    if with_runs is not None:
        warnings = _warnings(*with_runs)
        try:
            evidence = evidence_of(*with_runs, seed=seed)
        except MissingExtra as error:
            warnings.append(str(error))
    return Recommendation(choice, reason, difference, adjusted, regressions, evidence, tuple(warnings))


def _warnings(best: Variant, variant: Variant) -> list[str]:
    counts = [Counter(run.document for run in item.runs) for item in (best, variant)]
    shares = [{name: count / sum(runs.values()) for name, count in runs.items()} for runs in counts]
    warnings = []
    if any(abs(share - shares[1].get(name, 0.0)) > TOLERANCE for name, share in shares[0].items()):
        spread = " and ".join(", ".join(f"{name} {count}" for name, count in runs.items()) for runs in counts)
        warnings.append(
            f"the runs are spread differently over the documents ({spread}), so the means weigh them differently"
        )
    planned = best.test_set.runs_per_document
    warnings += [
        f"{item.name} has {count} runs of {name}, and {planned} are planned"
        for item, runs in zip((best, variant), counts, strict=True)
        for name, count in runs.items()
        if count != planned
    ]
    return warnings


def _verdict(old: Summary, new: Summary, adjusted: float, regressions: Mapping[str, float]) -> tuple[str, str]:
    if regressions:
        drops = ", ".join(f"{category} by {drop:.2f}" for category, drop in regressions.items())
        return BEST, f"keep the current best: the variant regresses in {drops}"
    if adjusted > CLEAR + TOLERANCE:
        if new.cross_doc_gap < UNEVEN - TOLERANCE:
            return VARIANT, f"the variant is better by {adjusted:.2f}, evenly across documents"
        return BEST, f"keep the current best: the variant is uneven across documents (gap {new.cross_doc_gap:.2f})"
    if adjusted >= SLIGHT - TOLERANCE:
        spread = f"(SD {new.sd:.2f} to {old.sd:.2f})"
        if new.sd < old.sd - TOLERANCE:
            return VARIANT, f"slightly better ({adjusted:.2f}), and the variant is steadier {spread}"
        return BEST, f"slightly better only ({adjusted:.2f}), and the variant is not steadier {spread}"
    return BEST, f"keep the current best: the difference is {adjusted:.2f}, less than {SLIGHT}"


def converged(improvements: Sequence[float]) -> bool:
    """Return whether further rounds may not be worthwhile: the last three improvements were each less than 0.5.

    Args:
        improvements: by how much each round was better than the best before it, oldest first.
    """
    last = [float(value) for value in improvements][-ROUNDS:]
    return len(last) == ROUNDS and all(value < SLIGHT - TOLERANCE for value in last)


MAX_CATEGORIES = 100
"""Categories of a table; a row gives the number of the others."""


def verdict_html(name: str, reason: str) -> str:
    """Return which variant to continue with, and why. Both are plain text."""
    return f'<p class="verdict">Continue with <b>{safe(name)}</b>: {safe(reason)}.</p>'


def warnings_html(warnings: Iterable[str]) -> str:
    """Return the warnings of a comparison, each as a sentence."""
    return "".join(f"<p>{safe(line)}.</p>" for line in warnings)


def evidence_table(found: Recommendation) -> str:
    """Return how certain a comparison is."""
    evidence, regressions = found.evidence, found.regressions
    rows: list[tuple[str, str]] = [
        ("difference of the means", f"{found.raw_diff:+.2f}"),
        ("adjusted by regressions", f"{found.adjusted_diff:+.2f}"),
    ]
    if evidence is not None:
        p_value = "< 0.001" if evidence.p_value < 0.001 else f"{evidence.p_value:.3f}"
        rows += [
            ("95 % interval of the difference", _interval_text(evidence.mean_difference)),
            (f"p of a permutation test, {evidence.pairs} pairs", p_value),
            ("further runs of each that would settle it", evidence.further_runs_text),
        ]
        rows += [
            (f"rate of {category}, 95 % interval of the difference", _interval_text(interval))
            for category, interval in [*evidence.category_differences.items()][:MAX_CATEGORIES]
        ]
    rows += [
        (f"regression in {category}", f"−{drop:.2f}") for category, drop in [*regressions.items()][:MAX_CATEGORIES]
    ]
    left_out = len(evidence.category_differences if evidence else regressions) - MAX_CATEGORIES
    rows += [("categories that are not shown", f"{left_out:,}")] if left_out > 0 else []
    return table(("evidence", "figure"), rows)


def _interval_text(interval: Interval | None) -> str:
    return "unknown" if interval is None else f"{interval.low:+.2f} to {interval.high:+.2f}"


@dataclass(frozen=True, slots=True)
class _Pair:
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
