"""The weights of a learned confidence in units that people know: what happens to the odds when a count doubles, or when a tool was called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.calibrate._explanation import Part

if TYPE_CHECKING:
    from grace_kp.calibrate._head import Head

# How a feature is measured, which decides what one step of it is. Counts and lengths are logarithms of 1 + n.
_SHARES = frozenset({
    "tool_variety", "repeated_calls", "error_rate", "trouble", "empty_results", "repeated_results", "stated", "grounding",
    "on_topic", "search_quality", "search_average", "self_evaluation", "coverage", "agreement",
})  # fmt: skip
_FLAGS = frozenset({"ends_with_call", "ends_with_result", "error_at_end", "asks", "answer_is_error"})
_MEANS = frozenset({"doubt", "apologies"})


@dataclass(frozen=True, slots=True)
class Weight:
    """What one feature does to the confidence."""

    name: str
    words: str
    """The feature in words: "many errors"."""
    step: str
    """The change that `odds` refers to: "twice as much"."""
    odds: float
    """Factor by which this change multiplies the odds of being right."""
    spread: float
    """Log-odds that a change by one standard deviation of the fitted runs adds. Weights can be compared by it."""


def weights_of_head(head: Head) -> tuple[Weight, ...]:
    """Return the weights of a head, those with the largest effect first. Calibration is included."""
    columns = head.columns
    found = []
    ranges = (columns.high - columns.low).tolist()
    for name, weight, scale, width in zip(
        columns.names, head.regression.weights.tolist(), columns.scale.tolist(), ranges, strict=True
    ):
        spread = head.slope * weight
        step, size = _step(name)
        if size > width:  # beyond the fitted runs a value counts as the nearest of theirs
            step, size = "from the lowest to the highest", width
        found.append(Weight(name, Part(name, None, 0.0, True).words, step, math.exp(spread / scale * size), spread))
    return tuple(sorted(found, key=lambda each: -abs(each.spread)))


def _step(name: str) -> tuple[str, float]:
    """Return the step of a feature in words, and as a difference of its value."""
    if ":" in name or name in _FLAGS:
        return "yes instead of no", 1.0
    if name in _SHARES:
        return "0.1 more", 0.1
    if name in _MEANS:
        return "1 more per text", 1.0
    return "twice as much", math.log(2)
