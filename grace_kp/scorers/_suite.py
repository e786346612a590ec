"""Several scorers together: whether all are good enough, the weighted average, and what to look at where one is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.scorers._changes import AntiHallucination
from grace_kp.scorers._content import ContentQuality, OperationResult
from grace_kp.scorers._diagnosis import Result
from grace_kp.scorers._documents import Document, SuiteError, read_document, yaml_package
from grace_kp.scorers._edits import EditResult, is_number
from grace_kp.scorers._patterns import PatternError
from grace_kp.scorers._scorers import OperationAccuracy, ResponseTime, Scorer, TargetBlockPrecision
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from grace_kp.scorers._edits import EditExpectation

TOLERANCE = 1e-9
Factory = Callable[..., Scorer]


BUILT_IN: dict[str, Factory] = {
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
    if type in BUILT_IN:
        raise ValueError(f"{type!r} is a scorer of the library")
    _REGISTERED[type] = factory


@dataclass(frozen=True, slots=True)
class Entry:
    """A scorer in a suite.

    Raises:
        ValueError: it is no scorer, a weight below 0, or a threshold outside of 0 to 1.
    """

    scorer: Scorer
    weight: float = 1.0
    threshold: float | None = None
    """From which score on it passes; the scorer's own when None."""
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What it was built with, for YAML."""

    def __post_init__(self) -> None:
        if not callable(getattr(self.scorer, "score", None)) or not isinstance(getattr(self.scorer, "type", None), str):
            raise ValueError(f"a scorer has a type and score(actual, expected); {brief(self.scorer)} has not")
        if not is_number(self.weight) or self.weight < 0:
            raise ValueError(f"a weight is a number from 0, not {brief(self.weight)}")
        if self.threshold is None:
            object.__setattr__(self, "threshold", getattr(self.scorer, "threshold", None))
        if not is_number(self.threshold) or not 0 <= float(self.threshold or 0) <= 1:
            raise ValueError(f"a threshold is a number from 0 to 1, not {brief(self.threshold)}")


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

    def named(self, taken: Sequence[str] = ()) -> dict[str, Result]:
        """The results by the type of their scorer, with a number where several have the same (`x`, `x-2`).

        Args:
            taken: names that mean something else where they are shown.
        """
        found: dict[str, Result] = {}
        for one in self.results:
            name, number = one.type, 1
            while name in found or name in taken:
                number += 1
                name = f"{one.type}-{number}"
            found[name] = one
        return found

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
        if not any(one.weight > 0 for one in self.entries):
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
            [Entry(BUILT_IN[kind](), weight, threshold) for kind, weight, threshold in _PRESETS[name]], name=name
        )

    @classmethod
    def load(cls, name: str) -> Self:
        """Return the suite in a YAML file, or the preset of this name.

        Raises:
            SuiteError: the file is no suite, or there is no such preset.
            OSError: the file cannot be read.
            MissingExtra: PyYAML is not installed.
        """
        return cls.from_yaml(name) if name.endswith((".yaml", ".yml")) else cls.preset(name)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """A suite from a file: `scorers`, a list with `type`, `weight`, `threshold` and options.

        Raises:
            SuiteError: the file is no suite; the message names file, line and entry.
            OSError: it cannot be read.
            MissingExtra: PyYAML is not installed.
        """
        path = Path(path)
        document = read_document(path)
        entries = [_entry(document, number) for number in range(len(document.listed))]
        try:
            return cls(entries, name=path.stem)
        except SuiteError as error:
            raise SuiteError(f"{path}:{document.line}: {error}") from None

    def to_yaml(self) -> str:
        """The suite as YAML, which reads back as the same suite.

        Raises:
            SuiteError: a scorer cannot be told in YAML: its type is not registered, or an option is no plain data.
            MissingExtra: PyYAML is not installed.
        """
        yaml = yaml_package()
        listed = [_told(number, one) for number, one in enumerate(self.entries)]
        for number, told in enumerate(listed):
            try:
                yaml.safe_dump(told)
            except yaml.YAMLError as error:
                raise SuiteError(
                    f"scorers[{number}] ({told['type']}): an option is no plain data: {brief(str(error))}"
                ) from None
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
        with _searches(actual):
            results = tuple(result_of(one, actual, expected) for one in self.entries)
        # Divided by the largest first, so that weights of any size can be added.
        largest = max(one.weight for one in results)
        shares = [one.weight / largest for one in results]
        overall = math.fsum(one.score * share for one, share in zip(results, shares, strict=True)) / math.fsum(shares)
        return SuiteReport(
            passed=all(one.passed for one in results),
            overall=min(1.0, max(0.0, overall)),
            results=results,
            diagnosis=tuple(line for one in results for line in one.diagnosis),
        )


def result_of(entry: Entry, actual: Any, expected: Any) -> Result:
    """What one scorer says of a case; whatever it raises is told as its error."""
    threshold = float(entry.threshold or 0)
    try:
        both = _both(entry.scorer)
        if both is not None:  # one evaluation for both, where it costs something
            score, details = both(actual, expected)
        else:
            score, details = entry.scorer.score(actual, expected), entry.scorer.details(actual, expected)
        score, error = float(score), ""
        if not 0 <= score <= 1:
            raise ValueError(f"{score} is no score from 0 to 1")
    except Exception as problem:  # noqa: BLE001 — a scorer of the user's may raise anything
        score, details, error = 0.0, None, ": ".join(describe_error(problem))
    passed = not error and score >= threshold - TOLERANCE
    return Result(entry.scorer.type, score, entry.weight, threshold, passed, details, error)


def _both(scorer: Any) -> Any:
    """The scorer's way to give score and details of one evaluation; None where a subclass has replaced one of the two."""
    for cls in type(scorer).__mro__:
        own = vars(cls)
        if "score_with_details" in own:
            break
        if "score" in own or "details" in own:
            return None
    return getattr(scorer, "score_with_details", None)


@contextmanager
def _searches(actual: Any) -> Iterator[None]:
    """While a suite looks at a result, each pattern is searched for once on a page, whichever scorers ask for it."""
    if not isinstance(actual, EditResult):
        yield
        return
    object.__setattr__(actual, "_searches", {})
    try:
        yield
    finally:
        object.__setattr__(actual, "_searches", None)


_ENTRY_KEYS = frozenset({"type", "weight", "threshold"})


def _entry(document: Document, number: int) -> Entry:
    item = document.listed[number]
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise document.error(number, f"a scorer is an object with a type, not {brief(item)}")
    kind = item["type"]
    factory = BUILT_IN.get(kind) or _REGISTERED.get(kind)
    if factory is None:
        known = ", ".join(sorted({*BUILT_IN, *_REGISTERED}))
        raise document.error(number, f"there is no scorer {brief(kind)}; there are {known}", "type")
    options = {name: value for name, value in item.items() if name not in _ENTRY_KEYS}
    path: tuple[Any, ...] = ()
    try:
        scorer = factory(**options)
        path = ("weight",) if "weight" in item and not is_number(item["weight"]) else ("threshold",)
        return Entry(scorer, item.get("weight", 1.0), item.get("threshold"), options)
    except MissingExtra:
        raise
    except PatternError as error:
        raise document.error(number, str(error), "patterns", error.page, error.number) from None
    except (GraceError, ValueError, TypeError) as error:
        raise document.error(number, str(error), *path) from None
    except Exception as error:  # noqa: BLE001 — a factory of the user's may raise anything
        raise document.error(number, ": ".join(describe_error(error, 300))) from None


def _told(number: int, entry: Entry) -> dict[str, Any]:
    """An entry as it stands in YAML."""
    kind = entry.scorer.type
    built_in = BUILT_IN.get(kind)
    if kind not in _REGISTERED and (built_in is None or type(entry.scorer) is not built_in):
        raise SuiteError(
            f"scorers[{number}]: {kind!r} is not known by its name ({type(entry.scorer).__qualname__}); register it first, "
            "so that the suite can be read back"
        )
    options = dict(entry.options or getattr(entry.scorer, "options", None) or {})
    taken = sorted(_ENTRY_KEYS & set(options))
    if taken:
        raise SuiteError(f"scorers[{number}] ({kind}): an option cannot be called {taken[0]!r} in YAML")
    return {"type": kind, "weight": entry.weight, "threshold": entry.threshold, **options}


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
