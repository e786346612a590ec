"""Lines of a page in the terminal, wrapped to its width: names with values, texts of several lines, bars."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from grace_kp.cli._output import writes_unicode

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LABEL = 12
"""Width of the names on the left."""
BESIDE = 30
"""Columns that a bar leaves for names and figures."""
NARROW = 24
"""Width below which a long value stands below its name."""


def put(out: Console, line: str | Text) -> None:
    """Write one line without markup, wrapping or cutting."""
    out.print(line, markup=False, soft_wrap=True)


def put_field(out: Console, name: str, value: str, *, label: int = LABEL, indent: int = 0, style: str = "") -> None:
    """Write a name and its value; a long value continues below its beginning, or below the name in a narrow terminal."""
    from rich.cells import cell_len
    from rich.text import Text

    room = out.width - indent - label
    head = " " * indent + name
    below = len(name) >= label or (room < NARROW and cell_len(value) > room)
    if below:
        label, room = 2, out.width - indent - 2
        put(out, head)
    lines = [part for line in value.split("\n") for part in wrapped(out, line, room)]
    for place, line in enumerate(lines):
        start = " " * (indent + label) if below or place else f"{head:<{indent + label}}"
        put(out, Text(start).append(line, style))


def put_text(out: Console, value: str, *, indent: int = 0, style: str = "") -> None:
    """Write a text of several lines, wrapped to the width."""
    from rich.text import Text

    for line in value.split("\n"):
        begins = len(line) - len(line.lstrip(" "))
        for part in wrapped(out, line.lstrip(" "), out.width - indent - min(begins, 20)):
            put(out, Text(" " * (indent + min(begins, 20))).append(part, style))


def wrapped(out: Console, line: str, width: int) -> list[str]:
    """Return the line in pieces of at most `width` columns, broken between words if possible."""
    from rich.text import Text

    if len(line) <= width // 2:
        return [line]
    return [piece.plain.rstrip() for piece in Text(line).wrap(out, max(4, width), overflow="fold")] or [""]


def meter(value: float, out: Console) -> str:
    """Return a number from 0 to 1 as a bar of constant length; empty in a narrow terminal."""
    width = min(20, out.width - BESIDE)
    if width < 5:
        return ""
    filled = round(max(0.0, min(1.0, value)) * width)
    full, empty = "█░" if writes_unicode(sys.stdout) else "#-"
    return full * filled + empty * (width - filled)
