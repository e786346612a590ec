"""Entries of a suite: a scorer with its weight and threshold, scored on its own, and the scorer types that YAML knows by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grace_kp.errors import GraceError, brief, check_unit
from grace_kp.scorers._content import ContentQuality, OperationResult
from grace_kp.scorers._edits import is_number
from grace_kp.scorers._hallucination import AntiHallucination
from grace_kp.scorers._operations import OperationAccuracy, TargetBlockPrecision
from grace_kp.scorers._response_time import ResponseTime
from grace_kp.scorers._result import Result
from grace_kp.scorers._scorer import Scorer
from grace_kp.trace import describe_error

TOLERANCE = 1e-9
Factory = Callable[..., Scorer]
BUILT_IN: dict[str, Factory] = {
    scorer.type: scorer
    for scorer in (
        OperationAccuracy,
        TargetBlockPrecision,
        ContentQuality,
        OperationResult,
        AntiHallucination,
        ResponseTime,
    )
}
REGISTERED: dict[str, Factory] = {}


class SuiteError(GraceError, ValueError):
    """A suite cannot be built. The message names the entry and the problem, and for a file the line."""


def register(type: str, factory: Factory) -> None:  # noqa: A002 - the word that stands in YAML
    """Make a scorer of your own known under a name, for suites in YAML.

    Args:
        type: the name; it must not be the name of a scorer of the library.
        factory: builds the scorer from the options that stand beside its type.

    Raises:
        ValueError: the name belongs to a scorer of the library.
        TypeError: the factory cannot be called.
    """
    if not callable(factory):
        raise TypeError(f"a factory is a callable, not {factory!r:.60}")
    if type in BUILT_IN:
        raise ValueError(f"{type!r} is a scorer of the library")
    REGISTERED[type] = factory


@dataclass(frozen=True, slots=True)
class Entry:
    """A scorer in a suite.

    Raises:
        ValueError: the scorer has no `type` or `score`, the weight is below 0, or the threshold is outside 0 to 1.
    """

    scorer: Scorer
    weight: float = 1.0
    threshold: float | None = None
    """The lowest score that passes, 0 to 1; the scorer's own threshold when None."""
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The options that the scorer was built with, for YAML."""

    def __post_init__(self) -> None:
        if not callable(getattr(self.scorer, "score", None)) or not isinstance(getattr(self.scorer, "type", None), str):
            raise ValueError(f"a scorer has a type and score(actual, expected); {brief(self.scorer)} has not")
        if not is_number(self.weight) or self.weight < 0:
            raise ValueError(f"a weight must be a number from 0, not {brief(self.weight)}")
        if self.threshold is None:
            object.__setattr__(self, "threshold", getattr(self.scorer, "threshold", None))
        check_unit("threshold", self.threshold)

    def evaluate(self, actual: object, expected: object) -> Result:
        """Score one case. An exception of the scorer becomes the result's error."""
        threshold = float(self.threshold or 0)
        try:
            score_with_details = _combined(self.scorer)
            if score_with_details is not None:  # one evaluation for both, where it costs something
                score, details = score_with_details(actual, expected)
            else:
                score, details = self.scorer.score(actual, expected), self.scorer.details(actual, expected)
            score, error = float(score), ""
            check_unit("score", score)
        except Exception as problem:  # noqa: BLE001 — a scorer of the user's may raise anything
            score, details, error = 0.0, None, ": ".join(describe_error(problem))
        passed = not error and score >= threshold - TOLERANCE
        return Result(self.scorer.type, score, self.weight, threshold, passed, details, error)


def _combined(scorer: Scorer) -> Callable[[object, object], tuple[float, object]] | None:
    """Return the scorer's `score_with_details`; None where a subclass has replaced `score` or `details` alone."""
    for cls in type(scorer).__mro__:
        own = vars(cls)
        if "score_with_details" in own:
            break
        if "score" in own or "details" in own:
            return None
    return getattr(scorer, "score_with_details", None)
