"""The outcome of asking a model for a judgement: a score with its reason, or a fallback with the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from grace_kp.errors import check_unit

FALLBACK_SCORE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A judgement, 0 to 1, with its reason and its cost."""

    score: float
    """0 to 1; 0.5 when it is a fallback."""
    reason: str = ""
    """The judge's reason, in its words."""
    fallback: bool = False
    """Whether the judgement failed and the score is only 0.5."""
    error: str | None = None
    """Why the judgement failed; None when it did not."""
    attempts: int = 1
    """Number of times the judge was asked."""
    latency_ms: float | None = None
    """Duration in milliseconds."""
    model: str | None = None
    """The model that judged; None when unknown."""
    tokens_in: int | None = None
    """Tokens that the judge read; None when it did not report them."""
    tokens_out: int | None = None
    """Tokens that the judge wrote; None when it did not report them."""
    samples: int = 1
    """Number of judgements of which the score is the mean."""
    spread: float | None = None
    """Population standard deviation of those judgements; None for a single one."""
    cached: bool = False
    """Whether an earlier or identical request paid for the judgement."""

    @property
    def cautious(self) -> float:
        """The score minus its spread, at least 0; the profile `strict` uses it, so that judgements that disagree count less."""
        return self.score if self.spread is None else max(0.0, self.score - self.spread)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as a JSON object; fields without a value are left out."""
        return {
            name: value
            for name in self.__slots__
            if (value := getattr(self, name)) is not None and value != "" and value is not False
        }

    def __post_init__(self) -> None:
        check_unit("score", self.score)

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
        """Return the fallback: a score of 0.5, marked as a fallback, with the error."""
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
