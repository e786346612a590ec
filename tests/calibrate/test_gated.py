"""Gated actions are read from any trace, and the run before each is rebuilt from what had ended."""

from __future__ import annotations

import grace_kp as gk
from grace_kp import calibrate as cal
from tests.calibrate.gated import decision, document, live


def test_models_and_their_dict_form_read_the_same():
    """A `ReasoningTrace`, and what `to_dict` returns."""
    traces = live([[True, False], [False]])
    for policy in (gk.Thresholds(0.99, 0.8, 0.5), "strict"):
        first, second = cal.replay(traces, policy), cal.replay([trace.to_dict() for trace in traces], policy)
        assert first.to_dict() == second.to_dict()


def test_calls_of_another_form_are_no_evidence():
    """They are skipped; what stands beside them counts."""
    trace = document(1, decision(step=4), correct=True)
    before = cal.replay([trace], "grace").actions.a.curve.scores
    trace["grace"]["calls"] += [
        "text",
        None,
        {},
        {"observation": "1", "status": "ok"},
        {"observation": True, "status": "error"},
    ]
    trace["steps"] = "text"
    assert before == cal.replay([trace], "grace").actions.a.curve.scores


def test_a_step_that_is_no_number_is_unknown():
    """Nothing is guessed from it."""
    for step in (-1, 2.0, True, "3", None):
        assert 0 == cal.replay([document(1, decision(step=step))], "grace").actions.decisions


def test_an_undecided_entry_is_left_out_by_its_own_reason():
    """Its call ended before its level was decided."""
    entry = {"action": "pay", "outcome": "cancelled", "arguments": {}}
    assert {"no decision was made": 1} == cal.replay([document(1, entry)], gk.Thresholds()).actions.left_out
