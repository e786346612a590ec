"""Any LangChain program with the handler attached: every kind of runnable, way to call it and way out, beside decorators and other handlers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from grace_kp.integrations.langchain import GraceCallbackHandler

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from .conftest import Docs, broken, built, only, rag, runtime, search, steps


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


def test_failing_models_are_named(grace, handler):
    class Down(FakeListChatModel):
        def _call(self, *args, **kwargs):
            raise ConnectionError("down")

    Down(responses=["x"]).with_fallbacks([FakeListChatModel(responses=["up"])]).invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert [("error_recovery", "Recovered from Down: ConnectionError: down"), ("thought", "up")] == steps(trace)
    assert ["error", "ok"] == [call["status"] for call in trace.grace["model_calls"]]


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


def check_rag_runs(grace, *questions):
    traces = grace.store.query()
    assert sorted(questions) == sorted(trace.task.objective for trace in traces)
    for trace in traces:
        search_step, _, thought = steps(trace)
        assert (("tool_call", "Docs"), ("thought", "Five days.")) == (search_step, thought)
        assert ("completed", True) == (trace.grace["status"], trace.metadata.success)
        assert "Five days." == trace.outcome.result_summary


@pytest.mark.parametrize("way", ["stream", "batch", "ainvoke", "astream_events"])
async def test_every_way_to_call_is_recorded(grace, handler, way):
    chain, questions, settings = rag(), ["When?"], {"callbacks": [handler]}
    if way == "stream":
        assert "Five days." == "".join(chain.stream("When?", settings))
    elif way == "batch":
        questions = [f"q{number:02}" for number in range(50)]
        assert ["Five days."] * 50 == chain.batch(questions, settings)
    elif way == "ainvoke":
        assert "Five days." == await chain.ainvoke("When?", settings)
    else:
        events = [event["event"] async for event in chain.astream_events("When?", settings, version="v2")]
        assert "on_retriever_end" in events
    check_rag_runs(grace, *questions)


def test_everywhere_records_once(grace, handler):
    with grace.langchain() as everywhere:
        assert everywhere.grace is grace
        rag().invoke("When?")
        rag().invoke("Named, too", {"callbacks": [handler, handler, GraceCallbackHandler(grace)]})
    rag().invoke("not recorded")
    check_rag_runs(grace, "When?", "Named, too")


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
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")
    hostile = Hostile()
    chain = RunnableLambda(lambda _: hostile) | RunnableLambda(lambda value: "done")
    assert "done" == chain.invoke(hostile, {"callbacks": [handler]})
    assert "done" == chain.invoke({"messages": hostile}, {"callbacks": [handler]})
    node = ("node", lambda _: {"messages": [hostile]})
    assert "messages" in built(node, state=dict[str, Any]).invoke({}, {"callbacks": [handler]})
    assert {} == handler.tracker.frames


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


class TestWithDecorators:
    def test_a_chain_inside_of_an_agent_is_a_run_that_is_linked(self, grace, handler):
        @grace.agent
        def agent(question):
            return rag().invoke(question, {"callbacks": [handler]})

        agent("When?")
        inner, outer = sorted(grace.store.query(), key=lambda trace: trace.grace["name"] == "agent")
        assert outer.id == inner.grace["parent"]["trace_id"]
        assert [inner.id] == outer.grace["children"]
        assert ["tool_call", "observation"] == [step.type for step in outer.steps]

    def test_lone_calls_inside_of_an_agent_are_its_steps(self, grace, handler):
        @grace.agent
        def agent(question):
            config = {"callbacks": [handler]}
            search.invoke({"query": question}, config)
            Docs().invoke(question, config)
            return FakeListChatModel(responses=["so"]).invoke(question, config).content

        agent("q")
        trace = only(grace)
        assert [("tool_call", "search"), ("tool_call", "Docs"), ("thought", "so")] == [
            steps(trace)[number] for number in (0, 2, 4)
        ]

    def test_decorated_functions_inside_of_a_chain_are_its_steps(self, grace, handler):
        @grace.tool
        def helper(text):
            grace.thought("helping")
            return search.invoke({"query": text})

        @tool
        def outer(query: str) -> str:
            """Outer."""
            return helper(query)

        RunnableLambda(lambda q: outer.invoke({"query": q})).invoke("x", {"callbacks": [handler]})
        trace = only(grace)
        assert [("outer", None), ("helper", "c0"), ("search", "c1")] == [
            (call["name"], call.get("parent")) for call in trace.grace["calls"]
        ]
        assert "helping" in [step.content for step in trace.steps]

    async def test_nothing_leaks_out_of_a_stream(self, grace, handler):
        @grace.tool
        def mine(text):
            return text

        async for _ in rag("a b c").astream("When?", {"callbacks": [handler]}):
            mine("own")
        traces = grace.store.query()
        runs = [trace for trace in traces if trace.grace["name"] == "RunnableSequence"]
        assert 1 == len(runs)
        assert "mine" not in [call["name"] for call in runs[0].grace["calls"]]


def test_tags_and_metadata_are_kept(grace, handler):
    RunnableLambda(lambda q: q).invoke(
        "q", {"callbacks": [handler], "metadata": {"session": "s1"}, "tags": ["beta"], "run_name": "named"}
    )
    trace = only(grace)
    assert ("named", ["beta"], {"session": "s1"}) == (
        trace.grace["name"], trace.grace["tags"], trace.grace["metadata"],
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["tool", "chain"])
async def test_a_cancelled_task_cancels_its_run(grace, handler, kind):
    started = asyncio.Event()

    async def wait(query: str) -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()

    runnable = tool(wait) if kind == "tool" else RunnableLambda(wait)
    task = asyncio.create_task(runnable.ainvoke({"query": "q"}, {"callbacks": [handler]}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    trace = only(grace)
    assert ("cancelled", False, {}) == (trace.grace["status"], trace.metadata.success, handler.tracker.frames)


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "cancelled"), (SystemExit, "exited")])
def test_leaving_the_program_ends_the_run(grace, handler, error, status):
    def leave(_):
        raise error

    with pytest.raises(error):
        RunnableLambda(leave).invoke("q", {"callbacks": [handler]})
    assert status == only(grace).grace["status"]


async def test_a_task_that_calls_many_chains_keeps_nothing_of_them(grace, handler):
    chain, task = RunnableLambda(lambda value: value), asyncio.current_task()
    before = task._callbacks
    for number in range(100):
        await chain.ainvoke(number, {"callbacks": [handler]})
    assert (before, {}) == (task._callbacks, handler.tracker.frames)


async def test_a_cancelled_task_ends_every_chain_that_is_open_in_it(grace, handler):
    ended = uuid4()

    async def leave_open():
        for run_id in (uuid4(), ended, uuid4()):
            handler.on_chain_start(None, "q", run_id=run_id, name="chain")
        handler.on_chain_end("a", run_id=ended)
        raise asyncio.CancelledError

    await asyncio.gather(asyncio.create_task(leave_open()), return_exceptions=True)
    await asyncio.sleep(0)
    assert {"completed": 1, "cancelled": 2} == Counter(trace.grace["status"] for trace in grace.store.query())
    assert {} == handler.tracker.frames


EVENTS = [f"on_{kind}_{end}" for kind in ("chain", "llm", "tool") for end in ("start", "end", "error")]


class Heard(BaseCallbackHandler):
    """Keeps the names of the events that reach it."""

    def __init__(self):
        self.events = []

    def __getattribute__(self, name):
        if name in {*EVENTS, "on_chat_model_start"}:
            return lambda *args, **kwargs: self.events.append(name)
        return super().__getattribute__(name)


class HeardAsync(AsyncCallbackHandler):
    def __init__(self):
        self.events = []

    def __getattribute__(self, name):
        if name not in {*EVENTS, "on_chat_model_start"}:
            return super().__getattribute__(name)

        async def hear(*args, **kwargs):
            self.events.append(name)

        return hear


class HeardInline(Heard):
    run_inline = True


def chain(model):
    return PromptTemplate.from_template("tell me about {topic}") | model | RunnableLambda(lambda text: text)


MODELS = [FakeListLLM(responses=["ab"]), FakeListChatModel(responses=["ab"])]


@pytest.fixture(params=MODELS, ids=["text", "chat"])
def model(request):
    return request.param


@pytest.mark.parametrize("way", ["ainvoke", "astream", "abatch", "agenerate"])
@pytest.mark.parametrize("kind", [Heard, HeardAsync, HeardInline])
async def test_other_handlers_hear_the_same(grace, model, kind, way):
    async def heard(*ours):
        theirs = kind()
        config = {"callbacks": [*ours, theirs]}
        if way == "ainvoke":
            await chain(model).ainvoke({"topic": "x"}, config)
        elif way == "astream":
            _ = [part async for part in chain(model).astream({"topic": "x"}, config)]
        elif way == "abatch":
            await chain(model).abatch([{"topic": "x"}, {"topic": "y"}], config)
        else:
            prompts = ["x", "y"] if model is MODELS[0] else [[HumanMessage("x")], [HumanMessage("y")]]
            await model.agenerate(prompts, callbacks=config["callbacks"])
        return sorted(theirs.events)

    assert await heard() == await heard(GraceCallbackHandler(grace))


async def test_text_models_are_recorded_whoever_else_listens(grace, handler):
    """Each text model's call is recorded once: alone, beside other inline handlers, and with two runtimes attached."""
    with runtime() as other:
        second = GraceCallbackHandler(other)
        for handlers in ([handler], [handler, HeardInline()], [Heard(), handler, second], [HeardInline(), second]):
            await chain(MODELS[0]).ainvoke({"topic": "x"}, {"callbacks": handlers})
        assert [3, 2] == [len(one.store.query()) for one in (grace, other)]
        for one in (grace, other):
            assert {1} == {len(trace.grace["model_calls"]) for trace in one.store.query()}


@pytest.mark.parametrize("others", [[Heard], [Heard, HeardAsync], [HeardInline, Heard]])
async def test_other_handlers_hear_the_same_inside_a_gated_tool(others):
    """The guard of a tool call, which is an inline handler, keeps no start of a text model from other handlers."""
    from grace_kp.integrations.langchain._tool_guard import guard_tools

    async def heard():
        handlers = [kind() for kind in others]
        await MODELS[0].agenerate(["x", "y"], callbacks=handlers)
        return [handler.events for handler in handlers]

    unguarded = await heard()
    with guard_tools(lambda tool: None, None):
        assert unguarded == await heard()
