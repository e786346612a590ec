"""What a person is shown before a decision. Questions at the console and stored requests for approval state the same facts in the same words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grace_kp.gating._hidden import sizes_text
from grace_kp.pages import with_fallbacks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.gating._request import InterventionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """An action, its arguments, and why a person is asked."""

    action: str
    level: str
    arguments: Mapping[str, Any]
    """The values themselves, by parameter name."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """What edited arguments were before the edit, by parameter name."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What else is to be known of an argument, by parameter name: that it is sealed, or not covered by the decision."""
    objective: str = ""
    problem: str = ""
    """What was wrong with the answer before."""
    hidden: str = ""
    """Which arguments are not shown in full, in words."""
    score: float | None = None
    """The confidence; None where it could not be computed."""
    parts: Mapping[str, float | str | None] = field(default_factory=dict)
    """The parts of the confidence; a text such as `fallback 0.5` or None for those that were not evaluated."""
    penalties: tuple[str, ...] = ()
    reason: str = ""
    gaps: tuple[str, ...] = ()
    """Why evidence is missing or cannot be used, where the reason does not say so already."""
    earlier: tuple[str, ...] = ()
    """What became of earlier requests for the same operation, in words."""
    time: str = ""
    """How long there is to decide, and what happens then."""

    @classmethod
    def of(cls, request: InterventionRequest) -> Facts:
        """Return the facts of a request that a gate puts to a reviewer."""
        confidence = request.confidence
        return cls(
            action=request.action,
            level=request.level.value,
            arguments=request.arguments,
            objective=request.objective or "",
            problem=request.problem,
            hidden=sizes_text(request.hidden),
            score=request.decision.confidence_score,
            parts={} if confidence is None else with_fallbacks(confidence.evaluated, confidence.fallbacks),
            penalties=() if confidence is None else tuple(confidence.penalties_applied),
            reason=request.reason,
            time="" if request.timeout is None else f"{request.timeout:g} s, then it does not run",
        )
