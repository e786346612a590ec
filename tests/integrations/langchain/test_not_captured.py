"""Without captured inputs, gates on the tools and nodes of a graph store structure only; the question shows the real arguments."""

from __future__ import annotations

import contextlib
import operator
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

import grace_kp as gk
from grace_kp.integrations.langchain import GraceCallbackHandler, GraceMiddleware, gated_node
from grace_kp.testing import ScriptedReviewer

from .conftest import says

ORDER = "order 4711 in blue"
R = gk.InterventionResponse
QUESTION = {"messages": [("user", "Refund it.")]}
DECISIONS = [
    {"type": "approve"},
    {"type": "edit", "edited_action": {"name": "refund", "args": {"order": f"{ORDER} twice"}}},
    {"type": "reject", "message": f"not {ORDER}"},
    {"type": "respond", "message": f"not {ORDER}"},
]


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} is refunded"


def quiet(reviewer=None):
    return gk.Grace(
        store="memory:",
        evaluator=None,
        embedder=None,
        unmeasured="notify",
        reviewer=reviewer,
        capture_input=False,
        capture_output=False,
    )


def agent_of(grace, saver=None, floor="confirm"):
    model = says([("refund", {"order": ORDER})], "done")
    return create_agent(model, [refund], middleware=[GraceMiddleware(grace, {"refund": floor})], checkpointer=saver)


def config_of(grace):
    return {"configurable": {"thread_id": "1"}, "callbacks": [GraceCallbackHandler(grace)]}


def stored(grace):
    grace.flush()
    return str([trace.to_dict() for trace in grace.store.query()])


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision["type"])
def test_an_interrupt_shows_what_no_trace_stores(decision):
    """Before and after the answer."""
    grace = quiet()
    app, config = agent_of(grace, InMemorySaver()), config_of(grace)
    (question,) = app.invoke(QUESTION, config)["__interrupt__"]
    assert {"order": ORDER} == question.value["action_requests"][0]["args"]
    assert ORDER not in stored(grace)
    app.invoke(Command(resume={"decisions": [decision]}), config)
    assert ORDER not in stored(grace)
    (trace,) = grace.store.query()
    assert {"order": "[not captured]"} == trace.decisions[-1].arguments


@pytest.mark.parametrize(
    "answer",
    [
        R("proceed"),
        R("modify", modified={"order": f"{ORDER} twice"}),
        R("cancel", user_input=ORDER),
        R("input", user_input=ORDER),
    ],
    ids=lambda answer: str(answer.action),
)
def test_a_reviewer_of_a_tool_sees_what_no_trace_stores(answer):
    """Without a checkpointer."""
    reviewer = ScriptedReviewer(answer)
    grace = quiet(reviewer)
    agent_of(grace).invoke(QUESTION, config_of(grace))
    assert ORDER == reviewer.requests[0].arguments["order"]
    assert ORDER not in stored(grace)


def test_a_notice_of_a_tool_is_stored_without_arguments():
    """It says where it went."""
    grace = quiet()
    agent_of(grace, InMemorySaver(), floor="notify").invoke(QUESTION, config_of(grace))
    assert ORDER not in stored(grace)
    (trace,) = grace.store.query()
    assert {"to": "log", "text": "[not captured]"} == trace.grace["decisions"][0]["notice"]


class State(TypedDict):
    order: str
    said: Annotated[list, operator.add]


@pytest.mark.parametrize("decision", [DECISIONS[0], DECISIONS[2]], ids=lambda decision: decision["type"])
def test_a_gated_node_stores_no_state(decision):
    """The question has the state."""
    grace = quiet()
    graph = StateGraph(State)
    graph.add_node("refund", gated_node(grace, lambda state: {"said": [state["order"]]}, floor="confirm"))
    graph.add_edge(START, "refund")
    app, config = graph.compile(checkpointer=InMemorySaver()), config_of(grace)
    (question,) = app.invoke({"order": ORDER}, config)["__interrupt__"]
    assert ORDER in str(question.value["action_requests"][0]["args"])
    with contextlib.suppress(gk.ActionCancelled):
        app.invoke(Command(resume={"decisions": [decision]}), config)
    assert ORDER not in stored(grace)
