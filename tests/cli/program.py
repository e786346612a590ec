"""The command line as a program of its own, and a recorded chat to give it."""

from __future__ import annotations

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
