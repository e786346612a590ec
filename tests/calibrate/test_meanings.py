"""Weights in units that people know."""

from __future__ import annotations

import math

import pytest

from grace_kp import calibrate as cal
from grace_kp.calibrate._head import weights_of_head
from tests.calibrate.examples import drawn_runs, run

PROFILE = cal.fit(*drawn_runs(300))


def test_a_weight_says_what_its_step_does_to_the_odds():
    """The odds of a prediction change by exactly this factor when a tool is called."""
    found = {each.name: each for each in weights_of_head(PROFILE.heads["end"])}
    steps = [("tool_call", ("find", {"order": 1})), ("observation", "order 1 is ready")]
    row = cal.features(run(steps))
    called, other = (PROFILE.explain(cal.Features("end", row.values, tools)).confidence for tools in (("send",), ()))
    odds = called / (1 - called) / (other / (1 - other))
    assert found["tool:send"].odds == pytest.approx(odds, rel=1e-6)
    assert ("send was called", "yes instead of no") == (found["tool:send"].words, found["tool:send"].step)


def test_the_largest_effects_come_first():
    """By a change of one standard deviation; the sign is that of the effect."""
    found = weights_of_head(PROFILE.heads["end"])
    assert sorted(found, key=lambda each: -abs(each.spread)) == list(found)
    assert all((each.odds > 1) == (each.spread > 0) for each in found if each.spread)
    assert {"twice as much", "0.1 more"} <= {each.step for each in found}


def test_a_step_is_no_larger_than_what_was_seen():
    """Objectives of nearly one length cannot double, and beyond the fitted runs a value counts no more."""
    found = {each.name: each for each in weights_of_head(PROFILE.heads["end"])}["objective_length"]
    columns = PROFILE.heads["end"].columns
    place = columns.names.index("objective_length")
    most = abs(found.spread) * (columns.high - columns.low)[place] / columns.scale[place]
    assert "from the lowest to the highest" == found.step
    assert abs(math.log(found.odds)) == pytest.approx(most)
