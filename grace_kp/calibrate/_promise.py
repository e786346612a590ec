"""What thresholds are asked to promise: a risk for each level, how sure, of which kind, and at which moment of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from grace_kp.calibrate._features import MOMENTS, Moment
from grace_kp.calibrate._risk import OVERALL, SELECTIVE, checked_risks, labels_needed, promise_text
from grace_kp.errors import check_unit

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What thresholds are asked to promise.

    Raises:
        ValueError: a field cannot be used; the message says which and why.
    """

    risks: Mapping[str, float]
    """The largest share of wrong actions by level: silent, notify, confirm. Above 0 and below 1, and no larger for a stricter level."""
    delta: float = 0.1
    """The probability that the promise does not hold, above 0 and below 1; shared equally among the levels."""
    kind: Literal["selective", "overall"] = "selective"
    """Selective: at most this share of the actions at a level or a milder one is wrong. Overall: at most this share of all runs both
    reaches the level and is wrong."""
    moment: Moment = "action"
    """`"action"`: before an action of an open run, as at a gate. `"end"`: of a run that has ended."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "risks", checked_risks(self.risks))
        check_unit("delta", self.delta)
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be above 0 and below 1 (got {self.delta!r})")
        for name, value, known in (("promise", self.kind, (SELECTIVE, OVERALL)), ("moment", self.moment, MOMENTS)):
            if value not in known:
                raise ValueError(f"{name} must be {' or '.join(known)} (got {value!r:.60})")

    @property
    def needed(self) -> dict[str, int]:
        """Labels without an error that each level needs at least."""
        return {level: labels_needed(risk, self.delta, len(self.risks)) for level, risk in self.risks.items()}

    @property
    def in_words(self) -> str:
        """The promise as sentences."""
        return promise_text(self.kind, self.risks, self.delta, "actions" if self.moment == "action" else "runs")

    def lacking(self, labels: int) -> tuple[str, ...]:
        """Return a sentence for each level that so many independent labels cannot reach, even without one error."""
        return tuple(
            f"{level} at {self.risks[level]:g} needs at least {fewest:,} labels without an error, and there are {labels:,}"
            for level, fewest in self.needed.items()
            if labels < fewest
        )
