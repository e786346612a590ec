"""The evaluator of pydantic-evals behind `grace_kp.integrations.pydantic_evals`; imported only where that package is."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 — a dataclass is read by pydantic-evals
from dataclasses import dataclass
from typing import Any

from grace_kp.errors import MissingExtra, brief
from grace_kp.scorers import EditExpectation, Entry, Suite

try:
    from anyio import to_thread
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
except ImportError:
    raise MissingExtra("grace_kp.integrations.pydantic_evals", "pydantic-evals") from None


@dataclass(repr=False)
class SuiteEvaluator(Evaluator[Any, Any, Any]):  # type: ignore[misc]
    """Scores each case by a suite: `passed` as an assertion, `overall` and one score for each scorer, each with its diagnosis as reason.

    A scorer that could not score a case gives no score of its own and no `overall`; `passed` is False then, and says why.

    Args:
        suite: a suite, a scorer, or, so that it can stand in a dataset's file, a preset's name or the path of a YAML file.
        expected: what is expected of a case; its `expected_output` when None, an `EditExpectation` or an object with its fields.
        result: what was done; the case's output when None, an `EditResult` or a trace.
    """

    suite: Any
    expected: Callable[[EvaluatorContext[Any, Any, Any]], Any] | None = None
    result: Callable[[EvaluatorContext[Any, Any, Any]], Any] | None = None

    def __post_init__(self) -> None:
        given = self.suite
        if isinstance(given, Suite):
            self._made = given
        elif isinstance(given, str):
            self._made = Suite.load(given)
        else:
            self._made = Suite([Entry(given)], name=given.type)

    async def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> dict[str, bool | float | EvaluationReason]:
        """The scores of one case.

        Raises:
            ValueError: it does not say what is expected.
        """
        actual = ctx.output if self.result is None else self.result(ctx)
        wanted = _expected(ctx) if self.expected is None else self.expected(ctx)
        report = await to_thread.run_sync(self._made.evaluate, actual, wanted)
        found: dict[str, bool | float | EvaluationReason] = {
            "passed": EvaluationReason(report.passed, "\n".join(report.diagnosis) or None)
        }
        if not any(one.error for one in report.results):
            found["overall"] = report.overall
        for name, one in report.named(("passed", "overall")).items():
            if not one.error:
                found[name] = EvaluationReason(one.score, "\n".join(one.diagnosis) or None)
        return found


def _expected(ctx: EvaluatorContext[Any, Any, Any]) -> Any:
    given = ctx.expected_output
    if isinstance(given, EditExpectation):
        return given
    if isinstance(given, dict):
        return EditExpectation.from_dict(given)
    raise ValueError(f"expected_output must be an EditExpectation or an object, not {brief(given)}; or give expected=")
