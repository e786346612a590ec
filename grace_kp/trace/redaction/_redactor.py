"""Redaction of all texts of one document. They are scanned together first, because one scan of many texts is cheaper than many scans."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from grace_kp.trace._render import storable
from grace_kp.trace.redaction._scan import scanner
from grace_kp.trace.redaction._text import redact_text
from grace_kp.trace.redaction._value import NONE, is_plain, redact_value

if TYPE_CHECKING:
    from collections.abc import Collection, Set


class Redactor:
    """Removes secrets, and identifiers if asked, from the texts and values of one document.

    Attributes:
        counts: places that were removed, by type.
    """

    __slots__ = ("_identifiers", "counts", "harmless")

    def __init__(self, *, identifiers: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._identifiers = identifiers
        self.harmless: Set[str] = NONE
        """Texts that no rule can match."""

    def expect(self, texts: Collection[str]) -> None:
        """Scan texts that are redacted next, alone or inside of values. This replaces the texts expected before."""
        self.harmless = scanner(self._identifiers).expect(texts)

    def forget(self) -> None:
        """Expect no texts any more, so that none of them is kept."""
        scanner(self._identifiers).forget()
        self.harmless = NONE

    def text(self, text: str) -> str:
        """Return the text without what must not be stored, in a form that UTF-8 can hold."""
        if text in self.harmless:
            return text
        return redact_text(storable(text), identifiers=self._identifiers, counts=self.counts)

    def uncounted(self, text: str) -> str:
        """Return what `text` returns, but count nothing: for a text that occurs more than once in the document."""
        if text in self.harmless:
            return text
        return redact_text(storable(text), identifiers=self._identifiers)

    def value(self, value: object) -> Any:
        """Return a JSON value without what must not be stored; the same object where nothing was found."""
        if type(value) is dict and is_plain(value, self.harmless):
            return value
        return redact_value(value, identifiers=self._identifiers, counts=self.counts, unaffected=self.harmless)


def texts_in(value: object, texts: list[str]) -> None:
    """Add the texts of a rendered value to the list, except for the names of fields."""
    kind = type(value)
    if kind is str:
        texts.append(value)  # type: ignore[arg-type]
    elif kind is dict:
        for item in value.values():  # type: ignore[attr-defined]
            texts_in(item, texts)
    elif kind is list:
        for item in value:  # type: ignore[attr-defined]
            texts_in(item, texts)
