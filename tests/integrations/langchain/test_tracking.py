"""A graph that hands over to its parent has ended; only an interrupt suspends a run."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

from langchain.agents import AgentState, create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphDrained, ParentCommand
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.runtime import RunControl
from langgraph.types import Command, Send

import grace_kp as gk

from .conftest import says, statuses


class State(TypedDict):
    notes: Annotated[list, operator.add]


def config(handler, thread="1"):
    return {"configurable": {"thread_id": thread}, "callbacks": [handler]}


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


def by_name(grace):
    return {trace.grace["name"]: trace for trace in grace.store.query()}


def handing_over(goto, **update):
    """A graph whose inner graph hands over to a node of the outer one."""
    inner = StateGraph(State)
    inner.add_node("decide", lambda _: Command(goto=goto, graph=Command.PARENT, update=update or None))
    inner.add_edge(START, "decide")
    outer = StateGraph(State)
    outer.add_node("first", inner.compile(name="first"))
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


def test_a_handoff_without_a_target_says_so(grace, handler):
    run(handing_over((), notes=["n"]), {"notes": []}, handler, "invoke")
    assert "handed off to its parent graph" == by_name(grace)["first"].outcome.result_summary


class Team(AgentState):
    active: str


@tool
def transfer_to_bob(state: Annotated[dict, InjectedState]) -> Command:
    """Hand over to Bob."""
    call = state["messages"][-1].tool_calls[0]["id"]
    done = ToolMessage("transferred", tool_call_id=call, name="transfer_to_bob")
    return Command(goto="bob", graph=Command.PARENT, update={"messages": [*state["messages"], done], "active": "bob"})


def test_agents_that_hand_over_by_a_tool(grace, handler, mode):
    """As in langgraph-swarm and langgraph-supervisor: a tool returns a Command to the parent graph."""
    alice = create_agent(says([("transfer_to_bob", {})]), [transfer_to_bob], name="alice", state_schema=Team)
    bob = create_agent(says("Bob here."), [], name="bob", state_schema=Team)
    team = StateGraph(Team)
    team.add_node("alice", alice, destinations=("bob",))
    team.add_node("bob", bob)
    team.add_edge(START, "alice")
    run(team.compile(name="team", checkpointer=InMemorySaver()), {"messages": [HumanMessage("hi")]}, handler, mode)

    traces = by_name(grace)
    assert {"completed"} == {trace.grace["status"] for trace in traces.values()}
    assert "handed off to bob" == traces["alice"].outcome.result_summary
    assert [("transfer_to_bob", "ok")] == statuses(traces["alice"])
    assert [("alice", "ok"), ("bob", "ok")] == statuses(traces["team"])
    assert "Bob here." == traces["team"].outcome.result_summary


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

    graph = StateGraph(State)
    graph.add_node("first", first)
    graph.add_node("second", lambda _: {"notes": ["second"]})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    app = graph.compile(checkpointer=InMemorySaver(), name="app")
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


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_gated_action_that_hands_over_has_been_executed(grace, asynchronous):
    command = ParentCommand(Command(graph=Command.PARENT, goto="second"))

    @grace.gate(reviewer=lambda request: gk.InterventionResponse("proceed"), floor="confirm")
    def transfer(target):
        raise command

    @grace.gate(reviewer=lambda request: gk.InterventionResponse("proceed"), floor="confirm")
    async def atransfer(target):
        raise command

    @grace.agent
    def agent(question):
        return asyncio.run(atransfer("second")) if asynchronous else transfer("second")

    with pytest.raises(ParentCommand):
        agent("who?")
    (trace,) = grace.store.query()
    assert ["executed"] == [entry["outcome"] for entry in trace.grace["decisions"]]
    assert "error" not in trace.grace["decisions"][0]


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
