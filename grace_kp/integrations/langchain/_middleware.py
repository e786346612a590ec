"""The middleware that gates the tools of a LangChain agent on the confidence of its run.

Three steps, each in a place of its own. Right after the model has proposed calls, they are decided on, and the decisions go into the
agent's state together with the proposal: whatever is executed again finds them there. In a node behind the model, people are asked about
all calls that need it, at once. And around each tool stands a check that lets only the decided call run, once.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ExtendedModelResponse, PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command, interrupt

from grace_kp.gating import Case, InterventionResponse, Policy, PolicySet, drive, drive_async
from grace_kp.gating import consent as consent_of
from grace_kp.integrations.langchain._calls import (
    ToolCase,
    call_key,
    end_of,
    entry_of,
    refusal,
    schema_problem,
)
from grace_kp.integrations.langchain._hitl import action_request, decisions_in, edited_name, hitl_request
from grace_kp.integrations.langchain._once import Once, cancel_answered, not_run
from grace_kp.integrations.langchain._pause import MAX_QUESTIONS, pausing
from grace_kp.integrations.langchain._tool_guard import GatedTools, NotStarted, guarded
from grace_kp.levels import InterventionAction, InterventionLevel
from grace_kp.record import current_run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from grace_kp.runtime import Grace

STATE = "grace_gates"
EDITED = "hitl_edited_tool_calls"
"""Where HumanInTheLoopMiddleware keeps the calls that its reviewer edited, until it runs them."""


class GateState(AgentState[Any]):
    """The agent's state with what was decided about the calls of this turn; no part of its input or output."""

    grace_gates: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class GraceMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gates tools: silently, with a notice, after a person confirms, or only with a person's help.

    Before a gated tool runs, the confidence of the run so far decides how. Where a person has to agree, one LangGraph interrupt is
    raised for all gated calls of the turn, in the form of LangChain's HumanInTheLoopMiddleware, with `level`, `score`, `breakdown`,
    `penalties` and `reason` beside each action; it is answered with `Command(resume={"decisions": [...]})`. approve runs the call,
    edit runs it with other arguments, reject does not run it, respond answers in its place. Without a checkpointer the runtime's
    reviewer is asked instead.

    The level is decided once, when the model proposes the call, and travels with it; an approved call runs once, also when the process
    dies in between. List it last among the middlewares, closest to the tools. Attach a GraceCallbackHandler to the agent too, so that there is a run whose confidence can be told; without one, the
    confidence rests on the tool messages alone.
    """

    state_schema = GateState

    def __init__(
        self,
        grace: Grace,
        gates: Mapping[str, Policy | str] | None = None,
        default: Policy | str | None = None,
        *,
        judge: Literal["always", "when_needed", "never"] = "never",
    ) -> None:
        """Gate the tools that are named.

        Args:
            grace: the runtime: its thresholds, its reviewer, its own policies (the stricter floor holds), its store.
            gates: policies or floors by tool name or glob, such as `{"send_mail": "confirm", "delete_*": "deny"}`.
            default: what holds for every other tool; None gates none of them.
            judge: whether a model judges the run so far before the gate decides; see `Grace.gate`.

        Raises:
            TypeError: `grace` is none.
            ValueError: a policy or `judge` cannot be used; the message names it.
        """
        super().__init__()
        if not hasattr(grace, "recorder"):
            raise TypeError(f"GraceMiddleware takes a Grace, not {type(grace).__name__}")
        if judge not in {"always", "when_needed", "never"}:
            raise ValueError(f"judge must be one of always, when_needed, never (got {judge!r:.40})")
        self.grace = grace
        self.judge = judge
        self._gates = PolicySet(gates)
        self._default = None if default is None else Policy.of(default)
        self._tools: dict[str, Any] = {}
        GatedTools.of(grace.recorder).add(self)

    def policy_for(self, tool: str) -> Policy | None:
        """What holds for a tool; None where it is not gated."""
        own = self._gates.entry_for(tool) or self._default
        runtime = self.grace._gates().policies
        if own is not None:
            return runtime.for_action(tool, own)
        return runtime.entry_for(tool)

    def needs_decision(self, tool: str) -> bool:
        """Return whether a tool below this agent must not start without a decision.

        That is so for every gated tool, except those that are gated by `default` alone, with a floor that asks nobody.
        """
        policy = self.policy_for(tool)
        named = self._gates.entry_for(tool) is not None or self.grace._gates().policies.entry_for(tool) is not None
        return policy is not None and (named or policy.floor not in {None, "silent", "notify"})

    # Deciding: in the model's node, so that the decision is kept with what it is about

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the model propose calls, and decide on them."""
        self._learn(request)
        response = handler(request)
        calls = self._gated(response)
        return self._decided(request, response, calls) if calls and pausing() else response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call` for async agents."""
        if _has_to_look(current_run()) and _field(request.state, STATE):
            await asyncio.to_thread(self._learn, request)
        else:
            self._learn(request)
        response = await handler(request)
        calls = self._gated(response)
        if not calls or not pausing():
            return response
        if self.judge == "never" and not _has_to_look(current_run()):
            return self._decided(request, response, calls)
        return await asyncio.to_thread(self._decided, request, response, calls)

    def _learn(self, request: Any) -> None:
        cancel_answered(_field(request.state, STATE) or {}, _messages(request.state))
        for tool in getattr(request, "tools", None) or ():
            name = getattr(tool, "name", None)
            if isinstance(name, str) and self.policy_for(name) is not None:
                self._tools[name] = tool

    def _gated(self, response: Any) -> list[tuple[Any, Policy]]:
        messages = getattr(response, "result", None) or [response]
        calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
        return [(call, policy) for call in calls if (policy := self.policy_for(call["name"])) is not None]

    def _decided(self, request: Any, response: Any, calls: list[tuple[Any, Policy]]) -> ExtendedModelResponse[Any]:
        decisions: dict[str, Any] = {}
        for call, policy in calls:
            case = self._case(call, policy, request.state)
            decisions[call_key(call)] = case.decide()
        return ExtendedModelResponse(model_response=response, command=Command(update={STATE: decisions}))

    def _case(self, call: Any, policy: Policy, state: Any) -> ToolCase:
        return ToolCase(self.grace, call, policy, state, tool=self._tools.get(call["name"]), judge=self.judge)

    # Asking: in a node behind the model

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - injected by name
        """Ask about the calls that need it."""
        turn = self._turn(state)
        if turn is None:
            return None
        if turn.pauses:
            return turn.asked_by_interrupt()
        for case in turn.undecided:
            turn.take(case, _drive_case(case))
        return turn.update()

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - injected by name
        """`after_model` for async agents."""
        turn = self._turn(state)
        if turn is None:
            return None
        if turn.pauses:
            return turn.asked_by_interrupt()
        for case in turn.undecided:
            turn.take(case, await _drive_case_async(case))
        return turn.update()

    def _turn(self, state: Any) -> Turn | None:
        answered: set[str] = set()  # in this turn: models use the same ids again
        message: AIMessage | None = None
        for one in reversed(_messages(state)):
            if isinstance(one, AIMessage):
                message = one
                break
            if isinstance(one, ToolMessage):
                answered.add(one.tool_call_id)
        if message is None:
            return None
        calls = [effective_call(call, state) for call in message.tool_calls if call["id"] not in answered]
        gated = [
            self._case(call, policy, state) for call in calls if (policy := self.policy_for(call["name"])) is not None
        ]
        if not gated:
            return None
        return Turn(message, gated, _field(state, STATE) or {}, pauses=pausing() is not None)

    # Running: around each tool

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the decided call run, once."""
        once = self._once(request)
        if once is None:
            try:
                with guarded(self, None):
                    return handler(request)
            except NotStarted as error:
                return not_run(request.tool_call, f"{error}.")
        problem = once.begin()
        if problem is not None:
            return problem
        once.tell()
        problem = once.changed()
        if problem is not None:
            return problem
        try:
            with guarded(self, once.consent):
                result = handler(once.request)
        except NotStarted as error:
            return once.stopped(error)
        except BaseException as error:
            once.failed(error)
            raise
        return once.ended(result)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` for async agents."""
        once = self._once(request)
        if once is None:
            try:
                with guarded(self, None):
                    return await handler(request)
            except NotStarted as error:
                return not_run(request.tool_call, f"{error}.")
        problem = await asyncio.to_thread(once.begin)
        if problem is not None:
            return problem
        await once.tell_async()
        problem = once.changed()
        if problem is not None:
            return problem
        try:
            with guarded(self, once.consent):
                result = await handler(once.request)
        except NotStarted as error:
            return await asyncio.to_thread(once.stopped, error)
        except BaseException as error:
            if isinstance(error, Exception):
                await asyncio.to_thread(once.failed, error)
            else:
                once.failed(error)
            raise
        return await asyncio.to_thread(once.ended, result)

    def _once(self, request: Any) -> Once | None:
        """The execution of a gated call; None for a call that is not gated."""
        call = effective_call(request.tool_call, request.state)
        policy = self.policy_for(call["name"]) or self.policy_for(request.tool_call["name"])
        if policy is None or (call["name"] != request.tool_call["name"] and self.policy_for(call["name"]) is None):
            return None
        decisions = _field(request.state, STATE) or {}
        key = call_key(call)
        # Under another key stands what was decided about this call as it was proposed: then what is wrong can be said.
        same_id = (told for name, told in decisions.items() if name.startswith(key.rpartition(":")[0] + ":"))
        told = decisions.get(key) or next(same_id, None)
        return Once(self.grace, request, policy, told, _messages(request.state), call=call)


class Turn:
    """The gated calls of one message of the model, on their way to a decision each."""

    def __init__(self, message: AIMessage, cases: list[ToolCase], decided: dict[str, Any], *, pauses: bool) -> None:
        self.message = message
        self.cases = cases
        self.pauses = pauses
        self.decisions: dict[str, Any] = {}
        self.answers: list[ToolMessage] = []
        self.undecided: list[ToolCase] = []
        for case in cases:
            told = decided.get(case.key)
            if not pauses:
                self.undecided.append(case)
            elif told is not None and "message" not in told and told["digest"] == case.digest:
                self._found(case, dict(told))
            else:
                # The model did not propose it like this. Nobody can tell whether this is decided for the first time, so it is asked.
                told = case.decide(at_least=InterventionLevel.CONFIRM, why="It was changed since it was proposed.")
                # The same id when this node is run again, so that the question and the outcome are one entry.
                told["id"] = hashlib.sha256(f"{message.id}|{case.key}".encode()).hexdigest()[:32]
                self._found(case, told)

    def _found(self, case: ToolCase, told: dict[str, Any]) -> None:
        case.told = told
        if case.policy.denies:
            self.take(case, refusal(case.name, "denied", f"`{case.name}` is forbidden by its policy; it was not run."))
        elif InterventionLevel(told["level"]).asks:
            self.undecided.append(case)
        else:
            self.take(case, InterventionResponse(InterventionAction.PROCEED))

    def asked_by_interrupt(self) -> dict[str, Any]:
        """Raise one interrupt for everything that is undecided, until there is an answer that can be used."""
        waiting = self.undecided
        if not waiting:
            return self.update()
        entries = [entry_of(case, outcome="waiting") for case in waiting]
        actions = [action_request(case.name, case.arguments, case.told, "") for case in waiting]
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
            self.take(case, refusal(case.name, "cancelled", text), entry)
        return self.update()

    def take(self, case: ToolCase, response: Any, entry: dict[str, Any] | None = None) -> None:
        """Take what was decided about one call: it may run, or this is its end."""
        told = case.told
        told["message"] = self.message.id
        end = end_of(case, response, entry)
        if end is not None:
            self.answers.append(end)
        self.decisions[case.key] = told

    def update(self) -> dict[str, Any]:
        """What goes into the agent's state."""
        update: dict[str, Any] = {STATE: self.decisions}
        if self.answers:
            update["messages"] = self.answers
        return update


def effective_call(call: Any, state: Any) -> Any:
    """Return a proposed call as LangChain's HumanInTheLoopMiddleware will run it, where its reviewer has edited it."""
    edited = (_field(state, EDITED) or {}).get(call.get("id"))
    return call if edited is None else {**call, "name": edited["name"], "args": edited["args"]}


def _edit_problem(cases: list[ToolCase], responses: list[InterventionResponse], answer: Any) -> str:
    for number, (case, response) in enumerate(zip(cases, responses, strict=False)):
        if response.action is InterventionAction.MODIFY:
            other = edited_name(answer, number)
            if other not in {None, case.name}:
                return (
                    f"decision {number}: the name cannot be changed (from {case.name} to {other}); reject it and say so"
                )
            problem = schema_problem(case.tool, case.told, response.modified or {})
            if problem:
                return f"decision {number}: the arguments do not fit {case.name}: {problem}"
    return ""


def _drive_case(case: ToolCase) -> Any:
    asked: Case = case.for_reviewer()
    try:
        return case.consented(drive(consent_of(asked), asked))
    except Exception as error:  # noqa: BLE001 — whatever it is, the call does not run
        return case.refused(error)


async def _drive_case_async(case: ToolCase) -> Any:
    asked: Case = case.for_reviewer()
    try:
        return case.consented(await drive_async(consent_of(asked), asked))
    except Exception as error:  # noqa: BLE001 — whatever it is, the call does not run
        return case.refused(error)


def _has_to_look(run: Any) -> bool:
    return run is not None and run.resumes is not None


def _field(state: Any, name: str) -> Any:
    return state.get(name) if isinstance(state, dict) else getattr(state, name, None)


def _messages(state: Any) -> list[Any]:
    found = state if isinstance(state, list) else _field(state, "messages")
    return list(found or ())
