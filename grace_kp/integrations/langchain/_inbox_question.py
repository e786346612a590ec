"""One question in a node about a request that also waits in the inbox. Whichever is answered first decides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating import InterventionResponse, ProgramAnswer
from grace_kp.integrations.langchain._hitl import PERSON, decisions_in, hitl_request, looks_into_inbox, other_approval
from grace_kp.integrations.langchain._interrupting import (
    ORIGIN,
    Interrupting,
    action_of,
    problem_with_answer,
    with_own_values,
)
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.gating import InterventionRequest


class InboxQuestion(Interrupting):
    """A reviewer that raises LangGraph's interrupt once. Whoever asks decides whether the answer counts, and asks again."""

    def __init__(self, approval: str, checkpointed: Callable[[], Iterator[str]]) -> None:
        """Ask about a request.

        Args:
            approval: its id.
            checkpointed: returns the texts of the state that the checkpoint holds.
        """
        super().__init__(checkpointed)
        self._approval = approval

    def review(self, request: InterventionRequest) -> ProgramAnswer:
        """Ask, and return when the graph is resumed.

        Raises:
            GraphInterrupt: the graph stops here and waits.
        """
        from langgraph.types import interrupt

        action, shown, unseen = action_of(request, self._approval)
        answer = interrupt(hitl_request([action], request.problem))
        if looks_into_inbox(answer):
            return LOOK
        responses, problem = decisions_in(answer, 1)
        problem = problem or other_approval(answer, [self._approval])
        if problem:
            return unusable(problem)
        response = with_own_values(responses[0], request, shown)
        problem = problem_with_answer(request, answer, response, unseen)
        return unusable(problem) if problem else program_answer(response)


LOOK = ProgramAnswer(InterventionAction.RETRY, looks=True)


def unusable(problem: str) -> ProgramAnswer:
    """Return an answer that cannot be used."""
    return ProgramAnswer(InterventionAction.CANCEL, problem=problem)


def program_answer(response: InterventionResponse) -> ProgramAnswer:
    """Return a decision in an answer. Where it does not state who decides, the graph does."""
    fields: dict[str, Any] = {name: getattr(response, name) for name in response.__dataclass_fields__}
    return replace(ProgramAnswer(**fields), reviewer=ORIGIN if response.reviewer == PERSON else response.reviewer)
