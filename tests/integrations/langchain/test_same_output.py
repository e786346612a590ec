"""What a program gives and raises is the same with the handler and the middleware as without them, over every way to call it."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import MessagesState

from grace_kp.integrations.langchain import GraceMiddleware

from .conftest import Script, broken, built, rag


@tool
def look(query: str) -> str:
    """Look something up."""
    return f"seen {query}"


def proposal(name):
    return AIMessage("", id="m0", tool_calls=[{"name": name, "args": {"query": "x"}, "id": "c0"}])


def chain(_):
    return rag()


def retrying(_):
    attempted = set()

    def flaky(text):
        if text not in attempted:  # the first attempt of each question fails, whichever thread comes first
            attempted.add(text)
            raise ConnectionError("again")
        return look.invoke({"query": text})

    return RunnableLambda(flaky).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)


def falling_back(_):
    def fail(_):
        raise ConnectionError("down")

    return RunnableLambda(fail).with_fallbacks([RunnableLambda(lambda text: f"instead {text}")])


def failing(_):
    return RunnableLambda(lambda text: broken.invoke({"query": text}))


AS_MESSAGE = RunnableLambda(lambda text: {"messages": [("user", text)]})


def agent(middleware):
    said = [proposal("look"), AIMessage("done", id="end")]
    return AS_MESSAGE | create_agent(Script(responses=said), [look], middleware=middleware)


def failing_agent(middleware):
    return AS_MESSAGE | create_agent(Script(responses=[proposal("broken")]), [broken], middleware=middleware)


def graph(_):
    b = ("b", lambda state: {"messages": [AIMessage(look.invoke({"query": "b"}), id="b")]})
    a = ("a", lambda state: {"messages": [AIMessage("from a", id="a")]})
    return AS_MESSAGE | built(a, ("inner", built(b, state=MessagesState)), state=MessagesState)


PROGRAMS = [chain, retrying, falling_back, failing, agent, failing_agent, graph]


def plain(value):
    """A value without what is drawn anew for each run."""
    if isinstance(value, BaseMessage):
        return (value.type, value.content, getattr(value, "tool_calls", None), getattr(value, "status", None))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items() if "GraceMiddleware" not in str(key)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value if "GraceMiddleware" not in str(part)[:60]]
    if isinstance(value, Exception):
        return (type(value), str(value))
    return value


async def outcome(way, program, config):
    try:
        found = way(program, config)
        return plain(await found if inspect.isawaitable(found) else found)
    except Exception as error:
        return plain(error)


async def collected(stream):
    return [part async for part in stream]


async def events(program, config):
    found = [event async for event in program.astream_events("q", config, version="v2")]
    mine = "GraceMiddleware"  # a node more, which says what it has done
    # Branches run at once, so the order of their events depends on the machine.
    return sorted(
        (event["event"], event["name"])
        for event in found
        if not any(mine in str(part) for part in (event["name"], event["metadata"], event["data"].get("chunk")))
    )


QUESTIONS = [f"q{n}" for n in range(50)]
# Of questions that run at once, whichever fails first is raised, so all failures are returned.
WAYS = {
    "invoke": lambda program, config: program.invoke("q", config),
    "stream": lambda program, config: list(program.stream("q", config)),
    "batch": lambda program, config: program.batch(QUESTIONS, config, return_exceptions=True),
    "ainvoke": lambda program, config: program.ainvoke("q", config),
    "astream": lambda program, config: collected(program.astream("q", config)),
    "abatch": lambda program, config: program.abatch(QUESTIONS, config, return_exceptions=True),
    "astream_events": events,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
async def test_the_outcome_is_the_same(grace, handler, program, way):
    without = await outcome(WAYS[way], program([]), {})
    gated = program([GraceMiddleware(grace, default="silent")])
    assert without == await outcome(WAYS[way], gated, {"callbacks": [handler]})
    assert grace.store.query()
