"""Obtains a decision for each gated call of one model message: from policy, by one interrupt, or in the inbox."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating import WAITING, GateEntry, InterventionResponse, LedgerEntry, Questions, attempt, consent_to
from grace_kp.integrations.langchain._calls import (
    INVALID,
    Refusal,
    ToolCase,
    ToolDecision,
    action_for,
    answer_of,
    edit_problem,
    entry_for,
    settle,
)
from grace_kp.integrations.langchain._inbox_calls import InboxCall, inbox_answers
from grace_kp.integrations.langchain._interrupts import MAX_QUESTIONS, QuestionRound, decisions_in
from grace_kp.integrations.langchain._node import resumable
from grace_kp.integrations.langchain._tool_run import ledger_key
from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from langchain_core.messages import AIMessage, ToolMessage

    from grace_kp.gating import EngineStep
    from grace_kp.integrations.langchain._calls import Answer
    from grace_kp.integrations.langchain._interrupts import ActionAnswer
    from grace_kp.integrations.langchain._node import RunningNode

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
        key = ledger_key(program.thread, self._message.id, same_id, case.call)
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
        key = ledger_key(program.thread, self._message.id, case.decision.id, case.call)
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
