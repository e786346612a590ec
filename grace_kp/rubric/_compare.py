"""Comparison of two variants by the rule of SPEC §9, as a recommendation that shows itself as HTML, and whether further rounds are worthwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.errors import MissingExtra
from grace_kp.pages import safe, table
from grace_kp.rubric._statistics import Evidence, evidence_of
from grace_kp.rubric._variants import TOLERANCE, Summary, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grace_kp.rubric._statistics import Interval


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
        """Return the comparison for a notebook."""
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
