"""The decision for a confidence: how far a person must be involved in an action. Nobody is asked here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.errors import check_unit
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from grace_kp.confidence._thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class ActionDecision:
    """How an action may proceed. `level` may be a text, and `suggested_action` follows from it when left out.

    Raises:
        ValueError: the level is unknown, or the confidence is not a number from 0 to 1.
    """

    level: InterventionLevel
    confidence_score: float
    """The confidence that the decision rests on, 0 to 1."""
    reason: str = ""
    """One sentence: which threshold the confidence reached or missed."""
    suggested_action: str = ""
    """`proceed`, `proceed_with_status`, `ask_confirmation` or `request_clarification`."""

    def __post_init__(self) -> None:
        check_unit("confidence_score", self.confidence_score)
        level = InterventionLevel(self.level)
        object.__setattr__(self, "level", level)
        if not self.suggested_action:
            object.__setattr__(self, "suggested_action", _SUGGESTED[level])

    @property
    def should_proceed(self) -> bool:
        """Whether the action proceeds without asking: SILENT and NOTIFY."""
        return not self.level.asks

    @property
    def needs_confirmation(self) -> bool:
        """Whether a person must agree first: CONFIRM."""
        return self.level is InterventionLevel.CONFIRM

    @property
    def needs_user_input(self) -> bool:
        """Whether a person must help: ESCALATE."""
        return self.level is InterventionLevel.ESCALATE


_SUGGESTED = {
    InterventionLevel.SILENT: "proceed",
    InterventionLevel.NOTIFY: "proceed_with_status",
    InterventionLevel.CONFIRM: "ask_confirmation",
    InterventionLevel.ESCALATE: "request_clarification",
}


def decide(score: float, thresholds: Thresholds) -> ActionDecision:
    """Return the decision for a confidence. A confidence equal to a threshold reaches it.

    Raises:
        ValueError: the score is not a number from 0 to 1.
    """
    check_unit("score", score)
    if score >= thresholds.silent:
        level, reason = InterventionLevel.SILENT, f"reaches the silent threshold {thresholds.silent}"
    elif score >= thresholds.notify:
        level, reason = InterventionLevel.NOTIFY, f"reaches the notify threshold {thresholds.notify}"
    elif score >= thresholds.confirm:
        level, reason = InterventionLevel.CONFIRM, _missed("notify", thresholds.notify)
    else:
        level, reason = InterventionLevel.ESCALATE, _missed("confirm", thresholds.confirm)
    return ActionDecision(level, score, f"Confidence {score} {reason}.", _SUGGESTED[level])


def _missed(name: str, threshold: float) -> str:
    if threshold == math.inf:
        return f"cannot reach the {name} threshold, which is set to never"
    return f"is below the {name} threshold {threshold}"
