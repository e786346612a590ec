"""Two runs side by side."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.web.runs._compare import align_steps
from tests.pages.reading import Elements
from tests.trace.html.hostile import attacked, check
from tests.trace.html.traces import full
from tests.web.runs.conftest import thoughts


def compared(house, one, two):
    a, b = house.add("a", one), house.add("b", two)
    return house.visit().get(f"/runs/compare?a={a}&b={b}").text


def text_of(page):
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_the_first_difference_is_named_and_linked(house):
    """With the number of the step, and the arguments of both steps side by side."""
    other = full()
    other["steps"][3]["input"]["order"] = 4712
    page = compared(house, full(), other)
    assert "First difference: step 3 . 9 steps equal, 1 changed, 0 only in A, 0 only in B." in text_of(page)
    found = Elements(page)
    assert "#difference" in found.links
    assert 1 == found.ids.count("difference")
    assert {"/runs/kp:trace:a?from=3#step-3", "/runs/kp:trace:b?from=3#step-3"} <= set(found.links)
    assert ["4711", "4712"] == re.findall("471[0-9]", text_of(page.partition('id="difference"')[2]))[:2]


def test_equal_runs_say_so(house):
    """And a run beside itself, too."""
    assert "No difference: all steps are equal" in text_of(compared(house, thoughts(3), thoughts(3)))
    page = house.visit().get("/runs/compare?a=kp:trace:a&b=kp:trace:a").text
    assert "Both sides are the same run." in page


def test_a_run_that_goes_on_is_named(house):
    """The first difference is a step that only one has; the other side says that it has none."""
    text = text_of(compared(house, thoughts(3), thoughts(5)))
    for words in ("First difference: step 3, which only B has", "only in B", "no such step", "thought 4."):
        assert words in text


def test_two_ticked_runs_are_compared(house):
    """Another number of runs is not: the page asks for two. An unknown run is not found."""
    house.add("a", thoughts(1))
    browser = house.visit()
    answer = browser.get("/runs/compare?id=kp:trace:a&id=kp:trace:b")
    assert "/runs/compare?a=kp%3Atrace%3Aa&b=kp%3Atrace%3Ab" == answer.headers["location"]
    answer = browser.get("/runs/compare?id=a&id=b&id=c")
    assert 422 == answer.status_code
    assert "3 runs selected: select exactly two" in text_of(answer.text)
    assert 200 == browser.get("/runs/compare?a=kp:trace:a").status_code
    assert 404 == browser.get("/runs/compare?a=kp:trace:a&b=kp:trace:none").status_code


def test_long_runs_are_bounded(house):
    """Steps beyond 2,000 are named, and so is the number of differing steps that are not shown."""
    one, two = thoughts(2_500), thoughts(2_100)
    for step in two["steps"][:500]:
        step["content"] += "!"
    page = compared(house, one, two)
    assert "500 steps of one run beyond the first 2,000 are not compared" in page
    assert 299 == page.count('class="pair"')
    assert "more differing steps are not shown here" in page


def test_markup_stays_text(house):
    """In titles and steps."""
    check(compared(house, full(), attacked()).replace("<!doctype html>", ""))


def steps(words):
    return [{"type": "thought", "content": word} for word in words]


def call(tool, **arguments):
    return {"type": "tool_call", "tool": {"name": tool}, "input": arguments}


def test_changed_steps_stand_beside_each_other():
    """Those with the same type and tool; others stand alone. Durations do not count."""
    one = [{**call("a", x=1), "latency_ms": 5.0}, call("b", y=1), call("c")]
    two = [{**call("a", x=1), "latency_ms": 9.0}, call("b", y=2), {"type": "thought"}, call("c")]
    assert [(True, [(0, 0)]), (False, [(1, 1), (None, 2)]), (True, [(2, 3)])] == align_steps(one, two)
    assert [] == align_steps([], [])


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_every_step_stands_once_and_in_order(one, two):
    """Equal pairs are equal, and the first block tells whether the runs begin alike."""
    blocks = align_steps(steps(one), steps(two))
    found = [pair for _, pairs in blocks for pair in pairs]
    assert list(range(len(one))) == [first for first, _ in found if first is not None]
    assert list(range(len(two))) == [second for _, second in found if second is not None]
    assert all(one[first] == two[second] for is_equal, pairs in blocks if is_equal for first, second in pairs)
    if one and two:
        assert (one[0] == two[0]) == blocks[0][0]
