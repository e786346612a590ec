"""From a confidence to how much of a person an action needs: three thresholds, four levels. Nothing is asked here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

NEVER = "never"
"""An infinite threshold in JSON and in settings."""
_NAMES = ("silent", "notify", "confirm")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lowest confidence at which an action goes ahead silently, with a notice, or after a yes; below `confirm`, only with help.

    Each is a number from 0 to 1, or `math.inf`: no confidence reaches that level. JSON and settings write infinity as `"never"`.

    Raises:
        ValueError: silent >= notify >= confirm does not hold, or a value is neither from 0 to 1 nor infinite.
    """

    silent: float = 0.9
    notify: float = 0.7
    confirm: float = 0.4

    def __post_init__(self) -> None:
        for name in _NAMES:
            value = getattr(self, name)
            if not _is_infinite(value):
                _check_unit(name, value, 'or math.inf, which means "never"')
        if not self.silent >= self.notify >= self.confirm:
            values = ", ".join(f"{name}={_written(getattr(self, name))}" for name in _NAMES)
            raise ValueError(f"thresholds must satisfy silent >= notify >= confirm (got {values})")

    def to_dict(self) -> dict[str, float | str]:
        """Return the JSON form: the three thresholds, an infinite one as `"never"`."""
        return {name: _written(getattr(self, name)) for name in _NAMES}

    @classmethod
    def from_dict(cls, values: Mapping[str, float | str]) -> Self:
        """Read the JSON form. A threshold that is left out keeps its default.

        Raises:
            ValueError: a name is unknown, or a value is no threshold.
        """
        unknown = [name for name in values if name not in _NAMES]
        if unknown:
            raise ValueError(f"unknown threshold {str(unknown[0])[:60]!r}; known are {', '.join(_NAMES)}")
        return cls(**{name: math.inf if value == NEVER else cast("float", value) for name, value in values.items()})


def check_thresholds(value: object) -> None:
    """Refuse thresholds of another type.

    Raises:
        TypeError: naming the type, and what to write instead.
    """
    if isinstance(value, Thresholds):
        return
    hint = "Thresholds(silent=0.9, notify=0.7, confirm=0.4)"
    if isinstance(value, dict):
        hint = "Thresholds.from_dict(...)"
    elif isinstance(getattr(value, "current", None), Thresholds):
        hint = "its .current"
    raise TypeError(f"thresholds must be a Thresholds, not {type(value).__name__}; pass {hint}")


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
        level, reason = InterventionLevel.CONFIRM, _missed("notify", thresholds.notify)
    else:
        level, reason = InterventionLevel.ESCALATE, _missed("confirm", thresholds.confirm)
    return ActionDecision(level, score, f"Confidence {score} {reason}.", _SUGGESTED[level])


def _missed(name: str, threshold: float) -> str:
    if _is_infinite(threshold):
        return f"cannot reach the {name} threshold, which is set to never"
    return f"is below the {name} threshold {threshold}"


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and value == math.inf


def _written(value: float) -> float | str:
    return NEVER if value == math.inf else value


def _check_unit(name: str, value: Any, alternative: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, float | int) or not math.isfinite(value) or not 0 <= value <= 1:
        seen = repr(value) if isinstance(value, float | int | str | None) else type(value).__name__
        allowed = f"a number from 0 to 1, {alternative}" if alternative else "a number from 0 to 1"
        raise ValueError(f"{name} must be {allowed} (got {seen[:60]})")
