"""Markdown as far as a history needs it: parts by their headings, and tables with the line of each row.

What stands in a code fence or a comment is neither heading nor table. Only \\n ends a line, whatever else Unicode holds for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from grace_kp.errors import InvalidHistory
from grace_kp.trace import printable

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
    """As it stands there, with its end."""
    number: int
    inert: bool
    """It is inside of a code fence or a comment."""

    @property
    def bare(self) -> str:
        """Without its end."""
        return self.text.rstrip("\r\n").removeprefix("\ufeff")

    @property
    def heading(self) -> tuple[int, str] | None:
        """Level and text, if it is a heading."""
        found = None if self.inert else _HEADING.fullmatch(self.bare)
        return None if found is None else (len(found[1]), (found[2] or "").strip(" \t"))

    @property
    def is_blank(self) -> bool:
        """Nothing stands on it."""
        return not self.bare.strip(" \t")

    @property
    def is_rule(self) -> bool:
        """It is the line below a table's header."""
        return not self.inert and "|" in self.bare and _RULE.fullmatch(self.bare) is not None


def lines_of(text: str) -> list[Line]:
    """The lines of a page."""
    found: list[Line] = []
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
        found.append(Line(line, number, inert))
    return found


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
class Part:
    """A stretch of a page: what comes before the first round, or a round with all that follows it up to the next."""

    file: str
    lines: list[Line] = field(default_factory=list)
    tables: dict[tuple[str, ...], Table] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of it, as it stands there."""
        return "".join(line.text for line in self.lines)

    @property
    def line(self) -> int:
        """The number of its first line."""
        return self.lines[0].number if self.lines else 1

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

    def table(self, header: Sequence[str]) -> Table:
        """The table with this header.

        Raises:
            InvalidHistory: there is none.
        """
        found = self.tables.get(tuple(header))
        if found is None:
            raise self.problem(f"the table with the columns {', '.join(header)} is missing", self.line)
        return found

    def read_tables(self, known: Sequence[tuple[str, ...]]) -> None:
        """Find the tables with these headers; tables of other kinds are people's own.

        Raises:
            InvalidHistory: one is there twice or cannot be read.
        """
        by_name = {tuple(map(str.casefold, header)): header for header in known}
        for place, line in enumerate(self.lines):
            if line.inert or "|" not in line.text:
                continue
            header = by_name.get(tuple(map(str.casefold, _cells(line.bare))))
            if header is None:
                continue
            if header in self.tables:
                raise self.problem(f"there is a second table with the columns {', '.join(header)}", line.number)
            self.tables[header] = self._table(header, place)

    def _table(self, header: tuple[str, ...], place: int) -> Table:
        lines = self.lines
        if place + 1 >= len(lines) or not lines[place + 1].is_rule:
            raise self.problem("the line below a table's header must be |---|", lines[place].number + 1)
        rows = []
        at = place + 2
        while at < len(lines) and not (lines[at].is_blank or lines[at].inert or lines[at].heading):
            cells = _cells(lines[at].bare)
            if len(cells) != len(header):
                raise self.problem(
                    f"the row has {len(cells)} cells, and the table {len(header)} columns", lines[at].number
                )
            rows.append(Row(cells, lines[at].number, self.file))
            at += 1
        while at < len(lines) and lines[at].is_blank:
            at += 1
        stray = at < len(lines) and not lines[at].inert and lines[at].bare.lstrip(" \t").startswith("|")
        if stray and not (at + 1 < len(lines) and lines[at + 1].is_rule):
            raise self.problem("this row stands apart from its table", lines[at].number)
        return Table(header, tuple(rows), lines[place].number)


def table_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table, with a blank line after it."""
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    lines += [f"| {' | '.join(escaped(str(value)) for value in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


_SPECIAL = str.maketrans({"\\": "\\\\", "|": "\\|", "\r": "\\r", "\n": "\\n"})
_EDGES = re.compile(r"^[ \t]+|[ \t]+\Z")
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL)


def escaped(text: str) -> str:
    """A text as it can stand in a cell or heading, and reads back."""
    # What cannot be seen may not survive an editor.
    text = printable(text.translate(_SPECIAL), keep="\t\u3000\xa0", replace=_code)
    return _EDGES.sub(lambda blanks: "".join(map(_code, blanks[0])), text)


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip(" \t").removeprefix("|")
    parts = re.split(r"(?<!\\)((?:\\\\)*)\|", inner)
    joined = ["".join(parts[number : number + 2]) for number in range(0, len(parts), 2)]
    if joined and not joined[-1].strip(" \t"):
        joined.pop()
    return tuple(cell(part.strip(" \t")) for part in joined)


def cell(text: str) -> str:
    """What is written in a cell or heading, without its escapes."""
    signs = {"n": "\n", "r": "\r"}
    return _ESCAPE.sub(lambda found: _sign(found[1]) if found[1] else signs.get(found[2], found[2]), text)


def _sign(code: str) -> str:
    number = int(code, 16)
    return chr(number) if number < 0x110000 else "\ufffd"
