"""A recorded call belongs to the run around it, or opens a run."""

from __future__ import annotations

import pytest

import grace_kp as gk


def types_of(trace):
    return [step.type for step in trace.steps]


def test_a_nested_agent_is_a_trace_of_its_own_linked_both_ways(grace):
    """Parent and child know each other by id, and the parent has a step for the child."""

    @grace.tool
    def look():
        return "seen"

    @grace.agent
    def child(task):
        return look()

    @grace.agent
    def parent(task):
        return child("sub-task")

    with grace.collect() as traces:
        parent("task")
    inner, outer = traces
    assert (inner.task.objective, outer.task.objective) == ("sub-task", "task")
    assert types_of(outer) == ["tool_call", "observation"]
    assert outer.steps[0].tool.name == "child"
    assert outer.grace["children"] == [inner.id]
    assert outer.grace["calls"][0]["child"] == inner.id
    assert inner.grace["parent"] == {"trace_id": outer.id, "call_id": outer.grace["calls"][0]["call_id"]}


def test_a_tool_outside_of_any_run_is_a_run_of_its_own(grace):
    """A root call opens a run, whatever it is."""

    @grace.tool
    def lonely(text):
        return text.upper()

    with grace.collect() as traces:
        assert lonely("hi") == "HI"
    assert types_of(traces[0]) == ["tool_call", "observation"]
    assert traces[0].task.objective == "hi"


def test_switched_off_nothing_is_recorded(monkeypatch):
    """GRACE_KP_ENABLED=0 leaves decorated functions as if they were not."""
    monkeypatch.setenv("GRACE_KP_ENABLED", "0")
    grace = gk.Grace(store="memory:")

    @grace.tool
    def add(a, b):
        return a + b

    @grace.agent
    def root(question):
        return add(1, 2)

    with grace.collect() as traces:
        assert root("x") == 3
        with grace.run("y") as run:
            run.thought("nobody hears this")
    assert traces == []
    with pytest.raises(RuntimeError, match="not kept"):
        _ = run.trace
