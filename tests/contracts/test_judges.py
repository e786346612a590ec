"""What every judge keeps to, and what the evaluators make of each: one reply per call, and failures that end in a fallback."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

import grace_kp as gk
from grace_kp.judge import acall_judge, call_judge
from grace_kp.models import adapt_model
from grace_kp.settings import Settings

REPLY = '{"score": 0.8, "reason": "right", "coverage": 0.6, "coverage_reason": "half"}'


class Service:
    """What stands behind a judge: it keeps the prompts, and fails where `error` is set."""

    def __init__(self):
        self.prompts, self.error = [], None

    def reply(self, prompt):
        self.prompts.append(prompt)
        if self.error is not None:
            raise self.error
        return REPLY


def from_function(service, stack):
    return lambda prompt: service.reply(prompt)


def from_coroutine_function(service, stack):
    async def judge(prompt):
        await asyncio.sleep(0)
        return service.reply(prompt)

    return judge


def from_methods(service, stack):
    class Judge:
        model = "m-1"

        def ask(self, prompt, *, vary, fields):
            return service.reply(prompt)

        async def aask(self, prompt, *, vary, fields):
            return service.reply(prompt)

    return Judge()


def from_gemini(service, stack):
    pytest.importorskip("google.genai")
    respx, httpx = pytest.importorskip("respx"), pytest.importorskip("httpx")

    def answer(request):
        try:
            text = service.reply(json.loads(request.content)["contents"][0]["parts"][0]["text"])
        except OSError as error:
            return httpx.Response(400, json={"error": {"code": 400, "status": "BAD", "message": str(error)}})
        return httpx.Response(200, json={"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]})

    router = stack.enter_context(respx.mock(assert_all_called=False))
    router.post(url__regex=r".*:generateContent").mock(side_effect=answer)
    return gk.GeminiJudge("gemini-x", api_key="k")


def from_openai(service, stack):
    respx, httpx = pytest.importorskip("respx"), pytest.importorskip("httpx")

    def answer(request):
        try:
            text = service.reply(json.loads(request.content)["messages"][0]["content"])
        except OSError as error:
            return httpx.Response(403, json={"error": {"message": str(error)}})
        return httpx.Response(200, json={"choices": [{"message": {"content": text}}]})

    router = stack.enter_context(respx.mock(assert_all_called=False))
    router.post("http://localhost:8000/v1/chat/completions").mock(side_effect=answer)
    return adapt_model("evaluator", "openai:m", Settings(openai_base_url="http://localhost:8000/v1"))


def from_langchain(service, stack, *, is_async=False):
    chat_models = pytest.importorskip("langchain_core.language_models")
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    def result(messages):
        return ChatResult(generations=[ChatGeneration(message=AIMessage(service.reply(messages[0].text)))])

    class Chat(chat_models.BaseChatModel):
        _llm_type = "scripted"

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            if is_async:
                raise NotImplementedError
            return result(messages)

        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            return result(messages)

    return adapt_model("evaluator", Chat(), Settings())


def from_async_langchain(service, stack):
    return from_langchain(service, stack, is_async=True)


def from_pydantic_ai(service, stack):
    function = pytest.importorskip("pydantic_ai.models.function")
    from pydantic_ai.messages import ModelResponse, TextPart

    async def respond(messages, info):
        return ModelResponse(parts=[TextPart(service.reply(messages[0].parts[0].content))])

    return adapt_model("evaluator", function.FunctionModel(respond), Settings())


MAKERS = {
    "function": from_function,
    "coroutine function": from_coroutine_function,
    "methods": from_methods,
    "gemini": from_gemini,
    "openai": from_openai,
    "langchain": from_langchain,
    "async langchain": from_async_langchain,
    "pydantic ai": from_pydantic_ai,
}


@pytest.fixture
def service():
    return Service()


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def judge(request, service):
    with contextlib.ExitStack() as stack:
        yield request.param(service, stack)


async def test_a_prompt_gets_its_reply(judge, service):
    """From a plain call, from one inside a running loop, in a thread, and from a coroutine."""
    options = {"vary": False, "fields": ("score",), "timeout": 30}
    assert REPLY == await asyncio.to_thread(call_judge, judge, "in a thread", **options)
    assert REPLY == call_judge(judge, "inside a loop", **options)
    assert REPLY == await acall_judge(judge, "in a coroutine", **options)
    assert ["in a thread", "inside a loop", "in a coroutine"] == service.prompts


async def test_every_evaluator_takes_it(judge):
    """As an answer's judge, for both judgements at once, for coverage, and for a step."""
    assert 0.8 == gk.LLMSelfEvaluator(judge).evaluate("q", "a")
    both = await gk.LLMSelfEvaluator(judge, combined=True).aevaluate_both("q", "a", ["s"])
    assert [0.8, 0.6] == [evaluation.score for evaluation in both]
    assert 0.8 == await gk.QueryCoverageCalculator(judge).acalculate("q", "a")
    assert 0.8 == gk.StepJudge(judge).llm_calculate(gk.ConfidenceFactors(), "p", "o").score


async def test_a_failure_is_a_fallback_with_its_reason(judge, service):
    service.error = OSError("the service is closed")
    evaluator = gk.LLMSelfEvaluator(judge)
    for evaluation in (evaluator.evaluate_detailed("q", "a"), await evaluator.aevaluate_detailed("q", "a")):
        assert (0.5, True) == (evaluation.score, evaluation.fallback)
        assert "the service is closed" in evaluation.error
    service.error = None
    assert 0.8 == evaluator.evaluate("q", "a")
