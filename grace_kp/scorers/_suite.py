"""Suites: several scorers with weights and thresholds, and the report on a case."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from grace_kp.pages import badge, fold, meter, safe, table
from grace_kp.scorers._entry import Entry, SuiteError
from grace_kp.scorers._hallucination import AntiHallucination
from grace_kp.scorers._operations import OperationAccuracy, TargetBlockPrecision
from grace_kp.scorers._outcome import ContentQuality

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grace_kp.scorers._edits import EditExpectation, EditResult
    from grace_kp.scorers._entry import Factory, Result


_PRESETS = {
    "standard": ((1.0, 0.8), (1.0, 0.75), (1.0, 0.6)),
    "strict": ((1.0, 0.9), (1.0, 0.9), (1.0, 0.8), (2.0, 1.0)),
    "operation-focused": ((2.0, 0.9), (1.5, 0.85), (0.5, 0.5)),
}
_SCORERS: tuple[Factory, ...] = (OperationAccuracy, TargetBlockPrecision, ContentQuality, AntiHallucination)
"""The scorers of a preset, which has a weight and a threshold for each, or for the first three."""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The results of a suite for one case."""

    passed: bool
    """Every score reaches its threshold."""
    overall: float
    """The weighted average, 0 to 1."""
    results: tuple[Result, ...]
    diagnosis: tuple[str, ...]
    """For every score that is too low, where to look, and the evidence."""

    def named(self, taken: Sequence[str] = ()) -> dict[str, Result]:
        """Return the results by the type of their scorer, numbered where several have the same type (`x`, `x-2`).

        Args:
            taken: names that a result must not get.
        """
        results: dict[str, Result] = {}
        for result in self.results:
            name, number = result.type, 1
            while name in results or name in taken:
                number += 1
                name = f"{result.type}-{number}"
            results[name] = result
        return results

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "passed": self.passed,
            "overall": self.overall,
            "results": [result.to_dict() for result in self.results],
            "diagnosis": list(self.diagnosis),
        }

    def _repr_html_(self) -> str:
        from grace_kp.pages import notebook

        return notebook(suite_html(self))


class Suite:
    """Scorers with weights and thresholds."""

    def __init__(self, entries: Sequence[Entry], *, name: str = "suite") -> None:
        """Combine scorers.

        Args:
            entries: the scorers.
            name: the name under which results are stored and found.

        Raises:
            SuiteError: the entries are empty, or all weights are 0.
        """
        self.name = name
        self.entries = tuple(entries)
        if not self.entries:
            raise SuiteError("a suite needs at least one scorer")
        if not any(entry.weight > 0 for entry in self.entries):
            raise SuiteError("at least one scorer of a suite must have a weight above 0")

    @classmethod
    def preset(cls, name: str) -> Self:
        """Return the preset `standard`, `strict` or `operation-focused`.

        Raises:
            SuiteError: the preset is unknown.
        """
        if name not in _PRESETS:
            raise SuiteError(f"a preset must be one of {', '.join(_PRESETS)}, not {name!r}")
        entries = [Entry(scorer(), *figures) for scorer, figures in zip(_SCORERS, _PRESETS[name], strict=False)]
        return cls(entries, name=name)

    @classmethod
    def load(cls, name: str) -> Self:
        """Return the suite in a YAML file, or the preset of this name.

        Raises:
            SuiteError: the file is not a suite, or the preset is unknown.
            OSError: the file cannot be read.
            MissingExtra: PyYAML is not installed.
        """
        return cls.from_yaml(name) if name.endswith((".yaml", ".yml")) else cls.preset(name)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Return the suite in a file: `scorers`, a list of objects with `type`, `weight`, `threshold` and the scorer's options.

        Raises:
            SuiteError: the file is not a suite; the message names file, line and entry.
            OSError: the file cannot be read.
            MissingExtra: PyYAML is not installed.
        """
        from grace_kp.scorers._suite_file import read_suite_file

        source, entries = read_suite_file(path)
        try:
            return cls(entries, name=source.path.stem)
        except SuiteError as error:
            raise source.error(str(error), detail=("scorers",)) from None

    def to_yaml(self) -> str:
        """Return the suite as YAML that reads back as the same suite.

        Raises:
            SuiteError: the type of a scorer is not registered, or an option is not plain data.
            MissingExtra: PyYAML is not installed.
        """
        from grace_kp.scorers._suite_file import suite_text

        return suite_text(self.entries)

    @property
    def needs_expectation(self) -> bool:
        """Whether a scorer of the suite depends on what a case expects."""
        return any(getattr(entry.scorer, "needs_expectation", False) for entry in self.entries)

    def evaluate(self, actual: object, expected: object) -> SuiteReport:
        """Score one case with every scorer. A scorer that fails counts as 0, and the report contains its error.

        Args:
            actual: an `EditResult`, a trace, or what your own scorers take.
            expected: an `EditExpectation`, or what your own scorers take.
        """
        results = tuple(entry.evaluate(actual, expected) for entry in self.entries)
        # Divided by the largest first, so that weights of any size can be added.
        largest = max(result.weight for result in results)
        shares = [result.weight / largest for result in results]
        total = math.fsum(result.score * share for result, share in zip(results, shares, strict=True))
        return SuiteReport(
            passed=all(result.passed for result in results),
            overall=min(1.0, max(0.0, total / math.fsum(shares))),
            results=results,
            diagnosis=tuple(line for result in results for line in result.diagnosis),
        )


def assert_passes(suite: Suite, actual: EditResult, expected: EditExpectation) -> SuiteReport:
    """Return the report of a case that passes; for tests.

    Raises:
        AssertionError: the case does not pass; the message is the diagnosis.
    """
    report = suite.evaluate(actual, expected)
    if not report.passed:
        lines = "\n".join(report.diagnosis)
        raise AssertionError(f"the suite does not pass (overall {report.overall:.2f}):\n{lines}")
    return report


MAX_RESULTS = 100
MAX_NAME = 120


def suite_html(report: SuiteReport) -> str:
    """Return the report on one case."""
    word = badge("passes", "good") if report.passed else badge("fails", "bad")
    rows = [
        (
            result.type[:MAX_NAME],
            "not scored" if result.error else _number(result.score),
            _number(result.threshold, 2),
            f"{result.weight:g}",
            "passes" if result.passed else "✗ fails",
        )
        for result in report.results[:MAX_RESULTS]
    ]
    left_out = len(report.results) - MAX_RESULTS
    more = f'<p class="small soft">{left_out:,} more scorers are not shown.</p>' if left_out > 0 else ""
    lines = "\n".join(report.diagnosis)
    why = f"<details open><summary>where to look</summary>{fold(lines, code=True)}</details>" if lines else ""
    return (
        f'<p class="figure"><span class="sum">{safe(_number(report.overall))}</span> {word}</p>{meter(report.overall, "good" if report.passed else "bad")}'
        f"{table(('scorer', 'score', 'needed', 'weight', 'result'), rows)}{more}{why}"
    )


def _number(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else str(value)
