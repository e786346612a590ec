"""Thresholds that move with feedback: up when confident answers were wrong, down when unconfident ones were right."""

from __future__ import annotations

from collections import deque
from threading import Lock

from grace_kp.confidence._decision import Thresholds, _check_unit

WINDOW = 10
MOST_TOLERATED = 3
STEP = 0.05
CAPS = (0.95, 0.85, 0.6)
FLOORS = (0.8, 0.6, 0.3)


class DynamicThresholds:
    """Thresholds that learn. Safe to share between threads.

    From the tenth sample on, over the last ten: when more than three were confident (above `notify`) and wrong, all
    three thresholds rise by 0.05, up to 0.95 / 0.85 / 0.6; else when more than three were unconfident (below `confirm`)
    and right, they fall by 0.05, down to 0.8 / 0.6 / 0.3. A threshold that began beyond such a limit stays, an infinite one too.

    Each step is rounded to nine decimals. In plain floating-point arithmetic 0.4 - 0.05 is 0.35000000000000003, so that a
    confidence of 0.35 would miss a threshold that reads 0.35. Here it reaches it.

    Args:
        initial: where the thresholds start.
    """

    __slots__ = ("_current", "_lock", "_samples")

    def __init__(self, initial: Thresholds | None = None) -> None:
        self._current = Thresholds() if initial is None else initial
        self._samples: deque[tuple[float, bool]] = deque(maxlen=WINDOW)
        self._lock = Lock()

    @property
    def current(self) -> Thresholds:
        """The thresholds as they are now."""
        return self._current

    def record_feedback(self, confidence: float, was_correct: bool) -> None:
        """Say how a run of this confidence, 0 to 1, turned out.

        Raises:
            ValueError: the confidence is no number from 0 to 1, or `was_correct` is no truth value.
        """
        _check_unit("confidence", confidence)
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
