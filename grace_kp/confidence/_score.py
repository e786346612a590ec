"""A calculated confidence: the number, its sub-scores, its penalties, their wording for people, and the combination of several."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.errors import brief, check_unit
from grace_kp.pages import penalty_text, spaced, table, with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grace_kp.confidence._factors import ConfidenceFactors


NOT_EVALUATED, NOT_SCORED = "not evaluated", "not scored"


@dataclass(frozen=True, slots=True)
class ConfidenceScore:
    """The GRACE confidence of a step or a run.

    Raises:
        ValueError: the score is not a number from 0 to 1, or a contribution is not a finite number.
    """

    score: float
    """0 to 1; profiles round it to three decimals."""
    factors: ConfidenceFactors
    """The factors it was calculated from."""
    breakdown: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The five sub-scores, as the formula used them: search_quality, source_agreement, llm_self_eval, tool_success,
    query_coverage. `evaluated` leaves out those that were not measured."""
    penalties_applied: list[str] = field(default_factory=list, hash=False)
    """The penalties that lowered it, in order: `no_search_results`, `tool_failures(rate=0.50)`, `no_sources`."""
    reason: str = ""
    """One sentence: the sub-scores that counted, and the penalties."""
    not_evaluated: tuple[str, ...] = ()
    """The sub-scores that were not measured; they count only where `fallbacks` names them."""
    contributions: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What each feature of a learned profile adds to the logarithm of the odds, by name; empty for the formulas."""

    fallbacks: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The sub-scores among `not_evaluated` that count all the same, with their value: 0.5 in the profile `grace`, and in `strict` 0 for a
    search whose scores are all unusable."""

    def __post_init__(self) -> None:
        if type(self.score) is not float or not 0 <= self.score <= 1:
            check_unit("score", self.score)
        if self.contributions:
            _check_contributions(self.contributions)

    @property
    def evaluated(self) -> dict[str, float | None]:
        """The five sub-scores for people and traces: None for each that was not measured."""
        missing = self.not_evaluated
        return {name: None if name in missing else value for name, value in self.breakdown.items()}

    @property
    def not_scored(self) -> tuple[str, ...]:
        """The sub-scores among `not_evaluated` of something that was made and not scored: a search without scores."""
        missing = "search_quality" in self.not_evaluated and getattr(self.factors, "search_not_scored", False)
        return ("search_quality",) if missing else ()

    @property
    def level(self) -> str:
        """The score as a word: `high` from 0.9, `medium` from 0.7, `low` from 0.4, else `very_low`."""
        if self.score >= 0.9:
            return "high"
        if self.score >= 0.7:
            return "medium"
        return "low" if self.score >= 0.4 else "very_low"

    def _repr_html_(self) -> str:
        """Return the confidence with its parts for a notebook."""
        from grace_kp.pages import confidence_html, notebook

        parts = confidence_html(
            self.score,
            breakdown=with_fallbacks(self.evaluated, self.fallbacks),
            penalties=self.penalties_applied,
            reason=self.reason,
            not_scored=self.not_scored,
            level=self.level,
        )
        return notebook(
            f'<p class="kind">confidence</p>{parts}{contributions_html(self.contributions)}{factors_html(self.factors)}'
        )


def _check_contributions(contributions: Mapping[str, float]) -> None:
    for name, value in contributions.items():
        if not isinstance(name, str):
            raise ValueError(f"a contribution must have the name of its feature, not {brief(name)}")
        if isinstance(value, bool) or not isinstance(value, float | int) or not math.isfinite(value):
            raise ValueError(f"the contribution of {brief(name)} must be a finite number, not {brief(value)}")


def penalties_text(penalties: Iterable[str]) -> str:
    """Return several penalties in words, separated by commas."""
    return ", ".join(penalty_text(str(penalty)) for penalty in penalties)


def part_text(value: float | str | None, *, not_scored: bool = False) -> str:
    """Return a sub-score for people: three decimals, a text as it is, or for None "not evaluated" or "not scored"."""
    if isinstance(value, str):
        return value
    return (NOT_SCORED if not_scored else NOT_EVALUATED) if value is None else f"{value:.3f}"


MAX_CONTRIBUTIONS = 60
"""Features that are shown, strongest first; a note gives the number of the others."""
MAX_NAME = 80


def contributions_html(contributions: Mapping[str, float]) -> str:
    """Return what each feature of a learned profile added to the logarithm of the odds, strongest first; empty without any."""
    known = [(name, value) for name, value in contributions.items() if math.isfinite(value)]
    if not known:
        return ""
    known.sort(key=lambda pair: -abs(pair[1]))
    rows = [(spaced(name)[:MAX_NAME], f"{value:+.2f}".replace("-", "−")) for name, value in known[:MAX_CONTRIBUTIONS]]
    caption = "What each feature adds to the logarithm of the odds"
    left_out = len(known) - MAX_CONTRIBUTIONS
    more = f'<p class="small soft">{left_out:,} weaker ones are not shown.</p>' if left_out > 0 else ""
    whole = table(("feature", "adds"), rows, caption=caption) + more
    return f"<details><summary>contributions</summary>{whole}</details>"


def factors_html(factors: ConfidenceFactors) -> str:
    """Return the factors of a confidence as a folded table; empty for anything else."""
    # A profile of the user's may calculate from factors of its own.
    if type(factors).__name__ != "ConfidenceFactors":
        return ""
    rows = [(spaced(each.name), _text(getattr(factors, each.name))) for each in fields(factors)]
    return f"<details><summary>factors</summary>{table(('factor', 'value'), rows, words={'value'})}</details>"


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


METHODS = ("mean", "min", "weighted")
CRITICAL_SHARE = 0.7


class ConfidenceAggregator:
    """Aggregates the confidences of steps, which are numbers or ConfidenceScore objects."""

    __slots__ = ()

    def aggregate(
        self, scores: Iterable[ConfidenceScore | float], method: Literal["mean", "min", "weighted"] = "mean"
    ) -> float:
        """Return one confidence, 0 to 1, between the lowest and the highest score; 0 when there are no scores.

        Args:
            scores: in the order of the steps.
            method: `mean`; `min`, the weakest step; or `weighted`, with weights 1, 2, …, n.

        Raises:
            ValueError: the method is unknown, or a score is not a number from 0 to 1.
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)} (got {method!r})")
        values = _values(scores)
        if not values:
            return 0.0
        if method == "min":
            return min(values)
        if method == "mean":
            mean = math.fsum(values) / len(values)
        else:
            n = len(values)
            mean = math.fsum(i * value for i, value in enumerate(values, 1)) / (n * (n + 1) / 2)
        # Rounding can move the mean of equal numbers off their value.
        return min(max(values), max(min(values), mean))

    def aggregate_with_critical_check(
        self, scores: Iterable[ConfidenceScore | float], critical_threshold: float = 0.3
    ) -> tuple[float, bool]:
        """Return the mean and False; or the mean times 0.7 and True, when a score is below the threshold.

        Raises:
            ValueError: a score or the threshold is not a number from 0 to 1.
        """
        values = _values(scores)
        check_unit("critical_threshold", critical_threshold)
        mean = self.aggregate(values)
        critical = any(value < critical_threshold for value in values)
        return (mean * CRITICAL_SHARE, True) if critical else (mean, False)


def _values(scores: Iterable[ConfidenceScore | float]) -> list[float]:
    values: list[Any] = [getattr(score, "score", score) for score in scores]
    for index, value in enumerate(values):
        check_unit(f"scores[{index}]", value)
    return [float(value) for value in values]
