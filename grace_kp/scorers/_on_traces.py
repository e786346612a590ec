"""Scorers of finished runs: a scorer or suite with its expectations, and the entries that are stored with a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from grace_kp.errors import SettingsError, brief
from grace_kp.scorers._edits import EditExpectation, result_from_trace
from grace_kp.scorers._entry import Entry
from grace_kp.scorers._suite import Suite
from grace_kp.trace import render

if TYPE_CHECKING:
    from grace_kp.scorers._entry import Result
    from grace_kp.trace import ReasoningTrace

    Expected = EditExpectation | Mapping[str, EditExpectation] | Callable[[ReasoningTrace], Any] | None

NOTHING_EXPECTED = "it compares with what is expected, and nothing is said to be"


class OnTraces:
    """A scorer or suite for finished runs, with their expectations: `Grace(scorers=[OnTraces(suite, expected=…)])`."""

    def __init__(
        self, scorer: object, expected: Expected = None, *, name: str | None = None, as_is: bool = False, **inputs: str
    ) -> None:
        """Set the scorer and what runs should have done.

        Args:
            scorer: a scorer or a suite.
            expected: an `EditExpectation` for every run, a mapping from objectives to expectations, or a callable that returns the
                expectation for a trace. A run without expectation is left out.
            name: the name under which results are stored and found; the suite's name or the scorer's type when None.
            as_is: pass the trace itself to the scorer instead of an `EditResult`; for scorers of your own.
            inputs: which tool arguments hold target, position, content and index, as `operations_from_trace` takes them.

        Raises:
            SettingsError: the scorer is neither scorer nor suite, or the expectation cannot be used.
        """
        kind = scorer.name if isinstance(scorer, Suite) else getattr(scorer, "type", None)
        if not isinstance(kind, str) or not (isinstance(scorer, Suite) or callable(getattr(scorer, "score", None))):
            raise SettingsError(f"scorers: {brief(scorer)} is neither a scorer nor a suite")
        if expected is not None and not isinstance(expected, EditExpectation | Mapping) and not callable(expected):
            raise SettingsError(
                f"scorers: expected must be an EditExpectation, a mapping by objective or a callable, not {brief(expected)}"
            )
        self.scorer: Any = scorer
        self.name = str(name or kind)
        self._expected = expected
        self._as_is = as_is
        self._inputs = inputs

    def score(self, trace: ReasoningTrace, clean: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        """Return the entries to store with a trace; none if the run has no expectation.

        Args:
            trace: the trace.
            clean: redacts strings as in the trace, to find the expectation of a redacted objective.
        """
        expected = self._expectation(trace, clean)
        if expected is None and self._expected is not None:
            return []
        if expected is None:
            if getattr(self.scorer, "needs_expectation", False):
                return [{"name": self.name, "score": None, "skipped": NOTHING_EXPECTED}]
            expected = EditExpectation()
        actual = trace if self._as_is else result_from_trace(trace, **self._inputs)
        if not isinstance(self.scorer, Suite):
            result = Entry(self.scorer).evaluate(actual, expected)
            return [_entry(result, self.name, result.diagnosis)]
        report = self.scorer.evaluate(actual, expected)
        overall: dict[str, Any] = {"name": self.name, "score": report.overall, "passed": report.passed}
        failed = next((result for result in report.results if result.error), None)
        if failed is not None:
            overall.update(score=None, passed=None, error=f"{failed.type} could not be scored: {failed.error}")
        if report.diagnosis:
            overall["diagnosis"] = _render_lines(report.diagnosis)
        in_suite = [
            _entry(result, result.type, suite={"suite": self.name, "weight": result.weight})
            for result in report.results
        ]
        return [overall, *in_suite]

    def _expectation(self, trace: ReasoningTrace, clean: Callable[[str], str] | None) -> object:
        expected = self._expected
        if isinstance(expected, EditExpectation) or expected is None:
            return expected
        if not isinstance(expected, Mapping):
            return expected(trace)
        objective = trace.task.objective
        found = expected.get(objective)
        if found is None and clean is not None and "[REDACTED" in objective:
            return next((item for text, item in expected.items() if clean(text) == objective), None)
        return found


def _entry(
    result: Result, name: str, diagnosis: tuple[str, ...] = (), suite: Mapping[str, str | float] | None = None
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": name,
        "score": result.score,
        "passed": result.passed,
        "threshold": result.threshold,
    }
    entry.update(suite or {})
    if result.error:
        entry.update(score=None, passed=None, error=result.error)
    elif diagnosis:
        entry["diagnosis"] = _render_lines(diagnosis)
    if result.details is not None:
        entry["details"] = render(result.to_dict()["details"])
    return entry


def _render_lines(lines: tuple[str, ...]) -> list[str]:
    return [str(render(line)) for line in lines]
