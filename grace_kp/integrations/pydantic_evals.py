"""Scorers and suites in pydantic-evals.

    from pydantic_evals import Case, Dataset
    from grace_kp.integrations.pydantic_evals import SuiteEvaluator

    dataset = Dataset(name="editing", cases=[Case(inputs=…, expected_output=EditExpectation(…))], evaluators=[SuiteEvaluator("standard")])
    report = dataset.evaluate_sync(edit)          # edit returns an EditResult or a trace

Importing this module needs pydantic-evals.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 — a dataclass is read by pydantic-evals
from dataclasses import dataclass
from typing import Any

from grace_kp.errors import MissingExtra
from grace_kp.integrations.inspect_ai import as_expectation
from grace_kp.scorers import Entry, Suite

try:
    from anyio import to_thread
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
except ImportError:
    raise MissingExtra("grace_kp.integrations.pydantic_evals", "pydantic-evals") from None


__all__ = ["SuiteEvaluator"]


@dataclass(repr=False)
class SuiteEvaluator(Evaluator[Any, Any, Any]):  # type: ignore[misc]
    """Scores each case with a suite: `passed` as an assertion, `overall`, and one score per scorer with its diagnosis as reason.

    If a scorer cannot score a case, its score and `overall` are missing, and `passed` is False with the reason.

    Args:
        suite: a suite or a scorer. In a dataset's file: the name of a preset or the path of a YAML file.
        expected: returns the expectation for a case. None: its `expected_output`, an `EditExpectation` or an object with its fields.
        result: returns the result for a case. None: its output, an `EditResult` or a trace.
    """

    suite: Any
    expected: Callable[[EvaluatorContext[Any, Any, Any]], Any] | None = None
    result: Callable[[EvaluatorContext[Any, Any, Any]], Any] | None = None

    def __post_init__(self) -> None:
        suite = Suite.load(self.suite) if isinstance(self.suite, str) else self.suite
        self._suite = suite if isinstance(suite, Suite) else Suite([Entry(suite)], name=suite.type)

    async def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> dict[str, bool | float | EvaluationReason]:
        """Return the scores of one case.

        Raises:
            ValueError: the case states no expectation.
        """
        actual = ctx.output if self.result is None else self.result(ctx)
        wanted = as_expectation(ctx.expected_output, "expected_output") if self.expected is None else self.expected(ctx)
        report = await to_thread.run_sync(self._suite.evaluate, actual, wanted)
        found: dict[str, bool | float | EvaluationReason] = {
            "passed": EvaluationReason(report.passed, "\n".join(report.diagnosis) or None)
        }
        if not any(entry.error for entry in report.results):
            found["overall"] = report.overall
        for name, entry in report.named(("passed", "overall")).items():
            if not entry.error:
                found[name] = EvaluationReason(entry.score, "\n".join(entry.diagnosis) or None)
        return found
