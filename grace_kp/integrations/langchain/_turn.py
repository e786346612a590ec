"""Obtains a decision for each gated call of one model message: from policy, by one interrupt, or in the inbox."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from grace_kp.approvals import RESPONSES, ApprovalState
from grace_kp.errors import ActionCancelled, ActionDenied, ActionNotApproved, ActionRedirected, ActionTimedOut
from grace_kp.gating import (
    FACTS,
    WAITING,
    Consent,
    Decision,
    Failed,
    InterventionResponse,
    LedgerEntry,
    PausedInquiry,
    Questions,
    Terms,
    Work,
    alarm_sentences,
    attempt,
    consent_to,
    read_alarms,
    state_approval,
)
from grace_kp.integrations.langchain._calls import (
    CONSENTED,
    INVALID,
    NOT_NEEDED,
    REFUSED,
    ToolCase,
    ToolDecision,
    is_shown_as,
    json_values,
    message_for,
)
from grace_kp.integrations.langchain._node import (
    LOOK,
    MAX_QUESTIONS,
    action_request,
    decisions_in,
    hitl_request,
    looks_into_inbox,
    program_answer,
    resumable,
    unusable,
)
from grace_kp.integrations.langchain._resume import perform
from grace_kp.integrations.langchain._tool_guard import call_digest
from grace_kp.integrations.langchain._tool_schema import argument_names
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import HOST
from grace_kp.trace import error_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.messages import AIMessage, ToolMessage

    from grace_kp.approvals import Approval
    from grace_kp.gating import EarlierRun, GatedCall, GateEntry, InterventionRequest, ProgramAnswer, Steps
    from grace_kp.integrations.langchain._node import ActionAnswer, RunningNode

STATE = "grace_gates"
OTHER_CALLS = "the earlier answer belongs to other calls; decide about the calls shown here"
PROCEED, MODIFY = InterventionAction.PROCEED, InterventionAction.MODIFY


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that does not run, and the message that the model gets instead."""

    outcome: str
    text: str
    status: str = "error"

    @classmethod
    def by(cls, name: str, answer: InterventionResponse) -> Refusal:
        """Return the refusal in a person's answer: a reply in place of the result, or a rejection."""
        if answer.action is InterventionAction.INPUT:
            return cls("redirected", answer.user_input or "", "success")
        why = f": {answer.user_input}" if answer.user_input else ""
        text = "It was not run; do not call it like this again unless you are asked to."
        return cls("cancelled", f"The reviewer rejected `{name}`{why}. {text}")

    @classmethod
    def at_end(cls, name: str, approval: Approval, words: str) -> Refusal:
        """Return the refusal in a request that ended without a decision about this call."""
        why = f" ({words})" if words else ""
        if approval.state is ApprovalState.SKIPPED:
            return cls("skipped", f"`{name}` was skipped by the reviewer{why}; it was not run.")
        if approval.state is ApprovalState.EXPIRED:
            return cls("timed_out", f"no reviewer decided about `{name}` in time; it was not run.")
        text = f"the approval of `{name}` was {approval.state}{why}; it was not run."
        if approval.state is ApprovalState.RETRIED:
            text = f"The reviewer wants `{name}` to be assessed again{why}. It was not run; call it again if it is still needed."
        return cls("cancelled", text)


Answer: TypeAlias = InterventionResponse | Refusal


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
        case.change(id=hashlib.sha256(f"{self._message.id}|{case.state_key}".encode()).hexdigest()[:32])
        entry = LedgerEntry(lambda: case.scope.ledger, case.ledger_key(program, self._message.id))
        return ToolDecision.from_dict(entry.decision() or entry.decide(case.decide(is_changed=True).to_dict()))

    def _settle_or_queue(self, case: ToolCase) -> None:
        decision, program = case.decision, self.program
        if case.policy.denies:
            if decision.filed and program is not None:
                self._inbox_call(case, program).forbid()
            self._take(case, Refusal("denied", f"`{case.name}` is forbidden by its policy; it was not run."))
        elif decision.consent == INVALID:
            self._decisions[case.state_key] = replace(decision, message=self._message.id).to_dict()
        elif program is not None and not InterventionLevel(decision.level).asks:
            self._take(case, InterventionResponse(PROCEED))
        elif program is not None and decision.problem is not None:
            self._take(case, Refusal("cancelled", f"`{case.name}` was not run: {decision.problem}."))
        else:
            self._undecided.append(case)

    def ask(self) -> Steps[dict[str, Any]]:
        """Ask about all undecided calls, by the runtime's reviewer or one interrupt; return the state update."""
        waiting, program = self._undecided, self.program
        if program is None:
            for case in waiting:
                asked = case.as_gated()
                consent = yield from attempt(consent_to(asked))
                self._take(case, answer_of(case, asked, consent), asked.entry)
        elif any(case.decision.filed for case in waiting):  # then all requests of the turn wait in the inbox
            yield from self._ask_in_inbox([self._inbox_call(case, program) for case in waiting])
        elif waiting:
            entries = [case.entry(WAITING) for case in waiting]
            asking = MessageRound(waiting, program.thread, self._message.id)
            problem = yield from ask_until_usable(asking)
            for number, (case, entry) in enumerate(zip(waiting, entries, strict=True)):
                text = f"`{case.name}` was not run: there was no usable answer ({problem})."
                self._take(case, Refusal("cancelled", text) if problem else asking.answers[number].response, entry)
        update: dict[str, Any] = {STATE: self._decisions}
        return {**update, "messages": self._answers} if self._answers else update

    def _inbox_call(self, case: ToolCase, program: RunningNode) -> InboxCall:
        case.change(filed=True)
        return InboxCall(
            case, program, entry=case.entry(WAITING), ledger_key=case.ledger_key(program, self._message.id)
        )

    def _ask_in_inbox(self, calls: list[InboxCall]) -> Steps[None]:
        """File the requests, and ask about them by one interrupt until each is decided."""
        filed: list[InboxCall] = []
        refused: list[tuple[InboxCall, Refusal]] = []
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
            refused.append((call, Refusal("cancelled", text)))
        yield from ask_until_usable(FiledRound(filed))
        for call, refusal in refused:
            self._take(call.tool_case, refusal, call.entry)
        for call in filed:
            answer = yield Work(call.read_decision)
            if isinstance(answer, Failed):
                answer = call.refuse(f"the edited arguments cannot be read: {error_text(answer.error)}")
            state_approval(call._case, call.approval, call.waits)
            self._take(call.tool_case, answer, call.entry)

    def _take(self, case: ToolCase, answer: Answer, entry: GateEntry | None = None) -> None:
        """Apply the answer about one call: it may run, or a message replaces its result."""
        if isinstance(answer, InterventionResponse):
            if entry is not None and not entry.was_answered and answer.reviewer is not None:
                entry.state_answer(answer)
            if answer.action in {PROCEED, MODIFY}:
                self._let_run(case, answer, entry)
            else:
                answer = Refusal.by(case.name, answer)
        if isinstance(answer, Refusal):
            case.change(consent=REFUSED)
            (case.entry() if entry is None else entry).state(answer.outcome)
            if case.is_shared:
                case.change(problem=answer.text, answers=answer.status == "success")
            else:
                self._answers.append(message_for(case.call, answer.text, answer.status))
        self._decisions[case.state_key] = replace(case.decision, message=self._message.id).to_dict()

    def _let_run(self, case: ToolCase, answer: InterventionResponse, entry: GateEntry | None) -> None:
        asks = answer.action is MODIFY or InterventionLevel(case.decision.level).asks
        case.change(consent=CONSENTED if asks else NOT_NEEDED)
        if answer.action is MODIFY:
            edit = case.apply_edit(answer.modified or {})
            digest = call_digest(case.name, edit.values, ordered=case.decision.proposed is not None)
            if digest != case.decision.digest:  # else the edit changed nothing
                case.change(args=edit.shown, run_values=edit.kept, run_digest=digest)
        if entry is not None and asks:
            entry.state("approved")


def answer_of(case: ToolCase, asked: GatedCall, consent: Consent | Exception) -> Answer:
    """Return the engine's consent or error as an answer, and update the decision in `case`."""
    fields, name = asked.entry.fields, case.name
    facts = {"tool_call_id": case.call.get("id"), **{name: fields[name] for name in FACTS if name in fields}}
    level, score = fields.get("level", "confirm"), fields.get("score", 0.0)
    case.change(level=level, score=score, reason=fields.get("reason", ""), facts=facts)
    if isinstance(consent, Consent):
        if consent.bound is None:
            return Refusal("skipped", f"`{name}` was skipped by the reviewer; it was not run.")
        return (
            InterventionResponse(MODIFY, modified=consent.bound.kwargs)
            if consent.modified
            else InterventionResponse(PROCEED)
        )
    if isinstance(consent, ActionRedirected):
        return Refusal("redirected", consent.user_input or "", "success")
    if not isinstance(consent, ActionNotApproved):
        return Refusal("cancelled", f"`{name}` was not run: the gate failed ({type(consent).__name__}).")
    timed_out = isinstance(consent, ActionTimedOut)
    outcome = "timed_out" if timed_out else "denied" if isinstance(consent, ActionDenied) else "cancelled"
    return Refusal(outcome, f"{consent}.")


def action_for(
    case: ToolCase, arguments: Mapping[str, Any] | None = None, approval: str | None = None
) -> dict[str, Any]:
    """Return a call as the action of a question; `arguments` replace its own."""
    shown, unseen = json_values(case.arguments if arguments is None else arguments)
    kept = case.decision.to_dict()
    reasons = {name: kept[name] for name in ("level", "score", "breakdown", "penalties", "reason")}
    if alarms := read_alarms((case.decision.facts or {}).get("alarms")):
        reasons["alarms"] = alarm_sentences(alarms, shown)
    return action_request(case.name, shown, reasons, unseen, approval)


def edit_problem(cases: list[ToolCase], answers: list[ActionAnswer]) -> str:
    for number, (case, decided) in enumerate(zip(cases, answers, strict=True)):
        problem, response = decided.name_problem(case.name, number), decided.response
        if response.modified is not None and not problem and (misfit := case.apply_edit(response.modified).problem):
            problem = f"decision {number}: the arguments do not fit {case.name}: {misfit}"
        elif response.action is PROCEED:
            problem = decided.unseen_problem(json_values(case.arguments)[1], number)
        if problem:
            return problem
    return ""


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
        version = _version(case.decision.names)
        gated.terms = Terms(signature=gated.signature, hidden=None, declared_version=version, place=f"tool:{case.name}")
        ledger, identity = (lambda: gated.scope.ledger), f"langgraph|{program.thread}|{case.decision.id}"
        questions = Questions(ledger, f"{identity}|questions")
        super().__init__(gated, entry=LedgerEntry(ledger, ledger_key), questions=questions, identity=identity)

    @property
    def request(self) -> InterventionRequest:
        return self.tool_case.question(self._case.shown_arguments(), self._case.digest())

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

    def read_decision(self) -> Answer:
        """Return the decision with the tool's arguments; a refusal where an edit is not usable."""
        approval, case, decision = self.approval, self.tool_case, self.approval.decision
        state = decision.state if approval.state.may_have_run and decision is not None else approval.state
        words, who = ("", None) if decision is None else (decision.note, decision.actor.name)
        action = RESPONSES.get(state)
        if action in {InterventionAction.INPUT, InterventionAction.CANCEL}:
            return InterventionResponse(action, user_input=words or None, reviewer=who)
        if action not in {PROCEED, MODIFY}:
            return Refusal.at_end(case.name, approval, words)
        changes = self.changes() if approval.digest != approval.asked_digest else {}
        if not changes:
            return InterventionResponse(PROCEED, reviewer=who)
        arguments = {**case.arguments, **changes}
        if sealed := sorted({*changes} & {*approval.sealed}):
            return self.refuse(
                f"an edit of {', '.join(sealed)} would get into the checkpoint, where secrets must not be"
            )
        if misfit := case.apply_edit(arguments).problem:
            return self.refuse(f"the reviewer's arguments do not fit: {misfit}")
        return InterventionResponse(MODIFY, modified=arguments, reviewer=who)

    def refuse(self, problem: str) -> Refusal:
        """Withdraw a decision that cannot be carried out."""
        self.withdraw(problem)
        return Refusal("cancelled", f"`{self.tool_case.name}` was not run: {problem}.")


def _version(names: Mapping[str, bool] | None) -> str:
    """Return a fingerprint of the tool's arguments, with which of them are required."""
    text = json.dumps(None if names is None else sorted(names.items()))
    return f"tool:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class MessageRound:
    """Questions about the calls of one message that can be decided by interrupts only.

    An answer to a question that showed other calls is void, because the agent's state may have changed since then.
    """

    def __init__(self, cases: list[ToolCase], thread: str, message: str | None) -> None:
        self._cases, self._thread = cases, thread
        self.actions = [action_for(case) for case in cases]
        self.answers: list[ActionAnswer] = []
        self.is_new = True
        self._shown = [case.decision.digest for case in cases]
        self._before: list[str] | None = None
        self._ledger = cases[0].scope.ledger
        self._questions = Questions(lambda: self._ledger, f"langchain|{thread}|{message}|questions")

    def prepare(self, number: int) -> bool:
        """Compare this question, numbered from 0, with the kept one of the same number; return False where none is needed."""
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
        """Keep a question before it is asked."""
        self._questions.put(number, self._shown)

    def take(self, number: int, answer: Any) -> str:
        """Take an answer; return the problem with it, or an empty string."""
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


class FiledRound:
    """Questions about calls whose requests wait in the inbox, where people may decide them meanwhile."""

    def __init__(self, calls: list[InboxCall]) -> None:
        self._calls, self.is_new = calls, True

    def prepare(self, number: int) -> bool:
        """Read the requests; return whether one of them still needs a question."""
        asking = [call.must_ask(number) for call in self._calls]
        if not any(asking):
            return False
        self.is_new = any(asked is None or asked.is_new for asked in asking)
        self._asked = [
            (call, call.question_now(call.request), call.approval.digest if asked is None else asked.digest)
            for call, asked in zip(self._calls, asking, strict=True)
        ]
        self.actions = [action_for(call.tool_case, question.arguments, call.id) for call, question, _ in self._asked]
        return True

    def keep(self, number: int) -> None:
        """Keep a question before it is asked."""
        for call, _, digest in self._asked:
            call.questions.ask(number, [digest])

    def take(self, number: int, answer: Any) -> str:
        """Decide the requests by an answer; return why the question must be asked again."""
        if self.is_new:  # the answer existed before the question was asked, so it is void
            for call in self._calls:
                call.questions.ask(number, [])
        if self.is_new or not all(digest for _, _, digest in self._asked):
            return ""
        problems: list[str] = []
        pairs = zip(self._asked, self._program_answers(answer), strict=True)
        for place, ((call, question, digest), response) in enumerate(pairs):
            if problem := call.take(question, digest, response):
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


def ask_until_usable(asking: MessageRound | FiledRound) -> Steps[str]:
    """Ask about several calls, each time by one interrupt, until no question is needed; return the problem with the last answer."""
    from langgraph.types import interrupt

    number, problem = 0, ""
    while (yield from perform(Work(functools.partial(asking.prepare, number)))):
        question = hitl_request(asking.actions, problem)
        answer = yield Work(functools.partial(interrupt, question), blocks=False)
        if isinstance(answer, Failed):
            # A question that is asked for the first time cannot have been answered yet.
            if asking.is_new and HOST.pauses(answer.error):
                yield from perform(Work(functools.partial(asking.keep, number)))
            raise answer.error
        problem = yield from perform(Work(functools.partial(asking.take, number, answer)))
        number += 1
    return problem
