"""A confidence that was calculated: the number, what it was made of, and what lowered it. A record, no arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.confidence._factors import ConfidenceFactors


@dataclass(frozen=True, slots=True)
class ConfidenceScore:
    """The GRACE confidence of a step or a run.

    Raises:
        ValueError: the score is no number from 0 to 1.
    """

    score: float
    """0 to 1, rounded to three decimals when it was calculated."""
    factors: ConfidenceFactors
    """What it was calculated from."""
    breakdown: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The five sub-scores, as the formula used them: search_quality, source_agreement, llm_self_eval, tool_success,
    query_coverage. `evaluated` says which of them rest on anything."""
    penalties_applied: list[str] = field(default_factory=list, hash=False)
    """The penalties that lowered it, in order: `no_search_results`, `tool_failures(rate=0.50)`, `no_sources`."""
    reason: str = ""
    """One sentence: what the score rests on and what lowered it."""
    not_evaluated: tuple[str, ...] = ()
    """The sub-scores of which nothing was really made; in the profile `strict` they do not count."""

    def __post_init__(self) -> None:
        score = self.score
        if type(score) is float and 0 <= score <= 1:
            return
        if isinstance(score, bool) or not isinstance(score, float | int) or not 0 <= score <= 1:
            raise ValueError(f"score must be a number from 0 to 1 (got {score!r})")

    @property
    def evaluated(self) -> dict[str, float | None]:
        """The five sub-scores for people and traces: None for each that nothing was evaluated for."""
        missing = self.not_evaluated
        return {name: None if name in missing else value for name, value in self.breakdown.items()}

    @property
    def level(self) -> str:
        """The score in a word: `high` from 0.9, `medium` from 0.7, `low` from 0.4, else `very_low`."""
        if self.score >= 0.9:
            return "high"
        if self.score >= 0.7:
            return "medium"
        return "low" if self.score >= 0.4 else "very_low"
