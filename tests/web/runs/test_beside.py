"""Blocks of two runs as HTML."""

from __future__ import annotations

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


def test_arguments_are_compared_one_by_one():
    """Equal ones are counted."""
    other = full()
    other["steps"][3]["input"]["order"] = 4712
    found = Elements(shown(full(), other)[1])
    assert "order47114712" in found.text
    assert "1 other equal" in found.text
    assert ["/runs/kp:trace:1#step-3", "/runs/kp:trace:1#step-3"] == found.links


def test_a_step_of_one_run_only_is_shown_whole():
    """And the other side says that it has none."""
    other = full()
    other["steps"].append({"type": "thought", "content": "One more."})
    text = Elements(shown(full(), other)[1]).text
    assert "only in B" in text
    assert "no such step" in text
    assert "One more." in text


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
