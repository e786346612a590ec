"""Documents of any form are read."""

from __future__ import annotations

from grace_kp.trace import ReasoningTrace, run_timeline
from tests.trace.html.traces import full


def test_a_trace_and_its_document_look_the_same():
    """Both forms are accepted."""
    assert run_timeline(full()) == run_timeline(ReasoningTrace.model_validate(full()))


def test_values_of_other_types_do_no_harm():
    """Numbers that are none, booleans as numbers, lists as objects."""
    steps = [
        None,
        5,
        {"step_id": True, "type": 7, "latency_ms": "long", "tool": [], "input": "x"},
        {"latency_ms": 10**400},
    ]
    document = {
        "steps": steps,
        "grace": {"calls": 5, "decisions": [None, {"step": -1}], "model_calls": {}, "duration_ms": float("nan")},
    }
    assert 'id="step-3"' in run_timeline(document)
    assert '<ol class="steps">' in run_timeline({})
