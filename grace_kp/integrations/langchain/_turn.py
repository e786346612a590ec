"""The gated calls of one message of the model on their way to a decision each: by one interrupt, or in the inbox, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.types import interrupt

from grace_kp.gating import WAITING, GateEntry, InterventionResponse
from grace_kp.integrations.langchain._calls import Refusal, ToolCase, ToolDecision, entry_for, settle
from grace_kp.integrations.langchain._hitl import action_request, decisions_in, edited_name, hitl_request
from grace_kp.integrations.langchain._interrupting import MAX_QUESTIONS
from grace_kp.integrations.langchain._pause import resumable
from grace_kp.integrations.langchain._tool_run import ledger_key
from grace_kp.integrations.langchain._tool_schema import schema_problem
from grace_kp.levels import InterventionAction, InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from langchain_core.messages import AIMessage, ToolMessage

    from grace_kp.gating import Case, Step
    from grace_kp.integrations.langchain._calls import Answer
    from grace_kp.integrations.langchain._inbox_calls import InboxCall

STATE = "grace_gates"


class Turn:
    """The gated calls of one message of the model, on their way to a decision each."""

    def __init__(self, message: AIMessage, cases: list[ToolCase], decided: Mapping[str, Any]) -> None:
        self.pauses = resumable() is not None
        self._message = message
        self._decisions: dict[str, Any] = {}
        self._answers: list[ToolMessage] = []
        self._undecided: list[ToolCase] = []
        for case in cases:
            if not self.pauses:
                self._undecided.append(case)
                continue
            kept = decided.get(case.state_key)
            if kept is not None and "message" not in kept and kept["digest"] == case.digest:
                case.decision = case.raised(ToolDecision.from_dict(kept))
            else:
                # The model did not propose it like this. Nobody knows whether this is decided for the first time, so a person is asked.
                case.decision = case.decide(message=message.id)
            self._found(case)

    def _found(self, case: ToolCase) -> None:
        if case.policy.denies:
            self.take(case, Refusal("denied", f"`{case.name}` is forbidden by its policy; it was not run."))
        elif InterventionLevel(case.decision.level).asks:
            self._undecided.append(case)
        else:
            self.take(case, InterventionResponse(InterventionAction.PROCEED))

    def waiting_at_reviewer(self) -> Iterator[tuple[ToolCase, Case]]:
        """Yield the calls that the runtime's reviewer is asked about."""
        for case in self._undecided:
            yield case, case.gated()

    def ask_by_interrupt(self) -> dict[str, Any]:
        """Raise one interrupt for everything that is undecided, until there is an answer that can be used."""
        waiting = self._undecided
        if not waiting:
            return self.update()
        entries = [entry_for(case.decision, case.arguments, WAITING) for case in waiting]
        actions = [action_request(case.name, case.arguments, case.decision.reasons(), "") for case in waiting]
        problem = ""
        for _ in range(MAX_QUESTIONS):
            answer = interrupt(hitl_request(actions, problem))
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

    @property
    def is_filed(self) -> bool:
        """Whether people decide in the inbox, too."""
        return any(case.decision.filed for case in self._undecided)

    def inbox(self) -> Generator[Step, Any, list[tuple[InboxCall, Answer]]]:
        """Ask about everything that is undecided by one interrupt, and in the inbox."""
        from grace_kp.integrations.langchain._inbox_calls import InboxCall, inbox_answers

        program, waiting = resumable(), self._undecided
        assert program is not None  # noqa: S101 — a turn that is filed has one
        calls: list[InboxCall] = []
        for case in waiting:
            case.decision = replace(case.decision, filed=True)
            entry = entry_for(case.decision, case.arguments, WAITING)
            key = ledger_key(program.thread, self._message.id, case.decision.id, case.call)
            calls.append(InboxCall(case, program, entry=entry, ledger_key=key))
        return inbox_answers(calls, lambda responses, answer: _edit_problem(waiting, responses, answer))

    def answered(self, answers: list[tuple[InboxCall, Answer]]) -> dict[str, Any]:
        """Take what was decided in the inbox."""
        for call, answer in answers:
            self.take(call.tool_case, answer, call.entry)
        return self.update()

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
    """Return why an edit among the responses cannot be used; an empty text where none is wrong."""
    for number, (case, response) in enumerate(zip(cases, responses, strict=False)):
        if response.action is InterventionAction.MODIFY:
            other = edited_name(answer, number)
            if other not in {None, case.name}:
                return (
                    f"decision {number}: the name cannot be changed (from {case.name} to {other}); reject it and say so"
                )
            problem = schema_problem(case.tool, response.modified or {}, case.decision.names)
            if problem:
                return f"decision {number}: the arguments do not fit {case.name}: {problem}"
    return ""
