"""The calls of one message: decided at once, refused by policy, or asked about together."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain.agents", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import grace_kp as gk
from grace_kp.integrations.langchain import GraceMiddleware

from .conftest import Script, message_of


@pytest.mark.parametrize("reviewer", [None, gk.InboxReviewer()])
def test_only_what_needs_a_person_is_asked_about(reviewer):
    """With and without an inbox, the other calls of the message have their decision already."""
    ran = []

    def named(name):
        def run(x: int) -> str:
            """Run."""
            ran.append((name, x))
            return name

        return tool(name)(run)

    calls = [("silent", {"x": 1}), ("asked", {"x": 2}), ("denied", {"x": 3}), ("free", {"x": 4})]
    with gk.Grace(store="memory:", evaluator=None, embedder=None, unmeasured="notify", reviewer=reviewer) as grace:
        gates = {
            "silent": gk.Policy(thresholds=gk.Thresholds(silent=0.0, notify=0.0, confirm=0.0)),
            "asked": "confirm",
            "denied": "deny",
        }
        script = Script(responses=[message_of(calls), message_of("done")])
        agent = create_agent(
            script,
            [named(name) for name, _ in calls],
            middleware=[GraceMiddleware(grace, gates=gates)],
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "1"}}
        out = agent.invoke({"messages": [("user", "go")]}, config)
        assert ["asked"] == [action["name"] for action in out["__interrupt__"][0].value["action_requests"]]
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert [("asked", 2), ("free", 4), ("silent", 1)] == sorted(ran)
