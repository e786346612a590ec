"""Traces with gated actions: recorded live, and made by hand."""

from __future__ import annotations

import contextlib
import itertools

import grace_kp as gk
from grace_kp.testing import make_grace


def live(plan, **settings):
    """Record a run for each list of outcomes of a tool, True for success; after each call two actions are gated."""
    settings.setdefault("reviewer", lambda request: gk.InterventionResponse("proceed", reviewer="ana"))
    with make_grace(**settings) as grace:

        @grace.tool
        def look(ok):
            if not ok:
                raise ValueError("no such page")
            return "page"

        @grace.gate
        @grace.tool
        def send(to):
            return "sent"

        @grace.gate(floor="confirm")
        @grace.tool
        def pay(euros):
            return "paid"

        @grace.agent
        def agent(outcomes):
            for number, ok in enumerate(outcomes):
                try:
                    look(ok)
                except ValueError:
                    grace.thought("again")
                for action in (send, pay):
                    with contextlib.suppress(gk.ActionNotApproved):
                        action(number)

        with grace.collect() as traces:
            for outcomes in plan:
                agent(outcomes)
        return list(traces)


def decision(score=0.5, level="confirm", action="pay", **fields):
    """An entry of a gate."""
    return {"action": action, "outcome": "executed", "level": level, "score": score, **fields}


def document(number, *decisions, correct=None, **grace):
    """A trace in its dict form, with two calls of which the second failed."""
    if correct is not None:
        grace["feedback"] = [{"correct": correct, "source": "user", "at": "2026-01-02T03:04:05.000Z"}]
    if decisions:
        grace["decisions"] = list(decisions)
    calls = [
        {"call_id": "c0", "name": "look", "tool_call": 0, "status": "ok", "observation": 1},
        {"call_id": "c1", "name": "look", "tool_call": 2, "status": "error", "observation": 3},
    ]
    kinds = ("tool_call", "observation", "tool_call", "observation")
    steps = [
        {"step_id": place, "type": kind, **({"tool": {"name": "look"}, "input": {}} if kind == "tool_call" else {"content": "page"})}
        for place, kind in enumerate(kinds)
    ]  # fmt: skip
    return {
        "@context": "https://openknowledgepulse.org/schema/v1",
        "@type": "ReasoningTrace",
        "id": f"kp:trace:{number:08d}",
        "metadata": {
            "created_at": "2026-01-02T03:04:05.000Z", "agent_id": "kp:agent:a", "task_domain": "code", "success": True,
            "quality_score": 0.5, "visibility": "private", "privacy_level": "private",
        },
        "task": {"objective": f"run {number}"},
        "steps": steps,
        "outcome": {"result_summary": "done", "confidence": 0.8},
        "grace": {"status": "completed", "calls": calls, **grace},
    }  # fmt: skip


def answered(answer, reviewer, *, ms=5_000.0, arguments=None, **fields):
    """An entry of a gate that a person answered."""
    response = {"action": answer, "reviewer": reviewer, "response_time_ms": ms, "timeout_reached": False}
    return decision(response=response, arguments=arguments or {"n": 1}, **fields)


def numbered(*groups):
    """Documents of lists of decisions, numbered."""
    return [document(number, *decisions) for number, decisions in zip(itertools.count(), groups, strict=False)]
