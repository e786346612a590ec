"""The thresholds between the levels of intervention, fixed or learning from feedback, and the decision on the level of a score."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Self, cast

from grace_kp.errors import check_unit
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping


NEVER = "never"
"""An infinite threshold in JSON and in settings."""
_NAMES = ("silent", "notify", "confirm")
WINDOW = 10
MOST_TOLERATED = 3
STEP = 0.05
CAPS = (0.95, 0.85, 0.6)
FLOORS = (0.8, 0.6, 0.3)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lowest confidence at which an action proceeds silently, with a notice, or after approval; below `confirm`, a person must help.

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
            if value != math.inf or not isinstance(value, float):
                check_unit(name, value, 'or math.inf, which means "never"')
        if not self.silent >= self.notify >= self.confirm:
            values = ", ".join(f"{name}={_json_value(getattr(self, name))}" for name in _NAMES)
            raise ValueError(f"thresholds must satisfy silent >= notify >= confirm (got {values})")

    def to_dict(self) -> dict[str, float | str]:
        """Return the JSON form: the three thresholds, an infinite one as `"never"`."""
        return {name: _json_value(getattr(self, name)) for name in _NAMES}

    @classmethod
    def from_dict(cls, values: Mapping[str, float | str]) -> Self:
        """Read the JSON form. A threshold that is left out keeps its default.

        Raises:
            ValueError: a name is unknown, or a value is not a threshold.
        """
        unknown = [name for name in values if name not in _NAMES]
        if unknown:
            raise ValueError(f"unknown threshold {str(unknown[0])[:60]!r}; known are {', '.join(_NAMES)}")
        return cls(**{name: math.inf if value == NEVER else cast("float", value) for name, value in values.items()})


def check_thresholds(value: object) -> None:
    """Refuse thresholds of another type."""
    if isinstance(value, Thresholds):
        return
    hint = "Thresholds(silent=0.9, notify=0.7, confirm=0.4)"
    if isinstance(value, dict):
        hint = "Thresholds.from_dict(...)"
    elif isinstance(getattr(value, "current", None), Thresholds):
        hint = "its .current"
    raise TypeError(f"thresholds must be a Thresholds, not {type(value).__name__}; pass {hint}")


class DynamicThresholds:
    """Thresholds that learn. Safe to share between threads.

    From the tenth sample on, the last ten count. When more than three were confident (above `notify`) and wrong, all three
    thresholds rise by 0.05, up to 0.95 / 0.85 / 0.6. Else when more than three were unconfident (below `confirm`) and right, they
    fall by 0.05, down to 0.8 / 0.6 / 0.3. A threshold that started beyond such a limit, or is infinite, stays.

    Each step is rounded to nine decimals. In plain floating-point arithmetic 0.4 - 0.05 is 0.35000000000000003, and a confidence of
    0.35 would miss a threshold that reads 0.35.

    Args:
        initial: the first thresholds; None takes the defaults.
    """

    __slots__ = ("_current", "_lock", "_samples")

    def __init__(self, initial: Thresholds | None = None) -> None:
        self._current = Thresholds() if initial is None else initial
        self._samples: deque[tuple[float, bool]] = deque(maxlen=WINDOW)
        self._lock = Lock()

    @property
    def current(self) -> Thresholds:
        """The current thresholds."""
        return self._current

    def record_feedback(self, confidence: float, was_correct: bool) -> None:
        """Record whether a run of this confidence, 0 to 1, was correct.

        Raises:
            ValueError: the confidence is not a number from 0 to 1, or `was_correct` is not a bool.
        """
        check_unit("confidence", confidence)
        if not isinstance(was_correct, bool):
            raise ValueError(f"was_correct must be true or false (got {type(was_correct).__name__})")
        with self._lock:
            self._samples.append((confidence, was_correct))
            if len(self._samples) == WINDOW:
                self._current = self._adjusted()

    def _adjusted(self) -> Thresholds:
        now = self._current
        overconfident = sum(confidence > now.notify and not right for confidence, right in self._samples)
        underconfident = sum(confidence < now.confirm and right for confidence, right in self._samples)
        before = (now.silent, now.notify, now.confirm)
        if overconfident > MOST_TOLERATED:
            return Thresholds(*(max(v, min(cap, _step(v, STEP))) for v, cap in zip(before, CAPS, strict=True)))
        if underconfident > MOST_TOLERATED:
            return Thresholds(*(min(v, max(low, _step(v, -STEP))) for v, low in zip(before, FLOORS, strict=True)))
        return now


def _step(value: float, by: float) -> float:
    # 0.8 + 0.05 must be 0.85: a confidence of exactly 0.85 is compared with it.
    return round(value + by, 9)


def _json_value(threshold: float) -> float | str:
    return NEVER if threshold == math.inf else threshold


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
    """Return the decision for a confidence. A confidence equal to a threshold reaches it."""
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
