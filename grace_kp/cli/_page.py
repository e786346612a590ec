"""Lines and tables within the width of a terminal: fields, wrapped paragraphs, bars, tables.

A table drops columns by priority and never cuts figures. If the essential columns do not fit, each row becomes a block of fields.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from grace_kp.cli._output import clean, console, put_json, shorten, writes_unicode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.text import Text


LABEL = 12
"""Width of the names of fields."""
BESIDE = 30
"""Width reserved for names and figures next to a bar."""
NARROW = 24
"""Width below which a long value begins on the line after its name."""


def put(out: Console, line: str | Text) -> None:
    """Write one line without markup, wrapping or cutting."""
    out.print(line, markup=False, soft_wrap=True)


def put_field(out: Console, name: str, value: str, *, label: int = LABEL, indent: int = 0, style: str = "") -> None:
    """Write a name and its value, which wraps below its beginning, or in a narrow terminal below the name."""
    from rich.cells import cell_len
    from rich.text import Text

    room = out.width - indent - label
    head = " " * indent + name
    below = len(name) >= label or (room < NARROW and cell_len(value) > room)
    if below:
        label, room = 2, out.width - indent - 2
        put(out, head)
    lines = [part for line in value.split("\n") for part in wrap(out, line, room)]
    for place, line in enumerate(lines):
        start = " " * (indent + label) if below or place else f"{head:<{indent + label}}"
        put(out, Text(start).append(line, style))


def put_text(out: Console, value: str, *, indent: int = 0, style: str = "") -> None:
    """Write lines, wrapped to the width."""
    from rich.text import Text

    for line in value.split("\n"):
        begins = len(line) - len(line.lstrip(" "))
        for part in wrap(out, line.lstrip(" "), out.width - indent - min(begins, 20)):
            put(out, Text(" " * (indent + min(begins, 20))).append(part, style))


def put_outcome(document: object, text: str, *, as_json: bool) -> None:
    """Write the outcome of a command, as JSON or as text."""
    if as_json:
        put_json(document)
    else:
        put_text(console(), text)


def wrap(out: Console, line: str, width: int) -> list[str]:
    """Return the line in pieces of at most `width` columns, broken between words if possible."""
    from rich.text import Text

    if len(line) <= width // 2:
        return [line]
    return [piece.plain.rstrip() for piece in Text(line).wrap(out, max(4, width), overflow="fold")] or [""]


def meter(value: float, out: Console) -> str:
    """Return a number from 0 to 1 as a bar; empty in a narrow terminal."""
    width = min(20, out.width - BESIDE)
    if width < 5:
        return ""
    filled = round(max(0.0, min(1.0, value)) * width)
    full, empty = "█░" if writes_unicode(sys.stdout) else "#-"
    return full * filled + empty * (width - filled)


GAP = 2
"""Width of the gap between two columns."""
ESSENTIAL = 0
"""Priority of columns that are never dropped."""
BLOCK_LINES = 3
"""Maximum of lines of a value of kind `text` in a block."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table, with its rules for shrinking."""

    name: str
    kind: Literal["figure", "word", "text", "prose"] = "text"
    """Figures are right-aligned; figures and words are never cut; text may be cut; prose is wrapped."""
    priority: int = ESSENTIAL
    """The highest priority is dropped first, 0 never. Columns of the same priority are dropped together."""
    least: int = 12
    """Minimum width of text and prose."""
    styles: Mapping[str, str] = field(default_factory=dict)
    """Style of a value, such as {"no": "red"}."""


class TextTable:
    """A table with these columns."""

    def __init__(self, *cols: TableColumn) -> None:
        self._columns = cols
        self._rows: list[tuple[str, ...]] = []

    def add(self, *cells: object) -> None:
        row = tuple(clean(str(cell)) for cell in cells)
        if len(row) != len(self._columns):
            raise ValueError(f"a row of this table has {len(self._columns)} values, not {len(row)}")
        self._rows.append(row)

    def print(self, out: Console) -> None:
        widths = fit_columns(self._columns, self._rows, out.width)
        if widths is None:
            self._print_blocks(out)
            return
        chosen = [(number, column, widths[number]) for number, column in enumerate(self._columns) if number in widths]
        put(out, _line([(column.name, column, width) for _, column, width in chosen], "bold"))
        put(out, (" " * GAP).join(("─" if writes_unicode(sys.stdout) else "-") * width for *_, width in chosen))
        for row in self._rows:
            folded = [
                wrap(out, row[number], width) if column.kind == "prose" else [shorten(row[number], width)]
                for number, column, width in chosen
            ]
            for place in range(max(map(len, folded))):
                cells = [
                    (lines[place] if place < len(lines) else "", column, width)
                    for lines, (_, column, width) in zip(folded, chosen, strict=True)
                ]
                put(out, _line(cells))

    def _print_blocks(self, out: Console) -> None:
        label = max(len(column.name) for column in self._columns) + GAP
        for row in self._rows:
            for column, value in zip(self._columns, row, strict=True):
                shown = shorten(value, BLOCK_LINES * out.width) if column.kind == "text" else value
                put_field(out, column.name, shown or "-", label=label)
            put(out, "")


def fit_columns(cols: Sequence[TableColumn], rows: Sequence[Sequence[str]], room: int) -> dict[int, int] | None:
    """Return the width of each column shown, by its number; None if the essential columns do not fit."""
    from rich.cells import cell_len

    full = {
        number: max([cell_len(column.name), *(cell_len(row[number]) for row in rows)])
        for number, column in enumerate(cols)
    }
    least = {
        number: full[number]
        if column.kind in {"figure", "word"}
        else min(full[number], max(column.least, cell_len(column.name)))
        for number, column in enumerate(cols)
    }
    while sum(least.values()) + GAP * (len(least) - 1) > room:
        last = max((cols[number].priority for number in least), default=ESSENTIAL)
        if last == ESSENTIAL:
            return None
        least = {number: width for number, width in least.items() if cols[number].priority < last}
    spare = room - sum(least.values()) - GAP * (len(least) - 1)
    # Columns that need little get all of it; the rest is left for the others.
    waiting = sorted(least, key=lambda number: full[number] - least[number])
    for place, number in enumerate(waiting):
        more = min(full[number] - least[number], spare // (len(waiting) - place))
        least[number] += more
        spare -= more
    return least


def _line(cells: Sequence[tuple[str, TableColumn, int]], style: str = "") -> Text:
    from rich.cells import cell_len
    from rich.text import Text

    line = Text()
    for number, (value, column, width) in enumerate(cells):
        blank = " " * (width - cell_len(value))
        line.append(" " * GAP if number else "")
        right = column.kind == "figure"
        line.append(blank if right else "")
        line.append(value, style or column.styles.get(value, ""))
        line.append("" if right else blank)
    line.rstrip()
    return line
