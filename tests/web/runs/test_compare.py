"""Two runs side by side."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import Links
from grace_kp.web.runs._compare import align_steps, block_of
from tests.pages.reading import Elements
from tests.trace.html.traces import attacked, check, document, full
from tests.web.runs.conftest import thoughts


def compared(house, one, two):
    a, b = house.add("a", one), house.add("b", two)
    return house.visit().get(f"/runs/compare?a={a}&b={b}").text


def text_of(page):
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_the_first_difference_is_named_and_linked(house):
    """With the number of the step."""
    other = full()
    other["steps"][4]["content"] = "ok"
    page = compared(house, full(), other)
    assert "First difference: step 4 . 9 steps equal, 1 changed, 0 only in A, 0 only in B." in text_of(page)
    found = Elements(page)
    assert "#difference" in found.links
    assert 1 == found.ids.count("difference")


def test_equal_runs_say_so(house):
    """And a run beside itself, too."""
    assert "No difference: all steps are equal" in text_of(compared(house, thoughts(3), thoughts(3)))
    page = house.visit().get("/runs/compare?a=kp:trace:a&b=kp:trace:a").text
    assert "Both sides are the same run." in page


def test_a_run_that_goes_on_is_named(house):
    """The first difference is a step that only one has."""
    assert "First difference: step 3, which only B has" in text_of(compared(house, thoughts(3), thoughts(5)))


def test_two_ticked_runs_are_compared(house):
    """Another number of runs is not: the page asks for two."""
    house.add("a", thoughts(1))
    browser = house.visit()
    answer = browser.get("/runs/compare?id=kp:trace:a&id=kp:trace:b")
    assert "/runs/compare?a=kp%3Atrace%3Aa&b=kp%3Atrace%3Ab" == answer.headers["location"]
    answer = browser.get("/runs/compare?id=a&id=b&id=c")
    assert 422 == answer.status_code
    assert "3 runs selected: select exactly two" in text_of(answer.text)
    assert 200 == browser.get("/runs/compare?a=kp:trace:a").status_code


def test_an_unknown_run_is_not_found(house):
    """On either side."""
    house.add("a", thoughts(1))
    assert 404 == house.visit().get("/runs/compare?a=kp:trace:a&b=kp:trace:none").status_code


def test_long_runs_are_bounded(house):
    """Steps beyond 2,000 are named."""
    page = compared(house, thoughts(2_500), thoughts(2_100))
    assert "500 steps of one run beyond the first 2,000 are not compared" in page


def test_markup_stays_text(house):
    """In titles and steps."""
    check(compared(house, full(), attacked()).replace("<!doctype html>", ""))


def steps(words):
    return [{"type": "thought", "content": word} for word in words]


def call(tool, **arguments):
    return {"type": "tool_call", "tool": {"name": tool}, "input": arguments}


def pairs(blocks):
    return [(block.equal, [(pair.first, pair.second) for pair in block.pairs]) for block in blocks]


def test_equal_runs_are_one_block():
    """Durations do not count."""
    one, two = [{**call("a", x=1), "latency_ms": 5.0}], [{**call("a", x=1), "latency_ms": 9.0}]
    assert [(True, [(0, 0)])] == pairs(align_steps(one, two))
    assert [] == align_steps([], [])


def test_changed_steps_stand_beside_each_other():
    """Those with the same type and tool; others stand alone."""
    one = [call("a", x=1), call("b", y=1), call("c")]
    two = [call("a", x=1), call("b", y=2), {"type": "thought"}, call("c")]
    assert [(True, [(0, 0)]), (False, [(1, 1), (None, 2)]), (True, [(2, 3)])] == pairs(align_steps(one, two))


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_every_step_stands_once_and_in_order(one, two):
    """Equal pairs are equal, and the first block tells whether the runs begin alike."""
    blocks = align_steps(steps(one), steps(two))
    found = [pair for block in blocks for pair in block.pairs]
    assert list(range(len(one))) == [pair.first for pair in found if pair.first is not None]
    assert list(range(len(two))) == [pair.second for pair in found if pair.second is not None]
    for block in blocks:
        for pair in block.pairs:
            if block.equal:
                assert one[pair.first] == two[pair.second]
    if one and two:
        assert (one[0] == two[0]) == blocks[0].equal


def test_long_runs_are_aligned_up_to_a_bound():
    """Steps beyond 2,000 are not compared."""
    found = align_steps(steps("ab" * 2_000), steps("ba" * 2_000))
    assert 2_000 == sum(pair.first is not None for block in found for pair in block.pairs)


LINKS = Links(step=lambda name, place: f"/runs/{name}#step-{place}")


def shown(one, two, left=300):
    return [
        block_of(block, [one, two], LINKS, left=left, is_first=False)[0]
        for block in align_steps(one["steps"], two["steps"])
    ]


def test_the_arguments_of_both_steps_stand_side_by_side():
    """Each under its run, with a link to its step."""
    other = full()
    other["steps"][3]["input"]["order"] = 4712
    found = Elements(shown(full(), other)[1])
    assert ["order4711", "order4712"] == re.findall("order[0-9]+", found.text)
    assert ["/runs/kp:trace:1#step-3", "/runs/kp:trace:1#step-3"] == found.links


def test_a_step_of_one_run_only_is_shown_whole():
    """And the other side says that it has none."""
    other = full()
    other["steps"].append({"type": "thought", "content": "One more."})
    text = Elements(shown(full(), other)[1]).text
    assert "only in B" in text
    assert "no such step" in text
    assert "One more." in text


def test_what_differs_comes_first():
    """However many arguments are equal, and whatever their names are."""
    equal = {f"x{place}": place for place in range(100)}
    one, two = (document([{"type": "tool_call", "input": {**equal, "text": text}}]) for text in (5, 6))
    found = Elements(shown(one, two)[0]).text
    assert found.index("text5") < found.index("x00") < found.index("text6")
    assert 2 == found.count("61 more fields")


def test_a_late_difference_of_long_texts_is_shown():
    """With what stands shortly before it."""
    one, two = (document([{"type": "thought", "content": "a" * 10_000 + end}]) for end in "bc")
    text = Elements(shown(one, two)[0]).text
    assert 2 == text.count("9,900 equal characters")
    assert all("a" * 100 + end in text for end in "bc")


def test_differences_are_bounded():
    """A note gives the number of the others."""
    one = document([{"type": "thought", "content": f"a{place}"} for place in range(500)])
    two = document([{"type": "thought", "content": f"b{place}"} for place in range(500)])
    page = shown(one, two)[0]
    assert 300 == page.count('class="pair"')
    assert "200 more differing steps are not shown" in page


def test_markup_in_a_step_stays_text():
    """On both sides."""
    for page in (*shown(full(), attacked()), *shown(attacked(), full())):
        check(page)
