"""A confidence with its parts as HTML."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import confidence_html
from tests.pages.reading import Elements

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def test_the_number_its_parts_penalties_and_reason_are_shown():
    found = confidence_html(
        0.6125,
        breakdown={"search_quality": 0.5, "source_agreement": None, "query_coverage": None, "other_search": None},
        penalties=["tool_failures(rate=0.50)"],
        reason="See https://example.com/a.",
        not_scored=["other_search"],
        level="confirm",
    )
    page = Elements(found)
    assert "other searchnot scored" in page.text
    for words in ("0.613", "confirm", "search quality", "0.500", "lowered by", "tools succeeded: 50 %"):
        assert words in page.text
    assert 2 == page.text.count("not evaluated")
    assert ["50"] == [element["width"] for _, element in page.elements if element.get("class") == "fill"][1:]
    assert ["https://example.com/a"] == page.links
    assert [] == page.unbalanced


def test_every_text_is_text():
    found = confidence_html(
        0.5, breakdown={HOSTILE: HOSTILE, "a": 1}, penalties=[HOSTILE], reason=HOSTILE, not_scored=["b"], level=HOSTILE
    )  # fmt: skip
    assert "img" not in Elements(found).tags
    assert 5 == found.count("&lt;img src=x")
    assert 5 == found.count("⟨U+202E⟩")


def test_without_a_score_the_parts_remain():
    found = confidence_html(None, breakdown={"search_quality": 0.25})
    assert "no confidence" in found
    assert "0.250" in found


def test_size_is_bounded():
    found = confidence_html(
        0.5,
        breakdown={f"{place}{'x' * 900}": 0.5 for place in range(9_000)},
        penalties=["y" * 900] * 9_000,
        reason="z" * 900_000,
    )
    assert len(found) < 40_000
    assert "8,970 more sub-scores are not shown." in found
    assert "8,970 more penalties are not shown." in found


@given(JSON, JSON, JSON, JSON, JSON)
def test_any_value_of_a_document_can_be_shown(score, breakdown, penalties, reason, not_scored):
    """Whatever another program wrote, the HTML is balanced and holds only the library's elements."""
    found = Elements(
        confidence_html(score, breakdown=breakdown, penalties=penalties, reason=reason, not_scored=not_scored)
    )
    assert [] == found.unbalanced
    assert found.tags <= {"div", "p", "span", "svg", "rect", "dl", "dt", "dd", "ul", "li", "a"}
