"""Words with which texts instruct a reader or an assistant, by language. Data, and the search for it; it judges no intent.

The phrases follow from how instructions to people and to assistants are worded: a request, an obligation or haste, an attempt to replace the task or to
hide it, the address of an assistant that acts for a user, and an imperative. Two different kinds of them near a value count as an instruction, or one
that has no other use. A star stands for the rest of a word. Phrases in which people are informed, such as "ignore this e-mail", are left out.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from grace_kp.confidence._argument_values import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Phrase = tuple[str, str, bool, bool, bool]
    """A phrase, its kind, whether it may begin and end inside of a word, and whether it counts only where a clause begins."""

WEIGHTS = {"request": 1, "duty": 1, "replace": 2, "address": 1, "act": 1}
"""Points of a kind near a value. A kind counts once."""
ENOUGH = 2

LANGUAGES: dict[str, dict[str, list[str]]] = json.loads(
    files("grace_kp.confidence").joinpath("instructions.json").read_text(encoding="utf-8")
)
"""By language and kind, the phrases in normal form."""
_UNSPACED = frozenset({"ja", "zh", "ko"})
"""Languages whose phrases begin and end inside of what looks like one word."""
_DISTINCT = _UNSPACED | {"ar", "hi", "pl", "ru", "tr"}
"""Languages whose imperatives have a form of their own, so they count anywhere in a sentence."""
_INITIAL = re.compile(
    r"""(?:^|[.!?:;,"'`*>)\]\n\-–—•»“”،।¡¿]|\b(?:please|then|and|to|now|do|first|must|should|bitte|und|also|et|donc|y|que|e"""
    r"""|quindi|portanto|então|en|dus|so|alors))\s*$"""
)
_WORD_GOES_ON, _IS_FIELD = re.compile(r"\w"), re.compile(r"\w|[\"']?\s?[:=]")


def _phrases_by_word() -> tuple[dict[str, list[_Phrase]], list[_Phrase]]:
    """Return the phrases by their first word, and those that begin inside of a word or are a part of one."""
    by_word: dict[str, list[_Phrase]] = {}
    parts: list[_Phrase] = []
    for language, kinds in LANGUAGES.items():
        for kind, listed in kinds.items():
            for phrase in listed:
                begins, ends = (language in _UNSPACED or at("*") for at in (phrase.startswith, phrase.endswith))
                text = phrase.strip("*")
                is_part = begins or (ends and len(words_of(text)) == 1)
                into = parts if is_part else by_word.setdefault(words_of(text)[0], [])
                into.append((text, kind, begins, ends, kind == "act" and language not in _DISTINCT))
    return by_word, parts


_BY_WORD, _PARTS = _phrases_by_word()


def find_instructions(text: str, words: frozenset[str] | set[str]) -> list[tuple[int, str, str]]:
    """Return place, kind and phrase of each instructing phrase in a text in normal form with these words, in the order of places."""
    found = {hit for word in _BY_WORD.keys() & words for hit in _hits(text, word, _BY_WORD[word])}
    letters = set(text)
    for phrase in _PARTS:
        if letters.issuperset(phrase[0]):
            found.update(_hits(text, phrase[0], [phrase]))
    return sorted(found)


def _hits(text: str, part: str, phrases: list[_Phrase]) -> Iterator[tuple[int, str, str]]:
    place = text.find(part)
    while place >= 0:
        is_inside = place > 0 and text[place - 1].isalnum() and part[0].isalnum()
        for phrase, kind, begins, ends, is_initial in phrases:
            if not text.startswith(phrase, place) or (is_inside and not begins):
                continue
            stop = _IS_FIELD if is_initial else _WORD_GOES_ON
            if not ends and phrase[-1].isalnum() and stop.match(text, place + len(phrase)):
                continue
            if not is_initial or _INITIAL.search(text, max(0, place - 10), place):
                yield place, kind, phrase
        place = text.find(part, place + len(part))
