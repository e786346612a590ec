"""Texts without the characters that a terminal obeys or hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def printable(text: str, *, keep: str = "", replace: str | Callable[[str], str] = " ") -> str:
    """Return the text with each character replaced that `str.isprintable` refuses.

    Args:
        text: any text.
        keep: characters that stay although they are not printable, such as line breaks.
        replace: the replacement, or a function from a character to it.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in keep
        else (replace if isinstance(replace, str) else replace(character))
        for character in text
    )
