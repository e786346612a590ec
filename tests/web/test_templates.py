"""Templates: what they show is escaped, and nothing in it is hidden."""

from __future__ import annotations

import math

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from grace_kp.web._templates import templates, when


@pytest.fixture(scope="module")
def render():
    look = templates()
    return lambda text, **values: look.from_string(text).render(**values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<script>", "&lt;script&gt;"),
        ('" onclick="x', "&#34; onclick=&#34;x"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("a\x00\x1b[31mb", "a⟨U+0000⟩⟨U+001B⟩[31mb"),
        ("a\nb", "a\nb"),
        (None, ""),
        (0, "0"),
        (Markup("<b>ours</b>"), "<b>ours</b>"),
    ],
)
def test_what_is_shown_is_escaped_and_visible(render, value, expected):
    """HTML of ours is the exception."""
    assert expected == render("{{ value }}", value=value)


def test_a_name_that_is_missing_is_an_error(render):
    """A page with a hole in it is not shown."""
    with pytest.raises(UndefinedError):
        render("{{ missing }}")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, '<time datetime="1970-01-01T00:00:00.000Z">1970-01-01 00:00:00 UTC</time>'),
        (1_764_104_400.5, '<time datetime="2025-11-25T21:00:00.500Z">2025-11-25 21:00:00 UTC</time>'),
        (None, "never"),
        (math.inf, "never"),
        (math.nan, "never"),
        (1e30, "never"),
    ],
)
def test_a_time_is_in_utc_and_for_scripts(seconds, expected):
    """What has no time is in words."""
    assert expected == when(seconds)


def test_words_for_never_are_escaped():
    """Whatever they are."""
    assert "&lt;no&gt;" == when(None, "<no>")
