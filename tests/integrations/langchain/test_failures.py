"""Failures that LangChain reports through no tool callback are failed calls in the trace, and count once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy
from pydantic import BaseModel

from grace_kp.integrations.langchain import GraceMiddleware

from .conftest import State, broken, built, message_of, only, says, search, statuses


def agent_of(model, tools, **options):
    """The agent of `create_agent`, which hands its calls to the tools one by one."""
    return create_agent(model, tools, **options)


def graph_of(model, tools, **options):
    """An agent by hand, whose ToolNode has all calls at once."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("act", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "act", "__end__": "__end__"})
    graph.add_edge("act", "model")
    return graph.compile(**options)


@pytest.fixture(params=[agent_of, graph_of])
def made(request):
    return request.param


def invoke(app, inputs, config):
    return app.invoke(inputs, config)


def ainvoke(app, inputs, config):
    return asyncio.run(app.ainvoke(inputs, config))


def stream(app, inputs, config):
    return list(app.stream(inputs, config, stream_mode="updates"))


@pytest.fixture(params=[invoke, ainvoke, stream])
def call(request):
    return request.param


def success(trace):
    return trace.grace["confidence"]["breakdown"]["tool_success"]


def question(text="q"):
    return {"messages": [("user", text)]}


class TestUnknownTools:
    def test_three_calls_of_tools_that_do_not_exist_are_three_failures(self, grace, handler, made, call):
        model = says([("a", {"x": 1})], [("b", {}), ("c", {"y": [2]})], "done")
        call(made(model, [search]), question(), {"callbacks": [handler]})
        trace = only(grace)
        assert [("a", "error"), ("b", "error"), ("c", "error")] == sorted(statuses(trace))
        assert 0.0 == success(trace)
        assert {"x": 1} == next(step.input for step in trace.steps if step.tool and step.tool.name == "a")
        assert "a is not a valid tool" in trace.grace["calls"][0]["error"]["message"]
        assert "error_recovery" in [step.type for step in trace.steps]

    def test_beside_tools_that_work_and_tools_that_do_not_exist(self, grace, handler, made, call):
        model = says([("nothing", {}), ("search", {"query": "a"})], [("search", {"query": "b"})], "done")
        call(made(model, [search]), question(), {"callbacks": [handler]})
        trace = only(grace)
        assert [("nothing", "error"), ("search", "ok"), ("search", "ok")] == sorted(statuses(trace))
        assert success(trace) == pytest.approx(2 / 3)

    def test_an_unknown_tool_again_in_the_next_turn_of_the_thread(self, grace, handler, made):
        """Old messages of the thread are not counted again, though models use the same ids again."""
        app = made(
            says([("nothing", {})], "one", [("search", {"query": "a"})], "two"), [search], checkpointer=InMemorySaver()
        )
        config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
        app.invoke(question("first"), config)
        app.invoke(question("second"), config)
        second, first = grace.store.query()
        assert [[("nothing", "error")], [("search", "ok")]] == [statuses(first), statuses(second)]


class TestFailuresThatAreSeenAlready:
    """What a tool's own callback reports, or a person decided, is not counted a second time."""

    def test_arguments_that_do_not_fit(self, grace, handler, made, call):
        call(made(says([("search", {"wrong": 1})], "done"), [search]), question(), {"callbacks": [handler]})
        assert [("search", "error")] == statuses(only(grace))

    def test_a_node_that_calls_tools_by_hand(self, grace, handler, call):
        def act(state):
            messages = []
            for one in state["messages"][-1].tool_calls:
                try:
                    broken.invoke(one["args"])
                except ValueError as error:
                    messages.append(ToolMessage(str(error), tool_call_id=one["id"], status="error"))
            return {"messages": messages}

        call(
            built(act, state=MessagesState),
            {"messages": [message_of([("broken", {"query": "a"})])]},
            {"callbacks": [handler]},
        )
        assert [("broken", "error")] == statuses(only(grace))

    def test_a_node_that_passes_old_messages_on(self, grace, handler, call):
        old = [message_of([("nothing", {})]), ToolMessage("no", tool_call_id="call_0_0", status="error")]
        call(
            built(("trim", lambda state: {"messages": state["messages"][-2:]}), state=MessagesState),
            {"messages": old},
            {"callbacks": [handler]},
        )
        assert [] == only(grace).grace["calls"]

    @pytest.mark.parametrize("ours", [True, False])
    def test_a_person_s_no(self, grace, handler, ours):
        gate = (
            GraceMiddleware(grace, gates={"search": "confirm"}) if ours else HumanInTheLoopMiddleware({"search": True})
        )
        app = create_agent(
            says([("search", {"query": "a"})], "ok"), [search], middleware=[gate], checkpointer=InMemorySaver()
        )
        config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
        app.invoke(question(), config)
        app.invoke(Command(resume={"decisions": [{"type": "reject"}]}), config)
        trace = only(grace)
        assert ([], "completed") == (trace.grace["calls"], trace.grace["status"])


class Weather(BaseModel):
    """How the weather is."""

    degrees: int


class TestOutputThatFitsNoSchema:
    def test_structured_output_that_is_corrected(self, grace, handler, call):
        model = says([("Weather", {"degrees": "warm"})], [("Weather", {"degrees": 20})])
        call(create_agent(model, [], response_format=ToolStrategy(Weather)), question(), {"callbacks": [handler]})
        trace = only(grace)
        assert [("Weather", "error"), ("Weather", "ok")] == statuses(trace)
        assert 0.5 == success(trace)
        assert "StructuredOutputError" == trace.grace["calls"][0]["error"]["type"]

    def test_structured_output_that_fits_at_once_is_no_call(self, grace, handler, call):
        model = says([("Weather", {"degrees": 20})])
        call(create_agent(model, [], response_format=ToolStrategy(Weather)), question(), {"callbacks": [handler]})
        assert [] == only(grace).grace["calls"]

    def test_a_parser_that_fails_and_one_that_follows(self, grace, handler, call):
        parser = PydanticOutputParser(pydantic_object=Weather)
        attempts = iter(["cold", '{"degrees": 3}'])
        chain = (RunnableLambda(lambda _: next(attempts)) | parser).with_retry(
            stop_after_attempt=2, wait_exponential_jitter=False
        )
        call(chain, "q", {"callbacks": [handler]}) if call is not stream else chain.invoke(
            "q", {"callbacks": [handler]}
        )
        trace = only(grace)
        assert [("PydanticOutputParser", "error"), ("PydanticOutputParser", "ok")] == statuses(trace)
        assert ("OutputParserException", True) == (trace.grace["calls"][0]["error"]["type"], trace.metadata.success)

    def test_calls_whose_arguments_cannot_be_read(self, grace, handler, made):
        said = AIMessage(
            "hm",
            invalid_tool_calls=[
                {"name": "search", "args": '{"query": ', "id": "1", "error": None, "type": "invalid_tool_call"}
            ],
        )
        made(says(said), [search]).invoke(question(), {"callbacks": [handler]})
        trace = only(grace)
        assert [("search", "error")] == statuses(trace)
        assert {"arguments": '{"query": '} == next(step.input for step in trace.steps if step.tool)


class TestAttempts:
    """A node with a RetryPolicy: attempts that failed are failed calls, and the one that worked is a call that did."""

    POLICY = RetryPolicy(initial_interval=0.0, max_attempts=3, jitter=False, retry_on=Exception)

    def app(self, node):
        graph = StateGraph(State)
        graph.add_node("fetch", node, retry_policy=self.POLICY)
        graph.add_edge(START, "fetch")
        return graph.compile()

    def failing(self, times, action=lambda number: None):
        attempts = []

        def fetch(state):
            attempts.append(1)
            action(len(attempts))
            if len(attempts) <= times:
                raise ConnectionError("down")
            return {"said": ["fetched"]}

        async def afetch(state):
            return fetch(state)

        return fetch, afetch

    def node(self, call, *args):
        return self.failing(*args)[call is ainvoke]

    def test_two_failures_and_a_success(self, grace, handler, call):
        call(self.app(self.node(call, 2)), {"said": []}, {"callbacks": [handler]})
        trace = only(grace)
        assert [("fetch", "error"), ("fetch", "error"), ("fetch", "ok")] == statuses(trace)
        assert success(trace) == pytest.approx(1 / 3)
        assert {"type": "ConnectionError", "message": "down"} == trace.grace["calls"][0]["error"]
        assert 2 == [step.type for step in trace.steps].count("error_recovery")

    def test_attempts_that_are_used_up(self, grace, handler, call):
        with pytest.raises(ConnectionError):
            call(self.app(self.node(call, 9)), {"said": []}, {"callbacks": [handler]})
        trace = only(grace)
        assert ("failed", 3 * [("fetch", "error")]) == (trace.grace["status"], statuses(trace))

    def test_a_node_that_fails_without_another_attempt_is_no_call(self, grace, handler, call):
        with pytest.raises(ConnectionError):
            call(built(("fetch", self.node(call, 9))), {"said": []}, {"callbacks": [handler]})
        trace = only(grace)
        assert ("failed", []) == (trace.grace["status"], trace.grace["calls"])

    def test_a_tool_s_error_that_makes_its_node_try_again_counts_once(self, grace, handler, call):
        def action(number):
            (broken if number == 1 else search).invoke({"query": "x"})

        call(self.app(self.node(call, 0, action)), {"said": []}, {"callbacks": [handler]})
        assert [("broken", "error"), ("search", "ok")] == statuses(only(grace))

    def test_a_task_of_the_functional_api(self, grace, handler, call):
        fetch = task(retry_policy=self.POLICY, name="fetch")(self.failing(2)[0])

        @entrypoint()
        def flow(inputs):
            return fetch(inputs).result()

        @entrypoint()
        async def aflow(inputs):
            return await fetch(inputs)

        call(aflow if call is ainvoke else flow, {"said": []}, {"callbacks": [handler]})
        assert [("fetch", "error"), ("fetch", "error"), ("fetch", "ok")] == statuses(only(grace))


def test_hostile_outputs_do_no_harm(grace, handler, monkeypatch):
    """Messages and errors whose attributes raise leave the graph's result as it is."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")

    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError("do not look")

    assert "messages" in built(("node", lambda _: {"messages": [Hostile()]}), state=dict[str, Any]).invoke(
        {}, {"callbacks": [handler]}
    )
    assert {} == handler.tracker.frames
