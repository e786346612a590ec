"""The result of one scorer in a suite, and its diagnosis: where to look when the score is too low."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from types import MappingProxyType
from typing import Any


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
    """Why there is no score, so that 0 stands in its place; empty where there is a score."""

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
_ADVICE = MappingProxyType(
    {
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
)
"""By type of scorer: the fields of its details that are evidence, and what to do. Traces store these texts, so they stay as they are."""


def _diagnose(result: Result) -> list[str]:
    if result.error:
        return [f"{result.type}: it could not be scored: {result.error}"]
    names, advice = _ADVICE.get(result.type, ((), "see its details"))
    evidence = [line for name in names for line in _lines(name, getattr(result.details, name, None))]
    unexpected = getattr(result.details, "unexpected_operations", None)
    # Unexpected operations lower a score only where nothing was expected.
    if names and not evidence and isinstance(unexpected, tuple) and unexpected:
        advice, evidence = _UNEXPECTED, [f"not expected: {_text(operation)}" for operation in unexpected]
    diff = getattr(result.details, "diff", None)
    evidence += diff.splitlines() if isinstance(diff, str) else []
    head = f"{result.type}: {result.score:.2f}, and {result.threshold:.2f} is needed; {advice}"
    return [head, *(f"  {line}" for line in evidence)]


def _lines(name: str, value: object) -> list[str]:
    if isinstance(value, tuple):
        return list(map(_text, value))
    return [] if value is None else [f"{name}: {value}"]


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
