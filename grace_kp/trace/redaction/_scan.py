"""Redact one string: the order of the rules, their passes, and the selection of the rules that can match.

The time is linear in the string: each rule reads it once in a pass, and the number of passes is bounded. If the last pass still changes
the string, everything from the first change on is removed.

The scan tests necessary conditions of the rules. A rule that is selected without a match costs time and changes nothing. A string is
read word by word. Short words are remembered with their flags, because most words of a string have occurred before.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate, filterfalse
from operator import or_
from typing import TYPE_CHECKING, Any

from grace_kp.levels import PrivacyLevel
from grace_kp.trace._render import error_text, storable
from grace_kp.trace.redaction._patterns import (
    ADDRESSES,
    BARE,
    FILES,
    HEADERS,
    IDENTIFIERS,
    JSON_TOKENS,
    KEY_FILES,
    LABELS,
    OPTIONS,
    SENTENCES,
    VENDOR_NAMES,
)
from grace_kp.trace.redaction._places import PLACES_AND_NAMES
from grace_kp.trace.redaction._rule import MARK, RedactionRule, lower
from grace_kp.trace.redaction._vendors import VENDOR_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence, Set


# In the order of application: a secret that can be part of a longer one comes after it.
SECRETS: tuple[RedactionRule, ...] = (
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


MAX_PASSES = 4
MAX_CHARACTERS = 16_000_000
UNSCANNED = "unscanned"
UNSCANNED_MARK = MARK.format(UNSCANNED)


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text after redaction, and the number of removed places by type (types without any are absent)."""

    text: str
    counts: dict[str, int]


def redact(text: str, level: str | PrivacyLevel = PrivacyLevel.AGGREGATED) -> Redaction:
    """Replace secrets, and from `aggregated` on identifiers too, by `[REDACTED:<type>]`.

    Types of secrets: connection_string, bearer_token, api_key, password (any secret recognised by its name). Types of
    identifiers: email, phone, ip, filepath (below a home folder), card, iban, ssn. The type `unscanned` marks the rest of a
    string that exceeds the budget. Redacting a redacted string changes nothing.

    Args:
        text: any string.
        level: `private` removes secrets; `aggregated` and `federated` remove identifiers too.

    Raises:
        ValueError: an unknown level.
        TypeError: not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"redact takes a string, not {type(text).__name__}")
    counts: Counter[str] = Counter()
    return Redaction(redact_text(text, identifiers=PrivacyLevel(level).hides_identifiers, counts=counts), dict(counts))


def redacted_error(error: BaseException, max_text: int = 500) -> str:
    """Return type and message of an error as one bounded string without secrets, for logs and messages."""
    return redact_text(error_text(error, max_text), identifiers=False)


def redact_text(text: str, *, identifiers: bool, counts: Counter[str] | None = None) -> str:
    """Return the string without secrets, and without identifiers if asked; the same object if it holds none.

    `counts` is increased by the number of removed places, by type.
    """
    scan = scanner(identifiers)
    if text in scan.known:
        return text
    if len(text) > MAX_CHARACTERS:
        text = _without_rest(text, MAX_CHARACTERS, counts)
    # A removed secret may have hidden the beginning of the next one.
    for number in range(MAX_PASSES):
        before = text
        text = _one_pass(text, identifiers, counts)
        if text is before:
            if number == 0:
                scan.remember([text])
            return text
    return _without_changes(text, identifiers, counts)


def _one_pass(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    """Apply every rule once, in order.

    A rule that changes the string may let a later one match, or keep it from matching. So the string is scanned again after a change,
    and the result does not depend on how many rules a scan lets through.
    """
    scan = scanner(identifiers)
    rules, place = scan.rules(text), 0
    while place < len(rules):
        rule = rules[place]
        place += 1
        changed = rule.sub(text, counts)
        if changed is not text:
            text, place = changed, 0
            rules = [later for later in scan.rules(text) if _ORDER[later] > _ORDER[rule]]
    return text


def _without_changes(text: str, identifiers: bool, counts: Counter[str] | None) -> str:
    """Remove the first place that another pass would change, and everything after it."""
    after = _one_pass(text, identifiers, None)
    if after is text:
        return text
    same = next((place for place, (old, new) in enumerate(zip(text, after, strict=False)) if old != new), 0)
    short = _without_rest(text, same, counts)
    if all(rule.sub(short, None) is short for rule in scanner(identifiers).rules(short)):
        return short
    return UNSCANNED_MARK


def _without_rest(text: str, place: int, counts: Counter[str] | None) -> str:
    """Cut at the last blank before the place, so that no half of a secret is left behind."""
    if counts is not None:
        counts[UNSCANNED] += 1
    cut = max(text.rfind(blank, 0, place) for blank in " \n\t")
    return text[: cut + 1] + UNSCANNED_MARK


_ORDER = {rule: place for place, rule in enumerate(SECRETS + IDENTIFIERS)}
_SCANS: dict[bool, Scan] = {}


def scanner(identifiers: bool) -> Scan:
    """Return the scan of the process; it is built when the first string is redacted."""
    scan = _SCANS.get(identifiers)
    if scan is None:
        scan = _SCANS[identifiers] = Scan(identifiers)
    return scan


class Scan:
    """The selection of rules, with a memory of short texts that no rule changes: names, types and arguments recur in every trace.

    Words have flags. A flag is one bit: a condition of rules that a single word meets, or the beginning of a substring.
    """

    __slots__ = (
        "_begun", "_expected", "_find_ascii", "_find_other", "_harmless", "_local", "_long_key", "_meaning", "_others", "_patterns", "_rules", "_shapes", "known",
    )  # fmt: skip
    MAX_TEXTS = 4_000
    MAX_LENGTH = 256
    MAX_WORDS = 20_000
    LONGEST_WORD = 24
    LONGEST_EXPECTED = 100_000
    """Characters of a string; longer ones are scanned when they are redacted, which bounds the memory."""

    def __init__(self, identifiers: bool) -> None:
        rules = self._rules = SECRETS + IDENTIFIERS if identifiers else SECRETS
        self.known: set[str] = set()
        """Short texts that no rule changes."""
        self._expected: dict[str, Sequence[RedactionRule]] = {}
        """Strings that are redacted next, with the rules that can match, so that none is scanned twice."""
        self._harmless: set[str] = set()
        self._others: dict[str, int] = {}
        # By flag: the rules that each of these substrings selects; None means the flag itself.
        self._meaning: list[list[tuple[str | None, int]]] = []
        self._long_key = self._new([(None, sum(1 << place for place, rule in enumerate(rules) if rule in BARE))])
        self._patterns: list[tuple[re.Pattern[str], RedactionRule, int]] = []
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
        self._local: dict[str, list[RedactionRule]] = {}
        self._find_ascii, self._find_other = self._finder(ascii_needles, rules), self._finder(other_needles, rules)

    def rules(self, text: str) -> Sequence[RedactionRule]:
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
        """Scan strings that are redacted next, and return those that no rule can match.

        If all strings are in memory, the result is the memory itself, which other threads may change.
        """
        self._expected.clear()
        if self.known.issuperset(texts):
            return self.known
        known = self.known.intersection(texts)
        short = (text for text in set(texts).difference(known) if len(text) <= self.LONGEST_EXPECTED)
        new = [text for text in short if storable(text) is text]
        candidates = dict(zip(new, self._candidates(new), strict=True))
        harmless = [text for text, rules in candidates.items() if not rules]
        self._expected.update((text, rules) for text, rules in candidates.items() if rules)
        self.remember(harmless)
        return known.union(harmless)

    def _candidates(self, texts: list[str]) -> list[Sequence[RedactionRule]]:
        all_harmless, is_harmless = self._harmless.issuperset, self._harmless.__contains__
        suspects: list[set[str]] = []
        for text in texts:
            words = text.split()
            suspects.append(set() if all_harmless(words) else set(filterfalse(is_harmless, words)))
        flags = self._flags_of(set().union(*suspects))
        return [self._select(text, map(flags.__getitem__, words)) for text, words in zip(texts, suspects, strict=True)]

    def _flags_of(self, words: set[str]) -> dict[str, int]:
        """Return the flags of words, and remember those of new words."""
        others = self._others
        flags = {word: seen for word in words if (seen := others.get(word)) is not None}
        if len(flags) == len(words):
            return flags
        new = [word for word in words if word not in flags]
        if len(self._harmless) + len(others) > self.MAX_WORDS:
            self._harmless.clear()
            others.clear()
        for word, seen in zip(new, self._scan_words(new), strict=True):
            flags[word] = seen
            if len(word) > self.LONGEST_WORD:
                continue
            if seen:
                others[word] = seen
            else:
                self._harmless.add(word)
        return flags

    def _select(self, text: str, flags: Iterable[int]) -> Sequence[RedactionRule]:
        seen = reduce(or_, flags, 0)
        if not seen:
            return ()
        low, found = lower(text), 0
        for flag in _places(seen):
            for needle, bits in self._meaning[flag]:
                if needle is None or needle in low:
                    found |= bits
        rules = [self._rules[place] for place in _places(found)]
        return [rule for rule in rules if not rule.also or any(map(low.__contains__, rule.also))]

    def _new(self, meaning: list[tuple[str | None, int]]) -> int:
        self._meaning.append(meaning)
        return 1 << len(self._meaning) - 1

    def _scan_words(self, words: list[str]) -> list[int]:
        """Return the flags of each word."""
        text = "".join([f"{word} " for word in words])
        low = lower(text)
        data = text.encode("utf-8", "surrogatepass")
        found = [0] * len(words)
        starts = [0, *accumulate([len(word) + 1 for word in words])]

        def mark(find: Callable[[int], int], flag: int, local: Sequence[RedactionRule] = ()) -> None:
            """Set a flag on each word in which `find` succeeds, unless its rules leave that word unchanged."""
            place = find(0)
            while place >= 0:
                word = bisect_right(starts, place) - 1
                if not local or any(rule.sub(words[word], None) is not words[word] for rule in local):
                    found[word] |= flag
                place = find(starts[word + 1])

        def translate(table: bytes) -> str:
            return data.translate(table).decode("utf-8", "surrogatepass")

        for part in self._find_ascii(low) | (set() if low.isascii() else self._find_other(low)):
            mark(partial(low.find, part), self._begun[part], self._local.get(part, ()))
        mark(partial(translate(_TO_LONG_KEYS).find, _LONG_KEY), self._long_key)
        if self._shapes:
            shaped = translate(_TO_SHAPE)
            for shape, flag in self._shapes:
                mark(partial(shaped.find, shape), flag)
        for pattern, rule, flag in self._patterns:
            if any(need in low for need in rule.needs):
                mark(partial(_place, pattern, text), flag)
        return found

    def _finder(self, needles: dict[str, int], rules: tuple[RedactionRule, ...]) -> Callable[[str], set[str]]:
        """Return a function from a lower-case string to the beginnings of substrings in it, each of which has its own flag."""
        tree: dict[str, Any] = {}
        longer: dict[str, list[tuple[str | None, int]]] = {}
        # The first word of each, with a blank if it ends there, as every word does in the string that is searched.
        firsts = [(needle, needle.split()[0]) for needle in needles]
        firsts = [(needle, word if word == needle.lstrip() else f"{word} ") for needle, word in firsts]
        for needle, word in sorted(firsts, key=lambda item: len(item[1])):
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


def _places(bits: int) -> list[int]:
    places = []
    while bits:
        lowest = bits & -bits
        places.append(lowest.bit_length() - 1)
        bits ^= lowest
    return places


# Strings as shapes: which characters of keys follow each other, and which kinds of characters do.
_KEY = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LONG_KEY = "k" * 40
_TO_LONG_KEYS = bytes(ord("k") if byte in _KEY + b"+/" else byte if byte > 127 else ord(" ") for byte in range(256))
_TO_SHAPE = bytes(
    ord("0") if byte in b"0123456789" else ord("A") if byte in _KEY[:26] else ord("a") if byte in _KEY[26:52] else byte
    for byte in range(256)
)
_FEW = 8


def _place(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.search(text, start)
    return -1 if match is None else match.start()


def _alternatives(tree: dict[str, Any]) -> str:
    """Return a regular expression for the strings of a tree, which decides character by character."""
    branches = [re.escape(character) + _alternatives(branch) for character, branch in sorted(tree.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""
