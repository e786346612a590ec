"""Models of other frameworks, and named models, passed to `Grace` as they are."""

from __future__ import annotations

import asyncio
import threading

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace

REPLY = '{"score": 0.9, "reason": "right", "coverage": 0.7, "coverage_reason": "most"}'


def judged_run(grace):
    """A finished run and its evaluation."""

    @grace.agent
    def agent(question):
        return "5 days"

    with grace.collect() as traces:
        agent("How long?")
    (trace,) = traces  # the judge's call is no run
    return trace.evaluation, trace


def test_a_chat_model_of_langchain():
    """Its usage is recorded, and no handler sees it: neither one that is attached everywhere nor the run that is gated."""
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableLambda

    usage = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
    thought = [{"type": "reasoning", "reasoning": "score: 0.1"}, {"type": "text", "text": REPLY}]
    model = models.FakeMessagesListChatModel(responses=[AIMessage(thought, usage_metadata=usage)])
    with make_grace(evaluator=model.with_retry(), embedder=DeterministicFakeEmbedding(size=4), judge="always") as grace:
        with grace.langchain():
            for fallback in ("nothing to compare with yet", None):
                judged, trace = judged_run(grace)
                assert (0.9, 0.7) == (judged.self_evaluation.score, judged.coverage.score)
                assert fallback == trace.value.novelty_fallback

            @grace.gate(judge="always")
            def send(to):
                return "sent"

            with grace.collect() as traces:
                RunnableLambda(send, name="mailer").invoke("ann")
        assert [0.9] == [entry.evaluation.self_evaluation.score for entry in traces[0].decisions]
        assert ([], 0) == (traces[0].grace.get("model_calls", []), len(traces[0].calls))
        assert {"calls": 3, "tokens": 75, "refused": 0} == grace.status()["models"]["judging"]
        assert "FakeMessagesListChatModel" == grace.status()["models"]["evaluator"]["name"]


def test_a_model_of_pydantic_ai():
    """All its calls run in one event loop, whatever thread or loop asks; and so do those of an embedder."""
    function = pytest.importorskip("pydantic_ai.models.function")
    from pydantic_ai.embeddings import Embedder, TestEmbeddingModel
    from pydantic_ai.messages import ModelResponse, TextPart

    loops = set()

    async def respond(messages, info):
        loops.add(asyncio.get_running_loop())
        return ModelResponse(parts=[TextPart(REPLY)])

    model = function.FunctionModel(respond, model_name="scripted")
    with make_grace(evaluator=model, embedder=Embedder(TestEmbeddingModel(dimensions=4)), judge="always") as grace:
        judged, _ = judged_run(grace)
        assert (0.9, "scripted") == (judged.self_evaluation.score, judged.self_evaluation.model)
        _, trace = asyncio.run(asyncio.to_thread(judged_run, grace))
        assert "FunctionModel scripted" == grace.status()["models"]["evaluator"]["name"]
        assert trace.value.novelty_fallback is None
    assert 1 == len(loops)


def test_a_model_of_pydantic_ai_that_hangs():
    """The call is cancelled, and the judgement is a fallback."""
    function = pytest.importorskip("pydantic_ai.models.function")
    cancelled = threading.Event()

    async def respond(messages, info):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with make_grace(evaluator=function.FunctionModel(respond), judge="always", judge_timeout=0.01) as grace:
        judged, _ = judged_run(grace)
        assert cancelled.wait(60)
    assert (0.5, True) == (judged.self_evaluation.score, judged.self_evaluation.fallback)
    assert "did not answer within 0.01 s" in judged.self_evaluation.error


@pytest.mark.parametrize("argument", ["evaluator", "embedder"])
@pytest.mark.parametrize("wrong", ["gemini", "openai:", "anthropic:claude", 3, dict])
def test_what_is_no_model(argument, wrong):
    with pytest.raises(gk.SettingsError, match=f"{argument}: must be 'auto', 'openai:MODEL', None or a model"):
        gk.Grace(store="memory:", **{argument: wrong})


def test_a_named_model_is_described():
    respx = pytest.importorskip("respx")
    address = "http://localhost:11434/v1"
    with respx.mock, make_grace(evaluator="openai:qwen3:8b", embedder="openai:e", openai_base_url=address) as grace:
        judged, _ = judged_run(grace)
        told = grace.status()["models"]
    assert judged.self_evaluation.fallback  # nothing answers here
    assert {"name": "OpenAIJudge qwen3:8b", "why": f"evaluator was given, at {address}"} == told["evaluator"]
    assert "OpenAIEmbedder e" == told["embedder"]["name"]
