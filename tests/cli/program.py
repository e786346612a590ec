"""The command line as a program of its own, at a terminal or not; a recorded chat and requests for approval to give it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect

from grace_kp.approvals import Actor, Approval, ApprovalState, RequestStore
from grace_kp.store import open_store
from tests import warm
from tests.approvals.shops import asked

ROOT = Path(__file__).resolve().parents[2]
CHAT = {
    "task_id": 7,
    "reward": 1.0,
    "traj": [
        {"role": "user", "content": "refund me"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": '{"id": 5}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "Error: not found"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": '{"id": 6}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "found; key sk-proj-abcdefghijklmnop1234"},
        {"role": "assistant", "content": "You are refunded."},
    ],
}


def run(*arguments, stdin=None, **environment):
    """Run `grace-kp` with these arguments."""
    return warm.run(
        [sys.executable, "-m", "grace_kp.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, input=stdin, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def at_terminal(*arguments, columns=80, cwd=ROOT, **environment):
    """Start `grace-kp` with these arguments at a terminal of so many columns."""
    known = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    own = {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "xterm", "LANG": "C.UTF-8"}
    return pexpect.spawn(
        sys.executable, ["-m", "grace_kp.cli", *map(str, arguments)], env={**known, **own, **environment}, encoding="utf-8", timeout=300,
        dimensions=(40, columns), cwd=str(cwd),
        # Whoever runs the tests in the background may have them ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def started(*arguments):
    """Start `grace-kp` with these arguments and pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "grace_kp.cli", *map(str, arguments)], env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip


def ended(child):
    """Wait for the end of a program at a terminal; return its exit code."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


LONG = "京都に旅行するので、天気と持ち物について詳しく教えてください。" * 3


def planner_id(command, url):
    listed = json.loads(command("traces", "list", "--store", url, "--json").stdout)
    return next(trace["id"] for trace in listed if trace["task"]["objective"] == LONG)


def document(number, **grace):
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:a", "framework": "x", "task_domain": "code", "success": True,
            "quality_score": 0.5, "visibility": "private", "privacy_level": "private",
        },
        "task": {"objective": f"run {number}"},
        "steps": [{"step_id": 0, "type": "thought", "content": "I think"}],
        "outcome": {"result_summary": "done", "confidence": 0.5},
        "grace": grace,
    }  # fmt: skip


HOSTILE = "x\x1b[2J\x1b]0;title\x07\x9b31m\x08\x7f\u202e\u2066\u200b\u061c\r\n\t[red]y\\"
ANA = Actor(name="ana", channel="cli", os_user="ana", host="web-1")


def pending(**fields):
    """A request that waits for a decision."""
    now = time.time()
    known = {
        "id": "ap-7f3a2c91b4d5e6f7", "state": ApprovalState.PENDING, "revision": 1, "action": "refund", "version": "sig:1a2b", "domain": "shop",
        "digest": "sha256:" + "ab" * 32, "asked_digest": "sha256:" + "ab" * 32, "arguments": {"invoice": "A-17", "euros": 40},
        "key_fields": ("invoice",), "score": 0.61, "breakdown": {"search_quality": 0.5, "source_agreement": None}, "penalties": ("no_sources",),
        "reason": "The policy asks for at least CONFIRM.", "created_at": now - 700, "deadline": now + 12_000, "is_awaited": True,
    }  # fmt: skip
    return Approval(**{**known, **fields})


def filed(url, *names, **fields):
    """File a request for each invoice in the store of this URL; return the approvals."""
    store = open_store(url)
    desk = RequestStore(store.approvals)
    found = []
    for name in names:
        known = {
            "domain": "default", "key": f"refund:{name}", "key_fields": ("invoice",), "score": 0.6, "reason": "The policy asks for at least CONFIRM.",
            "schema": SCHEMA, "waits": "hand_over", "run_id": "kp:trace:1", "use_within_seconds": None,
        }  # fmt: skip
        found.append(desk.file(asked({"invoice": name, "euros": 40, "memo": "why"}, **{**known, **fields})))
    store.close()
    return found


SCHEMA = {
    "type": "object",
    "properties": {"invoice": {"type": "string"}, "euros": {"type": "integer"}, "memo": {"type": "string"}},
}


def state_of(url, approval):
    """The approval as it is now."""
    store = open_store(url)
    try:
        return RequestStore(store.approvals).get(approval.id)
    finally:
        store.close()
