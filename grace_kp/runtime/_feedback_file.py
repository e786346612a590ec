"""Files of labels: a row per label, as CSV with a header or as JSON lines, read row by row and stored in batches.

Each row that cannot be stored is reported with its line, and the others are stored.
"""

from __future__ import annotations

import csv
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grace_kp.errors import InvalidRecord, brief
from grace_kp.runtime._feedback import add_feedback, audit_problem, feedback_entry, mark_program, stated_correct
from grace_kp.settings import Settings
from grace_kp.trace import TooLong, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grace_kp.store import FeedbackEntry, Store

COLUMNS = ("trace_id", "correct", "source", "by", "note", "probability", "program")
"""The columns that are read; the first two are needed in each row."""
BATCH = 500
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Row:
    """A label of a file, and its line."""

    entry: FeedbackEntry
    line: int


def store_feedback(store: Store, file: object, name: str, **defaults: Any) -> Iterator[int | InvalidRecord]:
    """Store the labels of a file; yield how many were stored, batch by batch, and an `InvalidRecord` for each row that was not.

    Args:
        store: where the labelled traces are.
        file: an open file, binary or text, plain or gzip.
        name: its name in messages.
        defaults: what rows do not say, as the arguments of `feedback_entry`: source=, by=, identifiers=, …

    Raises:
        StoreError: the store cannot be written, or keeps no feedback.
    """
    batch: list[Row] = []
    for row in read_feedback(file, name, **defaults):
        problem = row if isinstance(row, InvalidRecord) else _refused(store, row, name)
        if problem is not None:
            yield problem
        elif isinstance(row, Row):
            batch.append(row)
        if len(batch) >= BATCH:
            yield from _stored(store, batch, name)
            batch = []
    yield from _stored(store, batch, name)


def _refused(store: Store, row: Row, name: str) -> InvalidRecord | None:
    problem = audit_problem(store, row.entry)
    return InvalidRecord(problem, file=name, line=row.line) if problem else None


def _stored(store: Store, batch: list[Row], name: str) -> Iterator[int | InvalidRecord]:
    if not batch:
        return
    missing = set(add_feedback(store, [row.entry for row in batch]))
    for row in batch:
        if row.entry.trace in missing:
            yield InvalidRecord(f"no trace {row.entry.trace} in the store", file=name, line=row.line)
    yield sum(row.entry.trace not in missing for row in batch)


def read_feedback(file: object, name: str, **defaults: Any) -> Iterator[Row | InvalidRecord]:
    """Yield the labels of a file in order; an `InvalidRecord` with the line replaces each that cannot be read.

    Args:
        file: an open file, binary or text, plain or gzip. If it begins with a brace it holds JSON lines, else CSV with a header.
        name: its name in messages.
        defaults: what rows do not say.
    """
    lines = _Lines(file, name)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        yield from lines.take_problems()
        return
    rows = _json_rows(first, lines) if first.lstrip().startswith("{") else _csv_rows(first, lines, name)
    for row, line in rows:
        if isinstance(row, InvalidRecord):
            yield row
        elif isinstance(row, str):
            yield InvalidRecord(row, file=name, line=line)
        else:
            yield _row(row, line, name, defaults)
        yield from lines.take_problems()
    yield from lines.take_problems()


class _Lines:
    """The lines of a file as text. What cannot be read is kept as a problem."""

    def __init__(self, file: object, name: str) -> None:
        self._limit = int(Settings.load().max_document_mb * (1 << 20))
        self._lines = lines_of(file, self._limit)
        self._name, self._problems = name, list[InvalidRecord]()
        self.line = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            try:
                line = next(self._lines)
            except (OSError, EOFError, ValueError, zlib.error) as error:
                self._problem(f"cannot be read any further: {error}", self.line + 1)
                raise StopIteration from None
            self.line += 1
            if isinstance(line, TooLong):
                self._problem(f"the line is longer than {self._limit / (1 << 20):.3g} MB", self.line)
                continue
            try:
                return (line.removeprefix(_BOM) if self.line == 1 else line).decode()
            except UnicodeDecodeError as error:
                self._problem(f"is not UTF-8: {error.reason} at byte {error.start + 1}", self.line)

    def _problem(self, problem: str, line: int) -> None:
        self._problems.append(InvalidRecord(problem, file=self._name, line=line))

    def take_problems(self) -> list[InvalidRecord]:
        """Return the problems since the last call."""
        found, self._problems = self._problems, []
        return found


def _json_rows(first: str, lines: _Lines) -> Iterator[tuple[Mapping[str, Any] | str, int]]:
    line: str | None = first
    while line is not None:
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield f"is not JSON: {error}", lines.line
            else:
                yield row if isinstance(row, dict) else f"must be an object (got {brief(row)})", lines.line
        line = next(lines, None)


def _csv_rows(first: str, lines: _Lines, name: str) -> Iterator[tuple[Mapping[str, Any] | str | InvalidRecord, int]]:
    delimiter = max(",;\t", key=first.count)
    header = [column.strip().strip('"').lower() for column in next(csv.reader([first], delimiter=delimiter), [])]
    absent = [column for column in COLUMNS[:2] if column not in header]
    if absent:
        problem = (
            f"the header must name the columns trace_id and correct (it has {brief(', '.join(header))}); other columns that are read: "
            f"{', '.join(COLUMNS[2:])}. A file of JSON lines begins with a brace"
        )
        yield InvalidRecord(problem, file=name, line=lines.line), lines.line
        return
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        begin = lines.line + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            yield f"is not CSV: {error}", begin
            continue
        if values is None:
            return
        if any(value.strip() for value in values):
            row = dict(zip(header, (value.strip() for value in values), strict=False))
            yield {column: value for column, value in row.items() if value}, begin


def _row(row: Mapping[str, Any], line: int, name: str, defaults: Mapping[str, Any]) -> Row | InvalidRecord:
    known = {column: row[column] for column in COLUMNS if row.get(column) is not None}
    absent = next((column for column in COLUMNS[:2] if column not in known), None)
    if absent is not None:
        return InvalidRecord("is missing", file=name, line=line, path=absent)
    probability = known.get("probability")
    if isinstance(probability, str):
        known["probability"] = _number(probability)
    known["correct"] = stated_correct(known["correct"])
    is_program = stated_correct(known.pop("program", False))
    try:
        if not isinstance(is_program, bool):
            raise ValueError(f"program must be true or false (got {brief(is_program)})")
        entry = feedback_entry(**{**defaults, **known})
        return Row(mark_program(entry) if is_program else entry, line)
    except ValueError as error:
        return InvalidRecord(str(error), file=name, line=line)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text  # the check names it
