"""The frame of a page."""

from __future__ import annotations

from html.parser import HTMLParser

from grace_kp.pages import page, safe

HOSTILE = '<script>alert("1")</script>\x1b[2J&\'\u202e'


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"src", "href", "action", "data"}]


def test_a_title_is_text():
    """Markup in it is shown, not obeyed, and control characters are gone."""
    found = page(HOSTILE, "<p>body</p>")
    assert "script" not in Tags(found).tags
    assert "&lt;script&gt;" in found
    assert "\x1b" not in found
    assert "\u202e" not in found


def test_a_page_stands_alone():
    """It links nothing, and tells the browser to load and run nothing."""
    found = page("Title", "")
    assert [] == Tags(found).links
    assert "default-src 'none'" in found
    assert "color-scheme: light dark" in found


def test_safe_text_fits_into_an_attribute():
    """Quotes of both kinds are escaped."""
    assert "&quot;&#x27;&lt;&gt;&amp;" == safe("\"'<>&")
