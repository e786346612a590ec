"""Gated functions inside of a graph's node: the call that is run again is the call that was decided on, down to its contents."""

from __future__ import annotations

import datetime
import operator
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

import grace_kp as gk

both = pytest.mark.parametrize("world", ["sync", "async"])


class State(TypedDict):
    said: Annotated[list, operator.add]


def app_of(node):
    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile(checkpointer=InMemorySaver())


CONFIG = {"configurable": {"thread_id": "1"}}


async def call(app, given, world):
    return app.invoke(given, CONFIG) if world == "sync" else await app.ainvoke(given, CONFIG)


def answer(kind, **more):
    return Command(resume={"decisions": [{"type": kind, **more}]})


def node_of(act, world):
    """A node that calls an action, sync or async, with what the function gives."""

    def node(state):
        return {"said": [act()]}

    async def anode(state):
        return {"said": [await act()]}

    return node if world == "sync" else anode


def gated(grace, body, world, **options):
    def act(it):
        return body(it)

    async def act_async(it):
        return body(it)

    action = act if world == "sync" else act_async
    action.__annotations__ = getattr(body, "__annotations__", {})
    return grace.gate(name="act", **{"floor": "confirm", **options})(action)


@both
async def test_another_date_is_another_call(grace, world):
    """A node that is run again with another day is not run with the approval of the first."""
    days, ran = iter([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]), []
    act = gated(grace, ran.append, world)
    app = app_of(node_of(lambda: act(next(days)), world))
    await call(app, {"said": []}, world)
    with pytest.raises(gk.ActionCancelled, match="other arguments than were decided on"):
        await call(app, answer("approve"), world)
    assert [] == ran


@both
async def test_the_same_date_is_the_same_call(grace, world):
    """A value of the same contents is the same in another run of the node."""
    ran = []
    act = gated(grace, ran.append, world)
    app = app_of(node_of(lambda: act(datetime.date(2026, 1, 1)), world))
    await call(app, {"said": []}, world)
    await call(app, answer("approve"), world)
    assert [datetime.date(2026, 1, 1)] == ran


@both
async def test_an_edit_without_arguments_is_asked_again(grace, world):
    """And an edit is checked against the declared types."""
    ran = []

    def act(it: int):
        ran.append(it)

    gated_act = gated(grace, act, world)
    app = app_of(node_of(lambda: gated_act(3), world))
    await call(app, {"said": []}, world)
    for args, problem in ({}, "edit needs arguments"), ({"it": "7"}, "it: Input should be a valid integer"):
        out = await call(app, answer("edit", edited_action={"name": "act", "args": args}), world)
        assert problem in out["__interrupt__"][0].value["problem"]
    await call(app, answer("edit", edited_action={"name": "act", "args": {"it": 7}}), world)
    assert [7] == ran


@both
async def test_what_cannot_be_checked_is_not_asked_about(grace, world):
    """In a graph as elsewhere."""
    ran = []
    act = gated(grace, ran.append, world)
    with pytest.raises(gk.ActionCancelled, match="list_iterator, which changes when it is read"):
        await call(app_of(node_of(lambda: act(iter([1])), world)), {"said": []}, world)
    assert [] == ran


@both
async def test_what_nobody_is_asked_about_runs(grace, world):
    """Whether or not it could be checked."""
    ran = []
    act = gated(grace, lambda it: ran.extend(it), world, floor="notify")
    await call(app_of(node_of(lambda: act(iter([1])), world)), {"said": []}, world)
    assert [1] == ran


@both
async def test_an_identified_argument_is_known_again(grace, world):
    """By what identifies it, in another run of the node, too; whoever approves names it, because JSON cannot show it."""
    ran, opened = [], []

    class Client:
        def __init__(self, url):
            self.url = url
            self.stream = iter(())
            opened.append(self)

    urls = iter(["https://a", "https://a"])
    act = gated(grace, ran.append, world, identity={"it": "url"})
    app = app_of(node_of(lambda: act(Client(next(urls))), world))
    await call(app, {"said": []}, world)
    await call(app, answer("approve", unseen=["it"]), world)
    assert [opened[-1]] == ran


class Changing:
    """A store that changes an argument at the moment in which the action is said to begin."""

    def __init__(self, inner, change):
        self._inner = inner
        self._change = change

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def put_action(self, key, data, *, only_if):
        kept = self._inner.put_action(key, data, only_if=only_if)
        if b'"running"' in data:
            self._change()
        return kept


@both
async def test_a_change_after_the_action_is_said_to_begin(world):
    """It does not run, and it is not left behind as one of which nobody knows whether it ran."""
    order, ran, changes = ["book"], [], iter([lambda: order.append("car"), lambda: None])
    inner = gk.Grace(store="memory:").store
    grace = gk.Grace(
        store=Changing(inner, lambda: next(changes)()),
        evaluator=None,
        embedder=None,
        unmeasured="notify",
        reviewer=None,
    )
    act = gated(grace, lambda lines: ran.append(list(lines)), world)
    app = app_of(node_of(lambda: act(order), world))
    await call(app, {"said": []}, world)
    with pytest.raises(gk.ActionCancelled, match="were changed"):
        await call(app, answer("approve"), world)
    assert [] == ran
    order.pop()
    await call(app, None, world)
    assert [["book"]] == ran
