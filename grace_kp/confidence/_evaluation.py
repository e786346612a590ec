"""The outcome of asking a model to judge something: a value, or a fallback with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

FALLBACK_SCORE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A judgement of 0 to 1, and how it came about."""

    score: float
    """0 to 1; 0.5 when it is a fallback."""
    reason: str = ""
    """Why the judge judged so, in its words."""
    fallback: bool = False
    """Whether nothing was judged and the score is a mere 0.5."""
    error: str | None = None
    """What went wrong, when it is a fallback."""
    attempts: int = 1
    """How often the judge was asked."""
    latency_ms: float | None = None
    """How long it took, in milliseconds."""
    model: str | None = None
    """Who judged."""
    tokens_in: int | None = None
    """Tokens the judge read."""
    tokens_out: int | None = None
    """Tokens the judge wrote."""

    def __post_init__(self) -> None:
        if isinstance(self.score, bool) or not isinstance(self.score, float | int) or not 0 <= self.score <= 1:
            raise ValueError(f"score must be a number from 0 to 1 (got {self.score!r})")

    @classmethod
    def failed(
        cls,
        error: str,
        *,
        attempts: int = 1,
        latency_ms: float | None = None,
        model: str | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
    ) -> Self:
        """The fallback: a score of 0.5 that says it is one, and why."""
        return cls(
            score=FALLBACK_SCORE,
            reason=f"not evaluated: {error}",
            fallback=True,
            error=error,
            attempts=attempts,
            latency_ms=latency_ms,
            model=model,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
