"""Runs end whichever way the program leaves them: cancelled, dropped or by an exit."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool


class Docs(BaseRetriever):
    """Gives the same two documents, with scores in their metadata."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document("Refunds take 5 days.", metadata={"score": 0.93, "source": "policy.md"}),
            Document("Ask support.", metadata={"score": 0.4, "source": "faq.md"}),
        ]


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


class TestWaysOut:
    async def test_a_cancelled_task(self, grace, handler):
        started = asyncio.Event()

        async def wait(_):
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(RunnableLambda(wait).ainvoke("q", {"callbacks": [handler]}))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        trace = only(grace)
        assert ("cancelled", False) == (trace.grace["status"], trace.metadata.success)

    async def test_a_cancelled_tool(self, grace, handler):
        """LangChain says nothing of it."""
        started = asyncio.Event()

        @tool
        async def slow(query: str) -> str:
            """Wait."""
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(slow.ainvoke({"query": "q"}, {"callbacks": [handler]}))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert "cancelled" == only(grace).grace["status"]
        assert {} == handler.tracker.frames

    def test_a_stream_that_is_dropped(self, grace, handler):
        stream = rag("one two three").stream("When?", {"callbacks": [handler]})
        next(stream)
        stream.close()
        assert "closed" == only(grace).grace["status"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_leaving_the_program(self, grace, handler, error):
        def leave(_):
            raise error

        with pytest.raises(error):
            RunnableLambda(leave).invoke("q", {"callbacks": [handler]})
        assert {KeyboardInterrupt: "cancelled", SystemExit: "exited"}[error] == only(grace).grace["status"]


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
