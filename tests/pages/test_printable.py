"""Texts for terminals, pages and tables hold no character that is obeyed or hidden there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import hides, printable, visible


def test_printable_text_is_the_same_object():
    """Most texts need no change, and get none."""
    text = "東京 ok ñ"
    assert text is printable(text)


def test_control_characters_are_replaced():
    """Escape sequences, line breaks, half surrogate pairs and changes of direction become blanks."""
    assert "a [31mb c d e f" == printable("a\x1b[31mb\nc\ud800d\u202ee\x7ff")


def test_kept_characters_stay():
    """A caller names what its output can hold."""
    assert "a\nb c" == printable("a\nb\tc", keep="\n")


def test_a_function_chooses_the_replacement():
    """An escape, a blank or nothing, by character."""
    assert "a\\tb\\u200b" == printable("a\tb\u200b", replace=lambda character: ascii(character)[1:-1])
    assert "a b" == printable("a\n\x00b", replace=lambda character: " " if character.isspace() else "")


def test_characters_that_show_nothing_are_replaced():
    """Although `str.isprintable` accepts them: fillers, joiners, variation selectors that select nothing."""
    assert "a b c d e" == printable("a\u3164b\u034fc\ufe0fd\u2800e")
    assert "1\u26a0\ufe0f \u845b\U000e0100 a" == printable("1\u26a0\ufe0f \u845b\U000e0100\ufe0fa")


def test_a_page_names_what_it_cannot_show():
    """Blanks are spaces; line breaks stay where they are wanted."""
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
