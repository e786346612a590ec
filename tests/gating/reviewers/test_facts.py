"""What a person is shown of a request, whichever way it comes to them."""

from __future__ import annotations

import grace_kp as gk
from grace_kp.confidence import ActionDecision
from grace_kp.gating.reviewers import Facts, Page, Question


def test_facts_of_a_question_are_those_of_its_request():
    """Sizes of what is hidden and the time are in words."""
    decision = ActionDecision(level=gk.InterventionLevel.CONFIRM, confidence_score=0.5, reason="why")
    request = gk.InterventionRequest(
        id="1", action="pay", arguments={"euros": 5}, digest="", level=gk.InterventionLevel.CONFIRM, decision=decision, timeout=30.0,
        hidden={"token": 12},
    )  # fmt: skip
    facts = Facts.of(request)
    assert ("pay", "confirm", {"euros": 5}, 0.5) == (facts.action, facts.level, facts.arguments, facts.score)
    assert ("token (12 characters)", "30 s, then it does not run") == (facts.hidden, facts.time)


def test_a_question_can_be_laid_out_from_facts_alone():
    """With what an argument was before, remarks, and a confidence that could not be computed."""
    facts = Facts(
        action="pay", level="escalate", arguments={"euros": 5}, before={"euros": 7}, remarks={"euros": "checked"}
    )
    lines = Question(facts).in_full(Page(60))
    assert [" * euros = 5", "     was = 7", "     checked"] == lines[4:7]
    assert " confidence: could not be computed" in lines
