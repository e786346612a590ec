"""Other handlers, tracers and event streams see the same runs with our handler attached as without it."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("langchain_core", reason="needs the extra langchain")

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import HumanMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers import BaseTracer

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler

EVENTS = [f"on_{kind}_{end}" for kind in ("chain", "llm", "tool", "retriever") for end in ("start", "end", "error")]


class Heard(BaseCallbackHandler):
    """Keeps the names of the events that reach it."""

    def __init__(self):
        self.events = []

    def on_chat_model_start(self, *args, **kwargs):
        self.events.append("on_chat_model_start")


class HeardAsync(AsyncCallbackHandler):
    """The same, as an asynchronous handler."""

    def __init__(self):
        self.events = []

    async def on_chat_model_start(self, *args, **kwargs):
        self.events.append("on_chat_model_start")


class HeardInline(Heard):
    """The same, run in the event loop like ours."""

    run_inline = True


class HeardByTracer(BaseTracer):
    """The same, as a tracer."""

    def __init__(self):
        super().__init__()
        self.events = []

    def _persist_run(self, run):
        def walk(one):
            self.events.append(f"{one.run_type} {one.name} {one.end_time is not None}")
            for child in one.child_runs:
                walk(child)

        walk(run)


def _sync(name):
    return lambda self, *args, **kwargs: self.events.append(name)


def _async(name):
    async def heard(self, *args, **kwargs):
        self.events.append(name)

    return heard


for _name in EVENTS:
    setattr(Heard, _name, _sync(_name))
    setattr(HeardAsync, _name, _async(_name))


def chain(model):
    return PromptTemplate.from_template("tell me about {topic}") | model | RunnableLambda(lambda text: text)


MODELS = [FakeListLLM(responses=["ab"]), FakeListChatModel(responses=["ab"])]


@pytest.fixture(params=MODELS, ids=["text", "chat"])
def model(request):
    return request.param


def without_ids(event):
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", repr(event))


async def test_event_streams_are_the_same(handler, model):
    """`astream_events` yields the same events for text models and chat models, with and without the handler."""

    async def events(runnable, inputs, config):
        found = runnable.astream_events(inputs, config, version="v2")
        return [without_ids(event) async for event in found]

    for runnable, inputs in ((chain(model), {"topic": "x"}), (model, "x")):
        assert await events(runnable, inputs, {}) == await events(runnable, inputs, {"callbacks": [handler]})


@pytest.mark.parametrize("way", ["ainvoke", "astream", "abatch", "agenerate"])
@pytest.mark.parametrize("kind", [Heard, HeardAsync, HeardInline, HeardByTracer])
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
    with gk.Grace(store="memory:", evaluator=None, embedder=None) as other:
        second = GraceCallbackHandler(other)
        for handlers in ([handler], [handler, HeardInline()], [Heard(), handler, second], [HeardInline(), second]):
            await chain(MODELS[0]).ainvoke({"topic": "x"}, {"callbacks": handlers})
        assert [3, 2] == [len(one.store.query()) for one in (grace, other)]
        for one in (grace, other):
            assert {1} == {len(trace.grace["model_calls"]) for trace in one.store.query()}


async def test_a_graph_that_streams_messages_of_a_text_model(grace, handler):
    """LangGraph's own inline handler for message streams changes nothing about it."""
    from langgraph.graph import START, StateGraph

    async def node(state):
        return {"text": await FakeListLLM(responses=["ab"]).ainvoke("x")}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    heard = HeardAsync()
    _ = [part async for part in graph.compile().astream({}, {"callbacks": [handler, heard]}, stream_mode="messages")]
    (trace,) = grace.store.query()
    assert ["ab"] == [step.content for step in trace.steps if step.type == "thought"]


@pytest.mark.parametrize("others", [[Heard], [Heard, HeardAsync], [HeardInline, Heard]])
async def test_other_handlers_hear_the_same_inside_a_gated_tool(others):
    """The guard of a tool call, which is an inline handler, keeps no start of a text model from other handlers."""
    from grace_kp.integrations.langchain._tool_guard import guarded

    class Gates:
        def policy_for(self, tool):
            return None

        def needs_decision(self, tool):
            return False

    async def heard():
        handlers = [kind() for kind in others]
        await MODELS[0].agenerate(["x", "y"], callbacks=handlers)
        return [handler.events for handler in handlers]

    unguarded = await heard()
    with guarded(Gates(), None):
        assert unguarded == await heard()


async def test_a_subclass_is_called_inline_too(grace):
    """A subclass that extends the callback of text models records them, and other handlers hear of them."""

    class Extended(GraceCallbackHandler):
        def on_llm_start(self, *args, **kwargs):
            super().on_llm_start(*args, **kwargs)

    theirs = Heard()
    await MODELS[0].ainvoke("x", {"callbacks": [Extended(grace), theirs]})
    assert ["on_llm_start", "on_llm_end"] == theirs.events
    (trace,) = grace.store.query()
    assert 1 == len(trace.grace["model_calls"])
