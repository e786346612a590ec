"""The middleware that gates the tools of a LangChain agent by the confidence of its run: an adapter over the gates' engine.

1. The model's node decides on the proposed calls. The decisions join the proposal in the agent's state, where a repeated run finds them.
2. A node after the model asks people about all calls that need it, at once.
3. Around each tool, only the decided call runs, once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired
from uuid import uuid4

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ExtendedModelResponse, PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from grace_kp.errors import ActionCancelled, GateError
from grace_kp.gating import (
    APPROVED,
    CANCELLED,
    Consent,
    Execution,
    GateEntry,
    LedgerEntry,
    NotStarted,
    Policy,
    PolicySet,
    Raised,
    RanBefore,
    Returned,
    drive,
    drive_async,
    execution,
)
from grace_kp.integrations.langchain._calls import (
    CONSENTED,
    INVALID,
    NOT_NEEDED,
    REFUSED,
    ToolCase,
    ToolDecision,
    ToolScope,
    call_key,
    field_of,
    json_values,
    message_for,
    messages_of,
    restored_values,
)
from grace_kp.integrations.langchain._node import number_of_send, resumable, tools_of_graph
from grace_kp.integrations.langchain._tool_guard import GatedTools, ToolConsent, call_digest, guard_tools
from grace_kp.integrations.langchain._tool_schema import (
    InvalidCall,
    NotHeld,
    argument_names,
    argument_types,
    validate_arguments,
    without_defaults,
)
from grace_kp.integrations.langchain._turn import STATE, GatedCalls, InboxCall
from grace_kp.levels import InterventionLevel
from grace_kp.record import current_run
from grace_kp.runtime import GateSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from grace_kp.gating import Outcome
    from grace_kp.integrations.langchain._node import RunningNode
    from grace_kp.runtime import Grace


_log = logging.getLogger("grace_kp.gate")
ANSWERED = "another middleware answered the call; its tool did not run"
EDITED = "hitl_edited_tool_calls"
"""State field of HumanInTheLoopMiddleware: calls that its reviewer edited and that have not run yet."""
NOTICE = (
    "A reviewer changed this call before it ran; your message shows the call that you proposed. "
    "The change is intended: do not make the original call again. The call that ran: {name} with {arguments}."
)


class ToolRun(ToolConsent, Execution):
    """One execution of a gated tool. A middleware closer to the tool may still replace the decided call."""

    def __init__(self, grace: Grace, request: Any, case: ToolCase, program: RunningNode | None) -> None:
        decision, gates, self.action = case.decision, grace._gates(), f"`{case.name}`"
        self._case, self._state, self._unreadable, is_held = case, request.state, "", False
        try:
            values, digest, is_held = self._run_values(case)
        except (ActionCancelled, ValueError, InvalidCall, NotHeld) as error:
            values, digest, self._unreadable = case.arguments, "", str(error)
        super().__init__(
            case.name,
            digest,
            again_after_failure=decision.consent == NOT_NEEDED,
            values=values,
            proposed=case.proposed if decision.args is None else None,
            is_held=is_held,
        )
        self.entry, self.consent = case.entry(), Consent(None, digest, modified=decision.args is not None)
        self._is_watched = isinstance(case.tool, BaseTool) and type(case.tool).run is BaseTool.run
        call = {**request.tool_call, "args": dict(values)}
        self.request = request.override(tool_call=call) if request.tool is case.tool else request
        if self._is_watched and not is_held:
            self.request = self.hold_request(self.request, case.tool)
        key = case.ledger_key(program, decision.message)
        self.ledger_entry = LedgerEntry(gates.in_memory if program is None else lambda: gates.ledger, key)
        self.operation, self.on_notify = self.ledger_entry.id, gates.on_notify
        self._filed: InboxCall | None = None
        if program is not None and decision.level == InterventionLevel.NOTIFY:
            # Without a program, the notice was sent at the decision.
            self.notice = case.question(dict(case.arguments), decision.digest)
        if program is not None and decision.filed and decision.consent == CONSENTED:
            self.ledger_entry = self._filed = InboxCall(case, program, entry=self.entry, ledger_key=key)
            self._filed.run_tool(case.tool)
            self._filed.values = None if decision.args is None else values

    def _run_values(self, case: ToolCase) -> tuple[Mapping[str, Any], str, bool]:
        """Return the arguments that the tool runs with, their digest, and whether it may run with others."""
        decision, types = case.decision, argument_types(case.tool)
        values: Mapping[str, Any]
        if decision.proposed is not None:
            case.take_up(decision)
            values = case.arguments
            if decision.args is not None:
                values = restored_values(decision.args, decision.run_values, types)
            if (digest := call_digest(case.name, values)) != decision.executed_digest:
                raise ValueError("its arguments were changed")
            return values, digest, False
        # The decision was made by an earlier version, or without a tool or arguments that could be kept: validate now.
        values = case.arguments if decision.args is None else decision.args
        if not isinstance(case.tool, BaseTool) or not decision.may_run:
            return values, call_digest(case.name, values), False
        try:
            found = validate_arguments(case.tool, values)
            digest = call_digest(case.name, found)
        except (ActionCancelled, InvalidCall, NotHeld):
            if decision.consent != NOT_NEEDED:
                raise
            # No person approved the arguments, so the tool may report its own error.
            return values, call_digest(case.name, values), True
        if decision.consent == NOT_NEEDED:
            case.arguments = found
            return found, digest, False
        # Questions of earlier versions showed no defaults; answers to them still count.
        shown = call_digest(case.name, without_defaults(case.tool, found, values), ordered=False)
        if shown != decision.executed_digest:
            raise ValueError(f"it would run with other arguments than the decision covers: {json_values(found)[0]}")
        return found, digest, False

    def problem(self) -> str:
        """Return why this call may not run; an empty string where it may."""
        case, decision, name = self._case, self._case.decision, self.tool
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
        call_id = self._case.call.get("id")
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
        return message_for(self._case.call, f"{problem}; it was not run.")

    def is_changed(self) -> bool:
        return call_digest(self.tool, self.values or {}) != self.digest

    def replaced_arguments(self) -> Mapping[str, Any] | None:
        return None if self._case.decision.args is None else self.values

    def has_started(self) -> bool:
        """Return whether the tool started; without a way to watch it, assume that it did."""
        return self.run_id is not None or not (self._is_watched or self._case.tool is None)

    def result_to_keep(self, result: object) -> tuple[object, bool]:
        """Return a result in the ledger's form, and whether the ledger can keep it."""
        if isinstance(result, ToolMessage) and result.artifact is None and isinstance(result.content, str):
            return {"content": result.content, "status": result.status}, True
        return None, False

    def settle_outcome(self, outcome: Returned | Raised) -> Returned | Raised:
        """Return how the tool itself ended: a middleware may hide its error, or get a refusal for a second start."""
        is_other = self.refused_again or isinstance(self.ended, Raised)
        return self.ended if is_other and self.ended is not None else outcome

    def add_notice(self, result: Any) -> Any:
        """Return the result for the model, with a notice where a reviewer changed the call."""
        if self._case.decision.args is None:
            return result
        arguments = json.dumps(self._case.decision.args, default=str, ensure_ascii=False)
        notice = NOTICE.format(name=self.tool, arguments=arguments)
        if isinstance(result, ToolMessage):
            return _prefix(result, notice)
        update: Any = getattr(result, "update", None)
        messages = update.get("messages") if isinstance(update, dict) else None
        if not isinstance(messages, list) or not dataclasses.is_dataclass(result) or isinstance(result, type):
            return result
        call_id = self._case.call.get("id")
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
                return message_for(self._case.call, earlier.result["content"], earlier.result["status"])
            status = "success" if earlier.state == "done" else "error"
            return message_for(self._case.call, f"{earlier.describe(self.action)}.", status)
        text = str(outcome.error) if isinstance(outcome, Raised) else outcome.problem
        return message_for(self._case.call, f"{text}.")


def _prefix(message: ToolMessage, notice: str) -> ToolMessage:
    content: Any = message.content
    if isinstance(content, str):
        content = f"{notice}\n\n{content}" if content else notice
    else:
        content = [{"type": "text", "text": notice}, *content]
    return message.model_copy(update={"content": content})


class GateState(AgentState[Any]):
    """The agent's state with the decisions about this turn's calls, which are private to the graph."""

    grace_gates: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class GraceMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gates tools: silently, with a notice, after a person confirms, or only with a person's help.

    The confidence of the run so far decides how a gated tool may run. One LangGraph interrupt for each turn asks about all calls that need
    a person. It has the form of LangChain's HumanInTheLoopMiddleware; each action also has `level`, `score`, `breakdown`, `penalties` and
    `reason`. Resume the graph with `Command(resume={"decisions": [...]})`: approve runs the call, edit runs it with other arguments,
    reject does not run it, respond answers in its place. Without a checkpointer, the gate asks the runtime's reviewer.

    The gate decides the level once, when the model proposes the call. An approved call runs once, also when the process dies meanwhile.
    Below this agent, for example in a subagent, a gated tool also needs a decision; give each subagent its own middleware.

    List it last among the middlewares, closest to the tools. Attach a GraceCallbackHandler to the agent, too; without it no run is
    recorded, and the confidence rests on the tool messages alone.
    """

    state_schema = GateState

    def __init__(
        self,
        grace: Grace,
        gates: Mapping[str, Policy | str] | None = None,
        default: Policy | str | None = None,
        *,
        judge: Literal["always", "when_needed", "never"] = "never",
        alarms: Collection[str] | str = "all",
    ) -> None:
        """Gate the named tools.

        Args:
            grace: the runtime, with its thresholds, reviewer, policies (the stricter floor holds) and store.
            gates: policies or floors by tool name or glob, such as `{"send_mail": "confirm", "delete_*": "deny"}`.
            default: the policy or floor of every other tool; None gates none of them.
            judge: whether a model judges the run so far before the gate decides; see `Grace.gate`.
            alarms: the alarms about the origin of arguments that are looked for in a recorded run: `all`, `none`, or names; see `Grace.gate`.

        An entry of `gates` that matches no tool of the agent leads to a warning in the log at the first call of the model. If it is spelt
        nearly like a tool (in case, separators, or up to two letters of a name of five or more), that call raises `GateError`. A tool that
        looks like a gated one, through case or letters of another alphabet, gets its policy, with a warning.

        Raises:
            GateError: an alarm has an unknown name.
            TypeError: `grace` is not a Grace, or `gates` is not a mapping.
            ValueError: a policy or `judge` is not usable, the name of a policy cannot match any tool, or a policy shares no group with the
                runtime's policy; the message names it.
        """
        super().__init__()
        if not hasattr(grace, "recorder"):
            raise TypeError(f"GraceMiddleware takes a Grace, not {type(grace).__name__}")
        if judge not in {"always", "when_needed", "never"}:
            raise ValueError(f"judge must be one of always, when_needed, never (got {judge!r:.40})")
        self.grace = grace
        self.judge = judge
        self._alarms = Policy(alarms=alarms).alarms
        self._gates = PolicySet(gates)
        self._default = None if default is None else Policy.of(default)
        self._tools: dict[str, Any] = {}
        self._offered: set[str] | None = None
        """Names of the tools that the model was offered so far."""
        if (existing := grace._existing_gates()) is not None:
            for name in self._gates.names:
                existing.policies.for_action(name, self._gates.entry_for(name))
        GatedTools.of(grace.recorder).add(self.needs_decision)
        grace.recorder.is_gated = True

    def policy_for(self, tool: str) -> Policy | None:
        """Return the policy of a tool; None where the tool is not gated."""
        own, gates = self._gates.stated_for(tool, self._known), self.grace._gates()
        if self._default is not None and self._gates.entry_for(tool) is None:
            own = self._default if own is None else own.combined(self._default)
        policy = gates.entry_for(tool) if own is None else gates.policy_for(tool, GateSpec(policy=own))
        return None if policy is None else replace(policy, alarms={*policy.alarms, *self._alarms})

    def needs_decision(self, tool: str) -> bool | None:
        """Return whether a tool below this agent must not start without a decision; None where the tool is not gated.

        This holds for every gated tool, except for tools gated by `default` alone with a floor below CONFIRM.
        """
        policy = self.policy_for(tool)
        if policy is None:
            return None
        named = self._gates.stated_for(tool, self._known) or self.grace._gates().entry_for(tool)
        return named is not None or policy.floor not in {None, "silent", "notify"}

    def _known(self) -> set[str]:
        return self._offered or set()

    def _check_names(self, tools: set[str]) -> None:
        """Look for policies that match no tool, when the model is offered a tool for the first time."""
        if self._offered is not None and tools <= self._offered:
            return
        names = tools | self._known()
        for stated, tool in self._gates.misspelt(names).items():
            raise GateError(
                f"GraceMiddleware(gates={{{stated!r}: ...}}): no tool is called {stated!r}; did you mean {tool!r}? If not, leave it out"
            )
        gates = self.grace._gates()
        gates.tools.update(names)
        gates.others.add(self._gates)
        if self._offered is None and (unmatched := self._gates.unmatched(names)):
            listed = ", ".join(
                repr(stated) + (f" (nearest: {near})" if near else "") for stated, near in unmatched.items()
            )
            _log.warning("GraceMiddleware(gates=...): no tool of the agent is called %s", listed)
        self._offered = names

    # Decide: in the model's node, so that the state keeps the decision together with the proposal

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the model propose calls, and decide on them."""
        self._begin_turn(request)
        response = handler(request)
        return self._decide(request, response)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call` for async agents."""
        await _off_loop(field_of(request.state, STATE) and _must_look_up(), self._begin_turn, request)
        response = await handler(request)
        return await asyncio.to_thread(self._decide, request, response)  # it may read all that the agent has seen

    def _begin_turn(self, request: Any) -> None:
        cancel_answered(field_of(request.state, STATE) or {}, messages_of(request.state))
        tools = getattr(request, "tools", None) or ()
        self._check_names({_name_of(tool) for tool in tools} - {""})
        for tool in tools:
            name = getattr(tool, "name", None)
            if isinstance(name, str) and self.policy_for(name) is not None:
                self._tools[name] = tool

    def _decide(self, request: Any, response: Any) -> Any:
        messages = getattr(response, "result", None) or [response]
        calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
        cases = self._cases(calls, request.state)
        if not cases or resumable() is None:
            return response
        decisions = {case.state_key: case.decide().to_dict() for case in cases}
        return ExtendedModelResponse(model_response=response, command=Command(update={STATE: decisions}))

    def _cases(self, calls: Sequence[Mapping[str, Any]], state: object) -> list[ToolCase]:
        known = tools_of_graph()
        cases: list[ToolCase] = []
        turn: list[Any] = []  # the evidence, which is the same for all calls
        for number, call in enumerate(calls):
            policy = self.policy_for(call["name"])
            if policy is None:
                continue
            tool = (known or {}).get(call["name"]) or self._tools.get(call["name"])
            key = call_key(call, calls[:number])
            case = ToolCase(call, key, policy, tool, ToolScope(self.grace, state, self.judge, turn))
            case.is_unknown = tool is None and known is not None
            cases.append(case)
        return cases

    # Ask: in a node after the model

    def after_model(self, state: Any, runtime: object) -> dict[str, Any] | None:  # noqa: ARG002 - injected by name
        """Ask about the calls that need it."""
        turn = self._turn(state)
        return None if turn is None else drive(turn.ask())

    async def aafter_model(self, state: Any, runtime: object) -> dict[str, Any] | None:  # noqa: ARG002 - injected by name
        """`after_model` for async agents."""
        turn = self._turn(state)
        return None if turn is None else await drive_async(turn.ask())

    def _turn(self, state: object) -> GatedCalls | None:
        message, calls = open_calls(state)
        cases = self._cases(calls, state)
        return GatedCalls(message, cases, field_of(state, STATE) or {}) if message is not None and cases else None

    # Run: around each tool

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the decided call run, once."""
        run = self._run(request)
        if isinstance(run, ToolRun):

            def start(_consent: Consent) -> Any:
                with guard_tools(self.needs_decision, run):
                    return run.add_notice(handler(run.request))

            return run.message(drive(execution(run), start))
        if isinstance(run, ToolMessage):
            return run
        try:
            with guard_tools(self.needs_decision, run):
                return handler(request if run is None else run.hold_request(request, request.tool))
        except NotStarted as error:
            return message_for(request.tool_call, f"{error}.")

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` for async agents."""
        run = await _off_loop(_must_look_up(), self._run, request)
        if isinstance(run, ToolRun):

            async def start(_consent: Consent) -> Any:
                with guard_tools(self.needs_decision, run):
                    return run.add_notice(await handler(run.request))

            return run.message(await drive_async(execution(run), start))
        if isinstance(run, ToolMessage):
            return run
        try:
            with guard_tools(self.needs_decision, run):
                return await handler(request if run is None else run.hold_request(request, request.tool))
        except NotStarted as error:
            return message_for(request.tool_call, f"{error}.")

    def _run(self, request: Any) -> ToolRun | ToolConsent | ToolMessage | None:
        """Return the execution of a gated call, or the message in its place."""
        call = effective_call(request.tool_call, request.state)
        policy = self.policy_for(call["name"])
        if policy is None:
            return None
        decisions = field_of(request.state, STATE) or {}
        state_key = call_key(call, _sent_before(call, request.state))
        # A call that was changed after its proposal has another key; the decision with its id explains the problem.
        prefix = state_key.rpartition(":")[0] + ":"
        same_id = (decision for name, decision in decisions.items() if name.startswith(prefix))
        undecided = {"id": uuid4().hex, "name": call["name"], "digest": ""}
        kept = decisions.get(state_key) or next(same_id, undecided)
        if (run := current_run()) is not None:
            _ = run.id  # may read the store, so it is loaded here and not on the event loop
        tool = request.tool
        if call["name"] != request.tool_call["name"]:
            tool = next((each for each in getattr(request.runtime, "tools", ()) if each.name == call["name"]), None)
        case = ToolCase(call, state_key, policy, tool, ToolScope(self.grace, request.state, self.judge, []))
        case.decision = decision = ToolDecision.from_dict(kept)
        if decision.proposed_digest == case.proposed:
            if decision.consent == INVALID:
                if isinstance(getattr(tool, "args_schema", None), dict):
                    # LangChain does not check such a schema, and the tool would get the call.
                    error = f"with kwargs {call['args']} with error:\n {decision.problem or ''}"
                    text = f"Error invoking tool '{call['name']}' {error}\n Please fix the error and try again."
                    return message_for(call, text)
                return ToolConsent(case.name, "", again_after_failure=True, proposed=decision.digest)
            if decision.consent == REFUSED and decision.problem:
                return message_for(call, decision.problem, "success" if decision.answers else "error")
        execution = ToolRun(self.grace, request, case, resumable())
        problem = execution.problem()
        return execution.refuse(problem) if problem else execution


def open_calls(state: object) -> tuple[AIMessage | None, list[Mapping[str, Any]]]:
    """Return the last message of the model, and its calls without an answer."""
    answered: set[str] = set()  # in this turn only, because models reuse ids
    for message in reversed(messages_of(state)):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return message, [effective_call(call, state) for call in message.tool_calls if call["id"] not in answered]
    return None, []


def _sent_before(call: Mapping[str, Any], state: object) -> list[Mapping[str, Any]]:
    """Return the calls before this one in the turn. Equal calls differ only by their number."""
    _, calls = open_calls(state)
    number = number_of_send() if sum(each["id"] == call["id"] for each in calls) > 1 else None
    return calls[:number] if number is not None and calls[number : number + 1] == [call] else []


def _name_of(tool: object) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = field_of(function if isinstance(function, dict) else tool, "name")
    return name if isinstance(name, str) else ""


def effective_call(call: Mapping[str, Any], state: object) -> Mapping[str, Any]:
    """Return a call with the edits of a reviewer of LangChain's HumanInTheLoopMiddleware."""
    edited = (field_of(state, EDITED) or {}).get(call.get("id"))
    return call if edited is None else {**call, "name": edited["name"], "args": edited["args"]}


def cancel_answered(decisions: Mapping[str, Any], messages: Sequence[Any]) -> None:
    """Mark approved calls of the previous turn as cancelled where another middleware has answered them."""
    run = current_run()
    if run is None or not decisions:
        return
    if run.resumes is not None:
        _ = run.id  # loads the part of the run before it was suspended
    before = ((run.earlier or {}).get("grace") or {}).get("decisions") or []
    approved = {fields.get("id"): fields for fields in [*before, *run.decisions] if fields.get("outcome") == APPROVED}
    here = {fields.get("id") for fields in run.decisions}
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    for name, decision in decisions.items():
        fields = approved.get(decision.get("id"))
        if fields is None or name.rpartition(":")[0] not in answered:
            continue
        if fields["id"] not in here:
            fields = {**fields}
            run.decisions.append(fields)
        GateEntry(fields).state(CANCELLED, problem=ANSWERED)


def _must_look_up() -> bool:
    """Return whether the run continues one that must still be read from the store."""
    run = current_run()
    return run is not None and run.lacks_past


async def _off_loop(blocks: object, call: Callable[..., Any], *args: object) -> Any:
    return await asyncio.to_thread(call, *args) if blocks else call(*args)
