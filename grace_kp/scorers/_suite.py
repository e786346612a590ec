"""Several scorers together: whether all are good enough, the weighted average, and what to look at where one is not."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from grace_kp.scorers._edits import EditResult
from grace_kp.scorers._entry import BUILT_IN, Entry, SuiteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from grace_kp.scorers._diagnosis import Result
    from grace_kp.scorers._edits import EditExpectation

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
        from grace_kp.scorers._suite_file import read_suite_file

        source, entries = read_suite_file(path)
        try:
            return cls(entries, name=source.path.stem)
        except SuiteError as error:
            raise source.error(str(error), detail=("scorers",)) from None

    def to_yaml(self) -> str:
        """The suite as YAML, which reads back as the same suite.

        Raises:
            SuiteError: a scorer cannot be told in YAML: its type is not registered, or an option is no plain data.
            MissingExtra: PyYAML is not installed.
        """
        from grace_kp.scorers._suite_file import suite_text

        return suite_text(self.entries)

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
            results = tuple(one.evaluate(actual, expected) for one in self.entries)
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
