"""Texts in the index of words: which trigrams a run must have to contain a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

LENGTH = 3
MOST_TRIGRAMS = 24
"""Trigrams of a text that are looked up. What contains them is compared with the whole text anyway."""
MOST_TERMS = 400
"""Trigrams that begin with a text of one or two characters. With more of them the text is frequent, and reading texts finds it soon."""


def expression_of(connection: sqlite3.Connection, text: str) -> str | None:
    """Return an expression that matches every run that contains a text, and others.

    Args:
        connection: the index.
        text: case-folded, at least one character.

    Returns:
        The expression. None if the text is too short and too frequent for one, "" if no run contains it.
    """
    if len(text) >= LENGTH:
        return " AND ".join(map(_quoted, _trigrams(text)))
    beginning = connection.execute(
        "SELECT term FROM words_terms WHERE term >= ? AND term < ? LIMIT ?", (text, _after(text), MOST_TERMS + 1)
    )
    terms = [term for (term,) in beginning]
    return None if len(terms) > MOST_TERMS else " OR ".join(map(_quoted, terms))


def _trigrams(text: str) -> list[str]:
    """Return the trigrams of a text; of a long one some from all its parts."""
    found = list(dict.fromkeys(text[start : start + LENGTH] for start in range(len(text) - LENGTH + 1)))
    step = -(-len(found) // MOST_TRIGRAMS)
    return found[::step]


def _after(text: str) -> str:
    """Return the first text behind all that begin with this one."""
    last = ord(text[-1]) + 1
    if 0xD800 <= last <= 0xDFFF:
        last = 0xE000
    return text[:-1] + chr(last) if last <= 0x10FFFF else text + chr(0x10FFFF)


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
