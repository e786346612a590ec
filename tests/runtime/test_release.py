"""The final answer of an agent is gated like an action."""

from __future__ import annotations

import asyncio

import pytest

import grace_kp as gk
from grace_kp.testing import ScriptedReviewer, capture, make_grace

R = gk.InterventionResponse


@pytest.mark.parametrize("is_async", [False, True])
def test_release_gates_the_final_answer(is_async):
    """The answer is handed on, replaced, withheld."""
    answers = ["proceed", R("modify", modified={"answer": "better"}), "skip", "cancel"]
    grace = make_grace(reviewer=ScriptedReviewer(*answers), policies={"advisor.release": "confirm"})

    def advisor(question):
        return "buy"

    async def advisor_async(question):
        return "buy"

    advisor_async.__name__ = "advisor"
    agent = grace.agent(release=True)(advisor_async if is_async else advisor)
    ask = (lambda q: asyncio.run(agent(q))) if is_async else agent
    assert [ask("?"), ask("?"), ask("?")] == ["buy", "better", None]
    with capture() as captured, pytest.raises(gk.ActionCancelled):
        ask("?")
    assert captured.only.grace["status"] == "not_approved"
