"""The outcome of asking a model to judge something: a value, or a fallback with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from grace_kp.errors import check_unit

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
    """Tokens the judge read; None when it did not say."""
    tokens_out: int | None = None
    """Tokens the judge wrote."""
    samples: int = 1
    """How many judgements the score is the mean of."""
    spread: float | None = None
    """Population standard deviation of those judgements; None for a single one."""
    cached: bool = False
    """Whether it was made before, or for another caller at the same moment; then it cost nothing now."""

    @property
    def cautious(self) -> float:
        """The score less its spread, at least 0: what the profile `strict` takes from judgements that disagree."""
        return self.score if self.spread is None else max(0.0, self.score - self.spread)

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as a JSON object; what is not known is left out."""
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
