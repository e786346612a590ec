"""Aggregate the confidences of several steps: by mean, by minimum, or with larger weights for later steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from grace_kp.errors import check_unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grace_kp.confidence._score import ConfidenceScore

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
