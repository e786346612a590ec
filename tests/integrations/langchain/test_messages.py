"""Questions and token counts are read from inputs and messages in any of LangChain's forms."""

from __future__ import annotations

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from .conftest import says, steps


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def only(grace):
    (trace,) = grace.store.query()
    return trace


def test_tokens_and_models_are_kept_and_proposals_are_no_steps(grace, handler):
    said = AIMessage(
        [{"type": "text", "text": "hello"}],
        tool_calls=[{"name": "search", "args": {"query": "x"}, "id": "1"}],
        usage_metadata={"input_tokens": 7, "output_tokens": 5, "total_tokens": 12},
        response_metadata={"model_name": "m-1"},
    )
    chain = RunnableLambda(lambda _: [says(said).invoke("a"), says(said).invoke("b")][0])
    chain.invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert [("thought", "hello"), ("thought", "hello")] == steps(trace)
    assert {"input_tokens": 14, "output_tokens": 10, "total_tokens": 24} == trace.grace["usage"]
    assert ["m-1", "m-1"] == [call["model"] for call in trace.grace["model_calls"]]
    assert [0, 1] == [call["step"] for call in trace.grace["model_calls"]]


def test_an_answer_from_the_cache_is_recorded_and_costs_no_tokens(grace, handler):
    said = AIMessage("hello", usage_metadata={"input_tokens": 7, "output_tokens": 5, "total_tokens": 12})
    model = says(said)
    model.cache = InMemoryCache()
    RunnableLambda(lambda _: [model.invoke("a") for _ in range(3)].pop()).invoke("q", {"callbacks": [handler]})
    trace = only(grace)
    assert [("thought", "hello")] * 3 == steps(trace)
    assert {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12} == trace.grace["usage"]


@pytest.mark.parametrize(
    ("inputs", "objective"),
    [
        ("plain", "plain"),
        ({"input": "in a dict"}, "in a dict"),
        ({"count": 3, "topic": "named"}, "named"),
        ({"messages": [HumanMessage("first"), AIMessage("said"), HumanMessage("last")]}, "last"),
        ({"messages": [("user", "a pair")]}, "a pair"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "blocks"}]}]}, "blocks"),
        ([HumanMessage("a list")], "a list"),
        (HumanMessage("a message"), "a message"),
        (3, "step(3)"),
    ],
)
def test_the_objective_is_what_is_asked(grace, handler, inputs, objective):
    RunnableLambda(lambda _: "x", name="step").invoke(inputs, {"callbacks": [handler]})
    assert objective == only(grace).task.objective


def test_no_property_of_a_result_runs(grace, handler):
    """A lazy relation of a row would be loaded once per result."""
    ran = []

    class Row:
        def __init__(self, number):
            self.number = number

        def load(self):
            ran.append(self.number)
            raise SystemExit

        type = tool_call_id = status = update = page_content = metadata = artifact = property(load)

    @tool
    def rows(query: str) -> list:
        """Search."""
        return [Row(number) for number in range(3)]

    chain = RunnableLambda(lambda _: rows.invoke("x"))
    assert [0, 1, 2] == [row.number for row in chain.invoke("q", {"callbacks": [handler]})]
    assert [] == ran
    assert ["ok"] == [call.status for call in only(grace).calls]
