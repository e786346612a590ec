"""Factors with a model's judgements in them, and whether a judgement could change the level at all.

The bound of `could_change`: within each stretch of a profile's formula the score never falls when a judgement rises. In `grace` the
stretches are cut where a judgement begins to count (self-evaluation above 0.6, coverage above 0.1) and where it excuses the lack of
sources (from 0.8); in `strict` there is one stretch. So every score that a judgement can lead to lies between those at the ends of
the stretches, which are calculated by the profile itself, rounding included. Where all of these, and the score without a judgement,
give one level, no answer can give another. Of a profile that is not one of these two nothing is known, and it could.
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
    """The factors with these judgements; a fallback is put in as 0.5 and marked as not made.

    Args:
        factors: what is known otherwise.
        own: the judgement of the answer; None where none was asked for.
        coverage: how much of the question is covered; None where none was asked for.
        cautious: judgements that disagree count less, by their spread.
    """
    changes: dict[str, float | bool] = {}
    if own is not None:
        changes["llm_self_confidence"] = own.cautious if cautious else own.score
        changes["self_evaluated"] = not own.fallback
    if coverage is not None:
        changes["query_coverage"] = coverage.cautious if cautious else coverage.score
        changes["coverage_evaluated"] = not coverage.fallback
    return replace(factors, **changes)  # type: ignore[arg-type]


def could_change(
    calculator: ConfidenceCalculator,
    factors: ConfidenceFactors,
    level: Callable[[float], InterventionLevel] | None = None,
    *,
    own_is_known: bool = False,
) -> bool:
    """Whether any self-evaluation and coverage could lead to another level than the factors as they are.

    Args:
        calculator: the profile and the thresholds.
        factors: what is known without a judgement.
        level: the level of a score; the calculator's thresholds alone when None. It must never become milder as the score falls.
        own_is_known: the self-evaluation stands in the factors already, and only the coverage is open.
    """
    ends = _ENDS.get(calculator.profile)
    if ends is None or not calculator.is_known:
        return True
    of = level if level is not None else (lambda score: decide(score, calculator.thresholds).level)
    now = of(calculator.calculate(factors).score)
    return any(of(calculator.calculate(possible).score) != now for possible in _possible(factors, *ends, own_is_known))


def _possible(
    factors: ConfidenceFactors, owns: tuple[float, ...], coverages: tuple[float, ...], own_is_known: bool
) -> Iterator[ConfidenceFactors]:
    # Each judgement may come or fail by itself.
    known = (factors.llm_self_confidence,)
    for own_made in (bool(factors.self_evaluated),) if own_is_known else (True, False):
        for own in known if own_is_known else owns if own_made else (0.5,):
            for coverage_made in (True, False):
                for coverage in coverages if coverage_made else (0.5,):
                    yield replace(
                        factors,
                        llm_self_confidence=own,
                        self_evaluated=own_made,
                        query_coverage=coverage,
                        coverage_evaluated=coverage_made,
                    )
