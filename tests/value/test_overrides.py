"""The rules that correct a value score: each applies exactly when it says so, in order."""

import pytest

from grace_kp.value import ValueScorer, evaluate_value
from tests.value.traces import trace


@pytest.mark.parametrize(
    ("steps", "success", "overrides"),
    [
        (["thought"], True, ("single_thought",)),
        ([("thought", "a")], True, ("single_thought", "low_tool_diversity")),
        (["observation"], True, ()),
        (["error_recovery"] * 2, True, ()),
        (["error_recovery"] * 3, True, ("error_recovery_bonus",)),
        (["error_recovery"] * 3, False, ()),
        ([("error_recovery", "a")] * 3, True, ("error_recovery_bonus", "low_tool_diversity")),
        ([("tool_call", "a"), ("tool_call", "a")], True, ("low_tool_diversity",)),
        ([("tool_call", "a"), ("tool_call", "b")], True, ()),
        ([], True, ()),
    ],
)
def test_overrides(steps, success, overrides):
    """Each override applies exactly when its rule says so, and the score tells which did, in order."""
    assert overrides == ValueScorer().score(trace(steps, success=success)).overrides


def test_overrides_apply_on_top_of_each_other():
    """A single thought that carries a tool is 0.1 less 0.1."""
    assert 0.0 == evaluate_value(trace([("thought", "a")]))
    assert 0.1 == evaluate_value(trace(["thought"]))
