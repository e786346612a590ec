"""The command line as a program of its own, and a recorded chat to give it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests import warm

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GRACE_KP_DATA", ROOT.parent / "shared" / "data"))
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


SIDE_BY_SIDE = """
import json, os, runpy, sys
children = []
for arguments in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        sys.argv = ["grace-kp", *arguments]
        runpy.run_module("grace_kp.cli", run_name="__main__", alter_sys=True)
        raise RuntimeError("the program did not end")
    children.append(child)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
"""


def at_once(*commands, cwd, imports=()):
    """Run `grace-kp` once for each of these lists of arguments, all at the same time; return the exit codes."""
    command = [sys.executable, "-c", SIDE_BY_SIDE, json.dumps(commands)]
    ran = warm.run(command, imports=imports, cwd=cwd, capture_output=True, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


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
