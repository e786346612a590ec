"""Scorers and suites inside of Inspect AI."""

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


def inspect_scorer(
    suite: Any,
    *,
    expected: Callable[[TaskState, Target], Any] | None = None,
    result: Callable[[TaskState], Any] | None = None,
    **inputs: str,
) -> Scorer:
    """A scorer of Inspect that scores each sample by a suite: values `overall`, `passed` and one for each scorer, the diagnosis as explanation.

    What could not be scored has the value NaN, which the metrics leave out.

    Args:
        suite: a suite or a scorer.
        expected: what is expected of a sample. When None it is `metadata["expected"]`, an `EditExpectation` or an object with its fields;
            without that, the target's texts are expected to stand in the answer.
        result: what was done; read from the sample's messages by `result_from_state` when None.
        inputs: which inputs of the tools are target, position, content and index, as `operations_from_trace` takes them.

    Raises:
        MissingExtra: inspect-ai is not installed.
    """
    try:
        from anyio import to_thread
        from inspect_ai.scorer import Score, mean, scorer, stderr
    except ImportError:
        raise MissingExtra("grace_kp.integrations.inspect_ai", "inspect-ai") from None
    made = suite if isinstance(suite, Suite) else Suite([Entry(suite)], name=suite.type)

    async def score(state: TaskState, target: Target) -> Score:
        actual = result_from_state(state, **inputs) if result is None else result(state)
        wanted = _expected(state, target) if expected is None else expected(state, target)
        report = await to_thread.run_sync(made.evaluate, actual, wanted)
        values: dict[str, Any] = {"overall": report.overall, "passed": float(report.passed)}
        if any(one.error for one in report.results):
            values = dict.fromkeys(values, float("nan"))
        for name, one in report.named(tuple(values)).items():
            values[name] = float("nan") if one.error else one.score
        # Inspect keeps what it is given in its logs.
        explanation = redact_text("\n".join(report.diagnosis), identifiers=False) or "every score reaches its threshold"
        return Score(
            value=values,
            answer=state.output.completion,
            explanation=explanation,
            metadata=redact_value(render(report.to_dict()), identifiers=False),
        )

    named: Scorer = scorer(metrics={"*": [mean(), stderr()]}, name=re.sub(r"\W+", "_", f"grace_kp_{made.name}"))(
        lambda: score
    )()
    return named


def result_from_state(state: TaskState, **inputs: str) -> EditResult:
    """What was done in a sample: the tool calls of its messages as operations, which of them failed, and the answer as the page `result`.

    Args:
        state: the sample's state.
        inputs: as `operations_from_trace` takes them.
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


def _expected(state: TaskState, target: Target) -> EditExpectation:
    given = (state.metadata or {}).get("expected")
    if isinstance(given, EditExpectation):
        return given
    if isinstance(given, dict):
        return EditExpectation.from_dict(given)
    if given is not None:
        raise ValueError(f'metadata["expected"] must be an EditExpectation or an object, not {brief(given)}')
    texts = [text for text in target if text]
    if not texts:
        raise ValueError(
            f"sample {state.sample_id}: it does not say what is expected, neither in its metadata nor as target"
        )
    return EditExpectation(patterns={"result": [re.escape(text) for text in texts]})
