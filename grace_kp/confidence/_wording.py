"""Wording of a text: hedging, refusal, apology, trouble, a stated confidence, and the words shared with another text.

Lists of phrases, not a model: English, and a little Japanese. Texts are cut first, so that the cost has a bound.
"""

from __future__ import annotations

import json
import operator
import re
from importlib.resources import files

MAX_WORDS_FROM = 4_000
"""Characters that are searched for phrases."""

_LISTS = json.loads(files("grace_kp.confidence").joinpath("wording.json").read_text(encoding="utf-8"))
"""Phrases by kind in English and in Japanese, words of trouble, and results that say nothing."""
_FAILED = ("Error", "Traceback (most recent call last)", "エラー", '{"error":', "{'error':")
"""Beginnings of the results of failed calls."""

_TO_SPACES = dict.fromkeys((*range(48), *range(58, 65), *range(91, 97), *range(123, 128)), " ")
_SEPARATORS = re.compile(r"[\W_]+")
MAX_WIDE = 600
"""Characters of a word without spaces whose pairs are taken."""
_STATED = re.compile(
    r"(?:confidence|confident|certainty|probability|確信度|自信|信頼度)[^0-9\n(]{0,24}(?:\([^)\n]{0,20}\)[^0-9\n]{0,8})?([01]?\.\d{1,4}|\d{1,3}(?:\.\d{1,3})?)\s{0,2}(%|percent|パーセント|/\s?10\b|/\s?100\b)?"
    r"|\b(\d{1,3}(?:\.\d{1,3})?)\s{0,2}(%|percent)\s+(?:confident|certain|sure)",
    re.IGNORECASE,
)
_STATES = ("confiden", "certain", "probability", "sure", "確信度", "自信", "信頼度")
_SHORT = 3
_WIDE = "\u3040"


def plain(text: str) -> str:
    """Return the beginning of a string in lower case, with a space for each punctuation mark, and a space at both ends."""
    text = text[:MAX_WORDS_FROM]
    if text.isascii():
        return f" {' '.join(text.translate(_TO_SPACES).lower().split())} "
    return f" {_SEPARATORS.sub(' ', text.lower()).strip()} "


def count_phrases(words: str, kind: str) -> int:
    """Count the phrases of a kind in a string that `plain` returned."""
    phrases = _LISTS[kind]
    return sum(phrase in words for phrase in (phrases["en"] if words.isascii() else phrases["en"] + phrases["ja"]))


def shows_failure(text: str) -> bool:
    """Return whether a result begins as that of a failed call."""
    return text.lstrip()[:40].startswith(_FAILED)


def shows_trouble(text: str) -> bool:
    """Return whether the beginning of a result names a problem; weaker than `shows_failure`."""
    beginning = text[:240].lower()
    return any(word in beginning for word in _LISTS["trouble"])


def is_empty_result(text: str) -> bool:
    """Return whether a result says nothing."""
    return len(text) < 24 and text.strip().lower() in _LISTS["empty"]


def stated_confidence(text: str) -> float | None:
    """Return the last confidence that a string states, 0 to 1; None if it states none, or a number that cannot be a share.

    "Confidence: 0.8", "I am 85 % sure" and "確信度: 7/10" state one.
    """
    ending = text[-MAX_WORDS_FROM:]
    lower = ending.lower()
    if not any(word in lower for word in _STATES):
        return None
    found = None
    for found in _STATED.finditer(ending):  # noqa: B007 — the last one counts
        pass
    if found is None:
        return None
    number, unit = (found[1], found[2]) if found[1] is not None else (found[3], found[4])
    value = float(number)
    if unit is not None:
        value /= 10 if unit.startswith("/") and not unit.endswith("100") else 100
    elif value > 1:
        value /= 100
    return value if 0 <= value <= 1 else None


def terms_of(words: str) -> set[str]:
    """Return the distinct words of three or more characters, and each number, of a string that `plain` returned.

    Japanese is written without spaces; its words are taken to be all pairs of neighbouring characters.
    """
    found = set(words.split())
    if words.isascii():
        return {word for word in found if len(word) >= _SHORT or word.isdigit()}
    result: set[str] = set()
    for word in found:
        if word >= _WIDE:
            word = word[:MAX_WIDE]
            result.update(map(operator.add, word, word[1:]))
        elif len(word) >= _SHORT or word.isdigit():
            result.add(word)
    return result
