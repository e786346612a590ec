"""What the handler records of LangChain and LangGraph as they are: every kind of runnable, every way to call it, every way out."""

from __future__ import annotations

import os
import subprocess
import sys
from uuid import uuid4

import pytest
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda

from grace_kp.integrations.langchain import GraceCallbackHandler
from tests import warm

from .conftest import Docs, broken, only, rag, search, steps


def test_a_retrieval_chain_is_one_run_with_a_search_and_a_thought(grace):
    """Prompts, lambdas, parallels and parsers in between are no steps; sources, and scores at a declared place, are read."""
    handler = GraceCallbackHandler(grace, scores="metadata.score")
    assert "Five days." == rag().invoke("When?", {"callbacks": [handler]})

    trace = only(grace)
    assert "When?" == trace.task.objective
    assert [("tool_call", "Docs"), ("observation", trace.steps[1].content), ("thought", "Five days.")] == steps(trace)
    assert {"query": "When?"} == trace.steps[0].input
    found = {"count": 2, "scores": [0.93, 0.4], "sources": ["policy.md", "faq.md"], "kind": "similarity"}
    assert found == trace.grace["calls"][0]["search"]
    assert "Five days." == trace.outcome.result_summary
    assert trace.metadata.success
    assert "langchain" == trace.metadata.framework


def test_a_tool_that_raises_and_a_run_that_goes_on(grace, handler):
    """The recovery stands between the error and what came next."""

    def agent(question):
        try:
            broken.invoke({"query": question})
        except ValueError:
            return search.invoke({"query": question})

    assert "found x" == RunnableLambda(agent).invoke("x", {"callbacks": [handler]})
    assert [
        ("tool_call", "broken"),
        ("observation", "ValueError: no x"),
        ("error_recovery", "Recovered from broken: ValueError: no x"),
        ("tool_call", "search"),
        ("observation", "found x"),
    ] == steps(only(grace))


def test_a_model_that_fails_and_is_replaced_is_survived(grace, handler):
    """Fallbacks show up as further roots upstream; they belong to the run all the same."""

    def fail(_):
        raise ConnectionError("down")

    chain = RunnableLambda(fail, name="first").with_fallbacks([FakeListChatModel(responses=["second"])])
    assert "second" == chain.invoke("q", {"callbacks": [handler]}).content
    trace = only(grace)
    assert [("thought", "second")] == steps(trace)
    assert trace.metadata.success


def test_failing_models_are_named(grace, handler):
    class Down(FakeListChatModel):
        def _call(self, *args, **kwargs):
            raise ConnectionError("down")

    Down(responses=["x"]).with_fallbacks([FakeListChatModel(responses=["up"])]).invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert [("error_recovery", "Recovered from Down: ConnectionError: down"), ("thought", "up")] == steps(trace)
    assert ["error", "ok"] == [call["status"] for call in trace.grace["model_calls"]]


def test_retries_are_one_run(grace, handler):
    attempts = []

    def flaky(question):
        attempts.append(question)
        search.invoke({"query": str(len(attempts))})
        if len(attempts) < 3:
            raise ConnectionError("again")
        return "done"

    chain = RunnableLambda(flaky).with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    assert "done" == chain.invoke("q", {"callbacks": [handler]})
    assert ["1", "2", "3"] == [step.input["query"] for step in only(grace).steps if step.type == "tool_call"]


def test_lone_tools_retrievers_and_models_are_runs_of_their_own(grace, handler):
    config = {"callbacks": [handler]}
    search.invoke({"query": "q"}, config)
    Docs().invoke("q", config)
    FakeListChatModel(responses=["hi"]).invoke("hello", config)
    FakeListLLM(responses=["ho"]).invoke("text", config)
    traces = grace.store.query()[::-1]
    assert ["search", "Docs", "FakeListChatModel", "FakeListLLM"] == [trace.grace["name"] for trace in traces]
    assert ["q", "q", "hello", "text"] == [trace.task.objective for trace in traces]
    assert [("thought", "ho")] == steps(traces[3])


class TestWaysToCall:
    """The same run, however it is called."""

    EXPECTED = (("tool_call", "Docs"), ("thought", "Five days."))

    def check(self, grace, count=1):
        traces = grace.store.query()
        assert count == len(traces)
        for trace in traces:
            kinds = steps(trace)
            assert self.EXPECTED == (kinds[0], kinds[2])
            assert ("completed", True) == (trace.grace["status"], trace.metadata.success)
            assert "Five days." == trace.outcome.result_summary
        return sorted(trace.task.objective for trace in traces)

    def test_stream(self, grace, handler):
        assert "Five days." == "".join(rag().stream("When?", {"callbacks": [handler]}))
        assert ["When?"] == self.check(grace)

    async def test_ainvoke(self, grace, handler):
        assert "Five days." == await rag().ainvoke("When?", {"callbacks": [handler]})
        assert ["When?"] == self.check(grace)

    async def test_astream_events(self, grace, handler):
        events = [event async for event in rag().astream_events("When?", {"callbacks": [handler]}, version="v2")]
        assert "on_retriever_end" in {event["event"] for event in events}
        assert ["When?"] == self.check(grace)

    def test_batch(self, grace, handler):
        questions = [f"q{number:02}" for number in range(50)]
        assert ["Five days."] * 50 == rag().batch(questions, {"callbacks": [handler]})
        assert questions == self.check(grace, 50)

    def test_everywhere(self, grace):
        with grace.langchain() as handler:
            assert "Five days." == rag().invoke("When?")
            assert handler.grace is grace
        rag().invoke("not recorded")
        assert ["When?"] == self.check(grace)

    def test_everywhere_and_by_name_is_once(self, grace, handler):
        with grace.langchain():
            rag().invoke("When?", {"callbacks": [handler, handler, GraceCallbackHandler(grace)]})
        assert ["When?"] == self.check(grace)


def test_secrets_do_not_reach_the_store(grace, handler):
    RunnableLambda(lambda q: search.invoke({"query": "api_key=sk-abcdefghijklmnopqrstuvwxyz123456"})).invoke(
        "password: hunter2hunter2", {"callbacks": [handler], "metadata": {"token": "ghp_" + "a" * 36}, "tags": ["x"]}
    )
    text = str(only(grace).to_dict())
    assert not any(secret in text for secret in ("hunter2hunter2", "sk-abcdef", "ghp_aaaa"))


class Hostile:
    """Raises on whatever is asked of it."""

    def __getattribute__(self, name):
        if name in {"__class__", "__dict__"}:
            return object.__getattribute__(self, name)
        raise RuntimeError("do not look")


def test_values_that_raise_do_no_harm(grace, handler, monkeypatch):
    """The chain's result is as it would be without; what could not be recorded is counted."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")
    hostile = Hostile()
    chain = RunnableLambda(lambda _: hostile) | RunnableLambda(lambda value: "done")
    assert "done" == chain.invoke(hostile, {"callbacks": [handler]})
    assert "done" == chain.invoke({"messages": hostile}, {"callbacks": [handler]})


def test_events_that_nobody_began_do_no_harm(grace, handler):
    """A handler that was attached in the middle hears of ends without beginnings."""
    handler.on_chain_end({"output": 1}, run_id=uuid4())
    handler.on_tool_end(ToolMessage("x", tool_call_id="1"), run_id=uuid4())
    handler.on_llm_error(ValueError("x"), run_id=uuid4())
    handler.on_retriever_end([], run_id=uuid4())
    assert [] == grace.store.query()


def test_a_handler_on_a_model_alone_records_its_calls(grace, handler):
    """A constructor's callbacks hear of that object only, with a parent that they were never told of."""
    model = FakeListChatModel(responses=["hi"], callbacks=[handler])
    (RunnableLambda(lambda q: q) | model).invoke("hello")
    assert [("thought", "hi")] == steps(only(grace))


def test_recording_can_be_off(monkeypatch):
    import grace_kp as gk

    off = gk.Grace(store="memory:", enabled=False, evaluator=None, embedder=None)
    assert "Five days." == rag().invoke("When?", {"callbacks": [GraceCallbackHandler(off)]})
    assert [] == off.store.query()


def test_a_handler_needs_a_runtime():
    with pytest.raises(TypeError, match="takes a Grace, not str"):
        GraceCallbackHandler("memory:")


def test_without_langchain_the_error_names_the_command(tmp_path):
    code = "import sys; sys.modules['langchain_core'] = None\nimport grace_kp.integrations.langchain"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "MissingExtra" in ran.stderr.splitlines()[-1]
    assert "pip install 'grace-kp[langchain]'" in ran.stderr.splitlines()[-1]


def test_without_langgraph_the_handler_works(tmp_path):
    code = """
import sys
sys.modules['langgraph'] = None
import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler
from langchain_core.runnables import RunnableLambda
grace = gk.Grace(store="memory:", evaluator=None, embedder=None)
RunnableLambda(lambda q: q).invoke("hello", {"callbacks": [GraceCallbackHandler(grace)]})
print(grace.store.query()[0].task.objective)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ("hello", "") == (ran.stdout.strip(), ran.stderr)


def test_what_could_not_be_recorded_is_told_by_the_doctor(tmp_path, monkeypatch):
    """Counted in the process it happened in, and kept in the store for whoever asks later."""
    import json

    import grace_kp as gk

    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")
    url = f"sqlite:///{tmp_path}/t.db"
    with gk.Grace(store=url, evaluator=None, embedder=None) as grace:
        handler = GraceCallbackHandler(grace)
        monkeypatch.setattr(handler.tracker, "tool_ended", lambda *args: (_ for _ in ()).throw(ValueError("own fault")))
        assert "found x" == RunnableLambda(lambda q: search.invoke({"query": q})).invoke("x", {"callbacks": [handler]})
    env = {**os.environ, "GRACE_KP_STORE": url}
    command = [sys.executable, "-m", "grace_kp.cli", "doctor"]
    told = json.loads(warm.run([*command, "--json"], capture_output=True, text=True, env=env).stdout)
    assert "GraceCallbackHandler.on_tool_end: ValueError" in told["store"]["not_recorded"]["troubles"]
    assert "on_tool_end: ValueError" in warm.run(command, capture_output=True, text=True, env=env).stdout
