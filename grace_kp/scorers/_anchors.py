"""Gives `$` the meaning that the patterns' source documents intend: the end of the text, not also the place before a final newline.

This module rewrites patterns. It neither checks nor searches them.
"""

from __future__ import annotations

import re

END_OF_TEXT = r"\Z"
# `^` follows a newline only in multi-line mode, so this is the end of a line there, and otherwise the end of the text.
# Two alternatives for the newline: with regex's WORD flag, a carriage return and a line feed end one line together.
END_OF_TEXT_OR_LINE = r"(?:\Z|$(?=\r\n^|(?s:.)^))"

_FLAGS = re.compile(r"\(\?([A-Za-z0-9]*)(?:-([A-Za-z]+))?([:)])")
_POSIX = re.compile(r"\[:\^?\w+:\]")


def with_strict_ends(text: str, *, verbose: bool, nested_sets: bool) -> str:
    """Return a valid pattern with every `$` that is an anchor replaced.

    `\\$`, a `$` in a character class and a `$` in a comment stay. Inline flags such as `(?m)` keep working: in multi-line mode
    an anchor still matches at the end of each line.

    Args:
        text: a pattern that `regex` compiles.
        verbose: whether the whole pattern is in verbose mode, so that `#` begins a comment.
        nested_sets: whether a character class may contain other classes (regex's version 1).
    """
    if "$" not in text:
        return text
    is_multiline = any("m" in flags[1] for flags in _FLAGS.finditer(text))
    anchor = END_OF_TEXT_OR_LINE if is_multiline else END_OF_TEXT
    parts: list[str] = []
    modes = [verbose]  # verbose mode of each open group
    position = 0
    while position < len(text):
        end = _part_end(text, position, modes, nested_sets)
        part = text[position:end]
        parts.append(anchor if part == "$" else part)
        position = end
    return "".join(parts)


def _part_end(text: str, position: int, modes: list[bool], nested_sets: bool) -> int:
    """Return where the part of a pattern at `position` ends, and keep track of the open groups."""
    character = text[position]
    if character == "\\":
        return position + 2
    if character == "[":
        return _class_end(text, position, nested_sets)
    if character == "#" and modes[-1]:
        newline = text.find("\n", position)
        return len(text) if newline < 0 else newline
    if character == ")" and len(modes) > 1:
        modes.pop()
    if character == "(":
        return _group_start_end(text, position, modes)
    return position + 1


def _group_start_end(text: str, position: int, modes: list[bool]) -> int:
    if text.startswith("(?#", position):
        return text.index(")", position) + 1
    flags = _FLAGS.match(text, position)
    if flags is None:
        modes.append(modes[-1])
        return position + 1
    on, off, closing = flags.groups()
    verbose = (modes[-1] or "x" in on) and "x" not in (off or "")
    if closing == ")":
        modes[-1] = verbose
    else:
        modes.append(verbose)
    return flags.end()


def _class_end(text: str, position: int, nested_sets: bool) -> int:
    """Return where a character class ends: a `]` directly after the opening is a member of it."""
    depth = 0
    while position < len(text):
        character = text[position]
        posix = _POSIX.match(text, position) if character == "[" and depth else None
        if character == "\\":
            position += 2
            continue
        if posix is not None:
            position = posix.end()
            continue
        if character == "[" and (nested_sets or not depth):
            depth += 1
            position += 2 if text.startswith("^", position + 1) else 1
            position += 1 if text.startswith("]", position) else 0
            continue
        depth -= character == "]"
        position += 1
        if not depth:
            return position
    return len(text)
