"""Small parts of a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import badge, facts, fold, linked, meter
from tests.pages.reading import Elements

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


@pytest.mark.parametrize(
    "part", [badge, fold, linked, lambda text: facts([(text, "x")]), lambda text: fold(text * 99, label=text)]
)
def test_texts_are_text(part):
    """Markup is shown, and characters that turn the text around are named."""
    found = part(HOSTILE)
    assert "img" not in Elements(found).tags
    assert "⟨U+202E⟩" in found


def test_levels_and_states_have_their_badge():
    """By word; other words are plain, and a kind can be chosen."""
    assert '<span class="badge escalate">escalate</span>' == badge("escalate")
    assert '<span class="badge bad">not approved</span>' == badge("not_approved")
    assert '<span class="badge">odd</span>' == badge("odd")
    assert '<span class="badge good">odd</span>' == badge("odd", "good")


@pytest.mark.parametrize(
    ("value", "width"), [(0.5, "50"), (-3, "0"), (7, "100"), (float("nan"), "0"), (1 / 3, "33.33")]
)
def test_a_meter_stays_inside_its_frame(value, width):
    """Whatever the value."""
    assert f'class="fill" width="{width}"' in meter(value)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("see https://example.com/a?b=1&c=2.", ["https://example.com/a?b=1&c=2"]),
        ("(http://example.com)", ["http://example.com"]),
        ("https://en.wikipedia.org/wiki/A_(b)", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("javascript:alert(1) data:text/html,x //example.com file:///etc/passwd", []),
        ('https://example.com"onmouseover="x', ["https://example.com"]),
        ("https://exam\u202eple.com", ["https://exam"]),
    ],
)
def test_only_web_addresses_become_links(text, addresses):
    """Of http and https; no other scheme, and nothing that ends the attribute."""
    found = Elements(linked(text))
    assert addresses == found.links
    assert all({"href", "rel"} == set(element) for tag, element in found.elements if tag == "a")


@given(st.text())
def test_any_text_stays_text(text):
    """Its tags are the library's own."""
    for found in (linked(text), fold(text), badge(text)):
        assert Elements(found).tags <= {"a", "p", "div", "details", "summary", "span", "pre"}


def test_long_texts_fold():
    """Long in characters or lines; beyond a bound the page says how much is missing."""
    assert "<details>" not in fold("x" * 600)
    assert "<details>" in fold("x" * 601)
    assert "<details>" in fold("\n" * 12)
    assert "5 more characters are not shown" in fold("x" * 20_005)
