"""A capability of Pydantic AI that records each run and gates its tools by the confidence of the run so far.

A gated call is decided on just before it runs, with the arguments that will run. Where the agent's `output_type` has `DeferredToolRequests`, a
call that waits for a person ends the run with them. When the run goes on, the gate decides again: an approval in `DeferredToolResults` entitles
to nothing. A refusal is the tool's result, which the model sees.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from grace_kp.approvals import ApprovalState
from grace_kp.errors import MissingExtra
from grace_kp.integrations._tools import OpenCall, may_be_claimed_later, refusal_after
from grace_kp.record import attempt

try:
    from pydantic_ai import ApprovalRequired, CallDeferred, DeferredToolRequests, DeferredToolResults
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
except ImportError:
    raise MissingExtra("grace_kp.integrations.pydantic_ai", "pydantic-ai") from None

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grace_kp.gating import Policy
    from grace_kp.runtime import Grace

FRAMEWORK, METADATA = "pydantic-ai", "grace_kp"
_try = partial(attempt, FRAMEWORK)


def deferred_results(grace: Grace, saved: DeferredToolRequests | str | bytes) -> DeferredToolResults | None:
    """Return the results with which a run that waited goes on; None while all its calls wait.

    Each gated call is approved for Pydantic AI, and the gate of its tool decides: it runs the call, refuses it, or waits again. Calls that wait
    for something else are left out; add them to `approvals` and `calls`.

    Args:
        grace: the runtime of the `GraceCapability`.
        saved: the output of the run that waited, or its JSON: `TypeAdapter(DeferredToolRequests).dump_json(result.output)`.

    Raises:
        UnknownApproval: the store has no such request.
        StoreError: the store cannot be read.
    """
    requests = (
        saved if isinstance(saved, DeferredToolRequests) else TypeAdapter(DeferredToolRequests).validate_json(saved)
    )
    kept = {each: found[METADATA] for each, found in requests.metadata.items() if METADATA in found}
    approvals = [grace.approvals.get(each["approval"]) for each in kept.values() if each.get("approval")]
    if approvals and all(each.state == ApprovalState.PENDING for each in approvals):
        return None
    return DeferredToolResults(
        approvals={each.tool_call_id: True for each in requests.approvals if each.tool_call_id in kept}
    )


class GraceCapability(AbstractCapability[Any]):  # type: ignore[misc]
    """Records the runs of an agent, and gates its tools: `Agent(capabilities=[GraceCapability(grace, gates={"pay": "confirm"})])`."""

    def __init__(
        self,
        grace: Grace,
        gates: Mapping[str, Policy | str] | None = None,
        *,
        domain: str | None = None,
        session: str | None = None,
    ) -> None:
        """Gate the named tools.

        Args:
            grace: the runtime; its own policies apply, too.
            gates: policies or floors by the name of a tool or a glob, such as `{"pay": "confirm"}`. An exact name wins over a glob, and a
                longer glob over a shorter one. A gate of a tool that the provider runs raises `GateError` at the first request.
            domain: the domain of the recorded runs; the runtime's when None.
            session: names the conversation: a decision in one conversation is none in another. The run's `conversation_id` when None, which
                its messages keep.
        """
        self.grace, self.domain, self.session = grace, domain, session
        self.run: Any = None
        self.claimed: dict[str, Any] = {}
        """The arguments of claimed calls, by their ids."""
        self.tools = grace.tool_gates(gates, "GraceCapability")

    def get_ordering(self) -> CapabilityOrdering:
        """Stand closest to the tools, so that no other capability changes arguments after the decision."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: Any) -> GraceCapability:
        """Return a copy that belongs to one run."""
        own = copy.copy(self)
        own.session, own.claimed = self.session or ctx.conversation_id, {}
        return own

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        """Record the run. One that goes on after a pause continues its trace."""
        text = ctx.prompt if isinstance(ctx.prompt, str) else _prompt_of(ctx.messages)
        self.run = self.grace.open_run(
            text, name=getattr(ctx.agent, "name", None), framework=FRAMEWORK, id=ctx.run_id, session=self.session,
            domain=self.domain, resume=self._position(ctx.messages) if _waits(ctx.messages) else None,
        )  # fmt: skip
        run = self.run
        if isinstance(ctx.prompt, str):
            _try(lambda: run.user_message(text))
        try:
            with ExitStack() as stack:
                _try(lambda: stack.enter_context(run.current()))
                result = await handler()
        except BaseException as error:
            _try(partial(run.fail, error))
            raise
        waits = isinstance(result.output, DeferredToolRequests)
        self.tools.warn_unmatched()
        _try(lambda: run.suspend(self._position(result.all_messages())) if waits else run.close(result.output))
        return result

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        """Record a call of the model."""
        self._check_names(request_context.model_request_parameters)
        started = time.time()
        try:
            response = await handler(request_context)
        except Exception as error:
            _try(partial(self.run.model_call, ctx.model.model_name, error=error, started=started))
            raise
        _try(lambda: self._record(response, started))
        return response

    def _record(self, response: Any, started: float) -> None:
        usage = {name: getattr(response.usage, name) for name in ("input_tokens", "output_tokens")}
        self.run.model_call(response.model_name or "unknown", text=response.text or "", usage=usage, started=started)

    def _check_names(self, parameters: Any) -> None:
        """Refuse gates that cannot hold a tool, and warn of those that match none and of tools that are not seen."""
        self.tools.refuse([each.kind for each in parameters.native_tools], "the provider runs it")
        external = [each.name for each in parameters.function_tools if each.kind == "external"]
        self.tools.refuse(external, "the program runs it")
        self.tools.offer([each.name for each in parameters.function_tools])

    def _position(self, messages: Sequence[Any]) -> str:
        """Return the position of the latest answer of the model in the conversation, which is the same when the run goes on."""
        answers = sum(isinstance(each, ModelResponse) for each in messages)
        return f"{hashlib.sha256(_prompt_of(messages).encode()).hexdigest()[:12]}.{answers}"

    async def on_tool_validate_error(self, _ctx: Any, *, call: Any, tool_def: Any, error: Exception, **_: Any) -> Any:
        """Record a call whose arguments do not fit as a failed one."""
        _try(lambda: self.run.open_tool(tool_def.name, call.args_as_dict()).fail(error))
        raise error

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any], handler: Any) -> Any:
        """Run a tool: under a claim if it is gated, and recorded."""
        claim, waiting = None, None
        try:
            action = self.tools.action(tool_def.name, tool_def.parameters_json_schema)
            shown = to_jsonable_python(args, fallback=None if action.gated else str)
            if action.gated:
                place = (FRAMEWORK, self.session, self._position(ctx.messages), call.tool_call_id)
                wait = False if action.pauses and _can_pause(ctx.agent) else None
                verdict = await action.adecide(shown, call_id=place, run=self.run, wait=wait)
                if verdict.waits and wait is False:
                    waiting = verdict.to_dict()
                elif not verdict.runs:
                    return verdict.result if verdict.has_result else verdict.message
                else:
                    if verdict.edited:
                        shown = verdict.arguments
                        fit = ctx.tool_manager.validate_tool_call
                        edited = await fit(replace(call, args=shown), approved=True, wrap_validation_errors=False)
                        args = edited.validated_args
                    claim = await verdict.abegin()
                    if wait is False and may_be_claimed_later(verdict, claim):
                        waiting = verdict.to_dict()
                    elif not claim.started:
                        return claim.result if claim.has_result else claim.message
                    else:
                        self.claimed[call.tool_call_id] = to_jsonable_python(args)
        except Exception as error:  # noqa: BLE001 — the gate fails closed
            return refusal_after(error, tool_def.name)
        if waiting is not None:
            raise ApprovalRequired({METADATA: waiting})
        opened = OpenCall(self.run, action, shown, claim)
        try:
            result = await handler(args)
        except (CallDeferred, ApprovalRequired, _Changed) as error:
            opened.report("release")
            if isinstance(error, _Changed):
                return refusal_after(error, tool_def.name)
            raise
        except BaseException as error:
            opened.report("failed", error) if isinstance(error, Exception) else opened.report("unknown")
            raise
        finally:
            opened.leave()
            self.claimed.pop(call.tool_call_id, None)
        report = partial(opened.report, "done", getattr(result, "return_value", result))
        await asyncio.to_thread(report) if claim is not None else report()
        return result

    async def before_tool_execute(self, _ctx: Any, *, call: Any, args: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Stop a gated call whose arguments another capability has changed since; these hooks run within `wrap_tool_execute`."""
        if call.tool_call_id in self.claimed and self.claimed[call.tool_call_id] != to_jsonable_python(args):
            raise _Changed("a capability changed the arguments after the decision")
        return args

    async def wrap_output_process(self, _ctx: Any, *, output_context: Any, output: Any, handler: Any) -> Any:
        """Refuse gates of functions that make the output, which no hook can hold."""
        if output_context.has_function:
            names = output_context.function_name, output_context.tool_def and output_context.tool_def.name
            self.tools.refuse(filter(None, names), "it makes the output of the agent")
        return await handler(output)


class _Changed(Exception):
    """Other arguments were about to run than were decided on."""


def _prompt_of(messages: Sequence[Any]) -> str:
    """Return what the user wrote last."""
    parts = [part for each in messages if isinstance(each, ModelRequest) for part in each.parts]
    texts = [part.content for part in parts if isinstance(part, UserPromptPart) and isinstance(part.content, str)]
    return texts[-1] if texts else ""


def _waits(messages: Sequence[Any]) -> bool:
    """Return whether calls of the model have no result yet."""
    open_calls: set[str] = set()
    for each in messages:
        if isinstance(each, ModelResponse):
            open_calls = {call.tool_call_id for call in each.tool_calls}
        else:
            open_calls -= {getattr(part, "tool_call_id", "") for part in each.parts}
    return bool(open_calls)


def _can_pause(agent: Any) -> bool:
    """Return whether runs of the agent may end with requests. What a single run states as its output type is not seen."""

    def has_requests(kind: Any) -> bool:
        parts = kind if isinstance(kind, list | tuple) else get_args(kind)
        return kind is DeferredToolRequests or any(map(has_requests, parts))

    return has_requests(getattr(agent, "output_type", None))
