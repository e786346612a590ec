"""The tool calls of one turn as requests in the inbox: asked about by one interrupt, and decided there or by its answer."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.types import interrupt

from grace_kp.approvals import ApprovalState
from grace_kp.errors import ActionCancelled, ActionNotApproved
from grace_kp.gating import (
    Decision,
    Failed,
    InboxReviewer,
    InterventionRequest,
    InterventionResponse,
    LedgerEntry,
    Terms,
    Work,
)
from grace_kp.gating.programs import Asking, PausedInquiry, Questions, state_approval
from grace_kp.integrations.langchain._calls import CONSENTED, Refusal, action_for, is_shown_as
from grace_kp.integrations.langchain._interrupts import (
    LOOK,
    decisions_in,
    hitl_request,
    looks_into_inbox,
    other_approval,
    performed,
    program_answer,
    unusable,
)
from grace_kp.integrations.langchain._tool_schema import argument_names
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import HOST
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from grace_kp.approvals import Approval
    from grace_kp.gating import EarlierRun, GateEntry, ProgramAnswer, Step
    from grace_kp.integrations.langchain._calls import Answer, ToolCase
    from grace_kp.integrations.langchain._node import RunningNode

    Problem = Callable[[list[InterventionResponse], Any], str]


class InboxCall(PausedInquiry):
    """The request about one tool call.

    Its arguments count as the model proposed them. Defaults of the tool do not, because a process that goes on may not know the tool yet.
    """

    def __init__(self, case: ToolCase, program: RunningNode, *, entry: GateEntry, ledger_key: str) -> None:
        self.tool_case, self.entry = case, entry
        self.values: Mapping[str, Any] | None = None
        """What the tool runs with, where a reviewer changed the arguments."""
        gated = case.gated(knows_tool=False)
        gated.entry, gated.program = entry, program
        reviewer = gated.reviewer if isinstance(gated.reviewer, InboxReviewer) else InboxReviewer()
        terms = Terms(
            signature=gated.signature,
            hidden=None,
            declared_version=_version(case.decision.names),
            place=f"tool:{case.name}",
        )
        ledger, identity = (lambda: gated.scope.ledger), f"langgraph|{program.thread}|{case.decision.id}"
        super().__init__(
            gated,
            terms,
            reviewer,
            program,
            entry=LedgerEntry(ledger, ledger_key),
            questions=Questions(ledger, f"{identity}|questions"),
            identity=identity,
        )

    @property
    def request(self) -> InterventionRequest:
        """The question with the call as it was proposed."""
        decision, case = Decision.from_dict(self.tool_case.decision.to_dict()), self._case
        return InterventionRequest(
            id=self.tool_case.decision.id,
            action=case.action,
            arguments=case.shown(),
            digest=case.digest(),
            level=InterventionLevel(self.tool_case.decision.level),
            decision=decision.action,
            reason=decision.action.reason,
            created_at=time.time(),
        )

    def open(self) -> None:
        """File the request, or find it again."""
        self.file(self.request, Decision.from_dict(self.tool_case.decision.to_dict()))

    def question(self, request: InterventionRequest | None = None) -> InterventionRequest:
        """Return the question with the arguments that are decided on now."""
        return self.shown(request or self.request)

    def run_with(self, arguments: Mapping[str, Any]) -> None:
        """Run the call with these arguments."""
        other = self.tool_case.gated(knows_tool=False, arguments=arguments)
        self._case.signature, self.bound = other.signature, other.bound
        self._terms = replace(self._terms, signature=other.signature)

    def run_tool(self, tool: object) -> None:
        """Run this tool, which may be another version by now."""
        if self.tool_case.decision.names is not None:
            self._version = _version(argument_names(tool))

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        """Take the right to run the tool once."""
        if not self.find():
            raise ActionCancelled(f"nothing was decided about this call of `{self.tool_case.name}`")
        if self.values is not None:
            # The approval holds an edit as a person wrote it, such as the text of a date.
            changes = self.changes()
            self.run_with(
                {
                    name: changes[name] if name in changes and is_shown_as(value, changes[name]) else value
                    for name, value in self.values.items()
                }
            )
        return super().claim(again_after_failure=again_after_failure)

    def decided(self) -> tuple[Answer, Mapping[str, Any]]:
        """Return what was decided, and the changed arguments."""
        approval, name = self.approval, self.tool_case.name
        decision = approval.decision
        state = decision.state if approval.state.may_have_run and decision is not None else approval.state
        words = decision.note if decision is not None else ""
        who = None if decision is None else decision.actor.name
        if state in {ApprovalState.APPROVED, ApprovalState.EDITED}:
            changes = self.changes() if approval.digest != approval.asked_digest else {}
            return InterventionResponse(InterventionAction.PROCEED, reviewer=who), changes
        if state is ApprovalState.RESPONDED:
            return InterventionResponse(InterventionAction.INPUT, user_input=words, reviewer=who), {}
        if state is ApprovalState.REJECTED:
            return InterventionResponse(InterventionAction.CANCEL, user_input=words or None, reviewer=who), {}
        return _refusal(name, approval, words), {}


def _version(names: Mapping[str, bool] | None) -> str:
    """Return the version of a tool: a hash of the names of its arguments, and whether each is required."""
    text = json.dumps(None if names is None else sorted(names.items()))
    return f"tool:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _refusal(name: str, approval: Approval, words: str) -> Refusal:
    why = f" ({words})" if words else ""
    if approval.state is ApprovalState.SKIPPED:
        return Refusal("skipped", f"`{name}` was skipped by the reviewer{why}; it was not run.")
    if approval.state is ApprovalState.EXPIRED:
        return Refusal("timed_out", f"nobody decided in time about `{name}`; it was not run.")
    if approval.state is ApprovalState.RETRIED:
        text = f"The reviewer wants `{name}` to be assessed again{why}. It was not run; call it again if it is still needed."
        return Refusal("cancelled", text)
    return Refusal("cancelled", f"the approval of `{name}` was {approval.state}{why}; it was not run.")


def inbox_answers(
    calls: list[InboxCall], problem_with: Problem
) -> Generator[Step, Any, list[tuple[InboxCall, Answer]]]:
    """Ask about the calls by one interrupt, until each is decided; return what was decided."""
    filed: list[InboxCall] = []
    answers: list[tuple[InboxCall, Answer]] = []
    for call in calls:
        failed = yield Work(call.open)
        if isinstance(failed, Failed):
            answers.append((call, _not_kept(call, failed.error)))
        else:
            filed.append(call)
    number, problem = 0, ""
    while filed:
        asking = yield from performed(Work(functools.partial(_asked, filed, number)))
        if asking is None:
            break
        questions = yield from performed(Work(lambda: [call.question() for call in filed]))
        value = hitl_request([_action(call, asked) for call, asked in zip(filed, questions, strict=True)], problem)
        answer = yield Work(functools.partial(interrupt, value), blocks=False)
        is_new = any(each.is_new for each in asking)
        if isinstance(answer, Failed):
            if is_new and HOST.pauses(answer.error):
                yield Work(functools.partial(_keep, filed, number, [[each.digest] for each in asking]))
            raise answer.error
        problem = ""
        if is_new:  # an answer that was there before the question was put to anybody
            yield from performed(Work(functools.partial(_keep, filed, number, [[]] * len(filed))))
        elif all(each.digest for each in asking):
            taken = _program_answers(filed, answer, problem_with)
            problem = yield from performed(Work(functools.partial(_take, filed, questions, asking, taken)))
        number += 1
    for call in filed:
        found = yield Work(call.decided)
        answers.append((call, _usable(call, found)))
        state_approval(call._case, call.approval, call.waits)
    return answers


def _not_kept(call: InboxCall, error: Exception) -> Refusal:
    if HOST.pauses(error):
        raise error
    why = str(error) if isinstance(error, ActionNotApproved) else error_text(error)
    return Refusal("cancelled", f"`{call.tool_case.name}` was not run, because its request cannot be kept: {why}.")


def _asked(calls: list[InboxCall], number: int) -> list[Asking] | None:
    """Return what a question shows of each call; None where everything is decided without it."""
    asking = [call.must_ask(number) for call in calls]
    if not any(asking):
        return None
    return [each or Asking(call.approval.digest, is_new=True) for call, each in zip(calls, asking, strict=True)]


def _keep(calls: list[InboxCall], number: int, digests: list[list[str]]) -> None:
    for call, shown in zip(calls, digests, strict=True):
        call.questions.ask(number, shown)


def _action(call: InboxCall, question: InterventionRequest) -> dict[str, Any]:
    return action_for(call.tool_case, question.arguments, call.id)


def _program_answers(calls: list[InboxCall], answer: Any, problem_with: Problem) -> list[ProgramAnswer]:
    if looks_into_inbox(answer):
        return [LOOK] * len(calls)
    responses, problem = decisions_in(answer, len(calls))
    problem = problem or other_approval(answer, [call.id for call in calls])
    problem = problem or problem_with(responses, answer) or _left_out(calls, responses)
    return [unusable(problem)] * len(calls) if problem else [program_answer(response) for response in responses]


def _left_out(calls: list[InboxCall], responses: list[InterventionResponse]) -> str:
    """Return which arguments an edit leaves out. The inbox holds changes, and cannot hold that an argument is gone."""
    for number, (call, response) in enumerate(zip(calls, responses, strict=True)):
        if response.action is InterventionAction.MODIFY:
            missing = [name for name in call.tool_case.arguments if name not in (response.modified or {})]
            if missing:
                return f"decision {number}: an edit needs all arguments of the call, and lacks {', '.join(missing)}"
    return ""


def _take(
    calls: list[InboxCall], questions: list[InterventionRequest], asking: list[Asking], answers: list[ProgramAnswer]
) -> str:
    """Apply an answer to each call; return why the same has to be asked again."""
    problems: list[str] = []
    for number, (call, question, asked, answer) in enumerate(zip(calls, questions, asking, answers, strict=True)):
        problem = call.take(question, asked.digest, answer, lambda _: "")
        if problem:
            problems.append(problem if answer.problem else f"decision {number}: {problem}")
    return "\n".join(dict.fromkeys(problems))


def _usable(call: InboxCall, found: Any) -> Answer:
    """Return a decision with the arguments that the tool runs with, where these can be used."""
    if isinstance(found, Failed):
        problem = f"the edited arguments cannot be read: {error_text(found.error)}"
    else:
        answer, changes = found
        if not changes:
            return answer  # type: ignore[no-any-return]
        case, arguments = call.tool_case, {**call.tool_case.arguments, **changes}
        sealed = sorted({*changes} & {*call.approval.sealed})
        misfit = case.edited(arguments).problem
        if not sealed and not misfit:
            return InterventionResponse(InterventionAction.MODIFY, modified=arguments, reviewer=answer.reviewer)
        problem = (
            f"an edit of {', '.join(sealed)} would get into the checkpoint, where secrets must not be"
            if sealed
            else f"the reviewer's arguments do not fit: {misfit}"
        )
    call.withdraw(problem)
    return Refusal("cancelled", f"`{call.tool_case.name}` was not run: {problem}.")


def inbox_call_of(
    case: ToolCase, program: RunningNode, entry: GateEntry, *, ledger_key: str, values: Mapping[str, Any] | None
) -> InboxCall | None:
    """Return the request under which a decided call runs; None for a call that nobody was asked about in the inbox."""
    if not case.decision.filed or case.decision.consent != CONSENTED:
        return None
    call = InboxCall(case, program, entry=entry, ledger_key=ledger_key)
    call.run_tool(case.tool)
    call.values = values
    return call
