"""Real LangChain and LangGraph, and chat models that say what they are told to; nothing of LangChain is replaced."""

from __future__ import annotations

import functools
import operator
import sys
import time
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt  # noqa: F401 - for the programs of tests

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware
from tests import warm


class Model(GenericFakeChatModel):
    """Says its messages one after the other; takes tools and forgets them."""

    def bind_tools(self, tools, **kwargs):
        return self


class Script(FakeMessagesListChatModel):
    """Says what its script has for this point of the conversation, so that any number of conversations may use it at once."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        said = sum(isinstance(message, AIMessage) for message in messages)
        reply = self.responses[min(said, len(self.responses) - 1)]
        return ChatResult(generations=[ChatGeneration(message=reply.model_copy())])

    def bind_tools(self, tools, **kwargs):
        return self


def says(*messages):
    """A model that says these: texts, or lists of (tool, arguments)."""
    return Model(messages=iter([message_of(one, number) for number, one in enumerate(messages)]))


def message_of(said, number=0):
    if isinstance(said, str):
        return AIMessage(said)
    if isinstance(said, AIMessage):
        return said
    calls = [{"name": name, "args": args, "id": f"call_{number}_{place}"} for place, (name, args) in enumerate(said)]
    return AIMessage("", tool_calls=calls)


def runtime(**options):
    return gk.Grace(**{"store": "memory:", "evaluator": None, "embedder": None, **options})


both = pytest.mark.parametrize("world", ["sync", "async"])
QUESTION = {"messages": [("user", "Pay them.")]}
APPROVE = {"type": "approve"}


def edit(name="pay", **args):
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def answer(*decisions, **more):
    """Resume a graph with decisions, each an object or the type of one with these fields."""
    return Command(resume={"decisions": [{"type": one, **more} if isinstance(one, str) else one for one in decisions]})


def asked(out):
    """The value of the only interrupt."""
    (question,) = out["__interrupt__"]
    return question.value


def action_in(out):
    (action,) = asked(out)["action_requests"]
    return action


def config(handler=None, thread="1"):
    return {"configurable": {"thread_id": thread}, "callbacks": [handler] if handler else []}


async def call(app, given, world, handler=None, thread="1"):
    settings = config(handler, thread)
    return app.invoke(given, settings) if world == "sync" else await app.ainvoke(given, settings)


class State(TypedDict):
    said: Annotated[list, operator.add]


def built(*nodes, state=State, **options):
    """A graph of these nodes, one after the other: functions, or pairs of name and node."""
    graph, before = StateGraph(state), START
    for node in nodes:
        name, function = node if isinstance(node, tuple) else (node.__name__, node)
        graph.add_node(name, function)
        graph.add_edge(before, name)
        before = name
    return graph.compile(**options)


def gated_agent(grace, said, tools, gates, *, around=(), behind=(), saver="memory", name=None, **options):
    """An agent whose model says these, with our middleware between others; without a checkpointer if `saver` is None."""
    middleware = [*around, GraceMiddleware(grace, gates, **options), *behind]
    saver = InMemorySaver() if saver == "memory" else saver
    return create_agent(says(*said), tools, middleware=middleware, checkpointer=saver, name=name)


def question(text="q"):
    return {"messages": [("user", text)]}


PROGRAMS_IMPORT = "tests.integrations.langchain.conftest"


def run_program(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return warm.run(command, imports=(*warm.LANGGRAPH, PROGRAMS_IMPORT), capture_output=True, text=True, timeout=300)


def in_world(function, world):
    """A function as it is, or as a coroutine function."""

    @functools.wraps(function)
    async def function_async(*args, **kwargs):
        return function(*args, **kwargs)

    return function if world == "sync" else function_async


def node_of(world, *acts):
    """A node that returns the results of these actions."""

    def node(state):
        return {"said": [act() for act in acts]}

    async def node_async(state):
        return {"said": [await act() for act in acts]}

    return node if world == "sync" else node_async


class Bank:
    """A tool that acts, and one that does not."""

    def __init__(self):
        self.paid = []

        @tool
        def pay(to: str, euros: int) -> str:
            """Send money."""
            self.paid.append((to, euros))
            return f"paid {to} {euros}"

        @tool
        def look(query: str) -> str:
            """Look something up."""
            return f"seen {query}"

        self.pay, self.look = pay, look
        self.tools = [pay, look]


@pytest.fixture
def bank():
    return Bank()


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


@tool
def broken(query: str) -> str:
    """Fail."""
    raise ValueError(f"no {query}")


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


@pytest.fixture(params=["memory", "sqlite"])
def saver(request):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(":memory:") as made:
            yield made


@pytest.fixture
def grace():
    made = runtime(unmeasured="notify", reviewer=None)
    yield made
    made.close()


@pytest.fixture
def inbox_of():
    """A function that returns a runtime whose gates ask in an inbox."""
    opened = []

    def make(policies=None, reviewers=None, **reviewer):
        opened.append(runtime(reviewer=gk.InboxReviewer(**reviewer), policies=policies, reviewers=reviewers or {}))
        return opened[-1]

    yield make
    for grace in opened:
        grace.close()


@pytest.fixture
def let_pass(monkeypatch):
    """A function that sets the clock of a runtime's requests forward, by seconds."""

    def forward(grace, seconds):
        requests = grace.approvals.inbox.requests
        for part in (requests, requests._transactions):
            monkeypatch.setattr(part, "clock", lambda: time.time() + seconds)

    return forward


@pytest.fixture
def handler(grace):
    return GraceCallbackHandler(grace)


@pytest.fixture(autouse=True)
def _no_complaints(caplog):
    """LangChain swallows what a handler raises, and logs it; here that fails the test."""
    yield
    records = caplog.get_records("call")
    assert [] == [it.getMessage() for it in records if it.name == "langchain_core.callbacks.manager"]


def steps(trace):
    """A trace's steps in short: kind, tool or text."""
    return [(step.type, step.tool.name if step.tool else step.content) for step in trace.steps]


def statuses(trace):
    return [(call["name"], call["status"]) for call in trace.grace["calls"]]


def only(grace):
    (trace,) = grace.store.query()
    return trace


def by_name(grace):
    return {trace.grace["name"]: trace for trace in grace.store.query()}
