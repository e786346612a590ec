"""Patterns that are checked when they are given and searched for in bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.scorers._anchors import with_strict_ends

TIMEOUT = 0.5
"""Seconds for one pattern on one page."""
LONGEST = 86_400.0
"""Seconds; `regex` takes far longer ones for none at all."""
MAX_LENGTH = 10_000
"""Characters of one pattern."""
MAX_REPEATED = 100_000
"""How often counted repetitions inside of each other may repeat something: `regex` unfolds them, and takes the memory for it."""
MAX_UNFOLDED = 1_000_000
"""Parts of one pattern after that."""


class PatternError(GraceError, ValueError):
    """A pattern is malformed. The message says where it stands, and what is wrong with it.

    Attributes:
        page: the title of the page it is for; None where it is not known.
        number: which of the page's patterns it is, from 0; None where the page as a whole is meant.
    """

    page: Any = None
    number: int | None = None


def patterns_by_page(given: Any, place: str = "") -> dict[str, tuple[str, ...]]:
    """Patterns as they were given, checked for their shape: a mapping of titles to lists of texts.

    Raises:
        PatternError: they are something else. The message names the page.
    """
    head = f"{place}, " if place else ""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PatternError(f"patterns must be lists of patterns by page title, not {brief(given)}")
    found: dict[str, tuple[str, ...]] = {}
    for title, texts in given.items():
        if not isinstance(title, str):
            raise _refused(f"{head}a page title is a text, not {brief(title)}", title)
        # A text is a list of its letters to Python, and hardly ever what was meant.
        if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
            raise _refused(f"{head}page {title!r}: a list of patterns is needed, not {brief(texts)}", title)
        found[title] = tuple(texts)
    return found


def compiled_by_page(
    patterns: Mapping[str, tuple[str, ...]], *, ignore_case: bool, place: str = ""
) -> tuple[tuple[str, str, Any], ...]:
    """Title, text and compiled form of each pattern.

    Raises:
        PatternError: one is malformed.
        MissingExtra: the package `regex` is not installed.
    """
    head = f"{place}, " if place else ""
    made = []
    for title, texts in patterns.items():
        for number, text in enumerate(texts):
            try:
                made.append((title, text, compiled(text, ignore_case=ignore_case, place=f"{head}page {title!r}")))
            except PatternError as error:
                error.page, error.number = title, number
                raise
    return tuple(made)


def _refused(message: str, page: Any) -> PatternError:
    error = PatternError(message)
    error.page = page
    return error


def compiled(text: Any, *, ignore_case: bool, place: str) -> Any:
    """Compile a pattern. `$` matches at the end of the text only, or with `(?m)` at the end of each line.

    Raises:
        PatternError: it is malformed, or too large.
        MissingExtra: the package `regex` is not installed.
    """
    if not isinstance(text, str):
        raise PatternError(f"{place}: a pattern is a text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise PatternError(f"{place}: the pattern {brief(text)} has {len(text):,} characters, more than {MAX_LENGTH:,}")
    try:
        import regex
    except ImportError:
        raise MissingExtra("patterns", "eval") from None
    _check_size(text, place)
    flags = regex.IGNORECASE if ignore_case else 0
    try:
        # Compiled as it stands first, so that errors name the user's own text and its flags are known.
        own = regex.compile(text, flags)
        verbose, nested_sets = bool(own.flags & regex.VERBOSE), bool(own.flags & regex.VERSION1)
        strict = with_strict_ends(text, verbose=verbose, nested_sets=nested_sets)
        return own if strict == text else regex.compile(strict, flags)
    except regex.error as error:
        raise PatternError(f"{place}: the pattern {_shown(text)} is malformed: {error}") from None
    except RecursionError:
        raise PatternError(f"{place}: the pattern {_shown(text)} is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 — whatever else `regex` raises on a pattern is the pattern's fault
        raise PatternError(
            f"{place}: the pattern {_shown(text)} cannot be used: {type(error).__name__}: {error}"
        ) from None


def found(
    pattern: Any, content: str, timeout: float = TIMEOUT, memory: dict[Any, bool | None] | None = None
) -> bool | None:
    """Whether a pattern is found; None where that took longer than `timeout` seconds.

    Args:
        pattern: compiled.
        content: where to look.
        timeout: in seconds.
        memory: what was found so far; a search that is in it is not made again.
    """
    if memory is None:
        return _searched(pattern, content, timeout)
    key = (pattern, content, timeout)
    if key not in memory:
        memory[key] = _searched(pattern, content, timeout)
    return memory[key]


def _searched(pattern: Any, content: str, timeout: float) -> bool | None:
    try:
        return pattern.search(content, timeout=min(timeout, LONGEST), concurrent=True) is not None
    except TimeoutError:
        return None


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 200 else brief(text)


_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\\\]])*\]", re.DOTALL)


def _check_size(text: str, place: str) -> None:
    """Refuse what would be unfolded into more than the memory holds, such as `((a{1000}){1000}){1000}`."""
    if "{" not in text:
        return
    # For each open group: the parts it unfolds to, and how often at most something in it is repeated.
    groups = [(0, 1)]
    last = (0, 1)
    position = 0
    while position < len(text):
        sign = text[position]
        size, times = groups[-1]
        counted = _COUNTED.match(text, position) if sign == "{" else None
        if counted is not None and (counted[1] or counted[3]):
            least, most = _counts(*counted.groups())
            product = last[1] * most
            if (last[1] > 1 and product > MAX_REPEATED) or last[0] * least > MAX_UNFOLDED:
                raise PatternError(
                    f"{place}: the pattern {_shown(text)} repeats something {product:,} times; nested repetitions may come to {MAX_REPEATED:,}"
                )
            groups[-1] = (size + last[0] * (least - 1), max(times, product))
            last = (last[0] * least, product)
            position = counted.end()
            continue
        if sign == "(":
            groups.append((0, 1))
        elif sign == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] = (groups[-1][0] + last[0], max(groups[-1][1], last[1]))
        elif sign not in "*+?":
            last = (1, 1)
            groups[-1] = (size + 1, times)
        klass = _CLASS.match(text, position) if sign == "[" else None
        position = klass.end() if klass is not None else position + (2 if sign == "\\" else 1)
        if groups[-1][0] > MAX_UNFOLDED:
            raise PatternError(f"{place}: the pattern {_shown(text)} unfolds to more than {MAX_UNFOLDED:,} parts")


def _counts(least: str, comma: str, most: str) -> tuple[int, int]:
    """How often at least and at most; no more digits are read than decide it."""
    low = int(least[:9] or "0")
    high = low if not comma or not most else int(most[:9])
    return max(low, 1), max(low, high, 1)
