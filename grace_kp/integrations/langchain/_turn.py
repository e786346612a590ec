"""The gated calls of one message of the model on their way to a decision each: by one interrupt, or in the inbox, too."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grace_kp.gating import WAITING, GateEntry, InterventionResponse, LedgerEntry, attempt, consent_to
from grace_kp.gating.programs import Questions
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
from grace_kp.integrations.langchain._interrupts import MAX_QUESTIONS, Round, decisions_in
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
OTHER_CALLS = "the earlier answer belongs to other calls; decide about these"


class GatedCalls:
    """The gated calls of one message of the model, on their way to a decision each."""

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
                    case.take_up(case.raised(decision))
                else:
                    # The model did not propose it like this. Nobody knows whether this is decided for the first time, so a person is asked.
                    case.take_up(self._decided_before(case, self.program))
            except ValueError as error:
                case.decision = replace(decision or case.decision, problem=str(error))
            self._found(case)

    def _decided_before(self, case: ToolCase, program: RunningNode) -> ToolDecision:
        """Decide on a call that was changed after it was proposed; where this is run again, return the first decision."""
        # With the same id each time, the question and the outcome are one entry.
        same_id = hashlib.sha256(f"{self._message.id}|{case.state_key}".encode()).hexdigest()[:32]
        case.decision = replace(case.decision, id=same_id)
        key = ledger_key(program.thread, self._message.id, same_id, case.call)
        entry = LedgerEntry(lambda: case.scope.ledger, key)
        return ToolDecision.from_dict(entry.decision() or entry.decide(case.decide(is_changed=True).to_dict()))

    def _found(self, case: ToolCase) -> None:
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
        """Ask about everything that is undecided: the runtime's reviewer, or by one interrupt. Return the state's update."""
        waiting, program = self._undecided, self.program
        if program is None:
            for case in waiting:
                asked = case.gated()
                consent = yield from attempt(consent_to(asked))
                self.take(case, answer_of(case, asked, consent), asked.entry)
        elif any(case.decision.filed for case in waiting):  # people decide in the inbox, too
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
        return self.update()

    def _inbox_call(self, case: ToolCase, program: RunningNode) -> InboxCall:
        case.decision = replace(case.decision, filed=True)
        entry = entry_for(case.decision, case.arguments, WAITING)
        key = ledger_key(program.thread, self._message.id, case.decision.id, case.call)
        return InboxCall(case, program, entry=entry, ledger_key=key)

    def take(self, case: ToolCase, answer: Answer, entry: GateEntry | None = None) -> None:
        """Take what was decided about one call: it may run, or a message stands in its place."""
        message = settle(case, answer, entry)
        if message is not None:
            self._answers.append(message)
        self._decisions[case.state_key] = replace(case.decision, message=self._message.id).to_dict()

    def update(self) -> dict[str, Any]:
        update: dict[str, Any] = {STATE: self._decisions}
        if self._answers:
            update["messages"] = self._answers
        return update


class MessageRound(Round):
    """The questions about the calls of one message, which nobody can decide elsewhere.

    An answer to a question that showed other calls is void: somebody may have changed the agent's state since then.
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
        """Read what the question showed when it was asked before."""
        if self.answers or number == MAX_QUESTIONS:
            return False
        if number == 0:
            # An earlier version may have asked, or a process whose store did not last: it is not known what they showed.
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
        """Take the answer, if the question showed these calls."""
        if self._before is None and self._may_have_forgotten:
            self._questions.put(number, self._shown)
        elif self.is_new:
            if self._before != []:  # else it is void already, and what is kept about later questions counts
                self._questions.put(number, [])
            return OTHER_CALLS
        answers, problem = decisions_in(answer, len(self._cases))
        problem = problem or edit_problem(self._cases, answers)
        if not problem:
            self.answers = answers
        return problem
