"""Obtains a decision for each gated call of one model message: from policy, by one interrupt, or in the inbox."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import ApprovalState
from grace_kp.errors import ActionCancelled, ActionNotApproved
from grace_kp.gating import (
    WAITING,
    Decision,
    Failed,
    GateEntry,
    InterventionRequest,
    InterventionResponse,
    LedgerEntry,
    PausedInquiry,
    Questions,
    Terms,
    Work,
    attempt,
    consent_to,
    state_approval,
)
from grace_kp.integrations.langchain._calls import (
    INVALID,
    Refusal,
    ToolCase,
    ToolDecision,
    action_for,
    answer_of,
    edit_problem,
    entry_for,
    is_shown_as,
    settle,
)
from grace_kp.integrations.langchain._node import (
    LOOK,
    MAX_QUESTIONS,
    QuestionRound,
    decisions_in,
    looks_into_inbox,
    program_answer,
    resumable,
    unusable,
)
from grace_kp.integrations.langchain._tool_schema import argument_names
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import HOST
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from langchain_core.messages import AIMessage, ToolMessage

    from grace_kp.approvals import Approval
    from grace_kp.gating import EarlierRun, EngineStep, GateEntry, ProgramAnswer
    from grace_kp.integrations.langchain._calls import Answer, ToolCase
    from grace_kp.integrations.langchain._node import ActionAnswer, RunningNode


class InboxCall(PausedInquiry):
    """The request about one tool call.

    Its arguments count as the model proposed them. Defaults of the tool do not, because a process that goes on may not know the tool yet.
    """

    def __init__(self, case: ToolCase, program: RunningNode, *, entry: GateEntry, ledger_key: str) -> None:
        self.tool_case, self.entry = case, entry
        self.values: Mapping[str, Any] | None = None
        """The tool's arguments; None where no reviewer changed them."""
        gated = case.as_gated(knows_tool=False)
        gated.entry, gated.program = entry, program
        gated.terms = Terms(
            signature=gated.signature,
            hidden=None,
            declared_version=_version(case.decision.names),
            place=f"tool:{case.name}",
        )
        ledger, identity = (lambda: gated.scope.ledger), f"langgraph|{program.thread}|{case.decision.id}"
        super().__init__(
            gated,
            entry=LedgerEntry(ledger, ledger_key),
            questions=Questions(ledger, f"{identity}|questions"),
            identity=identity,
        )

    @property
    def request(self) -> InterventionRequest:
        return self.tool_case.decision.question(self._case.shown_arguments(), self._case.digest())

    def open(self) -> None:
        self.file(self.request, Decision.from_dict(self.tool_case.decision.to_dict()))

    def problem_with(self, changes: Mapping[str, Any]) -> str:  # noqa: ARG002 — `edit_problem` has checked the answers
        return ""

    def run_tool(self, tool: object) -> None:
        if self.tool_case.decision.names is not None:
            self._version = _version(argument_names(tool))

    def claim(self, *, again_after_failure: bool = False) -> EarlierRun | None:
        if not self.find():
            raise ActionCancelled(f"this call of `{self.tool_case.name}` has no decision")
        if self.values is not None:
            # The approval holds an edit as a person wrote it: a date as a string. Its digest covers that form.
            changes = self.changes()
            arguments = {
                name: changes[name] if name in changes and is_shown_as(value, changes[name]) else value
                for name, value in self.values.items()
            }
            other = self.tool_case.as_gated(knows_tool=False, arguments=arguments)
            self._case.signature, self.bound = other.signature, other.bound
            self._terms = replace(self._terms, signature=other.signature)
        return super().claim(again_after_failure=again_after_failure)

    def read_decision(self) -> tuple[Answer, Mapping[str, Any]]:
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
    """Return a fingerprint of the tool's arguments, with which of them are required."""
    text = json.dumps(None if names is None else sorted(names.items()))
    return f"tool:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _refusal(name: str, approval: Approval, words: str) -> Refusal:
    why = f" ({words})" if words else ""
    if approval.state is ApprovalState.SKIPPED:
        return Refusal("skipped", f"`{name}` was skipped by the reviewer{why}; it was not run.")
    if approval.state is ApprovalState.EXPIRED:
        return Refusal("timed_out", f"no reviewer decided about `{name}` in time; it was not run.")
    text = f"the approval of `{name}` was {approval.state}{why}; it was not run."
    if approval.state is ApprovalState.RETRIED:
        text = f"The reviewer wants `{name}` to be assessed again{why}. It was not run; call it again if it is still needed."
    return Refusal("cancelled", text)


def inbox_answers(calls: list[InboxCall]) -> Generator[EngineStep, Any, list[tuple[InboxCall, Answer]]]:
    """Ask about the calls by one interrupt until each is decided; return the answers."""
    filed: list[InboxCall] = []
    answers: list[tuple[InboxCall, Answer]] = []
    for call in calls:
        failed = yield Work(call.open)
        if not isinstance(failed, Failed):
            filed.append(call)
            continue
        error = failed.error
        if HOST.pauses(error):
            raise error
        why = str(error) if isinstance(error, ActionNotApproved) else error_text(error)
        text = f"`{call.tool_case.name}` was not run, because its request could not be stored: {why}."
        answers.append((call, Refusal("cancelled", text)))
    yield from FiledRound(filed).ask()
    for call in filed:
        found = yield Work(call.read_decision)
        answers.append((call, _check_answer(call, found)))
        state_approval(call._case, call.approval, call.waits)
    return answers


class FiledRound(QuestionRound):
    """Questions about calls whose requests wait in the inbox, where people may decide them meanwhile."""

    def __init__(self, calls: list[InboxCall]) -> None:
        self._calls = calls

    def prepare(self, number: int) -> bool:
        """Read the requests; return whether one of them still needs a question."""
        asking = [call.must_ask(number) for call in self._calls]
        if not any(asking):
            return False
        pairs = list(zip(self._calls, asking, strict=True))
        self._digests = [call.approval.digest if asked is None else asked.digest for call, asked in pairs]
        self.is_new = any(asked is None or asked.is_new for asked in asking)
        self._questions = [call.question_now(call.request) for call in self._calls]
        self.actions = [
            action_for(call.tool_case, question.arguments, call.id)
            for call, question in zip(self._calls, self._questions, strict=True)
        ]
        return True

    def keep(self, number: int) -> None:
        for call, digest in zip(self._calls, self._digests, strict=True):
            call.questions.ask(number, [digest])

    def take(self, number: int, answer: Any) -> str:
        """Decide the requests by an answer; return why the question must be asked again."""
        if self.is_new:  # the answer existed before the question was asked, so it is void
            for call in self._calls:
                call.questions.ask(number, [])
        if self.is_new or not all(self._digests):
            return ""
        problems: list[str] = []
        pairs = zip(self._calls, self._questions, self._digests, self._program_answers(answer), strict=True)
        for place, (call, question, digest, response) in enumerate(pairs):
            problem = call.take(question, digest, response)
            if problem:
                problems.append(problem if response.problem else f"decision {place}: {problem}")
        return "\n".join(dict.fromkeys(problems))

    def _program_answers(self, answer: Any) -> list[ProgramAnswer]:
        calls = self._calls
        if looks_into_inbox(answer):
            return [LOOK] * len(calls)
        decisions, problem = decisions_in(answer, len(calls), [call.id for call in calls])
        problem = problem or edit_problem([call.tool_case for call in calls], decisions)
        for number, (call, decision) in enumerate(zip(calls, decisions, strict=False)):
            changes = decision.response.modified
            missing = [] if changes is None else [name for name in call.tool_case.arguments if name not in changes]
            if missing and not problem:  # the inbox stores changed arguments and cannot express a removed one
                problem = f"decision {number}: an edit needs all arguments of the call, and lacks {', '.join(missing)}"
        return [unusable(problem)] * len(calls) if problem else [program_answer(each.response) for each in decisions]


def _check_answer(call: InboxCall, found: Any) -> Answer:
    """Return a decision with the tool's arguments, or a refusal where an edit is not usable."""
    if isinstance(found, Failed):
        problem = f"the edited arguments cannot be read: {error_text(found.error)}"
    else:
        answer, changes = found
        if not changes:
            return answer  # type: ignore[no-any-return]
        case, arguments = call.tool_case, {**call.tool_case.arguments, **changes}
        sealed = sorted({*changes} & {*call.approval.sealed})
        misfit = case.apply_edit(arguments).problem
        if not sealed and not misfit:
            return InterventionResponse(InterventionAction.MODIFY, modified=arguments, reviewer=answer.reviewer)
        problem = (
            f"an edit of {', '.join(sealed)} would get into the checkpoint, where secrets must not be"
            if sealed
            else f"the reviewer's arguments do not fit: {misfit}"
        )
    call.withdraw(problem)
    return Refusal("cancelled", f"`{call.tool_case.name}` was not run: {problem}.")


STATE = "grace_gates"
OTHER_CALLS = "the earlier answer belongs to other calls; decide about the calls shown here"


class GatedCalls:
    """The gated calls of one message of the model, and the decisions about them."""

    def __init__(self, message: AIMessage, cases: list[ToolCase], decided: Mapping[str, Any]) -> None:
        self.program = resumable()
        self._message = message
        self._decisions: dict[str, Any] = {}
        self._answers: list[ToolMessage] = []
        self._undecided: list[ToolCase] = []
        for case in cases:
            case.is_shared = sum(call["id"] == case.call["id"] for call in message.tool_calls) > 1
            kept = decided.get(case.state_key)
            decision = None if kept is None or "message" in kept else ToolDecision.from_dict(kept)
            try:
                if self.program is None:
                    case.decision = case.validate(keeps=False)
                elif decision is not None and decision.proposed_digest == case.proposed:
                    case.take_up(case.raise_level(decision))
                else:
                    # The call was changed after its proposal. Whether it was decided before is unknown, so a person is asked.
                    case.take_up(self._decide_changed(case, self.program))
            except ValueError as error:
                case.decision = replace(decision or case.decision, problem=str(error))
            self._settle_or_queue(case)

    def _decide_changed(self, case: ToolCase, program: RunningNode) -> ToolDecision:
        """Decide on a call that was changed after its proposal; when run again, return the first decision."""
        # A repeated run must find the same id, so that question and outcome share one entry.
        same_id = hashlib.sha256(f"{self._message.id}|{case.state_key}".encode()).hexdigest()[:32]
        case.decision = replace(case.decision, id=same_id)
        key = case.ledger_key(program, self._message.id)
        entry = LedgerEntry(lambda: case.scope.ledger, key)
        return ToolDecision.from_dict(entry.decision() or entry.decide(case.decide(is_changed=True).to_dict()))

    def _settle_or_queue(self, case: ToolCase) -> None:
        decision, program = case.decision, self.program
        if case.policy.denies:
            if decision.filed and program is not None:
                self._inbox_call(case, program).forbid()
            self.take(case, Refusal("denied", f"`{case.name}` is forbidden by its policy; it was not run."))
        elif decision.consent == INVALID:
            self._decisions[case.state_key] = replace(decision, message=self._message.id).to_dict()
        elif program is not None and not InterventionLevel(decision.level).asks:
            self.take(case, InterventionResponse(InterventionAction.PROCEED))
        elif program is not None and decision.problem is not None:
            self.take(case, Refusal("cancelled", f"`{case.name}` was not run: {decision.problem}."))
        else:
            self._undecided.append(case)

    def ask(self) -> Generator[EngineStep, Any, dict[str, Any]]:
        """Ask about all undecided calls, by the runtime's reviewer or one interrupt; return the state update."""
        waiting, program = self._undecided, self.program
        if program is None:
            for case in waiting:
                asked = case.as_gated()
                consent = yield from attempt(consent_to(asked))
                self.take(case, answer_of(case, asked, consent), asked.entry)
        elif any(case.decision.filed for case in waiting):  # then all requests of the turn wait in the inbox
            calls = [self._inbox_call(case, program) for case in waiting]
            for call, filed in (yield from inbox_answers(calls)):
                self.take(call.tool_case, filed, call.entry)
        elif waiting:
            entries = [entry_for(case.decision, case.arguments, WAITING) for case in waiting]
            asking = MessageRound(waiting, program.thread, self._message.id)
            problem = yield from asking.ask()
            for number, (case, entry) in enumerate(zip(waiting, entries, strict=True)):
                text = f"`{case.name}` was not run: there was no usable answer ({problem})."
                decided = Refusal("cancelled", text) if problem else asking.answers[number].response
                self.take(case, decided, entry)
        update: dict[str, Any] = {STATE: self._decisions}
        return {**update, "messages": self._answers} if self._answers else update

    def _inbox_call(self, case: ToolCase, program: RunningNode) -> InboxCall:
        case.decision = replace(case.decision, filed=True)
        entry = entry_for(case.decision, case.arguments, WAITING)
        key = case.ledger_key(program, self._message.id)
        return InboxCall(case, program, entry=entry, ledger_key=key)

    def take(self, case: ToolCase, answer: Answer, entry: GateEntry | None = None) -> None:
        """Apply the answer about one call: it may run, or a message replaces its result."""
        message = settle(case, answer, entry)
        if message is not None:
            self._answers.append(message)
        self._decisions[case.state_key] = replace(case.decision, message=self._message.id).to_dict()


class MessageRound(QuestionRound):
    """Questions about the calls of one message that can be decided by interrupts only.

    An answer to a question that showed other calls is void, because the agent's state may have changed since then.
    """

    def __init__(self, cases: list[ToolCase], thread: str, message: str | None) -> None:
        self._cases, self._thread = cases, thread
        self.actions = [action_for(case) for case in cases]
        self.answers: list[ActionAnswer] = []
        self._shown = [case.decision.digest for case in cases]
        self._before: list[str] | None = None
        self._ledger = cases[0].scope.ledger
        self._questions = Questions(lambda: self._ledger, f"langchain|{thread}|{message}|questions")

    def prepare(self, number: int) -> bool:
        """Compare this question with the kept question of the same number."""
        if self.answers or number == MAX_QUESTIONS:
            return False
        if number == 0:
            # An earlier version, or a process whose ledger was in memory, may have asked without keeping the question.
            lasts = getattr(self._ledger, "lasting", False)
            first_key = f"langchain|{self._thread}|asked"
            self._may_have_forgotten = (not lasts and self._ledger.put_action(first_key, b"{}", only_if=None)) or all(
                case.decision.proposed is None for case in self._cases
            )
        self._before = self._questions.asked_digests(number)
        self.is_new = self._before != self._shown
        return True

    def keep(self, number: int) -> None:
        self._questions.put(number, self._shown)

    def take(self, number: int, answer: Any) -> str:
        if self._before is None and self._may_have_forgotten:
            self._questions.put(number, self._shown)
        elif self.is_new:
            if self._before != []:  # else it is void already; writing again would erase later questions
                self._questions.put(number, [])
            return OTHER_CALLS
        answers, problem = decisions_in(answer, len(self._cases))
        problem = problem or edit_problem(self._cases, answers)
        if not problem:
            self.answers = answers
        return problem
