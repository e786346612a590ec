"""Which run an event belongs to and how it ends: graphs that hand over, interrupts, searches and the kinds of their scores."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphDrained, ParentCommand
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, Send

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler

from .conftest import Docs, built, by_name, config, only, statuses

pytest.importorskip("langgraph", reason="needs the extra langchain")


class State(TypedDict):
    notes: Annotated[list, operator.add]


def run(app, inputs, handler, mode):
    """Invoke a graph, by name of the way to call it."""

    async def drained():
        return [part async for part in app.astream(inputs, config(handler))]

    if mode == "invoke":
        return app.invoke(inputs, config(handler))
    if mode == "stream":
        return list(app.stream(inputs, config(handler)))
    if mode == "ainvoke":
        return asyncio.run(app.ainvoke(inputs, config(handler)))
    return asyncio.run(drained())


@pytest.fixture(params=["invoke", "stream", "ainvoke", "astream"])
def mode(request):
    return request.param


def handing_over(goto, **update):
    """A graph whose inner graph hands over to a node of the outer one."""
    outer = StateGraph(State)
    outer.add_node(
        "first",
        built(
            ("decide", lambda _: Command(goto=goto, graph=Command.PARENT, update=update or None)),
            state=State,
            name="first",
        ),
    )
    outer.add_node("second", lambda _: {"notes": ["second was here"]})
    outer.add_edge(START, "first")
    outer.add_edge("second", END)
    return outer.compile(name="outer", checkpointer=InMemorySaver())


@pytest.mark.parametrize("goto", ["second", Send("second", {"notes": []}), ["second"]])
def test_a_handoff_completes_the_graph_that_hands_over(grace, handler, mode, goto):
    run(handing_over(goto, notes=["x" * 500]), {"notes": []}, handler, mode)
    traces = by_name(grace)
    assert {"outer": "completed", "first": "completed"} == {name: it.grace["status"] for name, it in traces.items()}
    assert {True} == {trace.metadata.success for trace in traces.values()}
    assert "handed off to second" == traces["first"].outcome.result_summary
    assert "error" not in traces["first"].grace
    assert [("first", "ok")] == statuses(traces["outer"])


def test_a_function_of_ours_that_hands_over_has_succeeded(grace, handler):
    """The exception that carries the handoff passes through tools and agents of grace_kp, too."""

    @grace.tool
    def transfer(target):
        raise ParentCommand(Command(graph=Command.PARENT, goto=target))

    @grace.agent
    def agent(question):
        transfer("second")

    with pytest.raises(ParentCommand):
        agent("who?")
    (trace,) = grace.store.query()
    assert ("completed", True) == (trace.grace["status"], trace.metadata.success)
    assert [("transfer", "ok")] == statuses(trace)
    assert "handed off to second" == trace.outcome.result_summary
    assert "handed off to second" == trace.steps[1].content


def test_a_drained_graph_is_cancelled(grace, handler, mode):
    """A drain asks the graph to stop between two steps; nobody is being asked anything."""
    control = RunControl()

    def first(state):
        control.request_drain("shutdown")
        return {"notes": ["first"]}

    app = built(
        first, ("second", lambda _: {"notes": ["second"]}), state=State, checkpointer=InMemorySaver(), name="app"
    )
    call = {"config": config(handler), "control": control}

    async def drained():
        return [part async for part in app.astream({"notes": []}, **call)]

    ways = {
        "invoke": lambda: app.invoke({"notes": []}, **call),
        "stream": lambda: list(app.stream({"notes": []}, **call)),
        "ainvoke": lambda: asyncio.run(app.ainvoke({"notes": []}, **call)),
        "astream": lambda: asyncio.run(drained()),
    }
    with pytest.raises(GraphDrained):
        ways[mode]()
    (trace,) = grace.store.query()
    assert ("cancelled", False) == (trace.grace["status"], trace.metadata.success)
    assert {"type": "GraphDrained", "message": "Graph drained: shutdown"} == trace.grace["error"]


def test_an_unknown_signal_of_the_framework_is_a_failure(grace):
    """An exception that nobody has heard of is not taken for a question."""

    @grace.agent
    def agent(question):
        raise type("Novel", (GraphBubbleUp,), {})("what?")

    with pytest.raises(GraphBubbleUp):
        agent("q")
    assert ["failed"] == [trace.grace["status"] for trace in grace.store.query()]


def test_a_reviewer_that_raises_a_handoff_has_not_paused_anything(grace):
    """Only an interrupt waits for an answer; anything else that a reviewer raises is no consent."""
    ran = []

    def review(request):
        raise ParentCommand(Command(graph=Command.PARENT, goto="second"))

    @grace.gate(reviewer=review, floor="confirm")
    def act():
        ran.append(1)

    with pytest.raises(gk.ActionNotApproved):
        act()
    assert [] == ran


DOC = Document("x", metadata={"source": "a.md"})


@pytest.mark.parametrize(
    ("scores", "pair", "found", "unusable"),
    [
        ("similarity", True, [0.25], 0),
        ("distance", True, [0.75], 0),
        ({"similar": "squared_l2_distance", "*": "none"}, True, [0.875], 0),
        ({"other": "distance"}, True, [], 1),
        (lambda figure: figure / 2, True, [0.125], 0),
        (None, True, [], 1),
        (None, False, [], 0),
    ],
)
def test_a_function_that_gives_documents_is_a_retriever(grace, scores, pair, found, unusable):
    """Pairs of document and score out of a plain function count as what the handler was told they are."""
    handler = GraceCallbackHandler(grace, scores=scores)
    chain = RunnableLambda(lambda query: [(DOC, 0.25)] if pair else [DOC], name="similar") | (lambda docs: "done")
    chain.invoke("q", {"callbacks": [handler]})

    (call,) = only(grace).grace["calls"]
    search = call["search"]
    assert ("similar", found, unusable) == (call["name"], search["scores"], search.get("unusable_scores", 0))


class Scored(InMemoryVectorStore):
    """A vector store that knows how relevant a hit is."""

    def _select_relevance_score_fn(self):
        return lambda score: max(0.0, min(1.0, score))


def test_relevance_scores_of_a_vector_store_are_similarities(grace, handler):
    """`similarity_search_with_relevance_scores` gives 0 to 1 by its contract, `similarity_search_with_score` may give distances."""
    store = Scored(DeterministicFakeEmbedding(size=8))
    store.add_texts(["one", "two"])
    for search in (store.similarity_search_with_relevance_scores, store.similarity_search_with_score):
        RunnableLambda(search).invoke("one", {"callbacks": [handler]})
    found = {trace.grace["name"]: trace.grace["calls"][0]["search"] for trace in grace.store.query()}
    relevance, raw = (found[f"similarity_search_with_{name}"] for name in ("relevance_scores", "score"))
    assert (2, 0) == (len(relevance["scores"]), relevance.get("unusable_scores", 0))
    assert ([], 2) == (raw["scores"], raw["unusable_scores"])


class FAISS(InMemoryVectorStore):
    """Stands for the vector store of this name, whose own scores are distances."""


class WithScores(VectorStoreRetriever):
    """Puts the score of the store into the metadata, as LangChain's guide does."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("x", metadata={"source": "a.md", "score": 0.02})]


@pytest.mark.parametrize(
    ("store", "scores", "found", "unusable"),
    [
        (InMemoryVectorStore, None, [], 0),
        (InMemoryVectorStore, "similarity", [], 0),
        (InMemoryVectorStore, "metadata.score", [0.02], 0),
        (InMemoryVectorStore, "metadata.source", [], 1),
        (FAISS, {"FAISS": "squared_l2_distance"}, [], 0),
        (FAISS, {"FAISS": ("metadata.score", "squared_l2_distance")}, [0.99], 0),
        (FAISS, {"WithScores": "metadata.score", "FAISS": "distance"}, [0.02], 0),
        (FAISS, lambda document: document.metadata["score"], [0.02], 0),
    ],
)
def test_a_score_in_the_metadata_is_read_only_where_a_path_declares_it(grace, store, scores, found, unusable):
    """Metadata is the author's; a path or function for everything, or for the class of the vector store, declares a score there."""
    handler = GraceCallbackHandler(grace, scores=scores)
    WithScores(vectorstore=store(DeterministicFakeEmbedding(size=8))).invoke("q", {"callbacks": [handler]})
    search = only(grace).grace["calls"][0]["search"]
    assert (found, unusable) == (search["scores"], search.get("unusable_scores", 0))


@pytest.mark.parametrize(
    "scores", ["closeness", {"docs": "closeness"}, {"docs": None}, 3, "metadata..score", {"docs": "metadata.distance"}]
)
def test_unknown_kinds_of_scores_are_refused(grace, scores):
    with pytest.raises(ValueError, match="scores"):
        GraceCallbackHandler(grace, scores=scores)


def test_documents_that_pass_through_are_counted_once(grace, handler):
    """A sequence that ends with a search, and a function that sorts documents, found nothing themselves."""
    chain = Docs() | RunnableLambda(lambda docs: sorted(docs, key=lambda doc: doc.page_content))
    chain.invoke("q", {"callbacks": [handler]})
    assert [("Docs", "ok")] == statuses(only(grace))


def test_a_retriever_inside_of_a_tool_is_counted_once(grace, handler):
    found = create_retriever_tool(Docs(), "look_up", "Look up.", response_format="content_and_artifact")
    RunnableLambda(
        lambda q: found.invoke({"args": {"query": q}, "name": "look_up", "id": "1", "type": "tool_call"})
    ).invoke("q", {"callbacks": [handler]})
    calls = only(grace).grace["calls"]
    assert [("look_up", False), ("Docs", True)] == [(call["name"], "search" in call) for call in calls]
    assert calls[0]["call_id"] == calls[1]["parent"]


@pytest.mark.parametrize(("scores", "found"), [(None, []), ("metadata.score", [0.7])])
def test_an_artifact_of_documents_is_a_search(grace, scores, found):
    @tool(response_format="content_and_artifact")
    def fetch(query: str):
        """Fetch."""
        return "text", [Document("x", metadata={"score": 0.7, "source": "s"})]

    handler = GraceCallbackHandler(grace, scores=scores)
    fetch.invoke({"args": {"query": "q"}, "name": "fetch", "id": "1", "type": "tool_call"}, {"callbacks": [handler]})
    trace = only(grace)
    assert (found, "text") == (trace.grace["calls"][0]["search"]["scores"], trace.steps[1].content)
