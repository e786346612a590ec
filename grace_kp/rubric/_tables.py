"""Markdown as far as a history needs it: sections by their heading, and tables with the line of each row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from grace_kp.errors import InvalidHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
_RULE = re.compile(r"\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?\s*)?")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[str, ...]
    line: int
    file: str

    def number(self, place: int) -> float:
        """The number in a cell.

        Raises:
            InvalidHistory: there is none.
        """
        try:
            value = float(self.cells[place])
        except ValueError:
            value = float("nan")
        if value != value or value in {float("inf"), float("-inf")}:
            raise InvalidHistory(f"a number is needed, not {self.cells[place]!r}", file=self.file, line=self.line)
        return value

    def whole(self, place: int) -> int:
        """The whole number from 0 in a cell.

        Raises:
            InvalidHistory: there is none.
        """
        value = self.number(place)
        if value < 0 or value != int(value):
            raise InvalidHistory(f"a whole number is needed, not {self.cells[place]!r}", file=self.file, line=self.line)
        return int(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table, found by its header."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    line: int


@dataclass(slots=True)
class Section:
    """What stands under one heading, as it stands there."""

    title: str
    line: int
    file: str
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All of it, with its heading."""
        return "".join(self.lines)

    def problem(self, what: str, line: int) -> InvalidHistory:
        """The error for a line of this page."""
        return InvalidHistory(what, file=self.file, line=line)

    def made(self, line: int, make: Callable[[], T]) -> T:
        """What `make` gives; what is wrong with it, as an error with its line.

        Raises:
            InvalidHistory: it cannot be made.
        """
        try:
            return make()
        except InvalidHistory:
            raise
        except ValueError as error:
            raise self.problem(str(error), line) from None

    def find(self, header: Sequence[str]) -> Table | None:
        """The table with this header; None where there is none.

        Raises:
            InvalidHistory: it is there and cannot be read.
        """
        for number, line in enumerate(self.lines):
            if line.startswith("|") and _cells(line) == tuple(header):
                return self._table(tuple(header), number)
        return None

    def table(self, header: Sequence[str]) -> Table:
        """The table with this header.

        Raises:
            InvalidHistory: there is none, or it cannot be read.
        """
        found = self.find(header)
        if found is None:
            raise self.problem(f"the table with the columns {', '.join(header)} is missing", self.line)
        return found

    def _table(self, header: tuple[str, ...], first: int) -> Table:
        here = self.line + first
        if first + 1 >= len(self.lines) or not _RULE.fullmatch(self.lines[first + 1].strip()):
            raise self.problem("the line below a table's header must be |---|", here + 1)
        rows = []
        for number in range(first + 2, len(self.lines)):
            line = self.lines[number]
            if not line.startswith("|"):
                break
            cells = _cells(line)
            if len(cells) != len(header):
                raise self.problem(
                    f"the row has {len(cells)} cells, and the table {len(header)} columns", self.line + number
                )
            rows.append(Row(cells, self.line + number, self.file))
        return Table(header, tuple(rows), here)


def sections_of(text: str, file: str) -> list[Section]:
    """The page in its sections: what stands before the first heading of the second level, and each of these."""
    found = [Section("", 1, file)]
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if line.startswith("## "):
            found.append(Section(line[3:].strip(), number, file))
        found[-1].lines.append(line)
    return [one for one in found if one.lines]


def table_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table, with a blank line after it."""
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    lines += [f"| {' | '.join(_escaped(str(value)) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r", "\\r").replace("\n", "\\n")


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    parts = re.split(r"(?<!\\)((?:\\\\)*)\|", inner)
    joined = ["".join(parts[number : number + 2]) for number in range(0, len(parts), 2)]
    if joined and not joined[-1].strip():
        joined.pop()
    return tuple(cell(part.strip()) for part in joined)


def cell(text: str) -> str:
    """What is written in a cell or heading, without its escapes."""
    signs = {"n": "\n", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: signs.get(found[1], found[1]), text)
