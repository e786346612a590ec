"""Thoughts and calls of models stand among the calls of a run, in order."""

from __future__ import annotations

import pytest

from grace_kp.record import ModelCall


def test_a_model_call_is_a_thought_with_its_tokens(grace):
    """Its text becomes a step; its usage is summed up for the run."""
    with grace.run("q") as run:
        for text, tokens in (("first", 3), ("", 4)):
            usage = {"input_tokens": tokens, "total_tokens": tokens}
            run.model_called(ModelCall("m", start=0, end=2_000_000, text=text, usage=usage))
    grace.flush()
    trace = run.trace
    assert [("thought", "first", 2.0)] == [(step.type, step.content, step.latency_ms) for step in trace.steps]
    assert {"input_tokens": 7, "total_tokens": 7} == trace.grace["usage"]
    expected = [
        {"model": "m", "status": "ok", "latency_ms": 2.0, "input_tokens": 3, "total_tokens": 3, "step": 0},
        {"model": "m", "status": "ok", "latency_ms": 2.0, "input_tokens": 4, "total_tokens": 4},
    ]
    assert expected == trace.grace["model_calls"]


def test_a_failed_model_that_the_run_survives_is_a_recovery(grace):
    with grace.run("q") as run:
        run.model_called(ModelCall("m", start=0, end=1, status="error", error=("Timeout", "too slow")))
        run.thought("again")
    assert ["error_recovery", "thought"] == [step.type for step in run.trace.steps]
    assert "Recovered from m: Timeout: too slow" == run.trace.steps[0].content


@pytest.mark.parametrize("limit", [1, 2])
def test_events_beyond_the_bound_are_counted(limit):
    import grace_kp as gk

    with gk.Grace(store="memory:", evaluator=None, embedder=None, max_steps=limit) as grace, grace.run("q") as run:
        for _ in range(3):
            run.thought("hm")
            run.model_called(ModelCall("m", start=0, end=1, text="ha"))
    assert 6 - limit == run.trace.grace["dropped_steps"]
