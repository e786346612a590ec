"""The programs of `docs/how-to/claude-agent-sdk.md` run inside of the SDK's own `query`, with a transport in place of Claude Code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk")

import anyio
from claude_agent_sdk import Transport

import grace_kp as gk

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "claude-agent-sdk.md"
RESULT = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 1,
    "is_error": False,
    "num_turns": 1,
}


class ClaudeCode(Transport):
    """Asks the hooks about one call of `mcp__bank__pay`, runs it if none refuses, and ends."""

    def __init__(self, arguments):
        self.arguments, self.ran, self.reason, self.matchers = arguments, [], None, {}
        self._initialized, self._answers = asyncio.Queue(), asyncio.Queue()

    async def connect(self):
        """Nothing to start, to end or to close."""

    end_input = close = connect

    def is_ready(self):
        return True

    async def write(self, data):
        message = json.loads(data)
        if message["type"] == "control_request":
            self.matchers = message["request"]["hooks"]
            answer = {"subtype": "success", "request_id": message["request_id"]}
            answer["response"] = {"hook_on_failure_supported": True}
            await self._initialized.put({"type": "control_response", "response": answer})
        else:
            await self._answers.put(message)

    async def read_messages(self):
        yield await self._initialized.get()
        await self._answers.get()  # the prompt
        yield {"type": "system", "subtype": "init", "tools": ["Bash", "mcp__bank__pay"]}
        event = {"session_id": "s1", "tool_name": "mcp__bank__pay", "tool_input": self.arguments, "tool_use_id": "t1"}
        yield self._hook("PreToolUse", event)
        answer = (await self._answers.get())["response"]
        decision = answer.get("response", {}).get("hookSpecificOutput", {})
        blocked = answer["subtype"] == "error" and self.matchers["PreToolUse"][0]["onFailure"] == "block"
        if blocked or decision.get("permissionDecision") == "deny":
            self.reason = answer.get("error") or decision["permissionDecisionReason"]
        else:
            self.ran.append(decision.get("updatedInput", self.arguments))
            yield self._hook("PostToolUse", {**event, "tool_response": "paid"})
            await self._answers.get()
        content = [{"type": "text", "text": "Done."}]
        yield {"type": "assistant", "message": {"content": content, "model": "claude", "usage": {"input_tokens": 3}}}
        yield {**RESULT, "session_id": "s1", "result": "Done."}

    def _hook(self, name, event):
        request = {"subtype": "hook_callback", "callback_id": self.matchers[name][0]["hookCallbackIds"][0]}
        request |= {"input": {**event, "hook_event_name": name}, "tool_use_id": "t1"}
        return {"type": "control_request", "request_id": name, "request": request}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The page's programs as modules."""
    names = ["claude_gate", "claude_program"]
    for name, text in zip(names, re.findall(r"```py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL), strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("claude_program")
    for name in names:
        sys.modules.pop(name, None)


async def paid(programs, answer, arguments):
    """What ran, the reason why not, and the trace; `answer` gets the approvals and the request."""
    inbox = gk.InboxReviewer(deadline="1h")
    with contextlib.closing(gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=inbox)) as grace:
        claude = ClaudeCode(arguments)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: programs.ask(grace, "Pay Ann.", transport=claude))
            while answer is not None and not (waiting := grace.approvals.pending()):
                await anyio.sleep(0.01)
            if answer is not None:
                answer(grace.approvals, waiting[0].id)
        (trace,) = grace.store.query()
        return claude.ran, claude.reason, trace


ANN = {"to": "ann", "amount": 5, "memo": "tea"}


async def test_an_approved_call_runs_and_is_recorded(programs):
    ran, _, trace = await paid(programs, lambda approvals, request: approvals.approve(request, by="ana"), ANN)
    assert ([ANN], "claude-agent-sdk", "completed") == (ran, trace.metadata.framework, trace.status)
    assert [("mcp__bank__pay", "ok")] == [(call["name"], call["status"]) for call in trace.grace["calls"]]
    assert ["executed"] == [decision.outcome for decision in trace.decisions]


async def test_an_edit_replaces_the_input(programs):
    ran, _, _ = await paid(programs, lambda approvals, request: approvals.edit(request, {"amount": 4}, by="ana"), ANN)
    assert [{**ANN, "amount": 4}] == ran


async def test_the_reason_of_a_refusal_is_the_reason_of_the_hook(programs):
    ran, reason, _ = await paid(
        programs, lambda approvals, request: approvals.reject(request, by="ana", reason="not a customer"), ANN
    )
    assert ([], True) == (ran, "not a customer" in reason)


async def test_a_hook_that_raises_blocks(programs, monkeypatch):
    def broken(*_args, **_more):
        raise RuntimeError("no store")

    monkeypatch.setattr(gk.Call, "__init__", broken)
    ran, reason, _ = await paid(programs, None, ANN)
    assert ([], "no store") == (ran, reason)


async def test_a_gate_that_is_misspelt_ends_the_query(programs, monkeypatch):
    monkeypatch.setattr(programs, "ClaudeHooks", lambda *args, gates: misspelt(*args, gates={"mcp__bnak__*": "deny"}))
    misspelt = sys.modules["claude_gate"].ClaudeHooks
    with gk.Grace(store="memory:", evaluator=None) as grace:
        claude = ClaudeCode(ANN)
        with pytest.raises(gk.GateError, match="did you mean 'mcp__bank__pay'"):
            await programs.ask(grace, "Pay Ann.", transport=claude)
    assert [] == claude.ran
