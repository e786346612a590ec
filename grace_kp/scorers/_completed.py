"""Scorers on finished runs: what each says of a trace, as it is stored with it and found by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grace_kp.errors import SettingsError, brief
from grace_kp.scorers._edits import EditExpectation
from grace_kp.scorers._entry import Entry
from grace_kp.scorers._suite import Suite
from grace_kp.scorers._traces import result_from_trace
from grace_kp.trace import render

if TYPE_CHECKING:
    from grace_kp.scorers._result import Result
    from grace_kp.trace import ReasoningTrace

    Expected = EditExpectation | Mapping[str, EditExpectation] | Callable[[ReasoningTrace], Any] | None

NOTHING_EXPECTED = "it compares with what is expected, and nothing is said to be"


class OnTraces:
    """A scorer or suite for finished runs, with what is expected of them: `Grace(scorers=[OnTraces(suite, expected=…)])`."""

    def __init__(
        self, scorer: Any, expected: Expected = None, *, name: str | None = None, as_is: bool = False, **inputs: str
    ) -> None:
        """Say what a run should have done.

        Args:
            scorer: a scorer or a suite.
            expected: an `EditExpectation` for every run, one by objective, or a callable that gives it for a trace. A run for which there
                is none is left out.
            name: what its results are found by; the suite's name or the scorer's type when None.
            as_is: give the scorer the trace itself instead of an `EditResult`; for scorers of your own.
            inputs: which inputs of the tools are target, position, content and index, as `operations_from_trace` takes them.

        Raises:
            SettingsError: it is neither scorer nor suite, or the expectation cannot be used.
        """
        if not isinstance(scorer, Suite) and not _is_scorer(scorer):
            raise SettingsError(f"scorers: {brief(scorer)} is neither a scorer nor a suite")
        if expected is not None and not isinstance(expected, EditExpectation | Mapping) and not callable(expected):
            raise SettingsError(
                f"scorers: expected is an EditExpectation, some by objective, or a callable, not {brief(expected)}"
            )
        self.scorer = scorer
        self.name = str(name or (scorer.name if isinstance(scorer, Suite) else scorer.type))
        self._expected = expected
        self._as_is = as_is
        self._inputs = inputs

    def score(self, trace: ReasoningTrace, clean: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        """What is stored with a trace; empty where nothing is expected of it.

        Args:
            trace: the trace.
            clean: how texts are cleaned before they stand in a trace, to find what is expected by an objective as it was given.
        """
        expected: Any = self._expected
        if expected is None:
            if getattr(self.scorer, "needs_expectation", False):
                return [{"name": self.name, "score": None, "skipped": NOTHING_EXPECTED}]
            expected = EditExpectation()
        else:
            if isinstance(expected, Mapping):
                expected = _by_objective(expected, trace.task.objective, clean)
            elif not isinstance(expected, EditExpectation):
                expected = expected(trace)
            if expected is None:
                return []
        actual = trace if self._as_is else result_from_trace(trace, **self._inputs)
        if not isinstance(self.scorer, Suite):
            result = Entry(self.scorer).evaluate(actual, expected)
            return [_told(result, self.name, diagnosis=result.diagnosis)]
        report = self.scorer.evaluate(actual, expected)
        failed = [one for one in report.results if one.error]
        whole: dict[str, Any] = {"name": self.name, "score": report.overall, "passed": report.passed}
        if failed:
            whole.update(score=None, passed=None, error=f"{failed[0].type} could not be scored: {failed[0].error}")
        if report.diagnosis:
            whole["diagnosis"] = [str(render(line)) for line in report.diagnosis]
        return [whole, *(_told(one, one.type, suite=self.name) for one in report.results)]


def _by_objective(expected: Mapping[str, Any], objective: str, clean: Callable[[str], str] | None) -> Any:
    found = expected.get(objective)
    if found is None and clean is not None and "[REDACTED" in objective:
        return next((one for text, one in expected.items() if clean(text) == objective), None)
    return found


def _is_scorer(value: Any) -> bool:
    return callable(getattr(value, "score", None)) and isinstance(getattr(value, "type", None), str)


def _told(result: Result, name: str, suite: str | None = None, diagnosis: Sequence[str] = ()) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "score": result.score, "passed": result.passed, "threshold": result.threshold}
    if suite is not None:
        told["suite"], told["weight"] = suite, result.weight
    if result.error:
        told.update(score=None, passed=None, error=result.error)
    elif diagnosis:
        told["diagnosis"] = [str(render(line)) for line in diagnosis]
    if result.details is not None:
        told["details"] = render(result.to_dict()["details"])
    return told
