"""Parameters that a framework fills in are no arguments: they are not shown, not part of the digest, and not recorded."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.callbacks import CallbackManager, Callbacks
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, tool
from langgraph.prebuilt import InjectedState, InjectedStore
from langgraph.store.memory import InMemoryStore

import grace_kp as gk
from tests.integrations.langchain.conftest import Script


class Mark(InjectedToolArg):
    """A way of a user's own to fill in a parameter."""


Runtime = ToolRuntime[Any, Any]
FILLED_IN = {
    "runtime": ToolRuntime, "generic runtime": Runtime, "optional runtime": Optional["ToolRuntime"], "text": "ToolRuntime",
    "union": ToolRuntime | None, "config": RunnableConfig, "annotated config": Annotated[RunnableConfig, "x"],
    "state": Annotated[dict, InjectedState], "field": Annotated[list, InjectedState("messages")],
    "store": Annotated[Any, InjectedStore()], "call id": Annotated[str, InjectedToolCallId], "own": Annotated[str, Mark],
    "callbacks": Callbacks, "manager": CallbackManager,
}  # fmt: skip
OTHERS = {
    "a dict": dict, "no type": None, "a text": str, "optional config": RunnableConfig | None, "annotated": Annotated[dict, "InjectedState"],
    "text that cannot be resolved": "NoSuchType",
}  # fmt: skip


def action_with(declared, ran):
    def act(x, config=None):
        ran.append((x, config))
        return "acted"

    act.__annotations__ = {"x": int} if declared is None else {"x": int, "config": declared}
    return act


@pytest.fixture
def asked():
    return []


@pytest.fixture
def grace(asked):
    def reviewer(request):
        asked.append(dict(request.arguments))
        return "proceed"

    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=reviewer) as made:
        yield made


@pytest.mark.parametrize("declared", FILLED_IN.values(), ids=FILLED_IN)
def test_what_is_filled_in_is_left_out(grace, asked, declared):
    """Its value may change while somebody decides, and cannot be read at all."""
    ran, value = [], (each for each in ())
    with grace.run("go") as run:
        grace.gate(action_with(declared, ran), floor="confirm")(1, value)
    (entry,) = run.trace.decisions
    assert ([{"x": 1}], {"x": 1}, [(1, value)]) == (asked, entry.arguments, ran)


@pytest.mark.parametrize("declared", OTHERS.values(), ids=OTHERS)
def test_a_name_alone_hides_nothing(grace, asked, declared):
    """A caller who chooses the value of a parameter called `config` does not get past the reviewer with it."""
    ran = []
    grace.gate(action_with(declared, ran), floor="confirm")(1, {"to": "eve"})
    assert [{"x": 1, "config": {"to": "eve"}}] == asked


def test_an_edit_cannot_fill_it_in(asked):
    with gk.Grace(
        store="memory:",
        evaluator=None,
        embedder=None,
        reviewer=lambda _: gk.InterventionResponse("modify", modified={"config": {"forged": 1}}),
    ) as grace:
        ran = []
        with pytest.raises(gk.ActionCancelled, match="no parameter 'config'"):
            grace.gate(action_with(RunnableConfig, ran), floor="confirm")(1, {})
        assert [] == ran


@pytest.mark.parametrize("declared", FILLED_IN.values(), ids=FILLED_IN)
def test_recorded_tools_leave_it_out_too(grace, declared):
    with grace.run("go") as run:
        grace.tool(action_with(declared, []))(1, {"secret": "quiet plum"})
        grace.tool(action_with(declared, []))(x=1, config={"secret": "quiet plum"})
    assert [{"x": 1}] * 2 == [step.input for step in run.trace.steps if step.type == "tool_call"]
    assert "quiet plum" not in run.trace.to_json()


def test_gates_under_tools_of_langchain_run(grace, asked):
    """The agent fills everything in, and the reviewer sees the argument of the model."""
    ran = []

    @tool
    @grace.gate(floor="confirm")
    def act(
        x: int,
        runtime: ToolRuntime,
        config: RunnableConfig,
        state: Annotated[dict, InjectedState],
        store: Annotated[Any, InjectedStore()],
        call_id: Annotated[str, InjectedToolCallId],
        callbacks: Callbacks = None,
    ) -> str:
        """Act."""
        ran.append((x, runtime.tool_call_id, call_id, len(state["messages"]), store is not None, "metadata" in config))
        return "acted"

    script = [AIMessage("", tool_calls=[{"name": "act", "args": {"x": 1}, "id": "c"}]), AIMessage("done")]
    agent = create_agent(Script(responses=script), [act], store=InMemoryStore())
    agent.invoke({"messages": [("user", "go")]})
    assert ([{"x": 1}], [(1, "c", "c", 2, True, True)]) == (asked, ran)


def test_an_inbox_keeps_none_of_it(asked):
    """Whoever carries the request out fills it in anew."""
    with gk.Grace(
        store="memory:", evaluator=None, embedder=None, reviewer=gk.InboxReviewer(deadline="1h", wait="raise")
    ) as grace:
        ran = []
        gated = grace.gate(action_with(RunnableConfig, ran), floor="confirm", key="act:{x}")
        with pytest.raises(gk.ActionPending):
            gated(1, {"first": object()})
        (waiting,) = grace.approvals.pending()
        assert {"x"} == set(waiting.arguments)
        grace.approvals.approve(waiting.id, by="ana")
        other = {"second": object()}
        gated(1, other)
        assert [(1, other)] == ran
