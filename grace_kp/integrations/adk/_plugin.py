"""The plugin for Google ADK: an adapter over live runs, verdicts and claims. An invocation is a run.

An exception in a plugin ends the invocation, so none leaves a hook, except where a tool cannot be gated.
"""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from grace_kp.approvals import ApprovalState
from grace_kp.errors import MissingExtra
from grace_kp.gating import InterventionResponse
from grace_kp.integrations._tools import OpenCall, may_be_claimed_later, refusal_after
from grace_kp.levels import InterventionAction
from grace_kp.record import attempt

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ImportError:
    raise MissingExtra("grace_kp.integrations.adk", "google-adk") from None

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.gating import Policy
    from grace_kp.runtime import Grace

FRAMEWORK, CONFIRM, TRANSFER = "google-adk", "adk_request_confirmation", "transfer_to_agent"
SEEN = frozenset({"function_declarations", "computer_use"})
"""Kinds of tools whose calls come back to ADK. The provider runs all others."""
_TOOL: ContextVar[tuple[str, str, str]] = ContextVar("grace_kp_adk_tool", default=("", "", ""))
"""The invocation, the id and the arguments of the call whose tool runs here."""
_AGENT: ContextVar[Any] = ContextVar("grace_kp_adk_agent", default=None)
"""The run of an agent that a tool runs within its invocation."""
_try = partial(attempt, FRAMEWORK)


class _Kept:
    """What the hooks of a run share."""

    def __init__(self, invocation: str, key: str, *, can_pause: bool) -> None:
        self.invocation, self.key, self.waits, self.text = invocation, key, False, ""
        self.can_pause = can_pause
        """False where a tool runs the invocation in a session of its own, which nobody can resume."""
        self.asked: dict[str, tuple[float, str]] = {}
        """When each agent called its model, and the model's name."""


class GracePlugin(BasePlugin):  # type: ignore[misc]  # ADK is not among the packages that are checked
    """Records the invocations of an app, and gates its tools by the confidence of the run so far. List it last among the plugins.

    A gated call that waits for an inbox pauses the invocation with ADK's tool confirmation. The inbox decides, and `confirmations` builds the
    message that resumes the invocation then. A confirmation by ADK approves nothing: with `confirmed: true` before the decision, the call
    goes on waiting; `confirmed: false` cancels the request. A result with a true `error` counts as a failure.

    ADK calls the `before_tool_callback` of an agent after all plugins, and runs the tool with the arguments that it leaves. Where these are not
    those of the decision, the log has a warning; so do not change arguments there.
    """

    def __init__(
        self,
        grace: Grace,
        gates: Mapping[str, Policy | str] | None = None,
        *,
        domain: str | None = None,
        name: str = "grace",
    ) -> None:
        """Gate tools.

        Args:
            grace: the runtime; its own policies hold, too.
            gates: policies or floors by tool name or glob, such as `{"send_mail": "confirm", "delete_*": "deny"}`.
            domain: the task domain of the runs; the runtime's when None.
            name: the name of the plugin in ADK.

        Raises:
            TypeError: `gates` is not a mapping.
            ValueError: a policy is not usable; the message names it.
        """
        super().__init__(name=name)
        self._grace, self._domain = grace, domain
        self._tools = grace.tool_gates(gates, "GracePlugin")
        self._runs: WeakKeyDictionary[Any, _Kept] = WeakKeyDictionary()
        self._open_calls: WeakKeyDictionary[Any, OpenCall] = WeakKeyDictionary()
        self._unsettled: set[tuple[str, str]] = set()
        """Resumed calls without a decision. Their answers are taken back, so that they can be resumed again."""

    def _kept(self, run: Any) -> _Kept | None:
        return None if run is None else self._runs.get(run)

    def _run(self, context: Any) -> Any:
        kept = self._kept(run := _AGENT.get())
        is_here = kept is not None and kept.invocation == context.invocation_id and run.open
        return run if is_here else self._grace.live_run(FRAMEWORK, context.invocation_id)

    def _open(self, context: Any, objective: str, name: str, kept: _Kept, **more: Any) -> Any:
        stated = {"session": _session(context.session), "user": context.session.user_id, "domain": self._domain, **more}
        run = self._grace.open_run(objective, name=name, framework=FRAMEWORK, **stated)
        self._runs[run] = kept
        return run

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Open the run of the invocation, or continue the one whose question it answers."""
        _try(partial(self._begin, invocation_context))

    def _begin(self, context: Any) -> None:
        events, agent = context.session.events, getattr(context.agent, "root_agent", None)
        asked = {call.id: event.invocation_id for event in events for call in event.get_function_calls()}
        answers = events[-1].get_function_responses() if events else ()
        # Some versions of ADK answer a question in a new invocation.
        key = next((asked[each.id] for each in answers if each.id in asked), context.invocation_id)
        name = context.session.app_name if agent is None else agent.name
        kept = _Kept(context.invocation_id, key, can_pause=not _TOOL.get()[0])
        begun = any(each.invocation_id == key and each.author != "user" for each in events)
        resume = key if begun else None
        self._open(context, _text(context.user_content), name, kept, id=context.invocation_id, resume=resume)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Close the run, or suspend it where one of its questions is open."""
        if (run := self._run(invocation_context)) is not None:
            await asyncio.to_thread(_try, partial(self._end, run, invocation_context))

    def _end(self, run: Any, context: Any) -> None:
        kept, questions = self._runs[run], _try(partial(_open_questions, context.session.events)) or {}
        mine = {kept.key, context.invocation_id}
        if waiting := [event.invocation_id for event, _ in questions.values() if event.invocation_id in mine]:
            run.suspend(waiting[-1])
        else:
            self._tools.warn_unmatched()
            run.close(kept.text or None)

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """Open a nested run for an agent that a tool runs within its invocation."""
        _try(partial(self._begin_agent, agent, callback_context))

    def _begin_agent(self, agent: Any, context: Any) -> None:
        invocation_id, call_id, task = _TOOL.get()
        if invocation_id == context.invocation_id and _AGENT.get() is None:
            around = self._kept(self._run(context))
            kept = _Kept(invocation_id, call_id, can_pause=around is None or around.can_pause)
            begun = any((each.branch or "").endswith(f"@{call_id}") for each in context.session.events)
            _AGENT.set(self._open(context, task, agent.name, kept, resume=call_id if begun else None))

    async def after_agent_callback(self, *, agent: Any, **_: Any) -> None:
        """End the nested run of an agent."""
        await self._end_agent(agent, None)

    async def on_agent_error_callback(self, *, agent: Any, error: Exception, **_: Any) -> None:
        """Record that an agent failed that a tool runs."""
        await self._end_agent(agent, error)

    async def _end_agent(self, agent: Any, error: Exception | None) -> None:
        if (kept := self._kept(run := _AGENT.get())) is not None and run.name == agent.name:
            _AGENT.set(None)
            around = {each.function_call_id: each for each in self._open_calls if each.invocation_id == kept.invocation}
            if kept.waits and kept.key in around:  # its call comes again
                await self._report(around[kept.key], "release")
            end = partial(run.suspend, kept.key) if kept.waits else partial(run.close, kept.text or None)
            await asyncio.to_thread(_try, end if error is None else partial(run.fail, error))

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Record that the invocation failed."""
        if (run := self._run(invocation_context)) is not None:
            await asyncio.to_thread(_try, partial(run.fail, error))

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Note when the model is called, and which tools it is offered.

        Raises:
            GateError: a gate is stated for a tool whose calls no hook sees, such as one that the provider runs, or its name is misspelt.
        """
        self._tools.offer(llm_request.tools_dict)
        tools = [each for each in llm_request.config.tools or () if isinstance(each, types.Tool)]
        kinds = {kind for tool in tools for kind, value in tool if value is not None} - SEEN
        self._tools.refuse(sorted(kinds), "the provider runs it")
        for tool in llm_request.tools_dict.values():
            if getattr(tool, "include_plugins", True) is False:
                self._tools.refuse(await _names_within(tool.agent), f"the agent in {tool.name!r} excludes plugins")
        if (kept := self._kept(self._run(callback_context))) is not None:
            kept.asked[callback_context.agent_name] = time.time(), llm_request.model or "model"

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the call of the model, once its response is complete."""
        if not llm_response.partial:
            _try(partial(self._record_model, callback_context, llm_response, llm_response.error_message))

    async def on_model_error_callback(self, *, callback_context: Any, error: Exception, **_: Any) -> None:
        """Record that the model failed."""
        _try(partial(self._record_model, callback_context, None, error))

    def _record_model(self, context: Any, response: Any, error: Exception | str | None) -> None:
        if (run := self._run(context)) is None:
            return
        kept, text = self._runs[run], _text(getattr(response, "content", None))
        started, model = kept.asked.pop(context.agent_name, (None, "model"))
        kept.text = text or kept.text
        counts = getattr(response, "usage_metadata", None)
        kinds = {"prompt": "input_tokens", "candidates": "output_tokens", "thoughts": "thought_tokens"}
        run.model_call(
            getattr(response, "model_version", None) or model,
            text=text,
            usage={ours: getattr(counts, f"{kind}_token_count", None) for kind, ours in kinds.items()},
            error=error,
            started=started,
        )

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """Let an ungated call pass. Decide on a gated one, and answer it in place of its tool unless it runs."""
        if type(tool) is BaseTool:
            return None  # ADK's stand-in for a tool that does not exist
        run, answer, claim = self._run(tool_context), None, None
        try:
            action = self._tools.action(tool.name, _try(partial(_schema, tool)), failed=_failure)
            if action.gated:
                answer, claim = await self._decide(action, run, tool, tool_args, tool_context)
        except Exception as error:  # noqa: BLE001 — whatever breaks, the tool must not run
            self._leave_open(tool_context)
            answer = {"error": refusal_after(error, tool.name)}
        if answer is None:
            self._open_calls[tool_context] = OpenCall(None if tool.name == TRANSFER else run, action, tool_args, claim)
            task = str(tool_args.get("request") or tool_args)
            _TOOL.set((tool_context.invocation_id, tool_context.function_call_id, task))
        return answer

    async def _decide(self, action: Any, run: Any, tool: BaseTool, arguments: dict[str, Any], context: Any) -> Any:
        """Return what answers the call, or None and the claim under which it runs."""
        session, call_id, confirmation = context.session, context.function_call_id, context.tool_confirmation
        asked = (each.id for each in reversed(session.events) if call_id in {c.id for c in each.get_function_calls()})
        place = FRAMEWORK, _session(session), next(asked, None), call_id  # the same when the call comes again
        declined = confirmation is not None and not confirmation.confirmed
        kept = self._kept(run)
        can_pause = kept is None or kept.can_pause
        wait = False if action.pauses and can_pause else None
        verdict, claim = await action.adecide(arguments, call_id=place, run=run, wait=wait), None
        if verdict.waits and declined:
            by = f"{FRAMEWORK}:{session.user_id}"
            verdict = await verdict.aanswer(InterventionResponse(InterventionAction.CANCEL, reviewer=by))
        if verdict.waits or (
            verdict.runs and confirmation is None and await tool.check_require_confirmation(arguments, context)
        ):
            self._leave_open(context)
            if confirmation is None and can_pause:
                if kept is not None:
                    kept.waits = True
                payload = {"approval": verdict.approval.id} if verdict.waits and verdict.approval else None
                context.request_confirmation(hint=verdict.message, payload=payload)
                context.actions.skip_summarization = True
            return {"status": verdict.message or f"`{action.name}` waits for a confirmation."}, None
        if verdict.runs and declined:
            return {"error": f"`{action.name}` was declined. Not run; do not call it again."}, None
        if verdict.runs:
            arguments.clear()  # an edit may have removed one
            arguments.update(verdict.arguments)
            claim = await verdict.abegin(arguments)
            if claim.started:
                return None, claim
        if verdict.outcome == "not_asked" or may_be_claimed_later(verdict, claim):
            self._leave_open(context)
        answer = claim or verdict
        if answer.has_result:
            return answer.result if isinstance(answer.result, dict) else {"result": answer.result}, None
        return {"result" if verdict.outcome == "answered" else "error": answer.message}, None

    def _leave_open(self, context: Any) -> None:
        if context.tool_confirmation is not None:
            self._unsettled.add((context.invocation_id, context.function_call_id))

    async def on_event_callback(self, *, event: Any, **_: Any) -> Any:
        """Take back the answers of resumed calls that are not settled, so that they can be confirmed again."""
        parts = (event.content and event.content.parts) or ()
        answers = [each.function_response and (event.invocation_id, each.function_response.id) for each in parts]
        if event.author == "user" or self._unsettled.isdisjoint(answers):
            return None
        kept = [each for each, answer in zip(parts, answers, strict=True) if answer not in self._unsettled]
        self._unsettled.difference_update(answers)
        return event.model_copy(update={"content": types.Content(role="user", parts=kept) if kept else None})

    async def after_tool_callback(self, *, tool_args: Any, tool_context: Any, result: Any, **_: Any) -> None:
        """Record the result, and report it to the claim."""
        if (call := self._open_calls.get(tool_context)) is not None:
            call.compare(tool_args)
        actions = tool_context.actions
        if actions.transfer_to_agent and (run := self._run(tool_context)) is not None:
            _try(partial(run.handoff, actions.transfer_to_agent, source=tool_context.agent_name))
        # A tool that stopped to ask may have done something before.
        has_asked = tool_context.function_call_id in (actions.requested_tool_confirmations or ())
        await self._report(tool_context, *(("unknown",) if has_asked else ("done", result)))

    async def on_tool_error_callback(self, *, tool_context: Any, error: BaseException, **_: Any) -> None:
        """Record that the tool raised, or was cancelled, and report it to the claim."""
        await self._report(tool_context, *(("failed", error) if isinstance(error, Exception) else ("unknown",)))

    async def _report(self, context: Any, *outcome: Any) -> None:
        if (call := self._open_calls.pop(context, None)) is not None:
            _TOOL.set(("", "", ""))
            call.leave()
            await asyncio.to_thread(call.report, *outcome)


def confirmations(grace: Grace, session: Any) -> types.Content | None:
    """Return the message that resumes a paused session, for `new_message` of `Runner.run_async`.

    None while a person must still decide in the inbox, and where nothing waits for it.

    Raises:
        UnknownApproval: the store has no such request.
        StoreError: the store cannot be read.
    """
    asked = [question for _, question in _open_questions(session.events).values()]
    waiting = {each.id: (each.args["toolConfirmation"].get("payload") or {}).get("approval") for each in asked}
    approvals = {each: grace.approvals.get(approval) for each, approval in waiting.items() if approval}
    if not approvals or any(each.state == ApprovalState.PENDING for each in approvals.values()):
        return None
    answers = [types.FunctionResponse(id=each, name=CONFIRM, response={"confirmed": True}) for each in approvals]
    return types.Content(role="user", parts=[types.Part(function_response=each) for each in answers])


def _open_questions(events: Sequence[Any]) -> dict[str, tuple[Any, Any]]:
    """Return ADK's questions about calls that have no result yet, each with its event, by the id of the call."""
    found: dict[str, tuple[Any, Any]] = {}
    for event in events:
        questions = [each for each in event.get_function_calls() if each.name == CONFIRM]
        found.update({each.args["originalFunctionCall"]["id"]: (event, each) for each in questions})
        for answer in event.get_function_responses() if event.author != "user" else ():
            if answer.id not in (event.actions.requested_tool_confirmations or ()):
                found.pop(answer.id, None)
    return found


async def _names_within(agent: Any) -> list[str]:
    """Return the names of the tools of an agent and of those below it."""
    names = [each.name for each in await agent.canonical_tools()] if hasattr(agent, "canonical_tools") else []
    for each in agent.sub_agents:
        names += await _names_within(each)
    return names


def _session(session: Any) -> str:
    """Return a name that no session of another app or user has."""
    return "/".join(quote(each, safe="") for each in (session.app_name, session.user_id, session.id))


def _schema(tool: BaseTool) -> Any:
    stated = tool._get_declaration()  # the method that tools override
    if stated is None or stated.parameters_json_schema or stated.parameters is None:
        return stated and stated.parameters_json_schema
    return stated.parameters.json_schema.model_dump(mode="json", exclude_none=True)


def _failure(result: Any) -> Any:
    return isinstance(result, dict) and (result.get("error") or result.get("isError"))


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or ()
    return "\n".join(each.text for each in parts if each.text and not each.thought)
