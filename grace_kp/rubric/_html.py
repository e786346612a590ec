"""A comparison of two variants as HTML: which one to continue with and why, what weakens it, and how certain it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grace_kp.pages import safe, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grace_kp.rubric._statistics import Evidence, Interval

MAX_CATEGORIES = 100
"""Categories of a table; a row gives the number of the others."""


def verdict_html(name: str, reason: str) -> str:
    """Return which variant to continue with, and why. Both are plain text."""
    return f'<p class="verdict">Continue with <b>{safe(name)}</b>: {safe(reason)}.</p>'


def warnings_html(warnings: Iterable[str]) -> str:
    """Return what weakens a comparison, each as a sentence."""
    return "".join(f"<p>{safe(line)}.</p>" for line in warnings)


def evidence_table(
    raw_diff: float, adjusted_diff: float, evidence: Evidence | None, regressions: Mapping[str, float]
) -> str:
    """Return how certain a comparison is.

    Args:
        raw_diff: mean of the variant less mean of the best.
        adjusted_diff: the same, less the penalty for regressions.
        evidence: intervals and p value; None where there are none.
        regressions: by category, how far its rate is below the best's.
    """
    rows: list[tuple[str, str]] = [
        ("difference of the means", f"{raw_diff:+.2f}"),
        ("adjusted by regressions", f"{adjusted_diff:+.2f}"),
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
