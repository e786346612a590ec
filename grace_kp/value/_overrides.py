"""The three rules that correct a value score after the weighted sum, as a table (KnowledgePulse value score).

They see the shape of a trace, never its texts, and apply in the order of the table, each to the result of the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Shape(NamedTuple):
    """The properties of a trace that the overrides depend on."""

    steps: int
    """Number of steps."""
    types: frozenset[str] | set[str]
    """The distinct types of the steps."""
    recoveries: int
    """Number of steps of type error_recovery."""
    uses_tools: bool
    """Whether any step has a tool."""
    unique_tools: int
    """Number of distinct tools."""
    success: bool


class Override(NamedTuple):
    """A rule: when it applies, and how it changes the score."""

    name: str
    applies: Callable[[Shape], bool]
    adjust: Callable[[float], float]


OVERRIDES = (
    Override(
        "single_thought",
        lambda shape: shape.steps == 1 and "thought" in shape.types,
        lambda score: 0.1,  # noqa: ARG005 — for any score
    ),
    # The text of the source says "two or more recoveries", but its code says more than two. The code counts.
    Override(
        "error_recovery_bonus",
        lambda shape: shape.recoveries > 2 and shape.success,
        lambda score: min(1.0, score + 0.1),
    ),
    Override(
        "low_tool_diversity",
        lambda shape: shape.uses_tools and shape.unique_tools <= 1,
        lambda score: max(0.0, score - 0.1),
    ),
)


def apply_overrides(score: float, shape: Shape) -> tuple[float, tuple[str, ...]]:
    """Return the score after all overrides, and the names of those that applied, in order."""
    applied: tuple[str, ...] = ()
    for name, applies, adjust in OVERRIDES:
        if applies(shape):
            score = adjust(score)
            applied += (name,)
    return score, applied
