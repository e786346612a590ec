"""Which of two variants to go on with, by the rule of SPEC §9, and whether going on is worth it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra
from grace_kp.rubric._statistics import Evidence, evidence_of
from grace_kp.rubric._summary import TOLERANCE, Summary, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

REGRESSION = 0.15
WEIGHT = 1.5
CLEAR, SLIGHT = 1.0, 0.5
UNEVEN = 1.5
ROUNDS = 3
BEST, VARIANT = "best", "variant"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to go on with, and why."""

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
    """What makes the comparison weaker than it looks, such as runs that are spread unevenly over the documents, or missing evidence."""


def compare(best: Variant | Summary, variant: Variant | Summary, *, seed: int = 0) -> Recommendation:
    """Compare a variant with the current best.

    Args:
        best: the current best, or its figures from the history.
        variant: the variant, or its figures.
        seed: makes the resampling behind the evidence the same each time.

    Returns:
        The recommendation; where both are given with their runs, with evidence beside it.

    Raises:
        ValueError: they were not run on the same documents of the same test set, or a category of the best was not measured.
    """
    if isinstance(best, Variant) and isinstance(variant, Variant) and best.test_set != variant.test_set:
        raise ValueError(f"{best.name} and {variant.name} were run on different test sets and cannot be compared")
    old = best.summary if isinstance(best, Variant) else best
    new = variant.summary if isinstance(variant, Variant) else variant
    raw = new.mean - old.mean
    if old.document_means and new.document_means and old.document_means.keys() != new.document_means.keys():
        raise ValueError(
            f"the best was run on {_listed(old.document_means)}, the variant on {_listed(new.document_means)}; that cannot be compared"
        )
    missing = [category for category in old.category_rates if category not in new.category_rates]
    if missing:
        raise ValueError(f"the variant was not measured in the category {missing[0]!r}, and the best was")
    drops = {category: rate - new.category_rates[category] for category, rate in old.category_rates.items()}
    regressions = {category: drop for category, drop in drops.items() if drop >= REGRESSION - TOLERANCE}
    adjusted = raw - WEIGHT * sum(regressions.values())
    choice, reason = _verdict(old, new, adjusted, regressions)
    evidence, warnings = None, []
    if isinstance(best, Variant) and isinstance(variant, Variant):
        warnings = _warnings(best, variant)
        try:
            evidence = evidence_of(best, variant, seed=seed)
        except MissingExtra as error:
            warnings.append(str(error))
    return Recommendation(choice, reason, raw, adjusted, regressions, evidence, tuple(warnings))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _warnings(best: Variant, variant: Variant) -> list[str]:
    counts = [Counter(run.document for run in one.runs) for one in (best, variant)]
    shares = [{name: count / sum(one.values()) for name, count in one.items()} for one in counts]
    found = []
    if any(abs(share - shares[1].get(name, 0.0)) > TOLERANCE for name, share in shares[0].items()):
        told = " and ".join(", ".join(f"{name} {count}" for name, count in one.items()) for one in counts)
        found.append(f"the runs are not spread alike over the documents ({told}), so the means weigh them differently")
    wanted = best.test_set.runs_per_document
    found += [
        f"{one.name} has {count} runs of {name}, and {wanted} are asked for"
        for one, each in zip((best, variant), counts, strict=True)
        for name, count in each.items()
        if count != wanted
    ]
    return found


def _verdict(old: Summary, new: Summary, adjusted: float, regressions: Mapping[str, float]) -> tuple[str, str]:
    if regressions:
        told = ", ".join(f"{category} by {drop:.2f}" for category, drop in regressions.items())
        return BEST, f"keep the current best: the variant regresses in {told}"
    if adjusted > CLEAR + TOLERANCE:
        if new.cross_doc_gap < UNEVEN - TOLERANCE:
            return VARIANT, f"the variant is better by {adjusted:.2f}, evenly across documents"
        return BEST, f"keep the current best: the variant is uneven across documents (gap {new.cross_doc_gap:.2f})"
    if adjusted >= SLIGHT - TOLERANCE:
        if new.sd < old.sd - TOLERANCE:
            return (
                VARIANT,
                f"slightly better ({adjusted:.2f}), and the variant is steadier (SD {new.sd:.2f} to {old.sd:.2f})",
            )
        return (
            BEST,
            f"slightly better only ({adjusted:.2f}), and the variant is no steadier (SD {new.sd:.2f} to {old.sd:.2f})",
        )
    return BEST, f"keep the current best: the difference is {adjusted:.2f}, less than {SLIGHT}"


def converged(improvements: Sequence[Any]) -> bool:
    """Whether going on may not be worth it: the last three improvements were each less than 0.5.

    Args:
        improvements: by how much each round was better than the best before it, oldest first.
    """
    last = [float(value) for value in improvements][-ROUNDS:]
    return len(last) == ROUNDS and all(value < SLIGHT - TOLERANCE for value in last)
