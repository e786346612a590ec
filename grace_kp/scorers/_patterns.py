"""Patterns: checked when they are passed in, and searched for in bounded time.

`$` gets the meaning that the patterns' source documents intend: the end of the string, not also the place before a final newline.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from grace_kp.errors import GraceError, MissingExtra, brief

TIMEOUT = 0.5
"""Seconds for one pattern on one page."""
LONGEST = 86_400.0
"""Seconds; `regex` treats far longer timeouts as no timeout."""
MAX_LENGTH = 10_000
"""Characters of one pattern."""
MAX_REPEATED = 100_000
"""Product of nested counted repetitions. `regex` unfolds them and allocates the memory."""
MAX_UNFOLDED = 1_000_000
"""Parts of one pattern after unfolding."""


class PatternError(GraceError, ValueError):
    """A pattern is malformed. The message names its place and the problem.

    Attributes:
        page: the title of the pattern's page; None where it is unknown.
        number: the index of the pattern on its page, from 0; None where the page as a whole is meant.
    """

    def __init__(self, message: str, page: object = None, number: int | None = None) -> None:
        super().__init__(message)
        self.page, self.number = page, number


def patterns_by_page(patterns: object, place: str = "") -> dict[str, tuple[str, ...]]:
    """Return patterns by page title, if they are a mapping of titles to lists."""
    head = f"{place}, " if place else ""
    if patterns is None:
        return {}
    if not isinstance(patterns, Mapping):
        raise PatternError(f"patterns must be lists of patterns by page title, not {brief(patterns)}")
    by_page: dict[str, tuple[str, ...]] = {}
    for title, texts in patterns.items():
        if not isinstance(title, str):
            raise PatternError(f"{head}a page title must be a string, not {brief(title)}", title)
        # Python iterates over the characters of a string, which is rarely intended.
        if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
            raise PatternError(f"{head}page {title!r}: a list of patterns is needed, not {brief(texts)}", title)
        by_page[title] = tuple(texts)
    return by_page


def compiled_by_page(
    patterns: Mapping[str, tuple[str, ...]], *, ignore_case: bool, place: str = ""
) -> tuple[tuple[str, str, Any], ...]:
    """Return title, text and compiled form of each pattern."""
    head = f"{place}, " if place else ""
    compiled = []
    for title, texts in patterns.items():
        for number, text in enumerate(texts):
            try:
                compiled.append((title, text, compile_pattern(text, ignore_case=ignore_case)))
            except PatternError as error:
                raise PatternError(f"{head}page {title!r}: {error}", title, number) from None
    return tuple(compiled)


def compile_pattern(text: object, *, ignore_case: bool) -> Any:
    """Compile a pattern. `$` matches at the end of the string only, or with `(?m)` at the end of each line."""
    if not isinstance(text, str):
        raise PatternError(f"a pattern must be a string, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise PatternError(f"the pattern {brief(text)} has {len(text):,} characters, more than {MAX_LENGTH:,}")
    try:
        import regex
    except ImportError:
        raise MissingExtra("patterns", "eval") from None
    shown = repr(text) if len(text) <= 200 else brief(text)
    _check_size(text, shown)
    flags = regex.IGNORECASE if ignore_case else 0
    try:
        # Compiled as written first, so that errors name the user's own text and its flags are known.
        own = regex.compile(text, flags)
        verbose, nested_sets = bool(own.flags & regex.VERBOSE), bool(own.flags & regex.VERSION1)
        strict = with_strict_ends(text, verbose=verbose, nested_sets=nested_sets)
        return own if strict == text else regex.compile(strict, flags)
    except regex.error as error:
        raise PatternError(f"the pattern {shown} is malformed: {error}") from None
    except RecursionError:
        raise PatternError(f"the pattern {shown} is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 — any other error that `regex` raises is the fault of the pattern
        raise PatternError(f"the pattern {shown} cannot be used: {type(error).__name__}: {error}") from None


def is_found(pattern: Any, content: str, timeout: float = TIMEOUT) -> bool | None:
    """Return whether a pattern is found; None if the search took longer than `timeout` seconds."""
    try:
        return pattern.search(content, timeout=min(timeout, LONGEST), concurrent=True) is not None
    except TimeoutError:
        return None


_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")


def _check_size(text: str, shown: str) -> None:
    """Refuse a pattern that `regex` would unfold to more than the memory holds, such as `((a{1000}){1000}){1000}`."""
    if "{" not in text:
        return
    # For each open group: the number of parts it unfolds to, and the most repetitions of any part in it.
    groups = [(0, 1)]
    last = (0, 1)
    for part in _parts_of(text):
        size, times = groups[-1]
        counted = _COUNTED.fullmatch(part)
        if counted is not None and (counted[1] or counted[3]):
            # Digits beyond the ninth cannot change the outcome.
            least = max(int(counted[1][:9] or "0"), 1)
            product = last[1] * max(least, int(counted[3][:9] or "0"))
            if (last[1] > 1 and product > MAX_REPEATED) or last[0] * least > MAX_UNFOLDED:
                raise PatternError(
                    f"the pattern {shown} repeats a part {product:,} times; nested repetitions may multiply to {MAX_REPEATED:,}"
                )
            groups[-1] = (size + last[0] * (least - 1), max(times, product))
            last = (last[0] * least, product)
        elif part.startswith("(") and not part.endswith(")"):
            groups.append((0, 1))
        elif part == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] = (groups[-1][0] + last[0], max(groups[-1][1], last[1]))
        elif part not in {"*", "+", "?"}:
            last = (1, 1)
            groups[-1] = (size + 1, times)
        if groups[-1][0] > MAX_UNFOLDED:
            raise PatternError(f"the pattern {shown} unfolds to more than {MAX_UNFOLDED:,} parts")


END_OF_TEXT = r"\Z"
# `^` follows a newline only in multi-line mode, so this is the end of a line there, and otherwise the end of the string.
# Two alternatives for the newline: with regex's WORD flag, a carriage return and a line feed end one line together.
END_OF_TEXT_OR_LINE = r"(?:\Z|$(?=\r\n^|(?s:.)^))"

_FLAGS = re.compile(r"\(\?([A-Za-z0-9]*)(?:-([A-Za-z]+))?([:)])")
# A `]` directly after the opening is a member of the class.
_CLASS = re.compile(r"\[\^?\]?")
_CLASS_PART = re.compile(r"\\.|\[:\^?\w+:\]|.", re.DOTALL | re.ASCII)
_NESTED_PART = re.compile(r"\\.|\[:\^?\w+:\]|\[\^?\]?|.", re.DOTALL | re.ASCII)


def with_strict_ends(text: str, *, verbose: bool, nested_sets: bool) -> str:
    """Return a valid pattern with every `$` that is an anchor replaced.

    `\\$`, a `$` in a character class and a `$` in a comment stay. Inline flags such as `(?m)` keep working: in multi-line mode
    an anchor still matches at the end of each line.
    """
    if "$" not in text:
        return text
    anchor = END_OF_TEXT_OR_LINE if any("m" in flags[1] for flags in _FLAGS.finditer(text)) else END_OF_TEXT
    return "".join(
        anchor if part == "$" else part for part in _parts_of(text, verbose=verbose, nested_sets=nested_sets)
    )


def _parts_of(text: str, *, verbose: bool = False, nested_sets: bool = False) -> Iterator[str]:
    """Yield the parts of a pattern in order: escapes, classes, counts, comments, beginnings of groups, flags and single characters."""
    modes = [verbose]  # verbose mode of each open group
    position = 0
    while position < len(text):
        character, end = text[position], position + 1
        if character == "\\":
            end += 1
        elif (opening := _CLASS.match(text, position)) is not None:
            end = _class_end(text, opening.end(), nested_sets)
        elif (counted := _COUNTED.match(text, position)) is not None:
            end = counted.end()
        elif character == "#" and modes[-1]:
            end = text.find("\n", position) if "\n" in text[position:] else len(text)
        elif text.startswith("(?#", position):
            end = text.find(")", position) + 1 or len(text)
        elif character == "(":
            flags = _FLAGS.match(text, position)
            on, off, closing = flags.groups("") if flags is not None else ("", "", ":")
            is_verbose = (modes[-1] or "x" in on) and "x" not in off
            if closing == ")":
                modes[-1] = is_verbose
            else:
                modes.append(is_verbose)
            end = flags.end() if flags is not None else end
        elif character == ")" and len(modes) > 1:
            modes.pop()
        yield text[position:end]
        position = end


def _class_end(text: str, start: int, nested_sets: bool) -> int:
    depth = 1
    for part in (_NESTED_PART if nested_sets else _CLASS_PART).finditer(text, start):
        if part[0] == "]":
            depth -= 1
        elif nested_sets and part[0].startswith("[") and not part[0].endswith(":]"):
            depth += 1
        if not depth:
            return part.end()
    return len(text)
