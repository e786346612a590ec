"""Search inside a run."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import safe, visible
from grace_kp.web.runs._find import marked, matching_steps, with_context
from tests.trace.html.hostile import documents
from tests.trace.html.traces import full


def test_steps_are_found_by_everything_they_show():
    """Texts, tools, arguments, models, errors, and the gate before them; whatever the case."""
    for query, expected in (
        ("CUSTOMER", [0]),
        ("gemini", [0]),
        ("refund policy", [1]),
        ("policy.md", [1, 2]),
        ("返金", [7]),
        ("ben", [8]),
    ):
        assert expected == matching_steps(full(), query)
    assert [] == matching_steps(full(), "nothing like it")
    assert [] == matching_steps({}, "a")


@given(documents())
def test_any_document_is_searched(document):
    """Without an error."""
    count = len(document["steps"]) if isinstance(document.get("steps"), list) else 0
    assert set(matching_steps(document, "a")) <= set(range(count))


def test_context_is_the_step_before_and_after():
    """Once each, within the run."""
    assert [0, 1, 3, 4, 5, 6] == with_context([0, 4, 5], 7)
    assert [8, 9] == with_context([9], 10)


def test_a_match_is_marked_in_texts_only():
    """Attributes and names of elements stay as they are."""
    page = '<a href="/a">a &amp; A</a>'
    assert '<a href="/a"><mark>a</mark> &amp; <mark>A</mark></a>' == marked(page, "a")
    assert '<a href="/a">a <mark>&amp;</mark> A</a>' == marked(page, "&")


@given(st.text(max_size=30), st.text(min_size=1, max_size=3))
def test_marks_change_nothing_but_marks(text, query):
    """Without them the page reads as before, and stays escaped."""
    page = f'<p title="{safe(text)}">{safe(text)}</p>'
    found = marked(page, query)
    assert visible(text) == html.unescape(re.sub("</?mark>|</?p[^>]*>", "", found))
    assert page.split(">")[0] == found.split(">")[0]
