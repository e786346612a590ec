"""A whole run in one file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace.html import run_page
from tests.pages.reading import Elements, problems
from tests.trace.html.traces import document, full

HOSTILE = '<img src=x onerror=alert(1)></title><script>alert(1)</script>"&\u202e'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def filled(value):
    """A document with the same value in place of every text."""
    if isinstance(value, dict):
        return {name: filled(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(filled, value))
    return HOSTILE if isinstance(value, str) else value


def test_the_file_holds_the_whole_run():
    """Objective, figures, steps, durations, tree and JSON, in the order of its headings."""
    found = run_page(full())
    page = Elements(found)
    headings = [tag for tag, _ in page.elements if tag in {"h1", "h2"}]
    assert "h1" == headings[0]
    assert 1 == headings.count("h1")
    for words in ("Steps", "Durations", "Tree", "JSON", "Refunded 45.00"):
        assert words in page.text
    assert [] == problems(found)


def test_the_browser_is_told_to_run_and_load_nothing():
    """Whatever the file should hold by mistake."""
    policies = [
        element["content"]
        for tag, element in Elements(run_page(full())).elements
        if tag == "meta" and "http-equiv" in element
    ]
    assert ["default-src 'none'; style-src 'unsafe-inline'"] == policies


def test_every_text_of_a_trace_is_text():
    """In the title, too."""
    found = run_page(filled(full()))
    assert [] == problems(found)
    assert "\u202e" not in found


def test_a_long_json_is_cut_with_a_note():
    """So that a mail program can open the file."""
    found = run_page(document([{"type": "thought", "content": "x" * 2_500_000}]))
    assert "more characters are not shown here." in found
    assert len(found) < 2_200_000


def test_a_tree_of_many_steps_is_folded():
    """A short one is open."""
    steps = [{"type": "thought", "content": "x"} for _ in range(61)]
    assert "<details><summary>calls" in run_page(document(steps))
    assert "<details open><summary>calls" in run_page(document(steps[:60]))


@given(JSON)
def test_any_document_can_be_shown(value):
    """Another program may have written it."""
    parts = dict.fromkeys(("id", "metadata", "task", "steps", "outcome", "grace"), value)
    for run in (
        parts,
        {"grace": dict.fromkeys(full()["grace"], value), "steps": [value, {"type": value, "tool": {"name": value}}]},
    ):
        found = Elements(run_page(run))
        assert [] == found.unbalanced
        assert "script" not in found.tags
