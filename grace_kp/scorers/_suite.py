"""Several scorers together: whether all are good enough, the weighted average, and what to look at where one is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.scorers._scorers import (
    AntiHallucination,
    ContentQuality,
    OperationAccuracy,
    OperationResult,
    ResponseTime,
    Scorer,
    TargetBlockPrecision,
)

if TYPE_CHECKING:
    from grace_kp.scorers._edits import EditExpectation, EditResult

TOLERANCE = 1e-9
Factory = Callable[..., Scorer]


class SuiteError(GraceError, ValueError):
    """A suite cannot be built. The message says where in it, and what is wrong."""


_BUILT_IN: dict[str, Factory] = {
    made.type: made
    for made in (
        OperationAccuracy,
        TargetBlockPrecision,
        ContentQuality,
        OperationResult,
        AntiHallucination,
        ResponseTime,
    )
}
_REGISTERED: dict[str, Factory] = {}
_PRESETS: Mapping[str, tuple[tuple[str, float, float], ...]] = MappingProxyType(
    {
        "standard": (
            ("operation-accuracy", 1.0, 0.8),
            ("target-block-precision", 1.0, 0.75),
            ("content-quality", 1.0, 0.6),
        ),
        "strict": (
            ("operation-accuracy", 1.0, 0.9),
            ("target-block-precision", 1.0, 0.9),
            ("content-quality", 1.0, 0.8),
            ("anti-hallucination", 2.0, 1.0),
        ),
        "operation-focused": (
            ("operation-accuracy", 2.0, 0.9),
            ("target-block-precision", 1.5, 0.85),
            ("content-quality", 0.5, 0.5),
        ),
    }
)
_LOOK_AT = MappingProxyType(
    {
        "operation-accuracy": ("unmatched_operations", "see whether type, target or position does not agree"),
        "target-block-precision": ("incorrect_targets", "see why the target was not found"),
        "content-quality": (
            "content_issues",
            "see whether the patterns are too strict, and whether they say what is meant",
        ),
        "operation-result": ("failed_operations", "see which operations could not be applied"),
        "anti-hallucination": ("problems", "compare what went in with what came out"),
        "response-time": ("response_time_ms", "see where the time goes"),
    }
)


def register(type: str, factory: Factory) -> None:  # noqa: A002 - the word that stands in YAML
    """Make a scorer of your own known under a name, for suites in YAML.

    Args:
        type: the name; not one of those that are there.
        factory: gives the scorer from the options that stand beside its type.

    Raises:
        ValueError: the name is taken.
        TypeError: the factory cannot be called.
    """
    if not callable(factory):
        raise TypeError(f"a factory is a callable, not {factory!r:.60}")
    if type in _BUILT_IN:
        raise ValueError(f"{type!r} is a scorer of the library")
    _REGISTERED[type] = factory


@dataclass(frozen=True, slots=True)
class Entry:
    """A scorer in a suite.

    Raises:
        ValueError: a weight below 0, or a threshold outside of 0 to 1.
    """

    scorer: Scorer
    weight: float = 1.0
    threshold: float | None = None
    """From which score on it passes; the scorer's own when None."""
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What it was built with, for YAML."""

    def __post_init__(self) -> None:
        if not _number(self.weight) or self.weight < 0:
            raise ValueError(f"a weight is a number from 0, not {brief(self.weight)}")
        if self.threshold is None:
            object.__setattr__(self, "threshold", self.scorer.threshold)
        if not _number(self.threshold) or not 0 <= float(self.threshold or 0) <= 1:
            raise ValueError(f"a threshold is a number from 0 to 1, not {brief(self.threshold)}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        told = self.details
        return {
            **{name: getattr(self, name) for name in ("type", "score", "weight", "threshold", "passed", "error")},
            "details": asdict(told) if is_dataclass(told) and not isinstance(told, type) else told,
        }


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What a suite says of one case."""

    passed: bool
    """Every score reaches its threshold."""
    overall: float
    """The weighted average, 0 to 1."""
    results: tuple[Result, ...]
    diagnosis: tuple[str, ...]
    """For every score that is too low, what to look at and what is seen there."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "passed": self.passed,
            "overall": self.overall,
            "results": [one.to_dict() for one in self.results],
            "diagnosis": list(self.diagnosis),
        }


class Suite:
    """Scorers with weights and thresholds."""

    def __init__(self, entries: Sequence[Entry], *, name: str = "suite") -> None:
        """Put scorers together.

        Args:
            entries: the scorers.
            name: what its results are found by; the preset's name, or the file's.

        Raises:
            SuiteError: there are none, or all weigh nothing.
        """
        self.name = name
        self.entries = tuple(entries)
        if not self.entries:
            raise SuiteError("a suite needs at least one scorer")
        if not sum(one.weight for one in self.entries) > 0:
            raise SuiteError("at least one scorer of a suite must weigh more than 0")

    @classmethod
    def preset(cls, name: str) -> Self:
        """`standard`, `strict` or `operation-focused`.

        Raises:
            SuiteError: another name.
        """
        if name not in _PRESETS:
            raise SuiteError(f"a preset is one of {', '.join(_PRESETS)}, not {name!r}")
        return cls(
            [Entry(_BUILT_IN[kind](), weight, threshold) for kind, weight, threshold in _PRESETS[name]], name=name
        )

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """A suite from a file: `scorers`, a list with `type`, `weight`, `threshold` and options.

        Raises:
            SuiteError: the file is no suite; the message names file, line and entry.
            OSError: it cannot be read.
            MissingExtra: PyYAML is not installed.
        """
        path = Path(path)
        document, lines = _loaded(path.read_text(encoding="utf-8"), str(path))
        listed = document.get("scorers") if isinstance(document, dict) else None
        if not isinstance(listed, list):
            raise SuiteError(f"{path}: scorers must be a list of scorers, not {brief(listed)}")
        strange = [name for name in document if name != "scorers"]
        if strange:
            raise SuiteError(f"{path}: unknown key {strange[0]!r}; known is scorers")
        entries = []
        for number, item in enumerate(listed):
            try:
                entries.append(_entry(item))
            except (GraceError, ValueError, TypeError) as error:
                raise SuiteError(f"{path}:{lines[number]}: scorers[{number}]: {error}") from None
        return cls(entries, name=path.stem)

    def to_yaml(self) -> str:
        """The suite as YAML, which reads back as the same suite.

        Raises:
            MissingExtra: PyYAML is not installed.
        """
        yaml = _yaml()
        listed = [
            {"type": one.scorer.type, "weight": one.weight, "threshold": one.threshold, **one.options}
            for one in self.entries
        ]
        text: str = yaml.safe_dump({"scorers": listed}, sort_keys=False, allow_unicode=True)
        return text

    @property
    def needs_expectation(self) -> bool:
        """Whether one of its scorers says nothing unless something is expected."""
        return any(getattr(one.scorer, "needs_expectation", False) for one in self.entries)

    def evaluate(self, actual: Any, expected: Any) -> SuiteReport:
        """Score one case with every scorer. A scorer that fails counts as 0, and the report says why.

        Args:
            actual: an `EditResult`, a trace, or whatever your own scorers take.
            expected: an `EditExpectation`, or whatever your own scorers take.
        """
        results = tuple(result_of(one, actual, expected) for one in self.entries)
        total = sum(one.weight for one in results)
        overall = math.fsum(one.score * one.weight for one in results) / total
        return SuiteReport(
            passed=all(one.passed for one in results),
            overall=overall,
            results=results,
            diagnosis=tuple(line for one in results if not one.passed for line in diagnosis_of(one)),
        )


def result_of(entry: Entry, actual: Any, expected: Any) -> Result:
    """What one scorer says of a case; whatever it raises is told as its error."""
    threshold = float(entry.threshold or 0)
    try:
        both = getattr(entry.scorer, "score_with_details", None)
        if both is not None:  # one evaluation for both, where it costs something
            score, details = both(actual, expected)
        else:
            score, details = entry.scorer.score(actual, expected), entry.scorer.details(actual, expected)
        score, error = float(score), ""
        if not 0 <= score <= 1:
            raise ValueError(f"{score} is no score from 0 to 1")
    except Exception as problem:  # noqa: BLE001 — a scorer of the user's may raise anything
        score, details, error = 0.0, None, f"{type(problem).__name__}: {problem}"
    passed = not error and score >= threshold - TOLERANCE
    return Result(entry.scorer.type, score, entry.weight, threshold, passed, details, error)


def diagnosis_of(result: Result) -> list[str]:
    """What to look at where a score is too low, and what is seen there."""
    head = f"{result.type}: {result.score:.2f}, and {result.threshold:.2f} is needed"
    if result.error:
        return [f"{head}; it could not be scored: {result.error}"]
    name, advice = _LOOK_AT.get(result.type, ("", "see its details"))
    seen = getattr(result.details, name, None)
    evidence = [_shown(one) for one in seen] if isinstance(seen, tuple) else [] if seen is None else [f"{name}: {seen}"]
    evidence += (getattr(result.details, "diff", None) or "").splitlines()
    return [f"{head}; {advice}", *(f"  {line}" for line in evidence)]


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


def _entry(item: Any) -> Entry:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise ValueError(f"a scorer is an object with a type, not {brief(item)}")
    kind = item["type"]
    factory = _BUILT_IN.get(kind) or _REGISTERED.get(kind)
    if factory is None:
        known = ", ".join(sorted({*_BUILT_IN, *_REGISTERED}))
        raise ValueError(f"there is no scorer {kind!r}; there are {known}")
    options = {name: value for name, value in item.items() if name not in {"type", "weight", "threshold"}}
    return Entry(factory(**options), item.get("weight", 1.0), item.get("threshold"), options)


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtra("suites in YAML", "eval") from None
    return yaml


def _loaded(text: str, place: str) -> tuple[Any, list[int]]:
    """The document, and the line of each entry of its list."""
    yaml = _yaml()
    try:
        node, document = yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise SuiteError(f"{place}{line}: it is no YAML: {getattr(error, 'problem', None) or error}") from None
    lines: list[int] = []
    for key, value in node.value if node is not None and isinstance(node.value, list) and node.id == "mapping" else ():
        if key.value == "scorers" and isinstance(value.value, list):
            lines = [item.start_mark.line + 1 for item in value.value]
    return document, lines


def assert_passes(suite: Suite, actual: EditResult, expected: EditExpectation) -> SuiteReport:
    """For tests: the report of a case that passes.

    Raises:
        AssertionError: it does not; the message is the diagnosis.
    """
    report = suite.evaluate(actual, expected)
    if not report.passed:
        lines = "\n".join(report.diagnosis)
        raise AssertionError(f"the suite does not pass (overall {report.overall:.2f}):\n{lines}")
    return report
