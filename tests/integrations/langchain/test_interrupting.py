"""The question of a node and its answer: what the interrupt shows, and what counts as an answer."""

from __future__ import annotations

import pytest

pytest.importorskip("langgraph", reason="needs the extra langchain")

from grace_kp.confidence import ActionDecision
from grace_kp.gating import InterventionRequest, InterventionResponse
from grace_kp.integrations.langchain._interrupting import action_of, problem_with_answer, with_own_values
from grace_kp.levels import InterventionLevel

REQUEST = InterventionRequest(
    id="1",
    action="pay",
    arguments={"to": "ann", "client": iter(())},
    digest="d",
    level=InterventionLevel.CONFIRM,
    decision=ActionDecision(InterventionLevel.CONFIRM, 0.5, "why"),
)


def test_a_question_names_its_request_in_the_inbox():
    """Without an inbox it has no such field."""
    action, shown, unseen = action_of(REQUEST, "ap-1")
    assert ("pay", "ap-1", "ann", ["client"]) == (action["name"], action["approval"], shown["to"], unseen)
    assert "approval" not in action_of(REQUEST)[0]


def test_what_comes_back_unchanged_is_the_value_itself():
    """An edit does not turn an object into its JSON form."""
    _, shown, _ = action_of(REQUEST)
    response = with_own_values(InterventionResponse("modify", modified={**shown, "to": "bob"}), REQUEST, shown)
    assert ("bob", True) == (response.modified["to"], response.modified["client"] is REQUEST.arguments["client"])


def test_another_name_and_unseen_arguments_do_not_count():
    """The reviewer learns why."""
    _, _, unseen = action_of(REQUEST)
    renamed = {"decisions": [{"type": "edit", "edited_action": {"name": "mail", "args": {"to": "ann"}}}]}
    problem = problem_with_answer(REQUEST, renamed, InterventionResponse("modify", modified={"to": "ann"}), unseen)
    assert "the name cannot be changed" in problem
    plain = {"decisions": [{"type": "approve"}]}
    assert "client cannot be shown in full" in problem_with_answer(
        REQUEST, plain, InterventionResponse("proceed"), unseen
    )
