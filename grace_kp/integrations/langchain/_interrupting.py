"""A question by LangGraph's interrupt, in the form of LangChain's human-in-the-loop requests, and its answer as a reviewer's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating import Failed, InterventionResponse, plain, view
from grace_kp.integrations.langchain._hitl import (
    action_request,
    decisions_in,
    edited_name,
    hitl_request,
    unseen_problem,
)
from grace_kp.levels import InterventionAction

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from grace_kp.gating import InterventionRequest, Step, Work

ORIGIN = "langgraph"
MAX_QUESTIONS = 4


class Interrupting:
    """A reviewer that raises LangGraph's interrupt. Its answer is the value that the graph is resumed with.

    The checkpoint keeps the question, so the question holds no secret that the checkpoint does not hold already.
    """

    pauses = True
    name = "interrupt"

    def __init__(self, checkpointed: Callable[[], Iterator[str]] = lambda: iter(())) -> None:
        """Ask in a node.

        Args:
            checkpointed: returns the texts of the state that the checkpoint holds.
        """
        self._checkpointed = checkpointed

    def stores(self, text: str) -> bool:
        """Return whether the checkpoint holds this text already, alone or inside another."""
        return any(text in held for held in self._checkpointed())

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Ask, and return when the graph is resumed.

        Raises:
            GraphInterrupt: the graph stops here and waits.
        """
        from langgraph.types import interrupt

        action, shown, unseen = action_of(request)
        problem = request.problem
        for _ in range(MAX_QUESTIONS):
            answer = interrupt(hitl_request([action], problem))
            responses, problem = decisions_in(answer, 1)
            if not responses:
                continue
            response = with_own_values(responses[0], request, shown)
            problem = problem_with_answer(request, answer, response, unseen)
            if not problem:
                return (
                    replace(response, selected_option="run unseen") if unseen and response.should_continue else response
                )
        return InterventionResponse(InterventionAction.CANCEL, user_input=f"no usable answer: {problem}")


def action_of(
    request: InterventionRequest, approval: str | None = None
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return the action of a question, the arguments that it shows, and the names of those that it cannot show in full."""
    views = {name: view(value) for name, value in request.arguments.items()}
    shown = {name: plain(seen.root) for name, seen in views.items()}
    unseen = [name for name, seen in views.items() if seen.opaque]
    reasons = _reasons(request)
    action = action_request(request.action, shown, reasons, "", hidden=request.hidden, unseen=unseen, approval=approval)
    return action, shown, unseen


def problem_with_answer(
    request: InterventionRequest, answer: Any, response: InterventionResponse, unseen: list[str]
) -> str:
    """Return why a decision in an answer does not count; an empty text where it does."""
    return _name_problem(request, answer, response) or unseen_problem(answer, 0, _kept(response, request, unseen))


def _reasons(request: InterventionRequest) -> dict[str, Any]:
    score = request.confidence
    return {
        "level": str(request.level),
        "score": request.decision.confidence_score,
        "breakdown": {} if score is None else score.evaluated,
        "penalties": [] if score is None else score.penalties_applied,
        "reason": request.reason,
    }


def with_own_values(
    response: InterventionResponse, request: InterventionRequest, shown: dict[str, Any]
) -> InterventionResponse:
    """Return the response with the real objects in place of their JSON form, where the reviewer sent that back unchanged."""
    if response.action is not InterventionAction.MODIFY:
        return response
    changes = {
        name: request.arguments[name] if name in shown and value == shown[name] else value
        for name, value in (response.modified or {}).items()
    }
    return replace(response, modified=changes)


def _kept(response: InterventionResponse, request: InterventionRequest, names: list[str]) -> list[str]:
    """Return those of these arguments that an action would run with unchanged."""
    if response.action is InterventionAction.MODIFY:
        changes = response.modified or {}
        return [name for name in names if changes.get(name, request.arguments[name]) is request.arguments[name]]
    return names if response.action is InterventionAction.PROCEED else []


def _name_problem(request: InterventionRequest, answer: Any, response: InterventionResponse) -> str:
    other = edited_name(answer, 0) if response.action is InterventionAction.MODIFY else None
    if other in {None, request.action}:
        return ""
    return f"decision 0: the name cannot be changed (from {request.action} to {other}); reject it and say so"


def performed(step: Work) -> Generator[Step, Any, Any]:
    """Return what a step gave.

    Raises:
        Exception: it failed, or the graph pauses here. The node is run again.
    """
    answer = yield step
    if isinstance(answer, Failed):
        raise answer.error
    return answer
