"""The Markdown of a history: sections, headings, and tables with the line of each row.

Text in a code fence or a comment is neither heading nor table. Only \\n ends a line, not the other line ends of Unicode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from grace_kp.errors import InvalidHistory
from grace_kp.pages import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
_RULE = re.compile(r" {0,3}\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-+:?[ \t]*\|?[ \t]*")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page."""

    text: str
    """With its line end."""
    number: int
    inert: bool
    """Whether the line is inside a code fence or a comment."""

    @property
    def bare(self) -> str:
        """The text without line end and byte order mark."""
        return self.text.rstrip("\r\n").removeprefix("\ufeff")

    @property
    def heading(self) -> tuple[int, str] | None:
        """Level and text of a heading; None for other lines."""
        match = None if self.inert else _HEADING.fullmatch(self.bare)
        return None if match is None else (len(match[1]), (match[2] or "").strip(" \t"))

    @property
    def is_blank(self) -> bool:
        """Whether the line holds only spaces and tabs."""
        return not self.bare.strip(" \t")

    @property
    def is_rule(self) -> bool:
        """Whether this is the line below the header of a table."""
        return not self.inert and "|" in self.bare and _RULE.fullmatch(self.bare) is not None


def lines_of(text: str) -> list[Line]:
    """Return the lines of a page."""
    lines: list[Line] = []
    fence = ""
    comment = False
    for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", text), 1):
        inert = bool(fence) or comment
        mark = _FENCE.match(line)
        if comment:
            comment = "-->" not in line
        elif fence:
            if mark is not None and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark is not None:
            fence, inert = mark[1], True
        elif line.lstrip(" ").startswith("<!--") and line.find("<!--") < 4:
            inert, comment = True, "-->" not in line
        lines.append(Line(line, number, inert))
    return lines


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[str, ...]
    line: int
    file: str

    def number(self, column: int) -> float:
        """Return the number in a cell.

        Raises:
            InvalidHistory: the cell holds no finite number.
        """
        try:
            value = float(self.cells[column])
        except ValueError:
            value = float("nan")
        if value != value or value in {float("inf"), float("-inf")}:
            raise InvalidHistory(f"a number is needed, not {self.cells[column]!r}", file=self.file, line=self.line)
        return value

    def whole_number(self, column: int) -> int:
        """Return the whole number from 0 in a cell.

        Raises:
            InvalidHistory: the cell holds none.
        """
        value = self.number(column)
        if value < 0 or value != int(value):
            cell = self.cells[column]
            raise InvalidHistory(f"a whole number is needed, not {cell!r}", file=self.file, line=self.line)
        return int(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table, found by its header."""

    rows: tuple[Row, ...]
    line: int


@dataclass(slots=True)
class Section:
    """A section of a page: the text before the first round, or a round and everything up to the next."""

    file: str
    lines: list[Line] = field(default_factory=list)
    tables: dict[tuple[str, ...], Table] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """The number of its first line."""
        return self.lines[0].number if self.lines else 1

    def error(self, problem: str, line: int) -> InvalidHistory:
        """Return the error for a line of this page."""
        return InvalidHistory(problem, file=self.file, line=line)

    def build(self, line: int, build: Callable[[], T]) -> T:
        """Return what `build` returns; its errors get the line.

        Raises:
            InvalidHistory: `build` raised a ValueError.
        """
        try:
            return build()
        except InvalidHistory:
            raise
        except ValueError as error:
            raise self.error(str(error), line) from None

    def table(self, header: Sequence[str]) -> Table:
        """Return the table with this header.

        Raises:
            InvalidHistory: the section has no such table.
        """
        table = self.tables.get(tuple(header))
        if table is None:
            raise self.error(f"the table with the columns {', '.join(header)} is missing", self.line)
        return table

    def read_tables(self, known: Sequence[tuple[str, ...]]) -> None:
        """Read the tables with known headers. Other tables belong to the authors of the page.

        Raises:
            InvalidHistory: a table occurs twice or cannot be read.
        """
        by_name = {tuple(map(str.casefold, header)): header for header in known}
        for index, line in enumerate(self.lines):
            if line.inert or "|" not in line.text:
                continue
            header = by_name.get(tuple(map(str.casefold, _cells(line.bare))))
            if header is None:
                continue
            if header in self.tables:
                raise self.error(f"there is a second table with the columns {', '.join(header)}", line.number)
            self.tables[header] = self._read_table(header, index)

    def _read_table(self, header: tuple[str, ...], start: int) -> Table:
        lines = self.lines
        if start + 1 >= len(lines) or not lines[start + 1].is_rule:
            raise self.error("the line below a table's header must be |---|", lines[start].number + 1)
        rows = []
        end = start + 2
        while end < len(lines) and not (lines[end].is_blank or lines[end].inert or lines[end].heading):
            line, cells = lines[end], _cells(lines[end].bare)
            if len(cells) != len(header):
                raise self.error(f"the row has {len(cells)} cells, and the table {len(header)} columns", line.number)
            rows.append(Row(cells, line.number, self.file))
            end += 1
        while end < len(lines) and lines[end].is_blank:
            end += 1
        stray = end < len(lines) and not lines[end].inert and lines[end].bare.lstrip(" \t").startswith("|")
        if stray and not (end + 1 < len(lines) and lines[end + 1].is_rule):
            raise self.error("this row is separated from its table", lines[end].number)
        return Table(tuple(rows), lines[start].number)


def table_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as Markdown, with a blank line after it."""
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    lines += [f"| {' | '.join(escape_cell(str(value)) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


_SPECIAL = str.maketrans({"\\": "\\\\", "|": "\\|", "\r": "\\r", "\n": "\\n"})
_EDGES = re.compile(r"^[ \t]+|[ \t]+\Z")
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL)


def escape_cell(text: str) -> str:
    """Return a text as it can stand in a cell or heading, so that `unescape_cell` returns it."""
    # Characters that are invisible may not survive an editor.
    visible = printable(text.translate(_SPECIAL), keep="\t\u3000\xa0", replace=_code)
    return _EDGES.sub(lambda match: "".join(map(_code, match[0])), visible)


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def unescape_cell(text: str) -> str:
    """Return the text that a cell or heading stands for."""
    controls = {"n": "\n", "r": "\r"}
    return _ESCAPE.sub(lambda match: _character(match[1]) if match[1] else controls.get(match[2], match[2]), text)


def _character(code: str) -> str:
    number = int(code, 16)
    return chr(number) if number < 0x110000 else "\ufffd"


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip(" \t").removeprefix("|")
    parts = re.split(r"(?<!\\)((?:\\\\)*)\|", inner)
    cells = ["".join(parts[index : index + 2]) for index in range(0, len(parts), 2)]
    if cells and not cells[-1].strip(" \t"):
        cells.pop()
    return tuple(unescape_cell(cell.strip(" \t")) for cell in cells)
