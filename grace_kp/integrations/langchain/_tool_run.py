"""One execution of a gated tool: whether the call may run, and the message that the model gets."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from grace_kp.errors import ActionCancelled
from grace_kp.gating import Consent, Execution, LedgerEntry, NotStarted, Raised, RanBefore, Returned
from grace_kp.integrations.langchain._calls import (
    CONSENTED,
    NOT_NEEDED,
    entry_for,
    json_values,
    message_for,
    messages_of,
    restored_values,
)
from grace_kp.integrations.langchain._inbox_calls import InboxCall
from grace_kp.integrations.langchain._tool_guard import ToolConsent, call_digest
from grace_kp.integrations.langchain._tool_schema import (
    InvalidCall,
    NotHeld,
    argument_names,
    argument_types,
    validate_arguments,
    without_defaults,
)
from grace_kp.levels import InterventionLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.gating import Outcome
    from grace_kp.integrations.langchain._calls import ToolCase
    from grace_kp.integrations.langchain._node import RunningNode
    from grace_kp.runtime import Grace

NOTICE = (
    "A reviewer changed this call before it ran; your message shows the call that you proposed. "
    "The change is intended: do not make the original call again. The call that ran: {name} with {arguments}."
)


class ToolRun(Execution):
    """One execution of a gated tool. A middleware closer to the tool may still replace the decided call."""

    def __init__(self, grace: Grace, request: Any, case: ToolCase, program: RunningNode | None) -> None:
        self.name: str = case.name
        self.action = f"`{self.name}`"
        decision = case.decision
        self.again_after_failure = decision.consent == NOT_NEEDED
        self._filed: InboxCall | None = None
        self._case, self._call, self._state = case, case.call, request.state
        self._unreadable, self._is_held = "", True
        try:
            self._values, self._digest = self._run_values(case)
        except (ActionCancelled, ValueError, InvalidCall, NotHeld) as error:
            self._values, self._digest, self._unreadable = case.arguments, "", str(error)
        self.entry = entry_for(decision, case.arguments)
        self.consent = Consent(None, self._digest, modified=decision.args is not None)
        self.tool_consent = ToolConsent(
            self.name,
            self._digest,
            again_after_failure=self.again_after_failure,
            values=self._values,
            proposed=case.proposed if decision.args is None else None,
            is_held=not self._is_held,
        )
        self._is_watched = isinstance(case.tool, BaseTool) and type(case.tool).run is BaseTool.run
        call = {**request.tool_call, "args": dict(self._values)}
        self.request = request.override(tool_call=call) if request.tool is case.tool else request
        if self._is_watched and self._is_held:
            self.request = self.tool_consent.hold_request(self.request, case.tool)
        gates = grace._gates()
        self._ledger_key = ledger_key(getattr(program, "thread", ""), decision.message, decision.id, case.call)
        self.ledger_entry = LedgerEntry(gates.in_memory if program is None else lambda: gates.ledger, self._ledger_key)
        self.operation = self.ledger_entry.id
        self.on_notify = gates.on_notify
        if program is not None and decision.level == InterventionLevel.NOTIFY:
            # Without a program, the notice was sent at the decision.
            self.notice = decision.question(dict(case.arguments), decision.digest)
        if program is not None and decision.filed and decision.consent == CONSENTED:
            self._filed = InboxCall(case, program, entry=self.entry, ledger_key=self._ledger_key)
            self._filed.run_tool(case.tool)
            self._filed.values = None if decision.args is None else self._values
            self.ledger_entry = self._filed

    def _run_values(self, case: ToolCase) -> tuple[Mapping[str, Any], str]:
        """Return the arguments that the tool runs with, and their digest."""
        decision, types = case.decision, argument_types(case.tool)
        values: Mapping[str, Any]
        if decision.proposed is not None:
            case.take_up(decision)
            values = case.arguments
            if decision.args is not None:
                values = restored_values(decision.args, decision.run_values, types)
            if (digest := call_digest(self.name, values)) != decision.executed_digest:
                raise ValueError("its arguments were changed")
            return values, digest
        # The decision was made by an earlier version, or without a tool or arguments that could be kept: validate now.
        values = case.arguments if decision.args is None else decision.args
        if not isinstance(case.tool, BaseTool) or not decision.may_run:
            return values, call_digest(self.name, values)
        try:
            found = validate_arguments(case.tool, values)
            digest = call_digest(self.name, found)
        except (ActionCancelled, InvalidCall, NotHeld):
            if not self.again_after_failure:
                raise
            self._is_held = False  # no person approved the arguments, so the tool may report its own error
            return values, call_digest(self.name, values)
        if self.again_after_failure:
            case.arguments = found
            return found, digest
        # Questions of earlier versions showed no defaults; answers to them still count.
        shown = call_digest(self.name, without_defaults(case.tool, found, values), ordered=False)
        if shown != decision.executed_digest:
            raise ValueError(f"it would run with other arguments than the decision covers: {json_values(found)[0]}")
        return found, digest

    def problem(self) -> str:
        """Return why this call may not run; an empty string where it may."""
        case, decision, name = self._case, self._case.decision, self.name
        if case.policy.denies:
            if self._filed is not None:
                self._filed.forbid()
            return f"`{name}` is forbidden by its policy"
        if not decision.may_run:
            return f"this call of `{name}` has no decision"
        if self._filed is None and (now := case.raise_level(decision).level) != decision.level:
            return f"the policy of `{name}` now requires {now}, but the decision was made at {decision.level}"
        if decision.proposed_digest != case.proposed:
            return f"`{name}` is called with other arguments than the decision covers"
        messages = [message for message in messages_of(self._state) if isinstance(message, AIMessage)]
        call_id = self._call.get("id")
        proposals = (it for it in reversed(messages) if any(call["id"] == call_id for call in it.tool_calls))
        proposal = next(proposals, None)
        if proposal is None or proposal.id != decision.message:
            return f"the decision about `{name}` belongs to another turn"
        if self._unreadable:
            return f"`{name}` cannot run as decided: {self._unreadable}"
        if decision.proposed is not None and decision.names not in (None, argument_names(case.tool)):
            return f"the parameters of `{name}` have changed since the decision"
        return ""

    def refuse(self, problem: str) -> ToolMessage:
        self.entry.state("cancelled", problem=problem)
        return message_for(self._call, f"{problem}; it was not run.")

    def is_changed(self) -> bool:
        return call_digest(self.name, self._values) != self._digest

    def replaced_arguments(self) -> Mapping[str, Any] | None:
        return None if self._case.decision.args is None else self._values

    def has_started(self) -> bool:
        """Return whether the tool started; without a way to watch it, assume that it did."""
        return self.tool_consent.run_id is not None or not (self._is_watched or self._case.tool is None)

    def result_to_keep(self, result: object) -> tuple[object, bool]:
        """Return a result in the ledger's form, and whether the ledger can keep it."""
        if isinstance(result, ToolMessage) and result.artifact is None and isinstance(result.content, str):
            return {"content": result.content, "status": result.status}, True
        return None, False

    def settle_outcome(self, outcome: Returned | Raised) -> Returned | Raised:
        """Return how the tool itself ended: a middleware may hide its error, or get a refusal for a second start."""
        consent = self.tool_consent
        is_other = consent.refused_again or isinstance(consent.ended, Raised)
        return consent.ended if is_other and consent.ended is not None else outcome

    def add_notice(self, result: Any) -> Any:
        """Return the result for the model, with a notice where a reviewer changed the call."""
        if self._case.decision.args is None:
            return result
        arguments = json.dumps(self._case.decision.args, default=str, ensure_ascii=False)
        notice = NOTICE.format(name=self.name, arguments=arguments)
        if isinstance(result, ToolMessage):
            return _prefix(result, notice)
        update: Any = getattr(result, "update", None)
        messages = update.get("messages") if isinstance(update, dict) else None
        if not isinstance(messages, list) or not dataclasses.is_dataclass(result) or isinstance(result, type):
            return result
        call_id = self._call.get("id")
        prefixed = [
            _prefix(message, notice)
            if isinstance(message, ToolMessage) and message.tool_call_id == call_id
            else message
            for message in messages
        ]
        return dataclasses.replace(result, update={**update, "messages": prefixed})

    def message(self, outcome: Outcome) -> Any:
        if isinstance(outcome, Returned):
            return outcome.value
        if isinstance(outcome, Raised) and not isinstance(outcome.error, NotStarted):
            raise outcome.error
        if isinstance(outcome, RanBefore):
            earlier = outcome.earlier
            if earlier.state == "done" and earlier.has_result:
                return message_for(self._call, earlier.result["content"], earlier.result["status"])
            status = "success" if earlier.state == "done" else "error"
            return message_for(self._call, f"{earlier.describe(self.action)}.", status)
        text = str(outcome.error) if isinstance(outcome, Raised) else outcome.problem
        return message_for(self._call, f"{text}.")


def ledger_key(thread: str, message: str | None, decision: str, call: Mapping[str, Any]) -> str:
    return f"langchain|{thread}|{message}|{decision}|{call.get('id')}"


def _prefix(message: ToolMessage, notice: str) -> ToolMessage:
    content: Any = message.content
    if isinstance(content, str):
        content = f"{notice}\n\n{content}" if content else notice
    else:
        content = [{"type": "text", "text": notice}, *content]
    return message.model_copy(update={"content": content})
