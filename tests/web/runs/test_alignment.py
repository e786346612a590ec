"""The steps of two runs side by side."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.web.runs._alignment import aligned, differing


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


def test_a_difference_marks_words():
    """Taken out and put in; long texts stand as a whole."""
    assert "paid <del>5</del><ins>7</ins> euros" == differing("paid 5 euros", "paid 7 euros")
    assert "&lt;b&gt;" == differing("<b>", "<b>")
    assert "<ins>new</ins>" == differing(None, "new")
    assert differing("a b " * 900, "c").startswith("<del>a b")
    assert "a b " * 900 + "<ins>c</ins>" == differing("a b " * 900, "a b " * 900 + "c")


def test_a_late_difference_of_long_texts_is_shown():
    """With what stands shortly before it."""
    found = differing("a" * 10_000 + "b", "a" * 10_000 + "c")
    assert "9,900 equal characters" in found
    assert found.endswith("b</del><ins>" + "a" * 100 + "c</ins>")


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_difference_holds_both_texts(one, two):
    """Without the marks of one side, it is the other."""
    found = differing(one, two)
    left = html.unescape(re.sub("<ins>.*?</ins>|</?del>", "", found, flags=re.DOTALL))
    right = html.unescape(re.sub("<del>.*?</del>|</?ins>", "", found, flags=re.DOTALL))
    from grace_kp.pages import visible

    assert (visible(one, lines=True), visible(two, lines=True)) == (left, right)
