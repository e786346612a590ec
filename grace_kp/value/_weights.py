"""The weights of the dimensions of the value score, by task domain.

The five built-in profiles come from KnowledgePulse; users can register more. Nothing here reads a trace.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from types import MappingProxyType

DEFAULT_PROFILE = "default"
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """The weight of each dimension: four finite numbers >= 0 that sum to 1 within 1e-6.

    Raises:
        ValueError: a weight is not such a number (the message names it), or the weights do not sum to 1.
    """

    complexity: float
    """Weight of the structural richness, C."""
    novelty: float
    """Weight of the difference from earlier traces, N."""
    tool_diversity: float
    """Weight of the variety of tools, D."""
    outcome_confidence: float
    """Weight of the confidence in the outcome, O."""

    def __post_init__(self) -> None:
        for name in _NAMES:
            object.__setattr__(self, name, _weight(name, getattr(self, name)))
        total = math.fsum(getattr(self, name) for name in _NAMES)
        # The last term allows a binary rounding error on top of a sum that is off by exactly 1e-6.
        if abs(total - 1.0) > SUM_TOLERANCE + 1e-12:
            raise ValueError(f"weights must sum to 1 (within {SUM_TOLERANCE:g}), these sum to {total:g}: {self}")


_NAMES = tuple(field.name for field in fields(ScoringWeights))


def _weight(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise ValueError(f"weight {name} must be a finite number >= 0 (got {value!r})")
    return float(value)


_PROFILES = {
    DEFAULT_PROFILE: ScoringWeights(0.25, 0.35, 0.15, 0.25),
    "finance": ScoringWeights(0.20, 0.25, 0.10, 0.45),
    "code": ScoringWeights(0.20, 0.30, 0.30, 0.20),
    "medical": ScoringWeights(0.15, 0.20, 0.10, 0.55),
    "customer_service": ScoringWeights(0.20, 0.30, 0.20, 0.30),
}
WEIGHT_PROFILES: Mapping[str, ScoringWeights] = MappingProxyType(_PROFILES)
"""The weight profiles by task domain: a read-only, live view of what is registered."""


def register_profile(name: str, weights: ScoringWeights | Mapping[str, float]) -> None:
    """Use weights for traces whose `task_domain` is exactly `name`; replaces an earlier profile of that name.

    Args:
        name: the task domain, non-empty.
        weights: ScoringWeights, or a mapping with exactly their four fields.

    Raises:
        ValueError: the name is empty, or the weights cannot be used; nothing is registered then.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"a profile's name must be a non-empty string (got {name!r})")
    _PROFILES[name] = weights if isinstance(weights, ScoringWeights) else _read(weights)


def _read(weights: Mapping[str, float]) -> ScoringWeights:
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be ScoringWeights or a mapping (got {type(weights).__name__})")
    missing = [name for name in _NAMES if name not in weights]
    unknown = [str(name) for name in weights if name not in _NAMES]
    if missing or unknown:
        problems = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
        raise ValueError(f"weights need exactly {', '.join(_NAMES)}: {'; '.join(problems)}")
    return ScoringWeights(**weights)


def profile_for(domain: str) -> tuple[str, ScoringWeights]:
    """Return name and weights of the profile for a task domain, matched exactly; an unknown domain takes `default`."""
    name = domain if domain in _PROFILES else DEFAULT_PROFILE
    return name, _PROFILES[name]
