"""Put a model's judgements into factors, and tell whether a judgement could change the level of intervention.

The bound of `could_change`: within each interval of a profile's formula the score never falls when a judgement rises. In `grace` the
intervals end where a judgement begins to count (self-evaluation above 0.6, coverage above 0.1) and where it excuses a lack of sources
(from 0.8); `strict` has only the last. So every score that a judgement can lead to lies between the scores at the ends of
the intervals, which the profile itself calculates, rounding included. If all of these, and the score without a judgement, give the
same level, no judgement can change it. Of any other profile nothing is known, so a judgement could.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from grace_kp.confidence._decision import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.confidence._calculator import ConfidenceCalculator
    from grace_kp.confidence._evaluation import Evaluation
    from grace_kp.confidence._factors import ConfidenceFactors
    from grace_kp.levels import InterventionLevel

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
    """Return the factors with these judgements; a fallback becomes 0.5, marked as not evaluated.

    Args:
        factors: the factors without the judgements.
        own: the judgement of the answer; None where none was requested.
        coverage: the judgement of the coverage; None where none was requested.
        cautious: True: judgements that disagree count less, by their spread.
    """
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
    level: Callable[[float], InterventionLevel] | None = None,
    *,
    own_is_known: bool = False,
    level_of: Callable[[ConfidenceFactors], InterventionLevel] | None = None,
) -> bool:
    """Return whether any self-evaluation and coverage could lead to another level than the factors without them.

    Args:
        calculator: the profile and the thresholds.
        factors: the factors without the judgements.
        level: the level of a score, which must not become milder as the score falls; None takes the calculator's thresholds.
        own_is_known: True: the factors already hold the self-evaluation, and only the coverage is open.
        level_of: the level of factors, in place of `level`, where it depends on more than the score: also on whether a judgement succeeded.
    """
    ends = _ENDS.get(calculator.profile)
    if ends is None or not calculator.is_known:
        return True
    of_score = level if level is not None else (lambda score: decide(score, calculator.thresholds).level)
    of = level_of if level_of is not None else (lambda known: of_score(calculator.calculate(known).score))
    current = of(factors)
    return any(of(candidate) != current for candidate in _candidates(factors, *ends, own_is_known))


def _candidates(
    factors: ConfidenceFactors, owns: tuple[float, ...], coverages: tuple[float, ...], own_is_known: bool
) -> Iterator[ConfidenceFactors]:
    # Each judgement may succeed or fail independently.
    known = (factors.llm_self_confidence,)
    for own_evaluated in (bool(factors.self_evaluated),) if own_is_known else (True, False):
        for own in known if own_is_known else owns if own_evaluated else (0.5,):
            for coverage_evaluated in (True, False):
                for coverage in coverages if coverage_evaluated else (0.5,):
                    yield replace(
                        factors,
                        llm_self_confidence=own,
                        self_evaluated=own_evaluated,
                        query_coverage=coverage,
                        coverage_evaluated=coverage_evaluated,
                    )
