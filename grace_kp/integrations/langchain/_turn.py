"""The gated calls of one message of the model on their way to a decision each: by one interrupt, or in the inbox, too."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.types import interrupt

from grace_kp.gating import WAITING, Failed, GateEntry, InterventionResponse, LedgerEntry, Work
from grace_kp.integrations.langchain._calls import (
    INVALID,
    Refusal,
    ToolCase,
    ToolDecision,
    action_for,
    entry_for,
    json_values,
    settle,
)
from grace_kp.integrations.langchain._interrupts import (
    MAX_QUESTIONS,
    decisions_in,
    edited_name,
    hitl_request,
    performed,
    unseen_problem,
)
from grace_kp.integrations.langchain._node import resumable
from grace_kp.integrations.langchain._tool_run import ledger_key
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import HOST

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from langchain_core.messages import AIMessage, ToolMessage

    from grace_kp.gating import GatedCall, Step
    from grace_kp.gating.programs import Questions
    from grace_kp.integrations.langchain._calls import Answer
    from grace_kp.integrations.langchain._inbox_calls import InboxCall

STATE = "grace_gates"
OTHER_CALLS = "the earlier answer belongs to other calls; decide about these"


class GatedCalls:
    """The gated calls of one message of the model, on their way to a decision each."""

    def __init__(self, message: AIMessage, cases: list[ToolCase], decided: Mapping[str, Any]) -> None:
        self.pauses = resumable() is not None
        self._message = message
        self._decisions: dict[str, Any] = {}
        self._answers: list[ToolMessage] = []
        self._undecided: list[ToolCase] = []
        for case in cases:
            case.is_shared = sum(call["id"] == case.call["id"] for call in message.tool_calls) > 1
            kept = decided.get(case.state_key)
            decision = None if kept is None or "message" in kept else ToolDecision.from_dict(kept)
            try:
                if not self.pauses:
                    case.decision = case.validate(keeps=False)
                elif decision is not None and decision.proposed_digest == case.proposed:
                    case.take_up(case.raised(decision))
                else:
                    # The model did not propose it like this. Nobody knows whether this is decided for the first time, so a person is asked.
                    case.take_up(self._decided_before(case))
            except ValueError as error:
                case.decision = replace(decision or case.decision, problem=str(error))
            self._found(case)

    def _decided_before(self, case: ToolCase) -> ToolDecision:
        """Decide on a call that was changed after it was proposed; where this is run again, return the first decision."""
        program = resumable()
        assert program is not None  # noqa: S101 — such calls are decided where the graph can pause
        case.decision = replace(case.decision, id=case.same_id(self._message.id))
        key = ledger_key(program.thread, self._message.id, case.decision.id, case.call)
        entry = LedgerEntry(lambda: case.scope.ledger, key)
        return ToolDecision.from_dict(entry.decision() or entry.decide(case.decide(is_changed=True).to_dict()))

    def _found(self, case: ToolCase) -> None:
        if case.policy.denies:
            if case.decision.filed and self.pauses:
                self._inbox_call(case).forbid()
            self.take(case, Refusal("denied", f"`{case.name}` is forbidden by its policy; it was not run."))
        elif case.decision.consent == INVALID:
            self._decisions[case.state_key] = replace(case.decision, message=self._message.id).to_dict()
        elif not self.pauses:
            self._undecided.append(case)
        elif InterventionLevel(case.decision.level).asks:
            if case.decision.problem is None:
                self._undecided.append(case)
            else:
                self.take(case, Refusal("cancelled", f"`{case.name}` was not run: {case.decision.problem}."))
        else:
            self.take(case, InterventionResponse(InterventionAction.PROCEED))

    def waiting_at_reviewer(self) -> Iterator[tuple[ToolCase, GatedCall]]:
        """Yield the calls that the runtime's reviewer is asked about."""
        for case in self._undecided:
            yield case, case.gated()

    def ask(self) -> Generator[Step, Any, dict[str, Any]]:
        """Raise one interrupt for everything that is undecided, until there is an answer that can be used. Return what goes into the state.

        An answer to a question that showed other calls is void: somebody may have changed the agent's state since then.
        """
        waiting = self._undecided
        if not waiting:
            return self.update()
        if any(case.decision.filed for case in waiting):  # people decide in the inbox, too
            from grace_kp.integrations.langchain._inbox_calls import inbox_answers

            calls = [self._inbox_call(case) for case in waiting]
            answers = yield from inbox_answers(calls, functools.partial(_edit_problem, waiting))
            for call, filed in answers:
                self.take(call.tool_case, filed, call.entry)
            return self.update()
        entries = [entry_for(case.decision, case.arguments, WAITING) for case in waiting]
        actions = [action_for(case) for case in waiting]
        shown = [case.decision.digest for case in waiting]
        questions = self._questions(waiting[0])
        may_be_unknown = yield from performed(Work(self._may_have_forgotten))
        problem = ""
        for number in range(MAX_QUESTIONS):
            before = yield from performed(Work(functools.partial(questions.shown, number)))
            answer = yield Work(functools.partial(interrupt, hitl_request(actions, problem)), blocks=False)
            if isinstance(answer, Failed):
                if before != shown and HOST.pauses(answer.error):
                    yield from performed(Work(functools.partial(questions.put, number, shown)))
                raise answer.error
            if before is None and may_be_unknown:
                before = shown
                yield from performed(Work(functools.partial(questions.put, number, shown)))
            if before != shown:
                if before != []:  # else it is void already, and what is kept about later questions counts
                    yield from performed(Work(functools.partial(questions.put, number, [])))
                problem = OTHER_CALLS
                continue
            responses, problem = decisions_in(answer, len(waiting))
            problem = problem or _edit_problem(waiting, responses, answer)
            if not problem:
                for case, response, entry in zip(waiting, responses, entries, strict=True):
                    self.take(case, response, entry)
                return self.update()
        for case, entry in zip(waiting, entries, strict=True):
            text = f"`{case.name}` was not run: there was no usable answer ({problem})."
            self.take(case, Refusal("cancelled", text), entry)
        return self.update()

    def _may_have_forgotten(self) -> bool:
        """Return whether an earlier version may have asked, or a process whose store did not last: it is not known what they showed."""
        program, ledger = resumable(), self._undecided[0].scope.ledger
        assert program is not None  # noqa: S101 — a turn that pauses has one
        if not getattr(ledger, "lasting", False) and ledger.put_action(
            f"langchain|{program.thread}|asked", b"{}", only_if=None
        ):
            return True
        return all(case.decision.proposed is None for case in self._undecided)

    def _questions(self, case: ToolCase) -> Questions:
        from grace_kp.gating.programs import Questions

        program = resumable()
        assert program is not None  # noqa: S101 — a turn that pauses has one
        return Questions(lambda: case.scope.ledger, f"langchain|{program.thread}|{self._message.id}|questions")

    def _inbox_call(self, case: ToolCase) -> InboxCall:
        from grace_kp.integrations.langchain._inbox_calls import InboxCall

        program = resumable()
        assert program is not None  # noqa: S101 — a turn that is filed has one
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
        """Return what goes into the agent's state."""
        update: dict[str, Any] = {STATE: self._decisions}
        if self._answers:
            update["messages"] = self._answers
        return update


def _edit_problem(cases: list[ToolCase], responses: list[InterventionResponse], answer: object) -> str:
    """Return why a decision in an answer cannot be used; an empty text where none is wrong."""
    for number, (case, response) in enumerate(zip(cases, responses, strict=False)):
        if response.action is InterventionAction.MODIFY:
            other = edited_name(answer, number)
            if other not in {None, case.name}:
                return (
                    f"decision {number}: the name cannot be changed (from {case.name} to {other}); reject it and say so"
                )
            problem = case.edited(response.modified or {}).problem
            if problem:
                return f"decision {number}: the arguments do not fit {case.name}: {problem}"
        elif response.action is InterventionAction.PROCEED:
            problem = unseen_problem(answer, number, json_values(case.arguments)[1])
            if problem:
                return problem
    return ""
