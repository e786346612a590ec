"""Tables that fit the terminal: columns are dropped by priority, figures are never cut.

If even the essential columns do not fit, each row becomes a block of `name  value` lines.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from grace_kp.cli._output import clean, shorten, writes_unicode
from grace_kp.cli._page import put, put_field, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.text import Text

GAP = 2
"""Blanks between two columns."""
ESSENTIAL = 0
"""Priority of columns that are never dropped."""
BLOCK_LINES = 3
"""Lines of a text in a block."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and how it may shrink."""

    name: str
    kind: Literal["figure", "word", "text", "prose"] = "text"
    """Figures are right-aligned; figures and words are never cut. A text may be shortened, prose is wrapped."""
    priority: int = ESSENTIAL
    """The highest priority is dropped first, 0 never. Columns of the same priority are dropped together."""
    least: int = 12
    """Minimum width of a text or prose."""
    styles: Mapping[str, str] = field(default_factory=dict)
    """Style of a value, such as {"no": "red"}."""


class Table:
    """A table with these columns."""

    def __init__(self, *cols: Column) -> None:
        self._columns = cols
        self._rows: list[tuple[str, ...]] = []

    def add(self, *cells: object) -> None:
        """Add a row: a value for each column."""
        row = tuple(clean(str(cell)) for cell in cells)
        if len(row) != len(self._columns):
            raise ValueError(f"a row of this table has {len(self._columns)} values, not {len(row)}")
        self._rows.append(row)

    def print(self, out: Console) -> None:
        """Write the table within the width of the console."""
        widths = fitted(self._columns, self._rows, out.width)
        if widths is None:
            self._print_blocks(out)
            return
        chosen = [(number, column, widths[number]) for number, column in enumerate(self._columns) if number in widths]
        put(out, _line([(column.name, column, width) for _, column, width in chosen], "bold"))
        put(out, (" " * GAP).join(("─" if writes_unicode(sys.stdout) else "-") * width for *_, width in chosen))
        for row in self._rows:
            folded = [
                wrapped(out, row[number], width) if column.kind == "prose" else [shorten(row[number], width)]
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


def fitted(cols: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> dict[int, int] | None:
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


def _line(cells: Sequence[tuple[str, Column, int]], style: str = "") -> Text:
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
