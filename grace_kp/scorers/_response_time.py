"""The scorer of the duration of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grace_kp.scorers._edits import EditExpectation, check_positive
from grace_kp.scorers._scorer import DetailedScorer
from grace_kp.scorers._traces import as_result

if TYPE_CHECKING:
    from grace_kp.scorers._traces import Actual


@dataclass(frozen=True, slots=True)
class TimeDetails:
    """Explanation of a response-time."""

    response_time_ms: float
    max_acceptable_ms: float
    passed: bool


class ResponseTime(DetailedScorer[TimeDetails]):
    """1 up to `max_acceptable_ms`, then max(0, 1 − (t − max)/max): 0 from twice that time on."""

    type: str = "response-time"
    threshold: float = 1.0

    def __init__(self, max_acceptable_ms: float) -> None:
        """Set the longest duration that is good enough.

        Args:
            max_acceptable_ms: milliseconds.

        Raises:
            ValueError: the duration is no number above 0.
        """
        self.max_acceptable_ms = check_positive("max_acceptable_ms", max_acceptable_ms)

    @property
    def options(self) -> dict[str, float]:
        """The options that the scorer was built with."""
        return {"max_acceptable_ms": self.max_acceptable_ms}

    def score_with_details(self, actual: Actual, expected: EditExpectation) -> tuple[float, TimeDetails]:  # noqa: ARG002
        """Return score and details of one result.

        Raises:
            ValueError: the duration is unknown.
        """
        duration, longest = as_result(actual).duration_ms, self.max_acceptable_ms
        if duration is None:
            raise ValueError("the duration of the result is unknown: duration_ms is None")
        score = min(1.0, max(0.0, 1 - (duration - longest) / longest))
        return score, TimeDetails(duration, longest, duration <= longest)
