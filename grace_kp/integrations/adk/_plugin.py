"""The plugin for Google ADK: an adapter over live runs, verdicts and claims. An invocation is a run, a tool call a call.

ADK has hooks before and after a tool, and none around it. The first takes a claim, the second reports it; what the second never hears of
becomes unknown when the run ends. An exception in a plugin would end the invocation, so none leaves a hook, except where a tool cannot be gated.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import grace_kp as gk
from grace_kp.gating import PolicySet
from grace_kp.record import attempt

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ImportError:
    raise gk.MissingExtra("grace_kp.integrations.adk", "adk") from None

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FRAMEWORK, CONFIRM, TRANSFER = "google-adk", "adk_request_confirmation", "transfer_to_agent"
SEEN = frozenset({"function_declarations", "computer_use"})
"""Kinds of tools whose calls come back to ADK. The provider runs all others."""
_log = logging.getLogger("grace_kp.gate")
_IN_TOOL: ContextVar[bool] = ContextVar("grace_kp_adk_in_tool", default=False)
_try = partial(attempt, FRAMEWORK)


@dataclass
class _Invocation:
    """What the hooks of one invocation share."""

    key: str
    """The invocation in which the run began: some versions of ADK answer a question in a new one."""
    nested: bool
    """Whether a tool runs the invocation in a session of its own, which nobody can resume."""
    asked: dict[str, tuple[float, str]] = field(default_factory=dict)
    """When each agent called its model, and the model's name."""


class GracePlugin(BasePlugin):
    """Records the invocations of an app, and gates its tools by the confidence of the run so far. List it last among the plugins.

    A gated call that waits for an inbox pauses the invocation with ADK's tool confirmation, whose payload names the approval. The inbox
    decides, and `confirmations` builds the message that resumes the invocation then. An earlier `confirmed: true` does not approve the call,
    which goes on waiting for the inbox; `confirmed: false` cancels the request. A result with a true `error` counts as a failure.
    """

    def __init__(
        self,
        grace: gk.Grace,
        gates: Mapping[str, gk.Policy | str] | None = None,
        *,
        domain: str | None = None,
        name: str = "grace",
    ) -> None:
        """Gate the named tools.

        Args:
            grace: the runtime, with its thresholds, reviewer, policies (the stricter floor holds) and store.
            gates: policies or floors by tool name or glob, such as `{"send_mail": "confirm", "delete_*": "deny"}`.
            domain: the task domain of the runs; the runtime's when None.
            name: the name of the plugin in ADK.

        Raises:
            TypeError: `gates` is not a mapping.
            ValueError: a policy is not usable; the message names it.
        """
        super().__init__(name=name)
        self._grace, self._policies, self._domain = grace, PolicySet(gates), domain
        self._actions: dict[str, Any] = {}
        self._offered: set[str] = set()
        self._warned: set[str] = set()
        self._invocations: WeakKeyDictionary[Any, _Invocation] = WeakKeyDictionary()
        self._unsettled: set[tuple[str, str]] = set()
        """Resumed calls without a decision. Their answers are taken back, so that they can be resumed again."""
        self._begun: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Open the run of the invocation, or continue the one whose question it answers."""
        _try(partial(self._open, invocation_context))

    def _open(self, context: Any) -> None:
        session, events = context.session, context.session.events
        asked = {call.id: event.invocation_id for event in events for call in event.get_function_calls()}
        answers = events[-1].get_function_responses() if events else ()
        key = next((asked[each.id] for each in answers if each.id in asked), context.invocation_id)
        agent = getattr(context.agent, "root_agent", None)
        run = self._grace.open_run(
            _text(context.user_content),
            name=session.app_name if agent is None else agent.name,
            framework=FRAMEWORK,
            id=context.invocation_id,
            session=_session(session),
            user=session.user_id,
            domain=self._domain,
            resume=key if any(each.invocation_id == key and each.author != "user" for each in events) else None,
        )
        self._invocations[run] = _Invocation(key, _IN_TOOL.get())

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Close the run, or suspend it where one of its questions is open."""
        await self._end(invocation_context, self._close)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Record that the invocation failed."""
        await self._end(invocation_context, lambda run, _: run.fail(error))

    async def _end(self, context: Any, end: Any) -> None:
        if (run := self._grace.live_run(FRAMEWORK, context.invocation_id)) is not None:
            await asyncio.to_thread(_try, partial(end, run, context))

    def _close(self, run: Any, context: Any) -> None:
        events, kept = context.session.events, self._invocations[run]
        mine = {kept.key, context.invocation_id}
        if waiting := [event.invocation_id for event, _ in _open_questions(events).values() if event.invocation_id in mine]:
            run.suspend(waiting[-1])
            return
        for stated, near in self._policies.unmatched(self._offered).items():
            self._warn(f"GracePlugin(gates=...): no tool offered so far is called {stated!r} (nearest: {near})")
        texts = (_text(each.content) for each in reversed(events) if each.invocation_id == context.invocation_id)
        run.close(next(filter(None, texts), None))

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Note when the model is called, and which tools it is offered.

        Raises:
            GateError: a gate is stated for a tool that the provider runs, so that no hook sees its calls.
        """
        self._offered.update(llm_request.tools_dict)
        tools = [each for each in llm_request.config.tools or () if isinstance(each, types.Tool)]
        for kind in {kind for tool in tools for kind, value in tool if value is not None} - SEEN:
            if self._action(kind).gated:
                raise gk.GateError(f"GracePlugin cannot gate {kind!r}: its calls never reach ADK; remove the tool or the gate")
            self._warn(f"GracePlugin neither records nor gates {kind}: its calls never reach ADK")
        run = self._grace.live_run(FRAMEWORK, callback_context.invocation_id)
        if run in self._invocations:
            self._invocations[run].asked[callback_context.agent_name] = time.time(), llm_request.model or "model"

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the call of the model, once its response is complete."""
        if not llm_response.partial:
            _try(partial(self._record_model, callback_context, llm_response, llm_response.error_message))

    async def on_model_error_callback(self, *, callback_context: Any, error: Exception, **_: Any) -> None:
        """Record that the model failed."""
        _try(partial(self._record_model, callback_context, None, error))

    def _record_model(self, context: Any, response: Any, error: Exception | str | None) -> None:
        run = self._grace.live_run(FRAMEWORK, context.invocation_id)
        if run is None:
            return
        started, model = self._invocations[run].asked.pop(context.agent_name, (None, "model"))
        counts = getattr(response, "usage_metadata", None)
        read = {kind: getattr(counts, f"{kind}_token_count", None) or 0 for kind in ("prompt", "candidates", "thoughts")}
        run.model_call(
            getattr(response, "model_version", None) or model,
            text=_text(getattr(response, "content", None)),
            usage=counts and {"input_tokens": read["prompt"], "output_tokens": read["candidates"] + read["thoughts"]},
            error=error,
            started=started,
        )

    def _action(self, name: str, tool: BaseTool | None = None) -> Any:
        if name not in self._actions:
            policy = self._policies.stated_for(name, lambda: self._offered)
            schema = None if tool is None else _try(partial(_schema, tool))
            self._actions[name] = self._grace.action(name, schema=schema, policy=policy, failed=_failure)
        return self._actions[name]

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """Let an ungated call pass. Decide on a gated one, and answer it in place of its tool unless it runs."""
        if type(tool) is BaseTool:
            return None  # ADK's stand-in for a tool that does not exist
        run, claim, call, block = self._grace.live_run(FRAMEWORK, tool_context.invocation_id), None, None, None
        try:
            if (action := self._action(tool.name, tool)).gated:
                answer, claim = await self._decide(action, run, tool, tool_args, tool_context)
                if claim is None:
                    return answer
        except Exception as error:  # noqa: BLE001 — whatever breaks, the tool must not run
            _log.warning("the gate of %s failed: %r", tool.name, error)
            self._leave_open(tool_context)
            return {"error": f"The gate of `{tool.name}` failed ({type(error).__name__}). Not run; do not call it again."}
        if run is not None and tool.name != TRANSFER:
            call = _try(partial(run.open_tool, action, tool_args))
            block = call and _try(call.current)
            _try(lambda: block and block.__enter__())
        self._begun[tool_context] = claim, call, block, _IN_TOOL.set(True)
        return None

    async def _decide(self, action: Any, run: Any, tool: BaseTool, arguments: dict[str, Any], context: Any) -> Any:
        """Return what answers the call, or the claim under which it runs."""
        session, call_id, confirmation = context.session, context.function_call_id, context.tool_confirmation
        asked = (each.id for each in reversed(session.events) if call_id in {c.id for c in each.get_function_calls()})
        place = FRAMEWORK, _session(session), next(asked, None), call_id  # the same when the call comes again
        declined = confirmation is not None and not confirmation.confirmed
        can_pause = not (run in self._invocations and self._invocations[run].nested)
        wait = False if action.pauses and can_pause else None
        verdict = await action.adecide(arguments, call_id=place, run=run, wait=wait)
        if verdict.waits and declined:
            by = f"{FRAMEWORK}:{session.user_id}"
            verdict = await verdict.aanswer(gk.InterventionResponse(gk.InterventionAction.CANCEL, reviewer=by))
        if verdict.waits or (
            verdict.runs and confirmation is None and await tool.check_require_confirmation(arguments, context)
        ):
            if confirmation is None and can_pause:
                payload = {"approval": verdict.approval.id} if verdict.waits and verdict.approval else None
                context.request_confirmation(hint=verdict.message or None, payload=payload)
                context.actions.skip_summarization = True
            self._leave_open(context)
            return {"status": verdict.message or f"`{action.name}` waits for a confirmation."}, None
        if verdict.runs and declined:
            return {"error": f"`{action.name}` was declined. Not run; do not call it again."}, None
        claim = None
        if verdict.runs:
            arguments.clear()  # an edit may have removed one
            arguments.update(verdict.arguments)
            claim = await verdict.abegin(arguments)
            if claim.started:
                return None, claim
        said = claim or verdict
        if verdict.outcome == "not_asked" or (claim and isinstance(claim.error.__cause__, gk.StoreError)):
            self._leave_open(context)
        if said.has_result:
            return said.result if isinstance(said.result, dict) else {"result": said.result}, None
        return {"result" if verdict.outcome == "answered" else "error": said.message}, None

    def _leave_open(self, context: Any) -> None:
        if context.tool_confirmation is not None:
            self._unsettled.add((context.invocation_id, context.function_call_id))

    async def on_event_callback(self, *, event: Any, **_: Any) -> Any:
        """Take back the answers of resumed calls that still wait, so that their confirmation can be given again."""
        parts = (event.content and event.content.parts) or ()
        given = [each.function_response and (event.invocation_id, each.function_response.id) for each in parts]
        if event.author == "user" or self._unsettled.isdisjoint(given):
            return None
        kept = [each for each, answer in zip(parts, given, strict=True) if answer not in self._unsettled]
        self._unsettled.difference_update(given)
        return event.model_copy(update={"content": types.Content(role="user", parts=kept) if kept else None})

    async def after_tool_callback(self, *, tool_context: Any, result: Any, **_: Any) -> None:
        """Record the result, and report it to the claim."""
        actions = tool_context.actions
        if actions.transfer_to_agent and (run := self._grace.live_run(FRAMEWORK, tool_context.invocation_id)) is not None:
            _try(partial(run.handoff, actions.transfer_to_agent, source=tool_context.agent_name))
        is_asking = tool_context.function_call_id in (actions.requested_tool_confirmations or ())
        await self._report(tool_context, "unknown" if is_asking else "done", "drop" if is_asking else "close", result)

    async def on_tool_error_callback(self, *, tool_context: Any, error: BaseException, **_: Any) -> None:
        """Record that the tool raised or was cancelled, and report it to the claim."""
        await self._report(tool_context, "failed" if isinstance(error, Exception) else "unknown", "fail", error)

    async def _report(self, context: Any, outcome: str, ending: str, value: object) -> None:
        claim, call, block, _ = self._begun.pop(context, (None, None, None, None))
        _try(lambda: block and block.__exit__(None, None, None))
        _IN_TOOL.set(False)
        _try(lambda: call and getattr(call, ending)(*(() if ending == "drop" else (value,))))
        try:
            if claim is not None:
                await getattr(claim, f"a{outcome}")(*(() if outcome == "unknown" else (value,)))
        except Exception as error:  # noqa: BLE001 — the result is the agent's; the claim becomes unknown with its run
            _log.warning("the outcome of a gated call could not be kept: %r", error)


def confirmations(grace: gk.Grace, session: Any) -> types.Content | None:
    """Return the message that resumes a paused session, for `new_message` of `Runner.run_async`.

    None while a person must still decide in the inbox, and where nothing waits for it.

    Raises:
        UnknownApproval: the store has no such request.
        StoreError: the store cannot be read.
    """
    asked = [question for _, question in _open_questions(session.events).values()]
    waiting = {each.id: (each.args["toolConfirmation"].get("payload") or {}).get("approval") for each in asked}
    approvals = [grace.approvals.get(each) for each in waiting.values() if each is not None]
    if not approvals or any(each.state == gk.ApprovalState.PENDING for each in approvals):
        return None
    answers = [types.FunctionResponse(id=each, name=CONFIRM, response={"confirmed": True}) for each, of in waiting.items() if of]
    return types.Content(role="user", parts=[types.Part(function_response=each) for each in answers])


def _open_questions(events: Sequence[Any]) -> dict[str, tuple[Any, Any]]:
    """Return ADK's questions about calls that have no result yet, each with its event, by the id of the call."""
    found: dict[str, tuple[Any, Any]] = {}
    for event in events:
        found.update({
            each.args["originalFunctionCall"]["id"]: (event, each) for each in event.get_function_calls() if each.name == CONFIRM
        })  # fmt: skip
        for answer in event.get_function_responses() if event.author != "user" else ():
            if answer.id not in (event.actions.requested_tool_confirmations or ()):
                found.pop(answer.id, None)
    return found


def _session(session: Any) -> str:
    """Return a name that no session of another app or user has."""
    return "/".join(quote(each, safe="") for each in (session.app_name, session.user_id, session.id))


def _schema(tool: BaseTool) -> Any:
    stated = tool._get_declaration()  # noqa: SLF001 — the method that tools override
    if stated is None or stated.parameters_json_schema or stated.parameters is None:
        return stated and stated.parameters_json_schema
    return stated.parameters.json_schema.model_dump(mode="json", exclude_none=True)


def _failure(result: Any) -> Any:
    return isinstance(result, dict) and (result.get("error") or result.get("isError"))


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or ()
    return "\n".join(each.text for each in parts if each.text and not each.thought)
