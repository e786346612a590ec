"""The kind of search scores follows from a declaration, the class of a vector store, or the method that searched."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever

from grace_kp.integrations.langchain import GraceCallbackHandler

from .conftest import statuses


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


def only(grace):
    (trace,) = grace.store.query()
    return trace


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
    """A kind that does not exist is refused when the handler is made."""
    with pytest.raises(ValueError, match="scores"):
        GraceCallbackHandler(grace, scores=scores)


def test_the_block_takes_kinds_of_scores_too(grace):
    """`grace.langchain(scores=…)` is the handler for everything inside."""
    with grace.langchain(scores="distance"):
        RunnableLambda(lambda query: [(DOC, 0.25)], name="similar").invoke("q")
    assert [0.75] == only(grace).grace["calls"][0]["search"]["scores"]


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
