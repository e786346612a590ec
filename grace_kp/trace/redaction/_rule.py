"""One rule of redaction: what a secret or an identifier looks like, and what a string must contain before the rule can match.

A rule carries necessary conditions for the scan. A string that lacks one of them has no match.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

MARK = "[REDACTED:{}]"
SHORTEST = 15
"""No rule matches a word of fewer ASCII letters, digits and `_`."""

Decision = Callable[["re.Match[str]"], bool]
Found = tuple[int, int, str]
"""Start and end of a place in a string, and its replacement."""


@dataclass(frozen=True, slots=True, eq=False)
class RedactionRule:
    """One kind of string to remove. Patterns are ASCII: `\\w`, `\\s` and case folding know no other letters."""

    kind: str
    """The type in the replacement."""
    vendor: str
    """Whose format it is, or what it describes."""
    pattern: str
    """A regular expression; it is compiled on first use."""
    needs: tuple[str, ...] = ()
    """Lower-case substrings; a string without any of them cannot match. Empty if there are none."""
    also: tuple[str, ...] = ()
    """More such substrings; a string without any of these cannot match, either."""
    begins: bool = False
    """Whether every match begins with one of `needs`, so that only these places are visited."""
    shapes: tuple[str, ...] = ()
    """Instead of `needs`, parts of a word with 0 for digits, A for capitals and a for small letters. A word has no blanks in it."""
    word: str | None = None
    """A regular expression that a word of every match contains, where `needs` alone would select the rule for most texts."""
    local: bool = False
    """Whether no match has a blank in it, so that each word alone shows whether the rule changes it."""
    flags: int = 0
    """Of `re`; `ASCII` is always added."""
    keeps: Decision | None = None
    """Returns whether a match stays as it is. Otherwise a mark replaces it, except for its group `key`."""
    tail: Callable[[re.Match[str]], str] | None = None
    """Returns what stays behind the mark."""
    _compiled: re.Pattern[str] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flags", self.flags | re.ASCII)

    def sub(self, text: str, counts: Counter[str] | None) -> str:
        """Return the string with every match replaced; the same object where nothing was replaced."""
        return self.replace(text, self._find(text), counts)

    def _find(self, text: str) -> Iterator[Found]:
        if self._compiled is None:
            object.__setattr__(self, "_compiled", re.compile(self.pattern, self.flags))
        pattern: Any = self._compiled
        keeps, tail = self.keeps, self.tail
        mark, has_key = MARK.format(self.kind), "key" in pattern.groupindex
        for match in self._matches_at(text, pattern) if self.begins else pattern.finditer(text):
            if keeps is None or not keeps(match):
                put = f"{match['key'] if has_key else ''}{mark}{'' if tail is None else tail(match)}"
                if put != match[0]:
                    yield match.start(), match.end(), put

    def _matches_at(self, text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        end = 0  # no match begins inside of another
        for place in places_of(self.needs, lower(text)):
            if place >= end and (match := pattern.match(text, place)) is not None:
                yield match
                end = match.end()

    def replace(self, text: str, places: Iterable[Found], counts: Counter[str] | None) -> str:
        """Return the string with its places replaced and counted; the same object where there are none."""
        parts: list[str] = []
        end = 0
        for start, stop, put in places:
            if counts is not None:
                counts[self.kind] += 1
            parts += (text[end:start], put)
            end = stop
        return "".join((*parts, text[end:])) if parts else text


def lower(text: str) -> str:
    """Return the string in lower case with every character in its place: one capital letter would become two characters."""
    return text.lower() if text.isascii() else text.replace("İ", "I").lower()


def places_of(needles: Iterable[str], text: str) -> list[int]:
    """Return the places in a lower-case string where any of the needles begins, in order."""
    found: set[int] = set()
    for needle in needles:
        place = text.find(needle)
        while place >= 0:
            found.add(place)
            place = text.find(needle, place + 1)
    return sorted(found)
