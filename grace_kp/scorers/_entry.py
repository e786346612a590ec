"""Entries of a suite: a scorer with its weight and threshold, its result with a diagnosis, and the scorer types that YAML knows by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

from grace_kp.errors import GraceError, brief, check_unit
from grace_kp.scorers._edits import Scorer, is_number
from grace_kp.scorers._hallucination import AntiHallucination
from grace_kp.scorers._operations import OperationAccuracy, TargetBlockPrecision
from grace_kp.scorers._outcome import ContentQuality, OperationResult, ResponseTime
from grace_kp.trace import describe_error


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one scorer in a suite."""

    type: str
    score: float
    weight: float
    threshold: float
    passed: bool
    details: Any = None
    error: str = ""
    """Why the score is missing and replaced by 0; empty with a score."""

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Where to look, and the evidence from the details; empty if the score reaches its threshold."""
        return () if self.passed else tuple(_diagnose(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        details = self.details
        return {
            **{name: getattr(self, name) for name in ("type", "score", "weight", "threshold", "passed", "error")},
            "details": asdict(details) if is_dataclass(details) and not isinstance(details, type) else details,
        }


_UNEXPECTED = "nothing was expected; see what was done all the same"
_ADVICE = {
    "operation-accuracy": (("unmatched_operations",), "see whether type, target or position does not agree"),
    "target-block-precision": (("incorrect_targets",), "see why the target was not found"),
    "content-quality": (
        ("content_issues",),
        "see whether the patterns are too strict, and whether they say what is meant",
    ),
    "operation-result": (
        ("failed_operations", "content_issues"),
        "see which operations could not be applied, and which patterns were not found",
    ),
    "anti-hallucination": (("problems",), "compare what went in with what came out"),
    "response-time": (("response_time_ms",), "see where the time goes"),
}
"""By type of scorer: the fields of its details that are evidence, and what to do. Traces store these texts, so they stay as they are."""


def _diagnose(result: Result) -> list[str]:
    if result.error:
        return [f"{result.type}: it could not be scored: {result.error}"]
    names, advice = _ADVICE.get(result.type, ((), "see its details"))
    evidence: list[str] = []
    for name in names:
        value = getattr(result.details, name, None)
        if value is not None:
            evidence += map(_text, value) if isinstance(value, tuple) else [f"{name}: {value}"]
    unexpected = getattr(result.details, "unexpected_operations", None)
    # Unexpected operations lower a score only where nothing was expected.
    if names and not evidence and isinstance(unexpected, tuple) and unexpected:
        advice, evidence = _UNEXPECTED, [f"not expected: {_text(operation)}" for operation in unexpected]
    diff = getattr(result.details, "diff", None)
    evidence += diff.splitlines() if isinstance(diff, str) else []
    head = f"{result.type}: {result.score:.2f}, and {result.threshold:.2f} is needed; {advice}"
    return [head, *(f"  {line}" for line in evidence)]


def _text(item: Any) -> str:
    try:
        if hasattr(item, "reason"):
            closest = f"; closest was {item.closest.to_dict()}" if item.closest is not None else ""
            return f"{item.reason}: expected {item.expected.to_dict()}{closest}"
        if hasattr(item, "actual"):
            chosen = "nothing" if item.actual is None else _target_text(item.actual)
            return f"expected {_target_text(item.expected)}, chosen was {chosen}"
        return str(item.to_dict()) if hasattr(item, "to_dict") else str(item)
    except RecursionError:  # the position of an operation may be nested as deeply as a file of cases allows
        return "something that is nested too deeply to be shown"


def _target_text(target: Any) -> str:
    values = {name: getattr(target, name) for name in ("target_block_id", "target_index")}
    return ", ".join(f"{name} {value!r}" for name, value in values.items() if value is not None) or "no target"


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


def register(type: str, factory: Factory) -> None:  # noqa: A002 - the word in YAML
    """Make a scorer of your own known under a name, for suites in YAML.

    Args:
        type: the name; it must not be the name of a scorer of the library.
        factory: builds the scorer from the other fields of its entry.

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
            score_with_details = _find_combined(self.scorer)
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


def _find_combined(scorer: Scorer) -> Callable[[object, object], tuple[float, object]] | None:
    """Return the scorer's `score_with_details`; None where a subclass has replaced `score` or `details` alone."""
    for cls in type(scorer).__mro__:
        own = vars(cls)
        if "score_with_details" in own:
            break
        if "score" in own or "details" in own:
            return None
    return getattr(scorer, "score_with_details", None)
