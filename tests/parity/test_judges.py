"""What a judge is asked gives the same synchronously and asynchronously, whatever kind of callable the judge is."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import grace_kp as gk
from grace_kp.protocols import JudgeReply

REPLY = JudgeReply(
    '{"score": 0.8, "reason": "right", "coverage": 0.6, "coverage_reason": "half"}',
    model="m-1",
    tokens_in=9,
    tokens_out=3,
)


def plain(prompt):
    return REPLY


async def coroutine(prompt):
    await asyncio.sleep(0)
    return REPLY


class Callable:
    async def __call__(self, prompt):
        return REPLY


class Detailed:
    def ask(self, prompt, *, vary, fields):
        return REPLY

    async def aask(self, prompt, *, vary, fields):
        return REPLY


def failing(prompt):
    raise OSError("no route")


JUDGES = {
    "none": None, "plain": plain, "coroutine": coroutine, "object": Callable(), "returns an awaitable": lambda p: coroutine(p),
    "with methods": Detailed(), "failing": failing, "empty": lambda prompt: "",
}  # fmt: skip
FACTORS = gk.ConfidenceFactors(tool_execution_count=2, tool_success_count=1)
CALLS = {
    "evaluate": (gk.LLMSelfEvaluator, {}, ("q", "a", ["s"])),
    "evaluate_detailed": (gk.LLMSelfEvaluator, {}, ("q", "a")),
    "evaluate_both": (gk.LLMSelfEvaluator, {}, ("q", "a")),
    "evaluate_both combined": (gk.LLMSelfEvaluator, {"combined": True}, ("q", "a", ["s"])),
    "calculate": (gk.QueryCoverageCalculator, {}, ("q", "a")),
    "calculate_detailed": (gk.QueryCoverageCalculator, {}, ("q", "a")),
    "llm_calculate": (gk.StepJudge, {}, (FACTORS, "find it", {"found": 3})),
}
EACH_JUDGE = pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
EACH_CALL = pytest.mark.parametrize("name", CALLS)


def call(name, judge, *, prefix="", **options):
    kind, more, arguments = CALLS[name]
    return getattr(kind(judge, **more, **options), prefix + name.split()[0])(*arguments)


def acall(name, judge, **options):
    return call(name, judge, prefix="a", **options)


def timeless(result):
    """A result without the time it took, and without the score that only its own call has."""
    if isinstance(result, tuple):
        return tuple(timeless(item) for item in result)
    return replace(result, latency_ms=None) if isinstance(result, gk.Evaluation) else result


@EACH_JUDGE
@EACH_CALL
@pytest.mark.parametrize("samples", [1, 3])
async def test_both_forms_give_the_same(judge, name, samples):
    """Judgement, reason, cost and fallback; the plain form also in a thread, and inside a running loop."""
    expected = timeless(call(name, judge, samples=samples))
    assert expected == timeless(await acall(name, judge, samples=samples))
    assert expected == timeless(await asyncio.to_thread(call, name, judge, samples=samples))


@EACH_CALL
async def test_both_forms_raise_when_errors_are_wanted(name):
    with pytest.raises(gk.EvaluationFailed) as caught:
        call(name, failing, on_failure="raise")
    with pytest.raises(gk.EvaluationFailed) as awaited:
        await acall(name, failing, on_failure="raise")
    assert str(caught.value) == str(awaited.value)
    assert timeless(caught.value.evaluation) == timeless(awaited.value.evaluation)


async def test_both_forms_share_the_cache():
    evaluator = gk.LLMSelfEvaluator(plain)
    assert not evaluator.evaluate_detailed("q", "a").cached
    assert (await evaluator.aevaluate_detailed("q", "a")).cached


@pytest.mark.parametrize("embedder", [lambda text: [len(text), 1.0], None, failing], ids=["works", "none", "failing"])
async def test_both_forms_of_agreement_give_the_same(embedder):
    calculator = gk.SourceAgreementCalculator(embedder)
    assert calculator.calculate(["a", "bb"]) == await calculator.acalculate(["a", "bb"])
    expected = timeless(calculator.calculate_detailed(["a", "bb"]))
    assert expected == timeless(await calculator.acalculate_detailed(["a", "bb"]))
