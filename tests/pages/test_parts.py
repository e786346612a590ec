"""Parts of a page: the frame, tables, badges, links, words and safe texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import (
    badge,
    count_text,
    duration_text,
    facts,
    fold,
    hides,
    linked,
    meter,
    page,
    penalty_text,
    printable,
    safe,
    spaced,
    span_text,
    table,
    visible,
)
from tests.pages.reading import Elements

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


@pytest.mark.parametrize(
    "part", [badge, fold, linked, lambda text: facts([(text, "x")]), lambda text: fold(text * 99, label=text)]
)
def test_texts_are_text(part):
    found = part(HOSTILE)
    assert "img" not in Elements(found).tags
    assert "⟨U+202E⟩" in found


def test_levels_and_states_have_their_badge():
    assert '<span class="badge escalate">escalate</span>' == badge("escalate")
    assert '<span class="badge bad">not approved</span>' == badge("not_approved")
    assert '<span class="badge">odd</span>' == badge("odd")
    assert '<span class="badge good">odd</span>' == badge("odd", "good")


@pytest.mark.parametrize(
    ("value", "width"), [(0.5, "50"), (-3, "0"), (7, "100"), (float("nan"), "0"), (1 / 3, "33.33")]
)
def test_a_meter_stays_inside_its_frame(value, width):
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
    found = Elements(linked(text))
    assert addresses == found.links
    assert all({"href", "rel"} == set(element) for tag, element in found.elements if tag == "a")


@given(st.text())
def test_any_text_stays_text(text):
    for found in (linked(text), fold(text), badge(text)):
        assert Elements(found).tags <= {"a", "p", "div", "details", "summary", "span", "pre"}


def test_long_texts_fold():
    assert "<details>" not in fold("x" * 600)
    assert "<details>" in fold("x" * 601)
    assert "<details>" in fold("\n" * 12)
    assert "5 more characters are not shown" in fold("x" * 20_005)


def test_a_title_is_text():
    found = page('<script>alert("1")</script>\x1b[2J&\'\u202e', "<p>body</p>")
    assert "script" not in Elements(found).tags
    assert "&lt;script&gt;" in found
    assert "\x1b" not in found
    assert "\u202e" not in found


def test_a_page_stands_alone():
    found = page("Title", "")
    assert [] == Elements(found).links
    assert "default-src 'none'" in found
    assert "color-scheme: light dark" in found


def test_safe_text_fits_into_an_attribute():
    assert "&quot;&#x27;&lt;&gt;&amp;" == safe("\"'<>&")


def test_figures_are_right_aligned_and_names_head_their_rows():
    found = table(("name", "share", "reason"), [("a", "–", "x"), ("b", "0.50 to 0.70", "y")])
    assert '<th role="columnheader" scope="col" class="n">share</th>' in found
    assert '<th role="rowheader" scope="row">b</th>' in found
    assert '<td role="cell">y</td>' in found


def test_a_column_of_words_is_not_right_aligned():
    assert 'class="n"' not in table(("name", "variant"), [("a", "7")], words={"variant"})


def test_cells_of_a_wide_table_carry_their_labels():
    """So that they can stand below each other on a narrow page; the column of names needs none."""
    found = table(("a", "b", "c", "d", "e"), [(1, 2, 3, 4, 5)], name=1)
    assert 'class="wide"' in found
    assert 'data-label="a"' in found
    assert 'data-label="b"' not in found


def test_values_and_captions_are_text():
    found = table(("<i>",), [("<b>",)], caption="<u>")
    assert all(f"&lt;{tag}&gt;" in found for tag in "ibu")
    assert not any(f"<{tag}>" in found for tag in "ibu")


def test_printable_text_is_the_same_object():
    text = "東京 ok ñ"
    assert text is printable(text)


def test_control_characters_are_replaced():
    assert "a [31mb c d e f" == printable("a\x1b[31mb\nc\ud800d\u202ee\x7ff")


def test_callers_choose_kept_characters_and_replacements():
    assert "a\nb c" == printable("a\nb\tc", keep="\n")
    assert "a\\tb\\u200b" == printable("a\tb\u200b", replace=lambda character: ascii(character)[1:-1])
    assert "a b" == printable("a\n\x00b", replace=lambda character: " " if character.isspace() else "")


def test_characters_that_show_nothing_are_replaced():
    """Although `str.isprintable` accepts them: fillers, joiners, variation selectors that select nothing."""
    assert "a b c d e" == printable("a\u3164b\u034fc\ufe0fd\u2800e")
    assert "1\u26a0\ufe0f \u845b\U000e0100 a" == printable("1\u26a0\ufe0f \u845b\U000e0100\ufe0fa")


def test_a_page_names_what_it_cannot_show():
    assert "a⟨U+202E⟩b c⟨U+001B⟩⟨U+D800⟩" == visible("a\u202eb\nc\x1b\ud800")
    assert "a\nb\tc d\u3000e⟨U+000D⟩" == visible("a\r\nb\tc\u00a0d\u3000e\r", lines=True)


@given(st.text(), st.text(max_size=3))
def test_what_remains_is_printable_or_kept(text, keep):
    """Length and printable characters never change."""
    shown = printable(text, keep=keep)
    assert len(text) == len(shown)
    assert all(
        new == old or (new == " " and not (old.isprintable() and not hides(old)))
        for old, new in zip(text, shown, strict=True)
    )
    assert all(character.isprintable() or character in keep for character in shown)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"), (0.000_2, "1 µs"), (0.04, "40 µs"), (0.0994, "99 µs"), (0.0996, "0.1 ms"), (3.26, "3.3 ms"), (36.4, "36 ms"), (999.4, "999 ms"), (999.5, "1.0 s"), (59_940, "59.9 s"),
        (59_960, "1 min"), (61_000, "1 min 1 s"), (3_599_400, "59 min 59 s"), (3_600_000, "1 h"), (7_500_000, "2 h 5 min"), (-1, ""),
        (float("nan"), ""), (float("inf"), ""),
    ],
)  # fmt: skip
def test_durations_have_the_unit_that_people_use(milliseconds, text):
    assert text == duration_text(milliseconds)


def test_counts_names_and_penalties_are_words():
    assert ("1 step", "2,000 steps") == (count_text(1, "step"), count_text(2000, "step"))
    assert "not approved" == spaced("not_approved")
    assert ("no sources", "tools succeeded: 50 %", "odd") == tuple(
        map(penalty_text, ("no_sources", "tool_failures(rate=0.50)", "odd"))
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 m"), (3_600, "1 h"), (12_000, "3 h 20 m"), (86_400 * 12 + 7_200, "12 d"), (-90, "1 m")],
)  # fmt: skip
def test_spans_have_at_most_two_units(seconds, text):
    assert text == span_text(seconds)
