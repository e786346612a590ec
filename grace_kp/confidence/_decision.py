"""From a confidence to how much of a person an action needs: three thresholds, four levels. Nothing is asked here."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from grace_kp.levels import InterventionLevel


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which confidence on an action goes ahead silently, with a notice, or after a yes; below, only with help.

    Raises:
        ValueError: 1 >= silent >= notify >= confirm >= 0 does not hold.
    """

    silent: float = 0.9
    notify: float = 0.7
    confirm: float = 0.4

    def __post_init__(self) -> None:
        for name in ("silent", "notify", "confirm"):
            _check_unit(name, getattr(self, name))
        if not self.silent >= self.notify >= self.confirm:
            raise ValueError(
                "thresholds must satisfy 1 >= silent >= notify >= confirm >= 0 "
                f"(got silent={self.silent}, notify={self.notify}, confirm={self.confirm})"
            )


@dataclass(frozen=True, slots=True)
class ActionDecision:
    """How an action may go ahead. `level` is taken as text too, and `suggested_action` follows from it when left out.

    Raises:
        ValueError: an unknown level, or a confidence that is no number from 0 to 1.
    """

    level: InterventionLevel
    confidence_score: float
    """The confidence the decision rests on, 0 to 1."""
    reason: str = ""
    """One sentence: which threshold the confidence met or missed."""
    suggested_action: str = ""
    """`proceed`, `proceed_with_status`, `ask_confirmation` or `request_clarification`."""

    def __post_init__(self) -> None:
        _check_unit("confidence_score", self.confidence_score)
        level = InterventionLevel(self.level)
        object.__setattr__(self, "level", level)
        if not self.suggested_action:
            object.__setattr__(self, "suggested_action", _SUGGESTED[level])

    @property
    def should_proceed(self) -> bool:
        """Whether the action goes ahead without asking: SILENT and NOTIFY."""
        return not self.level.asks

    @property
    def needs_confirmation(self) -> bool:
        """Whether a person has to agree first: CONFIRM."""
        return self.level is InterventionLevel.CONFIRM

    @property
    def needs_user_input(self) -> bool:
        """Whether a person has to help: ESCALATE."""
        return self.level is InterventionLevel.ESCALATE


_SUGGESTED = {
    InterventionLevel.SILENT: "proceed",
    InterventionLevel.NOTIFY: "proceed_with_status",
    InterventionLevel.CONFIRM: "ask_confirmation",
    InterventionLevel.ESCALATE: "request_clarification",
}


def decide(score: float, thresholds: Thresholds) -> ActionDecision:
    """The decision for a confidence; a threshold that is met exactly counts as met.

    Raises:
        ValueError: the score is no number from 0 to 1.
    """
    _check_unit("score", score)
    if score >= thresholds.silent:
        level, reason = InterventionLevel.SILENT, f"reaches the silent threshold {thresholds.silent}"
    elif score >= thresholds.notify:
        level, reason = InterventionLevel.NOTIFY, f"reaches the notify threshold {thresholds.notify}"
    elif score >= thresholds.confirm:
        level, reason = InterventionLevel.CONFIRM, f"is below the notify threshold {thresholds.notify}"
    else:
        level, reason = InterventionLevel.ESCALATE, f"is below the confirm threshold {thresholds.confirm}"
    return ActionDecision(level, score, f"Confidence {score} {reason}.", _SUGGESTED[level])


def _check_unit(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, float | int) or not isfinite(value) or not 0 <= value <= 1:
        seen = repr(value) if isinstance(value, float | int | str | None) else type(value).__name__
        raise ValueError(f"{name} must be a number from 0 to 1 (got {seen[:60]})")
