"""Questions by LangGraph's interrupt, in the form of LangChain's human-in-the-loop middleware, so that front ends made for it work.

A request lists actions and the decisions that are allowed about each. An answer lists one decision for each action, in the same order.
`Interrupting` asks in a node; `InboxQuestion` asks about a request that also waits in the inbox, where the first answer decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating import Failed, InterventionResponse, ProgramAnswer, plain, view
from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from grace_kp.gating import InterventionRequest, Step, Work


APPROVALS = "approvals"
"""Field of an answer with the ids of requests that are decided in the inbox."""
PERSON = "person"
"""Who decides where an answer does not state it."""
MAX_NAME = 200
DECISIONS = ["approve", "edit", "reject", "respond"]


def action_request(
    name: str,
    arguments: Mapping[str, Any],
    reasons: Mapping[str, Any],
    *,
    hidden: Mapping[str, int] | None = None,
    unseen: Sequence[str] = (),
    approval: str | None = None,
) -> dict[str, Any]:
    """Return one action, with the reasons for the question: `level`, `score` (0 to 1), `breakdown`, `penalties` and `reason`.

    Args:
        hidden: number of characters that `arguments` does not show, by argument. The action cannot be approved as it is.
    """
    action = {
        "name": name,
        "args": dict(arguments),
        "description": _description(name, arguments, reasons),
        "level": reasons["level"],
        "score": reasons["score"],
        "breakdown": dict(reasons["breakdown"]),
        "penalties": list(reasons["penalties"]),
        "reason": reasons["reason"],
    }
    if approval is not None:
        action["approval"] = approval
    if hidden:
        action["hidden"] = dict(hidden)
        listed = ", ".join(f"{argument} ({count:,} characters)" for argument, count in hidden.items())
        action["description"] += (
            f"\n\nHidden content: {listed}. It cannot be approved; supply it with an edit, or reject."
        )
    if unseen:
        action["unseen"] = list(unseen)
        action["description"] += (
            f"\n\nNot shown in full: {', '.join(unseen)}. To approve, name it: {_unseen_form(unseen)}."
        )
    return action


def _unseen_form(names: Sequence[str]) -> str:
    return json.dumps({"type": "approve", "unseen": list(names)}, ensure_ascii=False)


def unseen_problem(answer: Any, number: int, names: Sequence[str]) -> str:
    """Return why a decision does not count: it does not name an argument that nobody could see. Empty where it names them all."""
    decisions = answer.get("decisions", [answer]) if isinstance(answer, Mapping) else []
    named = decisions[number].get("unseen") if number < len(decisions) else None
    missing = [name for name in names if name not in (named if isinstance(named, list | tuple) else ())]
    if not missing:
        return ""
    return f"decision {number}: {', '.join(missing)} cannot be shown in full; to run it unseen, add {_unseen_form(missing)}"


def _description(name: str, arguments: Mapping[str, Any], reasons: Mapping[str, Any]) -> str:
    wants = "needs your help" if reasons["level"] == InterventionLevel.ESCALATE else "needs your approval"
    return f"{name} {wants}. {reasons['reason']}\n\nTool: {name}\nArgs: {dict(arguments)}"


def hitl_request(actions: list[dict[str, Any]], problem: str = "") -> dict[str, Any]:
    """Return the value of one interrupt for all actions that wait; `problem` says why the answer before could not be used."""
    reviews = [{"action_name": action["name"], "allowed_decisions": _allowed(action)} for action in actions]
    value: dict[str, Any] = {"action_requests": actions, "review_configs": reviews}
    if problem:
        value["problem"] = problem
    return value


def other_approval(answer: Any, approvals: Sequence[str]) -> str:
    """Return why an answer does not count: one of its decisions names another request. Naming the request is optional."""
    decisions = answer.get("decisions", [answer]) if isinstance(answer, Mapping) else []
    for number, (decision, approval) in enumerate(zip(decisions, approvals, strict=False)):
        named = decision.get("approval", approval) if isinstance(decision, Mapping) else approval
        if named != approval:
            return f"decision {number}: it is about {named!r:.60}, and {approval} is asked about"
    return ""


def looks_into_inbox(answer: Any) -> bool:
    """Return whether an answer is no decision, but says that the requests in the inbox are decided."""
    return isinstance(answer, Mapping) and APPROVALS in answer and "decisions" not in answer


def approvals_in(value: Any) -> list[str]:
    """Return the ids of the requests that the value of an interrupt asks about; none where one of its actions is not in the inbox."""
    actions = value.get("action_requests") if isinstance(value, Mapping) else None
    if not isinstance(actions, list | tuple):
        return []
    found = [action.get("approval") if isinstance(action, Mapping) else None for action in actions]
    approvals = [approval for approval in found if isinstance(approval, str)]
    return approvals if len(approvals) == len(found) else []


def _allowed(action: Mapping[str, Any]) -> list[str]:
    return [decision for decision in DECISIONS if decision != "approve" or not action.get("hidden")]


def decisions_in(answer: Any, count: int) -> tuple[list[InterventionResponse], str]:
    """Return one response for each action; or no response, and what is wrong with the answer."""
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if decisions is None and count == 1 and isinstance(answer, Mapping) and "type" in answer:
        decisions = [answer]
    if not isinstance(decisions, list | tuple):
        return [], 'the answer must be {"decisions": [...]}'
    if len(decisions) != count:
        return [], f"{count} decisions are needed, one for each action in order, and {len(decisions)} were given"
    responses: list[InterventionResponse] = []
    for number, decision in enumerate(decisions):
        response, problem = _response(decision)
        if response is None:
            return [], f"decision {number}: {problem}"
        responses.append(response)
    return responses, ""


def _response(decision: Any) -> tuple[InterventionResponse | None, str]:
    if not isinstance(decision, Mapping):
        return None, f"must be an object with a type, not {type(decision).__name__}"
    kind, words, by = decision.get("type"), decision.get("message"), decision.get("by")
    if by is not None and not (isinstance(by, str) and by.strip() and len(by) <= MAX_NAME):
        return None, f"by must be a name of 1 to {MAX_NAME} characters"
    who = PERSON if by is None else by.strip()
    if words is not None and not isinstance(words, str):
        return None, "message must be a text"
    if kind == "approve":
        return InterventionResponse(InterventionAction.PROCEED, reviewer=who), ""
    if kind == "reject":
        return InterventionResponse(InterventionAction.CANCEL, user_input=words, reviewer=who), ""
    if kind == "respond":
        if not words:
            return None, "respond needs a message"
        return InterventionResponse(InterventionAction.INPUT, user_input=words, reviewer=who), ""
    if kind == "edit":
        edited = decision.get("edited_action")
        arguments = edited.get("args") if isinstance(edited, Mapping) else None
        if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
            return None, 'edit needs edited_action: {"name": ..., "args": {...}}'
        if not arguments:
            return None, "edit needs arguments; approve runs the call as it is, reject does not run it"
        return InterventionResponse(InterventionAction.MODIFY, modified=dict(arguments), reviewer=who), ""
    return None, f"type must be one of {', '.join(DECISIONS)}, not {kind!r:.40}"


def edited_name(answer: Any, number: int) -> str | None:
    """Return the name of the action that the reviewer put in its place; None without one."""
    decisions = answer.get("decisions", [answer]) if isinstance(answer, Mapping) else []
    edited = decisions[number].get("edited_action") if number < len(decisions) else None
    name = edited.get("name") if isinstance(edited, Mapping) else None
    return name if isinstance(name, str) else None


ORIGIN = "langgraph"
MAX_QUESTIONS = 4


class Interrupting:
    """A reviewer that raises LangGraph's interrupt. Its answer is the value that the graph is resumed with.

    The checkpoint keeps the question, so the question holds no secret that the checkpoint does not hold already.
    """

    pauses = True
    name = "interrupt"

    def __init__(self, checkpointed: Callable[[], Iterator[str]] = lambda: iter(())) -> None:
        self._checkpointed = checkpointed

    def stores(self, text: str) -> bool:
        """Return whether the checkpoint holds this text already, alone or inside another."""
        return any(text in held for held in self._checkpointed())

    def review(self, request: InterventionRequest) -> InterventionResponse:
        """Ask, and return when the graph is resumed."""
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
    action = action_request(request.action, shown, reasons, hidden=request.hidden, unseen=unseen, approval=approval)
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
    """Return what a step gave."""
    answer = yield step
    if isinstance(answer, Failed):
        raise answer.error
    return answer


class InboxQuestion(Interrupting):
    """A reviewer that raises LangGraph's interrupt once. Whoever asks decides whether the answer counts, and asks again."""

    def __init__(self, approval: str, checkpointed: Callable[[], Iterator[str]]) -> None:
        super().__init__(checkpointed)
        self._approval = approval

    def review(self, request: InterventionRequest) -> ProgramAnswer:
        """Ask, and return when the graph is resumed."""
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
