"""Patterns that are checked when they are given and searched for in bounded time."""

from __future__ import annotations

from typing import Any

from grace_kp.errors import GraceError, MissingExtra

TIMEOUT = 0.5
"""Seconds for one pattern on one page."""


class PatternError(GraceError, ValueError):
    """A pattern is malformed. The message says where it stands, and what is wrong with it."""


def compiled(text: Any, *, ignore_case: bool, place: str) -> Any:
    """A pattern, ready to be searched for.

    Raises:
        PatternError: it is malformed.
        MissingExtra: the package `regex` is not installed.
    """
    if not isinstance(text, str):
        raise PatternError(f"{place}: a pattern is a text, not {type(text).__name__}")
    try:
        import regex
    except ImportError:
        raise MissingExtra("patterns", "eval") from None
    try:
        return regex.compile(text, regex.IGNORECASE if ignore_case else 0)
    except regex.error as error:
        raise PatternError(f"{place}: the pattern {text!r} is malformed: {error}") from None


def found(pattern: Any, content: str, timeout: float = TIMEOUT) -> bool | None:
    """Whether a pattern is found; None where that took longer than `timeout` seconds."""
    try:
        return pattern.search(content, timeout=timeout, concurrent=True) is not None
    except TimeoutError:
        return None
