"""The steps of two runs side by side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.web.runs._alignment import aligned


def steps(words):
    return [{"type": "thought", "content": word} for word in words]


def call(tool, **arguments):
    return {"type": "tool_call", "tool": {"name": tool}, "input": arguments}


def pairs(blocks):
    return [(block.equal, [(pair.first, pair.second) for pair in block.pairs]) for block in blocks]


def test_equal_runs_are_one_block():
    """Durations do not count."""
    one, two = [{**call("a", x=1), "latency_ms": 5.0}], [{**call("a", x=1), "latency_ms": 9.0}]
    assert [(True, [(0, 0)])] == pairs(aligned(one, two))
    assert [] == aligned([], [])


def test_changed_steps_stand_beside_each_other():
    """Those with the same type and tool; others stand alone."""
    one = [call("a", x=1), call("b", y=1), call("c")]
    two = [call("a", x=1), call("b", y=2), {"type": "thought"}, call("c")]
    assert [(True, [(0, 0)]), (False, [(1, 1), (None, 2)]), (True, [(2, 3)])] == pairs(aligned(one, two))


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_every_step_stands_once_and_in_order(one, two):
    """Equal pairs are equal, and the first block tells whether the runs begin alike."""
    blocks = aligned(steps(one), steps(two))
    found = [pair for block in blocks for pair in block.pairs]
    assert list(range(len(one))) == [pair.first for pair in found if pair.first is not None]
    assert list(range(len(two))) == [pair.second for pair in found if pair.second is not None]
    for block in blocks:
        for pair in block.pairs:
            if block.equal:
                assert one[pair.first] == two[pair.second]
    if one and two:
        assert (one[0] == two[0]) == blocks[0].equal


def test_long_runs_are_bounded():
    """Steps beyond 2,000 are not compared."""
    found = aligned(steps("ab" * 2_000), steps("ba" * 2_000))
    assert 2_000 == sum(pair.first is not None for block in found for pair in block.pairs)
