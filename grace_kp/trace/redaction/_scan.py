"""Selection of the rules that can match a text: in a single pass of google-re2 if it is installed, else by substrings.

Both scans test necessary conditions of the rules. A rule that is selected without a match costs time and changes nothing, so the
redacted text is the same with either scan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from typing import Any

from grace_kp.trace.redaction._commands import BARE, FILES, LABELS, OPTIONS, SENTENCES, VENDOR_NAMES
from grace_kp.trace.redaction._groups import PLACES
from grace_kp.trace.redaction._identifiers import IDENTIFIERS
from grace_kp.trace.redaction._named_rule import NAMES
from grace_kp.trace.redaction._patterns import ADDRESSES, HEADERS, JSON_TOKENS, KEY_FILES
from grace_kp.trace.redaction._rule import RUN_LENGTH, Rule, lower
from grace_kp.trace.redaction._vendors import VAGUE, VENDOR_RULES

# In the order of application: a secret that can be part of a longer one comes after it.
SECRETS: tuple[Rule, ...] = (
    KEY_FILES
    + ADDRESSES
    + JSON_TOKENS
    + VENDOR_RULES
    + HEADERS
    + FILES
    + OPTIONS
    + (PLACES, NAMES)
    + SENTENCES
    + LABELS
    + VENDOR_NAMES
    + BARE
)

Scan = Callable[[str], Sequence[Rule]]


def candidates(text: str, *, identifiers: bool, after: Rule | None = None) -> Sequence[Rule]:
    """Return the rules that can match, in the order of application; with `after` only those behind this rule."""
    rules = (_SCANS.get(identifiers) or scanner(identifiers))(text)
    if after is None:
        return rules
    place = _ORDER[after]
    return [rule for rule in rules if _ORDER[rule] > place]


_ORDER = {rule: place for place, rule in enumerate(SECRETS + IDENTIFIERS)}


_SCANS: dict[bool, Scan] = {}


def scanner(identifiers: bool) -> Scan:
    """Return the fastest scan of this installation; it is built once, when the first text is redacted."""
    scan = _SCANS[identifiers] = Remembering(compiled_scan(identifiers) or pure_scan(identifiers))
    return scan


def is_known(text: str, *, identifiers: bool) -> bool:
    """Return whether the text is remembered as one that no rule changes."""
    scan = _SCANS.get(identifiers)
    return isinstance(scan, Remembering) and text in scan.known


def remember(text: str, *, identifiers: bool) -> None:
    """Note that no rule changes this text."""
    scan = _SCANS.get(identifiers)
    if isinstance(scan, Remembering):
        scan.remember([text])


SEPARATOR = "\n\0\n"
"""Stands between texts that are scanned together. To every condition of a rule it is like the end of a text."""
MAX_TOGETHER = 8_192
"""Characters that are scanned together, so that no scan takes long, and one secret makes few other texts suspicious."""


def known_texts(texts: Collection[str], *, identifiers: bool) -> Set[str] | None:
    """Return the memory of texts that no rule changes if it holds all of these texts, else None. Other threads may change it."""
    scan = _SCANS.get(identifiers)
    return scan.known if isinstance(scan, Remembering) and scan.known.issuperset(texts) else None


def unaffected(texts: Collection[str], *, identifiers: bool) -> set[str]:
    """Return texts that no rule can match.

    Texts are scanned together up to `MAX_TOGETHER` characters. Longer texts, and those beside a suspicious one, are left out.
    """
    scan = _SCANS.get(identifiers) or scanner(identifiers)
    found = set(texts)
    if sum(map(len, found)) > MAX_TOGETHER:
        found = {text for text in found if len(text) <= MAX_TOGETHER}
    if isinstance(scan, Remembering):
        new, search = list(found.difference(scan.known)), scan.scan
    else:
        new, search = list(found), scan
    for part in _parts(new):
        joined = SEPARATOR.join(part)
        if not _is_encodable(joined) or search(joined):
            found.difference_update(part)
        elif isinstance(scan, Remembering):
            scan.remember(part)
    return found


def _parts(texts: list[str]) -> Iterator[list[str]]:
    """Yield lists of texts that are short enough to be scanned together."""
    if sum(map(len, texts)) <= MAX_TOGETHER:
        if texts:
            yield texts
        return
    part: list[str] = []
    length = 0
    for text in texts:
        length += len(text)
        if length > MAX_TOGETHER:
            yield part
            part, length = [], len(text)
        part.append(text)
    yield part


def _is_encodable(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Remembering:
    """A scan with a memory of short texts that no rule changes: names, types and arguments recur in every trace."""

    __slots__ = ("known", "scan")
    MAX_TEXTS = 4_000
    MAX_LENGTH = 256

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        """The scan without the memory."""
        self.known: set[str] = set()
        """The texts in memory."""

    def __call__(self, text: str) -> Sequence[Rule]:
        """Return the rules that can match; none for a text in memory."""
        return () if text in self.known else self.scan(text)

    def remember(self, texts: Iterable[str]) -> None:
        """Keep the short ones of these texts; a full memory is emptied first."""
        if len(self.known) >= self.MAX_TEXTS:
            self.known.clear()
        limit = self.MAX_LENGTH
        self.known.update([text for text in texts if len(text) <= limit])


def compiled_scan(identifiers: bool) -> Scan | None:
    """Return the scan by google-re2; None if it is not installed."""
    try:
        import re2
    except ImportError:
        return None
    rules = SECRETS + IDENTIFIERS if identifiers else SECRETS
    options = re2.Options()
    options.max_mem = 1 << 28
    found = re2.Set.SearchSet(options)
    for rule in rules:
        found.Add(rule.necessary)
    found.Compile()
    match = found.Match
    pure: list[Scan] = []

    def scan(text: str) -> Sequence[Rule]:
        try:
            places = match(text)
        except UnicodeEncodeError:  # half a surrogate pair
            if not pure:
                pure.append(pure_scan(identifiers))
            return pure[0](text)
        return [rules[place] for place in sorted(places)] if places else ()

    return scan


# Texts as shapes: which characters of keys follow each other, and which kinds of characters do.
_KEY = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_RUN = b"k" * RUN_LENGTH
_TO_RUNS = bytes(ord("k") if byte in _KEY + b"_-" else ord(" ") for byte in range(256))
_LONG_KEY = b"k" * 40
_TO_LONG_KEYS = bytes(ord("k") if byte in _KEY + b"+/" else ord(" ") for byte in range(256))
_TO_SHAPE = bytes(
    ord("0") if byte in b"0123456789" else ord("A") if byte in _KEY[:26] else ord("a") if byte in _KEY[26:52] else byte
    for byte in range(256)
)
_AROUND = 64  # characters beside a run in which the rest of its format stands


def pure_scan(identifiers: bool) -> Scan:
    """Return the scan in pure Python."""
    rules = SECRETS + IDENTIFIERS if identifiers else SECRETS
    ascii_needles, other_needles = _Needles(), _Needles()
    shapes: dict[bytes, int] = {}
    vague: list[tuple[str, re.Pattern[str], int]] = []
    vague_in_runs: list[tuple[str, re.Pattern[str], int]] = []
    gates: dict[tuple[str, ...], int] = {}
    with_runs = long_keys = 0
    for place, rule in enumerate(rules):
        bit = 1 << place
        with_runs |= bit if rule.runs else 0
        if rule.also:
            gates[rule.also] = gates.get(rule.also, 0) | bit
        if rule in BARE:
            long_keys |= bit
        elif not VAGUE.isdisjoint(rule.needs):
            for need in rule.needs:
                (vague_in_runs if rule.runs else vague).append((need, re.compile(rule.necessary, rule.flags), bit))
        for shape in rule.shapes:
            shapes[shape] = shapes.get(shape, 0) | bit
        for need in rule.needs:
            (ascii_needles if need.isascii() else other_needles).add(need, bit)
    find_ascii, find_other = ascii_needles.compiled(), other_needles.compiled()

    def scan(text: str) -> Sequence[Rule]:
        low = lower(text)
        found = find_ascii(low)
        if not low.isascii():
            found |= find_other(low)
        for parts, bits in gates.items():
            if found & bits and not any(part in low for part in parts):
                found &= ~bits
        for need, pattern, bit in vague:
            if need in low and pattern.search(text) is not None:
                found |= bit
        data = text.encode("utf-8", "surrogatepass")
        if _LONG_KEY in data.translate(_TO_LONG_KEYS):
            found |= long_keys
        if shapes:
            shape = data.translate(_TO_SHAPE)
            for part, bits in shapes.items():
                if part in shape:
                    found |= bits
        mapped = data.translate(_TO_RUNS)
        if _RUN not in mapped:
            found &= ~with_runs
        else:
            runs = _runs(data, mapped)
            low_runs = runs.lower()
            for need, pattern, bit in vague_in_runs:
                if need in low_runs and pattern.search(runs) is not None:
                    found |= bit
        return _selected(rules, found) if found else ()

    return scan


def _selected(rules: tuple[Rule, ...], found: int) -> Sequence[Rule]:
    selected = []
    while found:
        lowest = found & -found
        selected.append(rules[lowest.bit_length() - 1])
        found ^= lowest
    return selected


_FEW = 8


_MAX_WORDS = 20_000
_LONGEST_WORD = 24


class _Needles:
    """Substrings with the bits of their rules, searched together.

    A text is searched word by word, and words without any of the substrings are remembered: most words of a text have occurred before.
    """

    __slots__ = ("_rules",)

    def __init__(self) -> None:
        self._rules: dict[str, int] = {}

    def add(self, needle: str, rules: int) -> None:
        """Add a substring for the rules of these bits."""
        if needle not in VAGUE:
            self._rules[needle] = self._rules.get(needle, 0) | rules

    def compiled(self) -> Callable[[str], int]:
        """Return a function from a text to the bits of all rules of which it contains a substring."""
        tree: dict[str, Any] = {}
        longer: dict[str, list[tuple[str, int]]] = {}
        first_words = {needle: needle.split()[0] for needle in self._rules}
        for needle, word in sorted(first_words.items(), key=lambda item: len(item[1])):
            # The tree holds the shortest text of each beginning; longer ones are searched afterwards.
            shorter = next((word[:end] for end in range(1, len(word)) if word[:end] in longer), word)
            if shorter == word and word not in longer:
                branch = tree
                for character in word:
                    branch = branch.setdefault(character, {})
            longer.setdefault(shorter, []).append((needle, self._rules[needle]))
        expression = _alternatives(tree)
        search, find_all = re.compile(expression).search, re.compile(f"(?=({expression}))").findall
        harmless: set[str] = set()

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

        def found_in(text: str) -> int:
            words = set(text.split()).difference(harmless)
            if not words:
                return 0
            begun = begun_in(" ".join(words))
            if len(harmless) > _MAX_WORDS:
                harmless.clear()
            harmless.update(
                word for word in words if len(word) <= _LONGEST_WORD and not any(part in word for part in begun)
            )
            found = 0
            for shortest in begun:
                for needle, rules in longer[shortest]:
                    if needle in text:
                        found |= rules
            return found

        return found_in


def _alternatives(tree: dict[str, Any]) -> str:
    """Return a regular expression for the texts of a tree, which decides character by character."""
    branches = [re.escape(character) + _alternatives(branch) for character, branch in sorted(tree.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""


def _runs(data: bytes, mapped: bytes) -> str:
    """Return the parts of a text with long runs, and the characters beside them."""
    parts: list[bytes] = []
    done = 0
    start = mapped.find(_RUN)
    while start >= 0:
        end = mapped.find(b" ", start)
        end = len(data) if end < 0 else end
        parts.append(data[max(done, start - _AROUND) : end + _AROUND])
        done = end + _AROUND
        start = mapped.find(_RUN, end)
    return b"".join(parts).decode("utf-8", "replace")
