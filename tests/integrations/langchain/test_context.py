"""Calls inside LangChain and inside our decorators belong to the call around them, in any thread or task."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool

from .conftest import statuses, steps


class Docs(BaseRetriever):
    """Gives the same two documents, with scores in their metadata."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document("Refunds take 5 days.", metadata={"score": 0.93, "source": "policy.md"}),
            Document("Ask support.", metadata={"score": 0.4, "source": "faq.md"}),
        ]


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def rag(model="Five days."):
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    joined = Docs() | (lambda docs: " ".join(doc.page_content for doc in docs))
    return (
        {"context": joined, "question": RunnablePassthrough()}
        | prompt
        | FakeListChatModel(responses=[model])
        | StrOutputParser()
    )


def only(grace):
    (trace,) = grace.store.query()
    return trace


def test_threads_do_not_mix(grace, handler):
    """64 threads, each with a run of three tools; nothing is lost, nothing is another's."""

    def agent(name):
        return [search.invoke({"query": f"{name}-{number}"}) for number in range(3)]

    chain = RunnableLambda(agent)
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda name: chain.invoke(name, {"callbacks": [handler]}), [f"t{n}" for n in range(256)]))
    traces = grace.store.query(limit=None)
    assert 256 == len(traces)
    for trace in traces:
        name = trace.task.objective
        assert [f"{name}-{number}" for number in range(3)] == [
            step.input["query"] for step in trace.steps if step.type == "tool_call"
        ]
    assert {} == handler.tracker.frames


async def test_a_thousand_runs_at_once_do_not_mix(grace, handler):
    async def agent(name):
        await asyncio.sleep(0)
        return [await search.ainvoke({"query": f"{name}-{number}"}) for number in range(2)]

    chain = RunnableLambda(agent)
    await asyncio.gather(*(chain.ainvoke(f"r{n}", {"callbacks": [handler]}) for n in range(1_000)))
    traces = grace.store.query(limit=None)
    assert 1_000 == len(traces)
    for trace in traces:
        name = trace.task.objective
        assert [f"{name}-{number}" for number in range(2)] == [
            step.input["query"] for step in trace.steps if step.type == "tool_call"
        ]
    assert {} == handler.tracker.frames


def test_parallel_branches_are_steps_of_one_run(grace, handler):
    barrier = threading.Barrier(3, timeout=60)

    def branch(name):
        def run(_):
            barrier.wait()
            return search.invoke({"query": name})

        return run

    RunnableParallel(a=branch("a"), b=branch("b"), c=branch("c")).invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert {"a", "b", "c"} == {step.input["query"] for step in trace.steps if step.type == "tool_call"}
    assert list(range(6)) == [step.step_id for step in trace.steps]


class TestWithDecorators:
    """The handler and the decorators in one program."""

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
        """What the caller does between two pieces belongs to the caller."""

        @grace.tool
        def mine(text):
            return text

        async for _ in rag("a b c").astream("When?", {"callbacks": [handler]}):
            mine("own")
        traces = grace.store.query()
        runs = [trace for trace in traces if trace.grace["name"] == "RunnableSequence"]
        assert 1 == len(runs)
        assert "mine" not in [call["name"] for call in runs[0].grace["calls"]]

    def test_threads_that_carry_nothing_and_threads_that_do(self, grace, handler):
        """LangChain's own threads carry the run; a plain one does, once it is given the context."""

        @grace.tool
        def mine(text):
            return text

        def agent(_):
            context = contextvars.copy_context()
            worker = threading.Thread(target=context.run, args=(mine, "carried"))
            worker.start()
            worker.join()

        RunnableLambda(agent).invoke("q", {"callbacks": [handler]})
        assert [("mine", "ok")] == statuses(only(grace))
