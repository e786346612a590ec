"""The check around each gated tool: only the call that was decided on runs, and it runs once."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from grace_kp.confidence import ActionDecision
from grace_kp.gating import (
    DONE,
    Entry,
    InterventionRequest,
    Ran,
    notify,
    notify_async,
    record_notice,
    recorded_arguments,
)
from grace_kp.integrations.langchain._calls import digest_of_call, keep_entry, schema_problem
from grace_kp.integrations.langchain._pause import pausing
from grace_kp.integrations.langchain._tool_guard import NotStarted, ToolConsent
from grace_kp.levels import InterventionLevel
from grace_kp.record import HOST, current_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grace_kp.gating import Policy
    from grace_kp.runtime import Grace

ANSWERED = "another middleware answered the call; its tool did not run"
ENDED = frozenset({"executed", "executed_modified", "failed"})
"""Outcomes of an execution; what is asked for afterwards under the same decision does not replace them."""
NOTICE = (
    "A reviewer changed this call before it ran; what your message shows is the call that you proposed. "
    "The change is meant: do not make the original call again. What ran: {name} with {arguments}."
)


class Once:
    """One execution of a gated tool."""

    def __init__(
        self,
        grace: Grace,
        request: Any,
        policy: Policy,
        told: dict[str, Any] | None,
        messages: list[Any],
        *,
        call: Any,
    ) -> None:
        self.request = request
        self.consent: ToolConsent | None = None
        self._grace = grace
        self._call = call
        """The call that was decided on; a middleware closer to the tool may put it in place of the request's."""
        self._name: str = call["name"]
        self._policy = policy
        self._told = told
        self._messages = messages
        self._entry: dict[str, Any] = {}
        self._kept: Entry | None = None
        self._pausing = pausing()
        self._run = current_run()

    def begin(self) -> ToolMessage | None:
        """Check that this very call may run, and say that it is about to; the message that is returned in its place where it may not."""
        told = self._told
        if self._run is not None and self._run.resumes is not None:
            _ = self._run.id  # looked up here, where it may take a moment
        problem = self._problem(told)
        self._entry = self._entry_of(told)
        if told is None or problem:
            return self._instead(problem, "cancelled")
        edited = told.get("args")
        if edited is not None:
            problem = schema_problem(self.request.tool, told, edited)
            if problem:
                return self._instead(f"the reviewer's arguments do not fit `{self._name}`: {problem}", "cancelled")
            self._call = {**self._call, "args": dict(edited)}
            self.request = self.request.override(tool_call={**self.request.tool_call, "args": dict(edited)})
            self._entry.update(recorded_arguments(edited, executed=True))
        gates = self._grace._gates()
        try:
            keeps = gates.keeps if self._pausing is not None else gates.in_memory
            thread = "" if self._pausing is None else self._pausing.thread
            self._kept = Entry(keeps, f"langchain|{thread}|{told['message']}|{told['id']}|{self._call.get('id')}")
            ran = self._kept.claim(again_after_failure=told["consent"] == "not needed")
        except Exception as error:  # noqa: BLE001 — what cannot be kept is not run
            return self._instead(f"it could not be kept that `{self._name}` is about to run: {error}", "cancelled")
        if ran is not None:
            return self._ran(ran)
        self._entry["outcome"] = "running"
        self.consent = ToolConsent(self._name, told["digest"] if edited is None else told["run_digest"])
        return None

    def _problem(self, told: dict[str, Any] | None) -> str:
        if self._policy.denies:
            return f"`{self._name}` is forbidden by its policy"
        if told is None or told.get("consent") not in {"given", "not needed"}:
            return f"nothing was decided about this call of `{self._name}`"
        if told["digest"] != digest_of_call(self._call):
            return f"`{self._name}` is called with other arguments than were decided on"
        proposed = next(
            (
                message
                for message in reversed(self._messages)
                if isinstance(message, AIMessage)
                and any(call["id"] == self._call.get("id") for call in message.tool_calls)
            ),
            None,
        )
        if proposed is None or proposed.id != told["message"]:
            return f"what was decided about `{self._name}` belongs to another turn"
        edited = told.get("args")
        if edited is not None and digest_of_call({"name": self._name, "args": edited}) != told.get("run_digest"):
            return f"the reviewer's arguments for `{self._name}` were changed"
        return ""

    def _entry_of(self, told: dict[str, Any] | None) -> dict[str, Any]:
        """The entry of this call's decision in the trace; a new one for a call that nobody decided on."""
        told = {"id": uuid4().hex} if told is None else told
        entry: dict[str, Any]
        for entry in reversed([] if self._run is None else self._run.decisions):
            if entry.get("id") == told["id"]:
                return entry
        entry = {
            "id": told["id"],
            "action": self._name,
            **recorded_arguments(self._call["args"]),
            "outcome": "undecided",
        }
        entry.update(
            {name: told[name] for name in ("level", "score", "reason", "policy_version", "digest") if name in told}
        )
        keep_entry(entry)
        return entry

    def _instead(self, problem: str, outcome: str) -> ToolMessage:
        if self._entry["outcome"] not in ENDED:  # the decision's one execution may have ended before
            self._entry["outcome"], self._entry["problem"] = outcome, problem
        return self._message(f"{problem}; it was not run.", "error")

    def _ran(self, ran: Ran) -> ToolMessage:
        if self._entry["outcome"] not in ENDED:
            self._entry["outcome"] = "executed_before" if ran.state == DONE else f"{ran.state}_before"
        if ran.state == DONE and ran.has_result:
            return self._message(ran.result["content"], ran.result["status"])
        return self._message(f"{ran.told(f'`{self._name}`')}.", "success" if ran.state == DONE else "error")

    def _message(self, content: Any, status: Any) -> ToolMessage:
        return ToolMessage(content=content, name=self._name, tool_call_id=self._call.get("id") or "", status=status)

    def _notice(self) -> InterventionRequest | None:
        told = self._told or {}
        if told.get("level") != InterventionLevel.NOTIFY:
            return None
        return InterventionRequest(
            id=told["id"],
            action=self._name,
            arguments=dict(self._call["args"]),
            digest=told["digest"],
            level=InterventionLevel.NOTIFY,
            decision=ActionDecision(InterventionLevel.NOTIFY, told["score"], told["reason"]),
            reason=told["reason"],
            policy_version=told.get("policy_version", ""),
            run_id=None if self._run is None else self._run.id,
            objective=None if self._run is None else self._run.objective,
            created_at=time.time(),
        )

    def tell(self) -> None:
        """Tell that the call goes ahead, where its level is NOTIFY and nobody has told it yet."""
        notice = self._notice() if self._pausing is not None else None
        if notice is not None:
            record_notice(self._entry, notice, notify(self._grace._gates().on_notify, notice))

    async def tell_async(self) -> None:
        """`tell` from a coroutine."""
        notice = self._notice() if self._pausing is not None else None
        if notice is not None:
            record_notice(self._entry, notice, await notify_async(self._grace._gates().on_notify, notice))

    def changed(self) -> ToolMessage | None:
        """The message in place of a call whose arguments were changed since it was let through; to be asked right before it runs."""
        told = self._told or {}
        expected = told["digest"] if told.get("args") is None else told.get("run_digest")
        if digest_of_call(self._call) == expected:
            return None
        return self._taken_back(f"the arguments of `{self._name}` were changed while the decision was made")

    def stopped(self, error: NotStarted) -> ToolMessage:
        """The message in place of a call that was kept from starting, because a middleware closer to the tool changed it."""
        started = self.consent is not None and self.consent.run_id is not None
        if started:  # it has been started once, and was to be started again
            self.failed(error)
            return self._message(f"{error}.", "error")
        return self._taken_back(str(error).removesuffix("; it was not run"))

    def _taken_back(self, problem: str) -> ToolMessage:
        if self._kept is not None:
            self._keep(self._kept.release)
        return self._instead(problem, "cancelled")

    def failed(self, error: BaseException) -> None:
        """The tool raised, or paused the graph. A process that dies says neither, and what came of the call stays unknown."""
        if HOST.hands_off(error):
            self._entry["outcome"] = "executed" if (self._told or {}).get("args") is None else "executed_modified"
        elif HOST.pauses(error):
            self._entry["outcome"] = "waiting"
        else:
            self._entry["outcome"], self._entry["error"] = "failed", type(error).__name__
        if isinstance(error, Exception) and self._kept is not None:
            kept = self._kept
            ended = kept.done if HOST.hands_off(error) else lambda: kept.failed(error)
            self._keep(kept.release if HOST.pauses(error) else ended)

    def ended(self, result: Any) -> Any:
        """The tool returned: keep that, and say what ran if it was not what was proposed."""
        edited = (self._told or {}).get("args")
        if edited is not None:
            result = self._noticed(result, edited)
        self._entry["outcome"] = "executed" if edited is None else "executed_modified"
        if self._was_answered():
            self._entry["outcome"], self._entry["problem"] = "cancelled", ANSWERED
        elif edited is not None:
            self._entry["executed_digest"] = (self._told or {}).get("run_digest")
        plain = isinstance(result, ToolMessage) and result.artifact is None and isinstance(result.content, str)
        kept = {"content": result.content, "status": result.status} if plain else None
        ledger = self._kept
        if ledger is not None:
            self._keep(lambda: ledger.done(kept, keep=plain))
        return result

    def _was_answered(self) -> bool:
        """Return whether a middleware closer to the tool answered the call, so that the tool did not start."""
        standard = getattr(type(self.request.tool), "run", None) is BaseTool.run
        return standard and self.consent is not None and self.consent.run_id is None

    def _keep(self, write: Any) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 — the tool has run; what it gave is the agent's
            self._entry["ledger_error"] = f"{type(error).__name__}: {error}"[:500]

    def _noticed(self, result: Any, edited: dict[str, Any]) -> Any:
        notice = NOTICE.format(name=self._name, arguments=json.dumps(edited, default=str, ensure_ascii=False))
        if isinstance(result, ToolMessage):
            return self._prefixed(result, notice)
        update: Any = getattr(result, "update", None)
        messages = update.get("messages") if isinstance(update, dict) else None
        if not isinstance(messages, list) or not dataclasses.is_dataclass(result) or isinstance(result, type):
            return result
        mine = [
            self._prefixed(one, notice)
            if isinstance(one, ToolMessage) and one.tool_call_id == self._call.get("id")
            else one
            for one in messages
        ]
        return dataclasses.replace(result, update={**update, "messages": mine})

    def _prefixed(self, message: ToolMessage, notice: str) -> ToolMessage:
        content: Any = message.content
        if isinstance(content, str):
            content = f"{notice}\n\n{content}" if content else notice
        else:
            content = [{"type": "text", "text": notice}, *content]
        return message.model_copy(update={"content": content})


def not_run(call: Mapping[str, Any], text: str) -> ToolMessage:
    """Return the message in place of a call that was not run."""
    return ToolMessage(content=text, name=call["name"], tool_call_id=call.get("id") or "", status="error")


def cancel_answered(decisions: Mapping[str, Any], messages: list[Any]) -> None:
    """Record that approved calls of the turn before did not run, where another middleware has answered them."""
    run = current_run()
    if run is None or not decisions:
        return
    if run.resumes is not None:
        _ = run.id  # the part of the run before it was suspended is looked up
    before = ((run.earlier or {}).get("grace") or {}).get("decisions") or []
    approved = {entry.get("id"): entry for entry in [*before, *run.decisions] if entry.get("outcome") == "approved"}
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    here = {entry.get("id") for entry in run.decisions}
    for name, told in decisions.items():
        entry = approved.get(told.get("id"))
        if entry is None or name.rpartition(":")[0] not in answered:
            continue
        if entry["id"] not in here:
            entry = {**entry}
            run.decisions.append(entry)
        entry["outcome"], entry["problem"] = "cancelled", ANSWERED
