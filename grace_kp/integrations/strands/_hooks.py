"""The hooks for Strands Agents: an adapter over live runs, verdicts and claims. An invocation of an agent is a run.

The hooks around a tool run in the task of the call, so a context variable connects them. They are plain functions, because older versions of
Strands call no others: a reviewer that waits blocks the agent's event loop.
"""

from __future__ import annotations

import itertools
import sys
import time
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4
from weakref import WeakKeyDictionary

from grace_kp.approvals import ApprovalState
from grace_kp.errors import MissingExtra
from grace_kp.integrations._tools import OpenCall, Tools, may_be_claimed_later, refusal_after
from grace_kp.record import attempt

try:
    from strands.hooks import events
except ImportError:
    raise MissingExtra("grace_kp.integrations.strands", "strands") from None

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.gating import Policy
    from grace_kp.runtime import Grace

FRAMEWORK, KEY = "strands", "grace_kp.session"
_try = partial(attempt, FRAMEWORK)


class _Begun(NamedTuple):
    """A call between its two hooks. `call` is None where a person or an earlier call has answered it."""

    id: str
    place: tuple[Any, ...]
    call: OpenCall | None
    outer: _Begun | None
    """The call of another agent that runs this one's agent."""


_BEGUN: ContextVar[_Begun | None] = ContextVar("grace_kp_strands", default=None)


class _Invocation:
    """What the hooks of an invocation share."""

    def __init__(self, session: str) -> None:
        self.session, self.outer, self.handled = session, _BEGUN.get(), sys.exc_info()[1]
        self.run: Any = None
        self.asked: float | None = None
        """When the model was called."""


class GraceHooks:
    """Records the invocations of an agent, and gates its tools by the confidence of the run so far. List it last among the hooks.

    A gated call that waits for an inbox interrupts the agent. The inbox decides, and `responses` builds the input that resumes the agent
    then. A response to the interrupt approves nothing: before the decision, the call interrupts again.
    """

    def __init__(
        self,
        grace: Grace,
        gates: Mapping[str, Policy | str] | None = None,
        *,
        domain: str | None = None,
        session: str | None = None,
    ) -> None:
        """Gate tools.

        Args:
            grace: the runtime; its own policies hold, too.
            gates: policies or floors by tool name or glob, such as `{"send_mail": "confirm", "delete_*": "deny"}`.
            domain: the task domain of the runs; the runtime's when None.
            session: names the conversation; that of the session manager when None, else a name kept in the agent's state.

        Raises:
            TypeError: `gates` is not a mapping.
            ValueError: a policy is not usable; the message names it.
        """
        self._grace, self._domain, self._session = grace, domain, session
        self._tools = Tools("GraceHooks", grace, gates)
        self._invocations: WeakKeyDictionary[Any, _Invocation] = WeakKeyDictionary()

    def register_hooks(self, registry: Any, **_: Any) -> None:
        """Register the hooks with an agent."""
        for kind, hook in {
            events.BeforeInvocationEvent: self._begin,
            events.MessageAddedEvent: self._read,
            events.BeforeModelCallEvent: self._ask,
            events.AfterModelCallEvent: self._record_reply,
            events.AfterInvocationEvent: self._end,
        }.items():
            registry.add_callback(kind, lambda event, hook=hook: _try(partial(hook, event, event.agent)))
        registry.add_callback(events.BeforeToolCallEvent, self._before_tool)
        registry.add_callback(events.AfterToolCallEvent, lambda event: _try(partial(self._after_tool, event)))

    def _begin(self, _event: Any, agent: Any) -> None:
        self._invocations[agent] = _Invocation(self._session_of(agent))

    def _session_of(self, agent: Any) -> str:
        """Return a name that no other conversation has, and that is the same when the agent is resumed."""
        if (outer := _BEGUN.get()) is not None:
            name: Any = "/".join(str(part) for part in outer.place)
        else:
            manager = getattr(agent, "_session_manager", None)
            name = self._session or getattr(manager, "session_id", None) or agent.state.get(KEY)
            if name is None:
                agent.state.set(KEY, name := uuid4().hex)
        return f"{quote(name, safe='')}/{quote(agent.agent_id, safe='')}"

    def _open(self, agent: Any, objective: str = "", resume: str | None = None) -> Any:
        """Return the run of the invocation. The first hook that knows the agent's task opens it."""
        kept = self._invocations[agent]
        if kept.run is None:
            stated = {"name": agent.name, "session": kept.session, "domain": self._domain, "resume": resume}
            kept.run = self._grace.open_run(objective, framework=FRAMEWORK, **stated)
        return kept.run

    def _read(self, event: Any, agent: Any) -> None:
        if event.message["role"] == "user" and (text := _text(event.message)):
            self._open(agent, text)

    def _end(self, _event: Any, agent: Any) -> None:
        kept = self._invocations.pop(agent)
        _BEGUN.set(kept.outer)
        if kept.run is None:
            return
        error, last = sys.exc_info()[1], (agent.messages or [{"content": ()}])[-1]
        if error is not None and error is not kept.handled:
            kept.run.fail(error)
        elif any("toolUse" in block for block in last["content"]):
            kept.run.suspend("interrupt")
        else:
            kept.run.close(_text(last))
            self._tools.warn_of_unmatched(agent.tool_names)

    def _ask(self, _event: Any, agent: Any) -> None:
        texts = (_text(each) for each in reversed(agent.messages) if each["role"] == "user")
        self._open(agent, next(filter(None, texts), ""))
        self._invocations[agent].asked = time.time()

    def _record_reply(self, event: Any, agent: Any) -> None:
        kept, config = self._invocations[agent], agent.model.get_config()
        reply: Any = {"content": ()} if event.stop_response is None else event.stop_response.message
        counts = (reply.get("metadata") or {}).get("usage") or {}  # older versions of Strands state none
        kept.run.model_call(
            str((isinstance(config, dict) and config.get("model_id")) or type(agent.model).__name__),
            text=_text(reply),
            usage={f"{kind}_tokens": counts.get(f"{kind}Tokens") for kind in ("input", "output")},
            error=event.exception,
            started=kept.asked,
        )

    def _before_tool(self, event: Any) -> None:
        if event.cancel_tool:
            return  # another hook has refused it
        agent, name, call_id = event.agent, event.tool_use["name"], event.tool_use["toolUseId"]
        run = verdict = claim = None
        if kept := self._invocations.get(agent):
            run = _try(partial(self._open, agent, resume="interrupt"))  # a tool before any model: this resumes an agent
        try:
            turn = agent.conversation_manager.removed_message_count + len(agent.messages)
            place = FRAMEWORK, kept.session if kept else self._session_of(agent), turn, call_id
            action = self._tools.action(name, lambda: event.selected_tool.tool_spec["inputSchema"]["json"])
            if action.gated and event.selected_tool is None:
                event.cancel_tool = f"Unknown tool: {name}"
            elif action.gated:
                wait = False if action.pauses and kept else None
                verdict = action.decide(event.tool_use["input"], call_id=place, run=run, wait=wait)
                if verdict.edited:  # in a copy: the agent's messages keep what the model proposed
                    event.tool_use = {**event.tool_use, "input": verdict.arguments}
                claim = verdict.begin(event.tool_use["input"]) if verdict.runs else None
        except Exception as error:  # noqa: BLE001 — whatever breaks, the tool must not run
            event.cancel_tool = refusal_after(error, name)
        if event.cancel_tool:
            return
        if verdict and kept and (verdict.waits or may_be_claimed_later(verdict, claim)):
            reason = {"approval": verdict.approval and verdict.approval.id, "message": verdict.message}
            for number in itertools.count():  # earlier interrupts have a response
                event.interrupt(f"grace_kp:{number}", reason=reason)
        call = None
        if verdict is None or (claim and claim.started):
            call = OpenCall(run, action, event.tool_use["input"], claim)
        else:
            answer = claim or verdict
            event.cancel_tool = answer.message
            if not answer.has_result and verdict.outcome != "answered":
                return
        _BEGUN.set(_Begun(call_id, place, call, _BEGUN.get()))

    def _after_tool(self, event: Any) -> None:
        begun = _BEGUN.get()
        if begun is None or begun.id != event.tool_use["toolUseId"]:
            return
        _BEGUN.set(begun.outer)
        if begun.call is None:
            event.result = {**event.result, "status": "success"}
            return
        begun.call.leave()
        values = [block.get("text", block.get("json", block)) for block in event.result["content"]]
        value = values[0] if len(values) == 1 else values
        if event.cancel_message is not None:  # by a hook after this one
            begun.call.report("release")
        elif event.exception is not None or event.result["status"] == "error":
            begun.call.report("failed", event.exception or str(value))
        else:
            begun.call.report("done", value)


def responses(grace: Grace, result: Any) -> list[dict[str, Any]] | None:
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
    ours = [each for each in interrupts if isinstance(each.reason, dict) and each.reason.get("approval")]
    approvals = [grace.approvals.get(each.reason["approval"]) for each in ours]
    if not approvals or any(each.state == ApprovalState.PENDING for each in approvals):
        return None
    return [{"interruptResponse": {"interruptId": each.id, "response": "decided"}} for each in ours]


def _text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["content"] if "text" in block)
