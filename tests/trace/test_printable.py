"""Texts for terminals, pages and tables hold no character that is obeyed or hidden there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.trace import printable


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


@given(st.text(), st.text(max_size=3))
def test_what_remains_is_printable_or_kept(text, keep):
    """Length and printable characters never change."""
    shown = printable(text, keep=keep)
    assert len(text) == len(shown)
    assert all(new == old or (new == " " and not old.isprintable()) for old, new in zip(text, shown, strict=True))
    assert all(character.isprintable() or character in keep for character in shown)
