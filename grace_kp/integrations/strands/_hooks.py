"""The hooks for Strands Agents: an adapter over live runs, verdicts and claims. An invocation of an agent is a run, a tool call a call.

The hook before a tool takes a claim, the hook after it reports it. Both run in the task of the call, so a context variable connects them.
The hooks are plain functions, because older versions of Strands call no others: a reviewer that waits blocks the agent's event loop.
"""

from __future__ import annotations

import itertools
import logging
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4
from weakref import WeakKeyDictionary

import grace_kp as gk
from grace_kp.gating import PolicySet
from grace_kp.record import attempt

try:
    from strands.hooks import events
except ImportError:
    raise gk.MissingExtra("grace_kp.integrations.strands", "strands") from None

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAMEWORK, KEY = "strands", "grace_kp.session"
_log = logging.getLogger("grace_kp.gate")
_try = partial(attempt, FRAMEWORK)


@dataclass
class _Begun:
    """A tool call between its hooks. `place` is None where its tool does not run."""

    id: str
    place: tuple[Any, ...]
    outer: _Begun | None
    claim: Any = None
    call: Any = None
    block: Any = None


@dataclass
class _Invocation:
    """What the hooks of one invocation share."""

    session: str
    outer: _Begun | None
    handled: BaseException | None
    run: Any = None
    asked: Any = None
    used: Any = None
    """When the model was called, and the tokens that the agent had used before."""
    reply: Any = None
    """The response of the model that is not recorded yet, because its tokens are counted after the hook."""


_BEGUN: ContextVar[_Begun | None] = ContextVar("grace_kp_strands", default=None)


class GraceHooks:
    """Records the invocations of an agent, and gates its tools by the confidence of the run so far. List it last among the hooks.

    A gated call that waits for an inbox interrupts the agent; the reason of the interrupt names the approval. The inbox decides, and
    `responses` builds the input that resumes the agent then. A response to the interrupt only makes the gate look at the inbox again.
    """

    def __init__(
        self,
        grace: gk.Grace,
        gates: Mapping[str, gk.Policy | str] | None = None,
        *,
        domain: str | None = None,
        session: str | None = None,
    ) -> None:
        """Gate the named tools.

        Args:
            grace: the runtime, with its thresholds, reviewer, policies (the stricter floor holds) and store.
            gates: policies or floors by tool name or glob, such as `{"send_mail": "confirm", "delete_*": "deny"}`.
            domain: the task domain of the runs; the runtime's when None.
            session: names the conversation; that of the agent's session manager when None, else a name kept in the agent's state.

        Raises:
            TypeError: `gates` is not a mapping.
            ValueError: a policy is not usable; the message names it.
        """
        self._grace, self._policies, self._domain, self._session = grace, PolicySet(gates), domain, session
        self._actions: dict[str, Any] = {}
        self._warned: set[str] = set()
        self._invocations: WeakKeyDictionary[Any, _Invocation] = WeakKeyDictionary()

    def register_hooks(self, registry: Any, **_: Any) -> None:
        """Register the hooks with an agent."""
        for kind, hook in (
            (events.BeforeInvocationEvent, self._begin),
            (events.MessageAddedEvent, self._read),
            (events.BeforeModelCallEvent, self._ask),
            (events.AfterModelCallEvent, self._note_reply),
            (events.AfterInvocationEvent, self._end),
        ):
            registry.add_callback(kind, lambda event, hook=hook: _try(partial(hook, event, event.agent)))
        registry.add_callback(events.BeforeToolCallEvent, self._before_tool)
        registry.add_callback(events.AfterToolCallEvent, self._after_tool)

    # The invocation

    def _begin(self, event: Any, agent: Any) -> None:
        outer = _BEGUN.get()
        self._invocations[agent] = _Invocation(self._session_of(agent, outer), outer, sys.exc_info()[1])

    def _session_of(self, agent: Any, outer: _Begun | None) -> str:
        """Return a name that no other conversation has, and that is the same when the agent is resumed."""
        if outer is not None:  # the agent is a tool of another
            name = "/".join(str(part) for part in outer.place)
        else:
            manager = getattr(agent, "_session_manager", None)
            name = self._session or getattr(manager, "session_id", None) or agent.state.get(KEY)
            if name is None:
                agent.state.set(KEY, name := uuid4().hex)
        return f"{quote(name, safe='')}/{quote(agent.agent_id, safe='')}"

    def _opened(self, agent: Any, objective: str = "", resume: str | None = None) -> Any:
        """Return the run of the agent's invocation, which the first hook that knows its task opens."""
        kept = self._invocations.get(agent)
        if kept is not None and kept.run is None:
            kept.run = self._grace.open_run(
                objective, name=agent.name, framework=FRAMEWORK, session=kept.session, domain=self._domain, resume=resume
            )
        return kept and kept.run

    def _read(self, event: Any, agent: Any) -> None:
        if event.message["role"] == "user" and (text := _text(event.message)):
            self._opened(agent, text)

    def _end(self, event: Any, agent: Any) -> None:
        kept = self._invocations.pop(agent)
        _BEGUN.set(kept.outer)
        self._record_reply(agent, kept)
        if kept.run is None:
            return
        error, last = sys.exc_info()[1], agent.messages[-1] if agent.messages else {"content": ()}
        if error is not None and error is not kept.handled:
            kept.run.fail(error)
        elif last.get("role") == "assistant" and any("toolUse" in block for block in last["content"]):
            kept.run.suspend("interrupt")
        else:
            kept.run.close(_text(last))
            for stated, near in self._policies.unmatched(agent.tool_names).items():
                self._warn(f"GraceHooks(gates=...): the agent has no tool {stated!r} (nearest: {near})")

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    # The model

    def _ask(self, event: Any, agent: Any) -> None:
        self._opened(agent, next((_text(each) for each in reversed(agent.messages) if each["role"] == "user"), ""))
        kept = self._invocations[agent]
        self._record_reply(agent, kept)
        kept.asked, kept.used = time.time(), dict(agent.event_loop_metrics.accumulated_usage)

    def _note_reply(self, event: Any, agent: Any) -> None:
        said = event.stop_response and _text(event.stop_response.message)
        self._invocations[agent].reply = said or "", event.exception, time.time()

    def _record_reply(self, agent: Any, kept: _Invocation) -> None:
        if kept.reply is None or kept.run is None:
            return
        (text, error, ended), kept.reply = kept.reply, None
        used = agent.event_loop_metrics.accumulated_usage
        usage = {f"{kind}_tokens": used[f"{kind}Tokens"] - kept.used[f"{kind}Tokens"] for kind in ("input", "output")}
        config = agent.model.get_config()
        model = config.get("model_id") if isinstance(config, dict) else None
        kept.run.model_call(
            str(model or type(agent.model).__name__), text=text, usage=usage, error=error, started=kept.asked, ended=ended
        )

    # Tools

    def _before_tool(self, event: Any) -> None:
        if event.cancel_tool:
            return  # another hook has refused
        agent, name, call_id = event.agent, event.tool_use["name"], event.tool_use["toolUseId"]
        kept = self._invocations.get(agent)
        # Tools before any call of the model: the invocation resumes an interrupted one.
        run = _try(partial(self._opened, agent, resume="interrupt"))
        if kept is not None:
            _try(partial(self._record_reply, agent, kept))
        verdict = None
        try:
            number = agent.conversation_manager.removed_message_count + len(agent.messages)
            session = self._session_of(agent, _BEGUN.get()) if kept is None else kept.session
            begun = _Begun(call_id, (FRAMEWORK, session, number, call_id), _BEGUN.get())
            action = self._action(name, event.selected_tool)
            if action.gated:
                if event.selected_tool is None:
                    event.cancel_tool = f"Unknown tool: {name}"
                    return
                arguments = event.tool_use["input"]
                wait = False if action.pauses and kept is not None else None
                verdict = action.decide(arguments, call_id=begun.place, run=run, wait=wait)
                if verdict.runs:
                    arguments = verdict.arguments
                    if verdict.edited:  # a copy: the history of the agent holds what the model proposed
                        event.tool_use = {**event.tool_use, "input": arguments}
                    begun.claim = verdict.begin(arguments)
        except Exception as error:  # noqa: BLE001 — whatever breaks, the tool must not run
            _log.warning("the gate of %s failed: %r", name, error)
            event.cancel_tool = f"The gate of `{name}` failed ({type(error).__name__}). Not run; do not call it again."
            return
        if verdict is not None and verdict.waits and kept is not None:
            reason = {"approval": verdict.approval and verdict.approval.id, "message": verdict.message}
            for number in itertools.count():  # an answer that came before the decision interrupts again
                event.interrupt(f"grace_kp:{number}", reason=reason)
        if verdict is not None and (begun.claim is None or not begun.claim.started):
            said = begun.claim or verdict
            event.cancel_tool = said.message
            if said.has_result or verdict.outcome == "answered":
                begun.claim, begun.block = None, "answer"
                _BEGUN.set(begun)
            return
        if run is not None:
            begun.call = _try(partial(run.open_tool, action, event.tool_use["input"]))
            begun.block = begun.call and _try(begun.call.current)
            _try(lambda: begun.block and begun.block.__enter__())
        _BEGUN.set(begun)

    def _action(self, name: str, tool: Any) -> Any:
        if name not in self._actions:
            schema = None if tool is None else (tool.tool_spec.get("inputSchema") or {}).get("json")
            self._actions[name] = self._grace.action(name, schema=schema, policy=self._policies.stated_for(name))
        return self._actions[name]

    def _after_tool(self, event: Any) -> None:
        begun = _BEGUN.get()
        if begun is None or begun.id != event.tool_use["toolUseId"]:
            return
        _BEGUN.set(begun.outer)
        if begun.block == "answer":
            event.result = {**event.result, "status": "success"}
            return
        _try(lambda: begun.block and begun.block.__exit__(None, None, None))
        result = _value(event.result)
        failure = event.exception or (str(result) if event.result["status"] == "error" else None)
        try:
            if event.cancel_message is not None:  # by a hook after this one
                _try(lambda: begun.call and begun.call.drop())
                begun.claim and begun.claim.release()
            elif failure is not None:
                _try(lambda: begun.call and begun.call.fail(failure))
                begun.claim and begun.claim.failed(failure)
            else:
                _try(lambda: begun.call and begun.call.close(result))
                begun.claim and begun.claim.done(result)
        except Exception as error:  # noqa: BLE001 — the result is the agent's; the claim becomes unknown with its run
            _log.warning("the outcome of a gated call could not be kept: %r", error)


def responses(grace: gk.Grace, result: Any) -> list[dict[str, Any]] | None:
    """Return the input that resumes an interrupted agent: a response to each interrupt of a gate.

    None while a person must still decide in the inbox, and where no gate waits for it.

    Args:
        grace: the runtime.
        result: the result that waits; or the agent, as its session manager restored it.

    Raises:
        UnknownApproval: the store has no such request.
        StoreError: the store cannot be read.
    """
    state = getattr(result, "_interrupt_state", None)
    interrupts = (result.interrupts or ()) if state is None else state.interrupts.values() if state.activated else ()
    waiting = {each.id: each.reason for each in interrupts if isinstance(each.reason, dict) and each.reason.get("approval")}
    approvals = [grace.approvals.get(each["approval"]) for each in waiting.values()]
    if not approvals or any(each.state == gk.ApprovalState.PENDING for each in approvals):
        return None
    return [{"interruptResponse": {"interruptId": each, "response": "decided"}} for each in waiting]


def _text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["content"] if "text" in block)


def _value(result: Any) -> Any:
    """Return the content of a tool's result; of a single block, its text or JSON."""
    values = [block.get("text", block.get("json", block)) for block in result["content"]]
    return values[0] if len(values) == 1 else values
