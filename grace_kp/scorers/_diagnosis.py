"""What one scorer of a suite came to, and for one that is too low what to look at and what is seen there."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """What one scorer of a suite came to."""

    type: str
    score: float
    weight: float
    threshold: float
    passed: bool
    details: Any = None
    error: str = ""
    """Why there is no score, and 0 stands for it; empty where there is one."""

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """What to look at where the score is too low, and what is seen there; empty where the score passes."""
        return () if self.passed else tuple(diagnosis_of(self))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        told = self.details
        return {
            **{name: getattr(self, name) for name in ("type", "score", "weight", "threshold", "passed", "error")},
            "details": asdict(told) if is_dataclass(told) and not isinstance(told, type) else told,
        }


_UNEXPECTED = "nothing was expected; see what was done all the same"
_LOOK_AT = MappingProxyType(
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


def diagnosis_of(result: Result) -> list[str]:
    """What to look at where a score is too low, and what is seen there."""
    if result.error:
        return [f"{result.type}: it could not be scored: {result.error}"]
    head = f"{result.type}: {result.score:.2f}, and {result.threshold:.2f} is needed"
    names, advice = _LOOK_AT.get(result.type, ((), "see its details"))
    evidence = [line for name in names for line in _lines(name, getattr(result.details, name, None))]
    unexpected = getattr(result.details, "unexpected_operations", None)
    # What is done besides costs nothing, unless there was nothing to be done.
    if names and not evidence and isinstance(unexpected, tuple) and unexpected:
        advice, evidence = _UNEXPECTED, [f"not expected: {_told(one)}" for one in unexpected]
    diff = getattr(result.details, "diff", None)
    evidence += diff.splitlines() if isinstance(diff, str) else []
    return [f"{head}; {advice}", *(f"  {line}" for line in evidence)]


def _lines(name: str, seen: Any) -> list[str]:
    if isinstance(seen, tuple):
        return list(map(_told, seen))
    return [] if seen is None else [f"{name}: {seen}"]


def _told(one: Any) -> str:
    try:
        return _shown(one)
    except RecursionError:  # a position may be nested as deeply as a file of cases can hold it
        return "something that is nested too deeply to be shown"


def _shown(one: Any) -> str:
    if isinstance(one, str):
        return one
    if hasattr(one, "reason"):
        closest = f"; closest was {one.closest.to_dict()}" if one.closest is not None else ""
        return f"{one.reason}: expected {one.expected.to_dict()}{closest}"
    if hasattr(one, "actual"):
        chosen = "nothing" if one.actual is None else _named(one.actual)
        return f"expected {_named(one.expected)}, chosen was {chosen}"
    return str(one.to_dict()) if hasattr(one, "to_dict") else str(one)


def _named(target: Any) -> str:
    parts = [
        f"{name} {getattr(target, name)!r}"
        for name in ("target_block_id", "target_index")
        if getattr(target, name) is not None
    ]
    return ", ".join(parts) or "no target"
