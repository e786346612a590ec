"""Selection of the rules that can match a text.

The scan tests necessary conditions of the rules. A rule that is selected without a match costs time and changes nothing. A text is
read word by word. Short words are remembered with their flags, because most words of a text have occurred before.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import partial
from itertools import accumulate, filterfalse
from typing import TYPE_CHECKING, Any

from grace_kp.trace.redaction._commands import BARE, FILES, LABELS, OPTIONS, SENTENCES, VENDOR_NAMES
from grace_kp.trace.redaction._patterns import ADDRESSES, HEADERS, IDENTIFIERS, JSON_TOKENS, KEY_FILES
from grace_kp.trace.redaction._places import PLACES_AND_NAMES
from grace_kp.trace.redaction._rule import RUN_LENGTH, Rule, lower
from grace_kp.trace.redaction._vendors import VENDOR_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence, Set

# In the order of application: a secret that can be part of a longer one comes after it.
SECRETS: tuple[Rule, ...] = (
    KEY_FILES
    + ADDRESSES
    + JSON_TOKENS
    + VENDOR_RULES
    + HEADERS
    + FILES
    + OPTIONS
    + (PLACES_AND_NAMES,)
    + SENTENCES
    + LABELS
    + VENDOR_NAMES
    + BARE
)


def candidates(text: str, *, identifiers: bool, after: Rule | None = None) -> Sequence[Rule]:
    """Return the rules that can match, in the order of application; with `after` only those behind this rule."""
    rules = scanner(identifiers).rules(text)
    if after is None:
        return rules
    place = _ORDER[after]
    return [rule for rule in rules if _ORDER[rule] > place]


_ORDER = {rule: place for place, rule in enumerate(SECRETS + IDENTIFIERS)}
_SCANS: dict[bool, Scan] = {}


def scanner(identifiers: bool) -> Scan:
    """Return the scan of the process; it is built once, when the first text is redacted."""
    scan = _SCANS.get(identifiers)
    if scan is None:
        scan = _SCANS[identifiers] = Scan(identifiers)
    return scan


class Scan:
    """The selection of rules, with a memory of short texts that no rule changes: names, types and arguments recur in every trace."""

    __slots__ = ("_expected", "_harmless", "_others", "_rules", "_word_flags", "known")
    MAX_TEXTS = 4_000
    MAX_LENGTH = 256
    MAX_WORDS = 20_000
    LONGEST_WORD = 24
    LONGEST_EXPECTED = 100_000
    """Characters of a text; longer ones are scanned when they are redacted, which bounds the memory."""

    def __init__(self, identifiers: bool) -> None:
        rules = self._rules = SECRETS + IDENTIFIERS if identifiers else SECRETS
        self._word_flags = _WordFlags(rules)
        self.known: set[str] = set()
        """Short texts that no rule changes."""
        self._expected: dict[str, Sequence[Rule]] = {}
        self._harmless: set[str] = set()
        self._others: dict[str, int] = {}

    def rules(self, text: str) -> Sequence[Rule]:
        """Return the rules that can match; none for a text in memory."""
        if text in self.known:
            return ()
        rules = self._expected.pop(text, None)
        return self._candidates([text])[0] if rules is None else rules

    def remember(self, texts: Iterable[str]) -> None:
        """Keep the short ones of these texts; a full memory is emptied first."""
        if len(self.known) >= self.MAX_TEXTS:
            self.known.clear()
        limit = self.MAX_LENGTH
        self.known.update([text for text in texts if len(text) <= limit])

    def expect(self, texts: Collection[str]) -> Set[str]:
        """Scan texts that are redacted next, and return those that no rule can match.

        The rules for the others are kept, so that no text is scanned twice. If all texts are in memory, the result is the memory
        itself, which other threads may change.
        """
        self.forget()
        if self.known.issuperset(texts):
            return self.known
        known = self.known.intersection(texts)
        new = [
            text for text in set(texts).difference(known) if len(text) <= self.LONGEST_EXPECTED and _is_encodable(text)
        ]
        harmless = []
        for text, rules in zip(new, self._candidates(new), strict=True):
            if rules:
                self._expected[text] = rules
            else:
                harmless.append(text)
        self.remember(harmless)
        return known.union(harmless)

    def forget(self) -> None:
        """Expect no texts any more."""
        self._expected.clear()

    def _candidates(self, texts: list[str]) -> list[Sequence[Rule]]:
        all_harmless, is_harmless = self._harmless.issuperset, self._harmless.__contains__
        suspects: list[set[str]] = []
        for text in texts:
            words = text.split()
            suspects.append(set() if all_harmless(words) else set(filterfalse(is_harmless, words)))
        flags = self._flags_of(set().union(*suspects))
        return [
            self._selected(text, words, flags) if words else () for text, words in zip(texts, suspects, strict=True)
        ]

    def _flags_of(self, words: set[str]) -> dict[str, int]:
        """Return the flags of words, and remember those of new words."""
        flags: dict[str, int] = {}
        new = []
        others = self._others
        for word in words:
            known = others.get(word)
            if known is None:
                new.append(word)
            else:
                flags[word] = known
        if not new:
            return flags
        if len(self._harmless) + len(others) > self.MAX_WORDS:
            self._harmless.clear()
            others.clear()
        for word, seen in zip(new, self._word_flags.of(new), strict=True):
            flags[word] = seen
            if len(word) > self.LONGEST_WORD:
                continue
            if seen:
                others[word] = seen
            else:
                self._harmless.add(word)
        return flags

    def _selected(self, text: str, words: set[str], flags: dict[str, int]) -> Sequence[Rule]:
        seen = 0
        for word in words:
            seen |= flags[word]
        if not seen:
            return ()
        low = lower(text)
        rules = [self._rules[place] for place in _places(self._word_flags.rules(seen, low))]
        return [
            rule
            for rule in rules
            if (not rule.runs or seen & _LONG_RUN) and (not rule.also or _has_any(low, rule.also))
        ]


def _has_any(text: str, parts: tuple[str, ...]) -> bool:
    for part in parts:  # noqa: SIM110 - twice as fast as any() with a generator
        if part in text:
            return True
    return False


def _places(bits: int) -> list[int]:
    places = []
    while bits:
        lowest = bits & -bits
        places.append(lowest.bit_length() - 1)
        bits ^= lowest
    return places


def _is_encodable(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Texts as shapes: which characters of keys follow each other, and which kinds of characters do.
_KEY = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_RUN = "k" * RUN_LENGTH
_TO_RUNS = bytes(ord("k") if byte in _KEY + b"_-" else byte if byte > 127 else ord(" ") for byte in range(256))
_LONG_KEY = "k" * 40
_TO_LONG_KEYS = bytes(ord("k") if byte in _KEY + b"+/" else byte if byte > 127 else ord(" ") for byte in range(256))
_TO_SHAPE = bytes(
    ord("0") if byte in b"0123456789" else ord("A") if byte in _KEY[:26] else ord("a") if byte in _KEY[26:52] else byte
    for byte in range(256)
)
_LONG_RUN = 1  # the first flag
_FEW = 8


class _WordFlags:
    """Flags of words. A flag is one bit: a condition of rules that a single word meets, or the beginning of a substring."""

    __slots__ = ("_begun", "_find_ascii", "_find_other", "_local", "_long_key", "_meaning", "_patterns", "_shapes")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        # By flag: the rules that each of these substrings selects; None stands for the flag itself.
        self._meaning: list[list[tuple[str | None, int]]] = [[]]
        self._long_key = self._new([(None, sum(1 << place for place, rule in enumerate(rules) if rule in BARE))])
        self._patterns: list[tuple[re.Pattern[str], Rule, int]] = []
        ascii_needles: dict[str, int] = {}
        other_needles: dict[str, int] = {}
        shapes: dict[str, int] = {}
        for place, rule in enumerate(rules):
            bit = 1 << place
            for shape in rule.shapes:
                shapes[shape] = shapes.get(shape, 0) | bit
            if rule.word is not None:
                self._patterns.append((re.compile(rule.word, rule.flags), rule, self._new([(None, bit)])))
                continue
            for need in rule.needs:
                needles = ascii_needles if need.isascii() else other_needles
                needles[need] = needles.get(need, 0) | bit
        self._shapes = [(shape, self._new([(None, bits)])) for shape, bits in shapes.items()]
        self._begun: dict[str, int] = {}
        self._local: dict[str, list[Rule]] = {}
        self._find_ascii, self._find_other = self._finder(ascii_needles, rules), self._finder(other_needles, rules)

    def _new(self, meaning: list[tuple[str | None, int]]) -> int:
        self._meaning.append(meaning)
        return 1 << len(self._meaning) - 1

    def rules(self, seen: int, low: str) -> int:
        """Return the bits of the rules of these flags for a text in lower case."""
        found = 0
        for flag in _places(seen):
            for needle, bits in self._meaning[flag]:
                if needle is None or needle in low:
                    found |= bits
        return found

    def of(self, words: list[str]) -> list[int]:
        """Return the flags of each word."""
        text = "".join([f"{word} " for word in words])
        low = lower(text)
        data = text.encode("utf-8", "surrogatepass")
        found = [0] * len(words)
        starts = [0, *accumulate([len(word) + 1 for word in words])]

        def mark(find: Callable[[int], int], flag: int, local: Sequence[Rule] = ()) -> bool:
            """Set a flag on each word in which `find` succeeds, unless its rules leave that word unchanged."""
            place = find(0)
            if place < 0:
                return False
            while place >= 0:
                word = bisect_right(starts, place) - 1
                if not local or any(rule.sub(words[word], None) is not words[word] for rule in local):
                    found[word] |= flag
                place = find(starts[word + 1])
            return True

        def mapped(table: bytes) -> str:
            return data.translate(table).decode("utf-8", "surrogatepass")

        for part in self._find_ascii(low) | (set() if low.isascii() else self._find_other(low)):
            mark(partial(low.find, part), self._begun[part], self._local.get(part, ()))
        mark(partial(mapped(_TO_LONG_KEYS).find, _LONG_KEY), self._long_key)
        has_runs = mark(partial(mapped(_TO_RUNS).find, _RUN), _LONG_RUN)
        if self._shapes:
            shaped = mapped(_TO_SHAPE)
            for shape, flag in self._shapes:
                mark(partial(shaped.find, shape), flag)
        for pattern, rule, flag in self._patterns:
            if (has_runs or not rule.runs) and any(need in low for need in rule.needs):
                mark(partial(_place, pattern, text), flag)
        return found

    def _finder(self, needles: dict[str, int], rules: tuple[Rule, ...]) -> Callable[[str], set[str]]:
        """Return a function from a text in lower case to the beginnings of substrings in it, each of which has its own flag."""
        tree: dict[str, Any] = {}
        longer: dict[str, list[tuple[str | None, int]]] = {}
        first_words = {needle: _first_word(needle) for needle in needles}
        for needle, word in sorted(first_words.items(), key=lambda item: len(item[1])):
            # The tree holds the shortest text of each beginning; longer ones are searched afterwards.
            shorter = next((word[:end] for end in range(1, len(word)) if word[:end] in longer), word)
            if shorter == word and word not in longer:
                branch = tree
                for character in word:
                    branch = branch.setdefault(character, {})
            longer.setdefault(shorter, []).append((None if needle == shorter else needle, needles[needle]))
        for shortest, meaning in longer.items():
            self._begun[shortest] = self._new(meaning)
            selected = [rules[place] for _, bits in meaning for place in _places(bits)]
            if all(rule.local for rule in selected):
                self._local[shortest] = selected
        expression = _alternatives(tree)
        search, find_all = re.compile(expression).search, re.compile(f"(?=({expression}))").findall

        def begun_in(text: str) -> set[str]:
            """Return the shortest substrings found. A lookahead at every place finds many at once; few are found faster one after another."""
            begun: set[str] = set()
            match = search(text)
            while match is not None:
                begun.add(match[0])
                if len(begun) > _FEW:
                    return begun.union(find_all(text, match.start()))
                match = search(text, match.start() + 1)
            return begun

        return begun_in


def _first_word(needle: str) -> str:
    """Return the first word of a substring, with a blank if the word ends there, as every word does in the text that is searched."""
    word = needle.split()[0]
    return word if word == needle.lstrip() else f"{word} "


def _place(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.search(text, start)
    return -1 if match is None else match.start()


def _alternatives(tree: dict[str, Any]) -> str:
    """Return a regular expression for the texts of a tree, which decides character by character."""
    branches = [re.escape(character) + _alternatives(branch) for character, branch in sorted(tree.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""
