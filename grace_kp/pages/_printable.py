"""Texts without the characters that a terminal or a browser obeys or hides."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159"
_SELECTORS = "\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Default-ignorable and blank characters that `str.isprintable` accepts.
_INVISIBLE = re.compile(f"[{_BLANK}{_SELECTORS}]")
_SPACE = "\u3000"
"""The ideographic space: as wide as a character, and common in Japanese text."""


def hides(character: str) -> bool:
    """Return whether a character shows nothing although `str.isprintable` accepts it."""
    return _INVISIBLE.match(character) is not None


def printable(text: str, *, keep: str = "", replace: str | Callable[[str], str] = " ") -> str:
    """Return the text with each character replaced that `str.isprintable` refuses, or that shows nothing.

    A variation selector stays after the symbol or ideograph that it belongs to.

    Args:
        text: any text.
        keep: characters that stay although they are not printable, such as line breaks.
        replace: the replacement, or a function from a character to it.
    """
    rest = text.translate(dict.fromkeys(map(ord, keep))) if keep else text
    if rest.isprintable() and (text.isascii() or not _INVISIBLE.search(text)):
        return text
    return "".join(
        character
        if character in keep or (character.isprintable() and (not hides(character) or _belongs(character, before)))
        else (replace if isinstance(replace, str) else replace(character))
        for before, character in zip(f"\0{text}", text, strict=False)
    )


def _belongs(selector: str, before: str) -> bool:
    """Return whether a variation selector chooses a form of the character before it: an emoji, or a variant of an ideograph."""
    if selector in "\ufe0e\ufe0f":
        return unicodedata.category(before) in {"So", "Sm"} and not hides(before)
    is_ideograph = "\u3400" <= before <= "\u9fff" or "\U00020000" <= before <= "\U0003ffff"
    return is_ideograph and (selector >= "\U000e0100" or "\ufe00" <= selector <= "\ufe02")


def visible(text: str, *, lines: bool = False) -> str:
    """Return the text for a page: characters that are obeyed or hidden are written as their code, such as ⟨U+202E⟩, and blanks as spaces.

    Args:
        text: any text, half surrogate pairs included.
        lines: keep line breaks and tabs.
    """
    if lines:
        return printable(text.replace("\r\n", "\n"), keep=f"\n\t{_SPACE}", replace=_code)
    return printable(text, keep=_SPACE, replace=lambda character: " " if character in "\t\n\r" else _code(character))


def _code(character: str) -> str:
    return " " if unicodedata.category(character) == "Zs" else f"⟨U+{ord(character):04X}⟩"
