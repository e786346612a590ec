"""Blocks of two runs as HTML."""

from __future__ import annotations

import re

from grace_kp.trace import Links
from grace_kp.web.runs._alignment import aligned
from grace_kp.web.runs._beside import block_of
from tests.pages.reading import Elements
from tests.trace.html.hostile import attacked, check
from tests.trace.html.traces import document, full

LINKS = Links(step=lambda name, place: f"/runs/{name}#step-{place}")


def shown(one, two, left=300):
    return [
        block_of(block, [one, two], LINKS, left=left, is_first=False)[0]
        for block in aligned(one["steps"], two["steps"])
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


def test_markup_stays_text():
    """On both sides."""
    for page in (*shown(full(), attacked()), *shown(attacked(), full())):
        check(page)
