"""Scorers and suites in Inspect AI.

    from inspect_ai import Task, task
    from grace_kp.integrations.inspect_ai import inspect_scorer

    @task
    def editing():
        return Task(dataset=…, solver=…, scorer=inspect_scorer(Suite.preset("standard")))

The expectation of a sample is in its metadata, under `expected`, or comes from a callable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from grace_kp.errors import MissingExtra, brief
from grace_kp.scorers import EditExpectation, EditResult, Entry, Suite, result_from_trace
from grace_kp.trace import redact_text, redact_value, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspect_ai.scorer import Score, Scorer, Target
    from inspect_ai.solver import TaskState


__all__ = ["inspect_scorer", "result_from_state"]


def inspect_scorer(
    suite: Any,
    *,
    expected: Callable[[TaskState, Target], Any] | None = None,
    result: Callable[[TaskState], Any] | None = None,
    **inputs: str,
) -> Scorer:
    """Return a scorer of Inspect that scores each sample with a suite.

    Its values are `overall`, `passed` and one per scorer; the diagnosis is the explanation. A sample that cannot be scored has the value
    NaN, which the metrics leave out.

    Args:
        suite: a suite or a scorer.
        expected: returns the expectation for a sample. None: `metadata["expected"]`, which is an `EditExpectation` or an object with its
            fields. Without that entry, the answer must contain the target's strings.
        result: returns the result for a sample. None: `result_from_state`.
        inputs: the tool arguments that hold target, position, content and index, as in `operations_from_trace`.

    Raises:
        MissingExtra: inspect-ai is not installed.
    """
    try:
        from anyio import to_thread
        from inspect_ai.scorer import Score, mean, scorer, stderr
    except ImportError:
        raise MissingExtra("grace_kp.integrations.inspect_ai", "inspect-ai") from None
    whole = suite if isinstance(suite, Suite) else Suite([Entry(suite)], name=suite.type)

    async def score(state: TaskState, target: Target) -> Score:
        actual = result_from_state(state, **inputs) if result is None else result(state)
        wanted = _expectation_of(state, target) if expected is None else expected(state, target)
        report = await to_thread.run_sync(whole.evaluate, actual, wanted)
        values: dict[str, Any] = {"overall": report.overall, "passed": float(report.passed)}
        if any(entry.error for entry in report.results):
            values = dict.fromkeys(values, float("nan"))
        for name, entry in report.named(tuple(values)).items():
            values[name] = float("nan") if entry.error else entry.score
        # Inspect logs explanations and metadata.
        explanation = redact_text("\n".join(report.diagnosis), identifiers=False) or "every score reaches its threshold"
        return Score(
            value=values,
            answer=state.output.completion,
            explanation=explanation,
            metadata=redact_value(render(report.to_dict()), identifiers=False),
        )

    named: Scorer = scorer(metrics={"*": [mean(), stderr()]}, name=re.sub(r"\W+", "_", f"grace_kp_{whole.name}"))(
        lambda: score
    )()
    return named


def result_from_state(state: TaskState, **inputs: str) -> EditResult:
    """Return a sample as a result, with its tool calls as operations and its answer as the page `result`.

    Args:
        state: the sample's state.
        inputs: the tool arguments that hold target, position, content and index, as in `operations_from_trace`.
    """
    answers = {message.tool_call_id: message for message in state.messages if message.role == "tool"}
    steps: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for message in state.messages:
        for call in (message.tool_calls or ()) if message.role == "assistant" else ():
            answer = answers.get(call.id)
            if answer is not None:
                calls.append({"tool_call": len(steps), "status": "ok" if answer.error is None else "error"})
            steps.append(
                {"step_id": len(steps), "type": "tool_call", "tool": {"name": call.function}, "input": call.arguments}
            )
    document = {"steps": steps, "grace": {"calls": calls}, "outcome": {"result_summary": state.output.completion}}
    return result_from_trace(document, **inputs)


def as_expectation(value: object, place: str) -> EditExpectation:
    if isinstance(value, EditExpectation):
        return value
    if isinstance(value, dict):
        return EditExpectation.from_dict(value)
    raise ValueError(f"{place} must be an EditExpectation or an object with its fields, not {brief(value)}")


def _expectation_of(state: TaskState, target: Target) -> EditExpectation:
    declared = (state.metadata or {}).get("expected")
    if declared is not None:
        return as_expectation(declared, 'metadata["expected"]')
    texts = [text for text in target if text]
    if not texts:
        raise ValueError(f"sample {state.sample_id}: neither its metadata nor its target states what is expected")
    return EditExpectation(patterns={"result": [re.escape(text) for text in texts]})
