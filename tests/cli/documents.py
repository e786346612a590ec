"""Traces for commands to show."""

from __future__ import annotations

import json

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
