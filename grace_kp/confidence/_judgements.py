"""Put a model's judgements into factors, and tell whether a judgement could change the level of intervention.

The bound of `could_change`: within each interval of a profile's formula the score never falls when a judgement rises. In `grace` the
intervals end where a judgement begins to count (self-evaluation above 0.6, coverage above 0.1) and where it excuses a lack of sources
(from 0.8); `strict` has only the last. So every score that a judgement can lead to lies between the scores at the ends of
the intervals, which the profile itself calculates, rounding included. If all of these, and the score without a judgement, give the
same level, no judgement can change it. Of any other profile nothing is known, so a judgement could.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Self

from grace_kp.confidence._profiles import decide
from grace_kp.errors import check_unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.confidence._profiles import ConfidenceCalculator
    from grace_kp.confidence._score import ConfidenceFactors
    from grace_kp.levels import InterventionLevel


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
    p_true: float | None = None
    """Probability, 0 to 1, that the judge calls the text correct, by its token probabilities. No score or level uses it; None when unknown."""

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
    def failed(cls, error: str, **cost: Any) -> Self:
        """Return the fallback: a score of 0.5, marked as a fallback, with the error.

        Args:
            error: the reason.
            cost: `attempts`, `latency_ms`, `model`, `tokens_in` and `tokens_out`, as far as they are known.
        """
        return cls(score=FALLBACK_SCORE, reason=f"not evaluated: {error}", fallback=True, error=error, **cost)


_ENDS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "grace": (
        (0.0, 0.6, math.nextafter(0.6, 1), math.nextafter(0.8, 0), 0.8, 1.0),
        (0.0, 0.1, math.nextafter(0.1, 1), 1.0),
    ),
    "strict": ((0.0, math.nextafter(0.8, 0), 0.8, 1.0), (0.0, 1.0)),
}


def with_judgements(
    factors: ConfidenceFactors, own: Evaluation | None, coverage: Evaluation | None, *, cautious: bool = False
) -> ConfidenceFactors:
    """Return the factors with these judgements; a fallback becomes 0.5, marked as not evaluated."""
    changes: dict[str, float | bool] = {}
    if own is not None:
        changes["llm_self_confidence"] = own.cautious if cautious else own.score
        changes["self_evaluated"] = not own.fallback
    if coverage is not None:
        changes["query_coverage"] = coverage.cautious if cautious else coverage.score
        changes["coverage_evaluated"] = not coverage.fallback
    return replace(factors, **changes)  # type: ignore[arg-type]


def with_agreement(factors: ConfidenceFactors, measured: Evaluation) -> ConfidenceFactors:
    """Return the factors with the agreement of the sources; a fallback counts as not evaluated."""
    if factors.source_count < 2:
        return factors
    return replace(factors, source_agreement=measured.score, agreement_evaluated=not measured.fallback)


def could_change(
    calculator: ConfidenceCalculator,
    factors: ConfidenceFactors,
    *,
    own_is_known: bool = False,
    level_of: Callable[[ConfidenceFactors], InterventionLevel] | None = None,
) -> bool:
    """Return whether any self-evaluation and coverage could lead to another level than the factors without them."""
    ends = _ENDS.get(calculator.profile)
    if ends is None or not calculator.is_known:
        return True
    of = level_of or (lambda known: decide(calculator.calculate(known).score, calculator.thresholds).level)
    current = of(factors)
    # Each judgement may succeed or fail independently.
    owns = [*((score, True) for score in ends[0]), (FALLBACK_SCORE, False)]
    if own_is_known:
        owns = [(factors.llm_self_confidence, bool(factors.self_evaluated))]
    coverages = [*((score, True) for score in ends[1]), (FALLBACK_SCORE, False)]
    names = ("llm_self_confidence", "self_evaluated", "query_coverage", "coverage_evaluated")
    judged = (dict[str, Any](zip(names, (*own, *coverage), strict=True)) for own, coverage in product(owns, coverages))
    return any(of(replace(factors, **changes)) != current for changes in judged)
