"""A runtime in memory, without models and without a reviewer; recording that raises its own errors; and what runs recorded."""

from __future__ import annotations

import pytest

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


@pytest.fixture
def strict(monkeypatch):
    """An error inside recording fails the test instead of being survived."""
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "1")


def calls_of(trace):
    """(input, observation's content) of every call, each observation found by its call id."""
    steps = trace.steps
    return [(steps[call["tool_call"]].input, steps[call["observation"]].content) for call in trace.grace["calls"]]


def searched(grace, search):
    with grace.run("look it up"):
        search()
    (trace,) = grace.store.query()
    return trace.grace["calls"][0]["search"]


def agent_of(grace):
    @grace.tool
    def look(query):
        return query

    @grace.agent
    def agent(question):
        return look(question)

    return agent
