"""A calculated confidence: the number, its sub-scores, its penalties, and their wording for people. No arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.errors import brief, check_unit
from grace_kp.pages import penalty_text, with_fallbacks

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
        from grace_kp.confidence._html import contributions_html, factors_html
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
