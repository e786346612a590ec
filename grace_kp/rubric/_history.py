"""`history.md`: a page for people that the program reads back, with every round, its runs and its decision.

The tables of runs are authoritative: all other figures are computed from them, and a figure on the page that differs is an error with its
line. Everything else on the page belongs to its authors and stays unchanged: prose, headings, tables of their own.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from grace_kp.errors import GraceError, InvalidHistory
from grace_kp.pages import printable
from grace_kp.rubric._compare import BEST, VARIANT, Recommendation, compare, converged
from grace_kp.rubric._variants import Document, Problem, Run, TestSet, Variant
from grace_kp.trace import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grace_kp.rubric._compare import Evidence


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
class MarkdownRow:
    """A row of a table; the first row of a table is its header."""

    cells: tuple[str, ...]
    line: int
    file: str

    def error(self, problem: str) -> InvalidHistory:
        """Return the error for this row."""
        return InvalidHistory(problem, file=self.file, line=self.line)

    @contextlib.contextmanager
    def place_errors(self) -> Iterator[None]:
        """Give the file and the line of this row to a ValueError."""
        try:
            yield
        except InvalidHistory:
            raise
        except ValueError as error:
            raise self.error(str(error)) from None

    def number(self, column: int) -> float:
        """Return the finite number in a cell."""
        with contextlib.suppress(ValueError):
            value = float(self.cells[column])
            if math.isfinite(value):
                return value
        raise self.error(f"a number is needed, not {self.cells[column]!r}")

    def whole_number(self, column: int) -> int:
        """Return the whole number from 0 in a cell."""
        value = self.number(column)
        if value < 0 or value != int(value):
            raise self.error(f"a whole number is needed, not {self.cells[column]!r}")
        return int(value)


@dataclass(slots=True)
class Section:
    """A section of a page: everything before the first round, or a round and everything up to the next."""

    file: str
    lines: list[Line] = field(default_factory=list)
    tables: dict[tuple[str, ...], list[MarkdownRow]] = field(default_factory=dict)
    """The rows of each table, its header first."""

    def error(self, problem: str, line: int | None = None) -> InvalidHistory:
        """Return the error for a line of this page; for the first line of the section if it is None."""
        first = self.lines[0].number if self.lines else 1
        return InvalidHistory(problem, file=self.file, line=first if line is None else line)

    def table(self, header: Sequence[str]) -> list[MarkdownRow]:
        """Return the rows of the table with this header, which is the first of them."""
        table = self.tables.get(tuple(header))
        if table is None:
            raise self.error(f"the table with the columns {', '.join(header)} is missing")
        return table

    def row(self, header: Sequence[str]) -> MarkdownRow:
        """Return the only row of the table with this header."""
        first, *rows = self.table(header)
        if len(rows) != 1:
            raise first.error(f"the table with the columns {', '.join(header)} must have one row")
        return rows[0]

    def refuse_other_tables(self, expected: tuple[tuple[str, ...], ...], hint: str) -> None:
        """Refuse tables that belong to another kind of section."""
        for header, (first, *_) in self.tables.items():
            if header not in expected:
                raise first.error(f"the table with the columns {', '.join(header)} does not belong here; {hint}")

    def read_tables(self, known: Sequence[tuple[str, ...]]) -> None:
        """Read the tables with known headers. Other tables belong to the authors of the page."""
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

    def _read_table(self, header: tuple[str, ...], start: int) -> list[MarkdownRow]:
        lines = self.lines
        if start + 1 >= len(lines) or not lines[start + 1].is_rule:
            raise self.error("the line below a table's header must be |---|", lines[start].number + 1)
        rows = [MarkdownRow(header, lines[start].number, self.file)]
        end = start + 2
        while end < len(lines) and not (lines[end].is_blank or lines[end].inert or lines[end].heading):
            row = MarkdownRow(_cells(lines[end].bare), lines[end].number, self.file)
            if len(row.cells) != len(header):
                raise row.error(f"the row has {len(row.cells)} cells, and the table {len(header)} columns")
            rows.append(row)
            end += 1
        while end < len(lines) and lines[end].is_blank:
            end += 1
        stray = end < len(lines) and not lines[end].inert and lines[end].bare.lstrip(" \t").startswith("|")
        if stray and not (end + 1 < len(lines) and lines[end + 1].is_rule):
            raise self.error("this row is separated from its table", lines[end].number)
        return rows


def table_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as Markdown, with a blank line after it. Numbers with a fraction get two decimals."""
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for row in rows:
        cells = [
            f"{value:{'+.2f' if name in SIGNED else '.2f'}}" if isinstance(value, float) else str(value)
            for name, value in zip(header, row, strict=True)
        ]
        lines.append(f"| {' | '.join(map(escape_cell, cells))} |")
    return "\n".join(lines) + "\n"


_SPECIAL = str.maketrans({"\\": "\\\\", "|": "\\|", "\r": "\\r", "\n": "\\n"})
_EDGES = re.compile(r"^[ \t]+|[ \t]+\Z")
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL)


def escape_cell(text: str) -> str:
    """Escape a string for a cell or heading, so that `unescape_cell` returns it."""
    # Characters that are invisible may not survive an editor.
    visible = printable(text.translate(_SPECIAL), keep="\t\u3000\xa0", replace=_code)
    return _EDGES.sub(lambda match: "".join(map(_code, match[0])), visible)


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def unescape_cell(text: str) -> str:
    """Return the string that a cell or heading contains."""
    controls = {"n": "\n", "r": "\r"}

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(code) if (code := int(match[1], 16)) < 0x110000 else "\ufffd"
        return controls.get(match[2], match[2])

    return _ESCAPE.sub(character, text)


def _cells(line: str) -> tuple[str, ...]:
    parts = re.split(r"(?<!\\)((?:\\\\)*)\|", line.strip(" \t").removeprefix("|"))
    cells = ["".join(parts[index : index + 2]) for index in range(0, len(parts), 2)]
    if cells and not cells[-1].strip(" \t"):
        cells.pop()
    return tuple(unescape_cell(cell.strip(" \t")) for cell in cells)


DOCUMENTS = ("document", "domain", "bonus candidates", "runs")
PROBLEMS = ("document", "problem", "category", "severity", "kind", "key")
RUNS = ("document", "run", "judgements", "bonuses", "penalties", "score")
FIGURES = ("mean", "SD", "stability", "gap", "balance")
RATES = ("category", "rate", "of the best", "difference")
DECISION = ("compared with", "goes on with", "difference", "adjusted", "reason")
TABLES = (DOCUMENTS, PROBLEMS, RUNS, FIGURES, RATES, DECISION)
SIGNED = ("difference", "adjusted")
BY_HAND = "decided otherwise by hand"
ROUNDING = 0.0051
"""Pages show figures with two decimals."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round: a variant, and the decision between it and the best before."""

    variant: Variant
    recommendation: Recommendation | None = None
    """None for the first round, and until it is recorded. A recommendation read from a page has no evidence; `compare` computes it again."""
    notes: str = ""
    """Prose between the heading of the round and its first table."""

    @property
    def outcome(self) -> tuple[str, str]:
        """The difference to the best before, and the decision, as reports show them."""
        found = self.recommendation
        if found is None:
            return "", "the first"
        return f"{found.raw_diff:+.2f}", "goes on with it" if found.choice == VARIANT else "the best stays"


def test_set_text(test_set: TestSet) -> str:
    """Return a test set as Markdown."""
    documents = [
        (document.id, document.domain, document.bonus_candidates, test_set.runs_per_document)
        for document in test_set.documents
    ]
    problems = [
        (document.id, problem.id, problem.category, problem.severity, problem.kind or "-", problem.key)
        for document in test_set.documents
        for problem in document.problems
    ]
    return "\n".join(["## Test set\n", table_text(DOCUMENTS, documents), table_text(PROBLEMS, problems)])


def round_text(number: int, round: Round, best: Variant | None) -> str:  # noqa: A002
    """Return a round as Markdown."""
    variant, recommendation = round.variant, round.recommendation
    parts = [f"## Round {number}: {escape_cell(variant.name)}\n"]
    if round.notes:
        parts.append(round.notes + "\n")
    runs = []
    for place, run in enumerate(variant.runs, 1):
        problems = variant.test_set.document(run.document).problems
        symbols = "".join(run.judgements[problem.id].symbol for problem in problems)
        runs.append((run.document, place, symbols, run.bonuses, run.penalties, f"{run.score:.15g}"))
    parts.append(table_text(RUNS, runs))
    parts.append(table_text(FIGURES, [variant.summary.figures]))
    parts.append(table_text(RATES, _rates_rows(variant, best)))
    if best is not None and recommendation is not None:
        chosen = variant.name if recommendation.choice == VARIANT else best.name
        differences = recommendation.raw_diff, recommendation.adjusted_diff
        parts.append(table_text(DECISION, [(best.name, chosen, *differences, recommendation.reason)]))
        if recommendation.evidence is not None:
            parts.append(_evidence_text(recommendation.evidence))
    return "\n".join(parts)


def _rates_rows(variant: Variant, best: Variant | None) -> list[tuple[float | str, ...]]:
    old = best.summary.category_rates if best is not None else {}
    return [
        (category, rate, *((old[category], rate - old[category]) if category in old else ("-", "-")))
        for category, rate in variant.summary.category_rates.items()
    ]


def _evidence_text(evidence: Evidence) -> str:
    interval = evidence.mean_difference
    difference = "Difference: no interval"
    if interval is not None:
        difference = f"Difference {interval.low:+.2f} to {interval.high:+.2f} ({interval.level:.0%} bootstrap)"
    further = f"further runs of each that would settle it: {evidence.further_runs_text}"
    return f"{difference}, p = {evidence.p_value:.3f} over {evidence.pairs} pairs; {further}.\n"


def read_test_set(section: Section) -> TestSet | None:
    """Return the test set of a page; None if the page has none."""
    section.refuse_other_tables((DOCUMENTS, PROBLEMS), "a round begins with '## Round N: name'")
    if not section.tables:
        return None
    header, *rows = section.table(DOCUMENTS)
    by_document: dict[str, list[Problem]] = {row.cells[0]: [] for row in rows}
    for row in section.table(PROBLEMS)[1:]:
        document, name, category, severity, kind, key = row.cells
        if document not in by_document:
            raise row.error(f"the document {document!r} is unknown")
        with row.place_errors():
            by_document[document].append(Problem(name, category, severity, None if kind == "-" else kind, key))
    documents = []
    for row in rows:
        with row.place_errors():
            name, domain = row.cells[:2]
            documents.append(Document(name, domain, tuple(by_document[name]), row.whole_number(2)))
    runs = {row.whole_number(3) for row in rows}
    if len(runs) != 1:
        raise header.error("all documents of a test set have the same number of runs")
    with header.place_errors():
        return TestSet(tuple(documents), runs.pop())


def read_round(section: Section, name: str, test_set: TestSet, best: Variant | None) -> Round:
    """Return a round of a page."""
    section.refuse_other_tables((RUNS, FIGURES, RATES, DECISION), "the test set comes before the first round")
    header, *rows = section.table(RUNS)
    runs = tuple(_read_run(row, number, test_set) for number, row in enumerate(rows, 1))
    with header.place_errors():
        variant = Variant(name, runs, test_set)
    _check_row(section.row(FIGURES), FIGURES, variant.summary.figures)
    rates, (known, *rows) = _rates_rows(variant, best), section.table(RATES)
    if sorted(row.cells[0] for row in rows) != sorted(str(row[0]) for row in rates):
        raise known.error(f"there must be one row for each category: {', '.join(str(row[0]) for row in rates)}")
    by_category = {row.cells[0]: row for row in rows}
    for values in rates:
        _check_row(by_category[str(values[0])], RATES, values)
    if best is None and DECISION in section.tables:
        raise section.table(DECISION)[0].error("the first round is compared with nothing")
    first = min(table[0].line for table in section.tables.values())
    notes = "".join(line.text for line in section.lines[1:] if line.number < first).replace("\r\n", "\n").strip("\n")
    return Round(variant, None if best is None else _read_decision(section.row(DECISION), variant, best), notes)


def _read_run(row: MarkdownRow, number: int, test_set: TestSet) -> Run:
    if row.whole_number(1) != number:
        raise row.error(f"this should be run {number}")
    with row.place_errors():
        document = test_set.document(row.cells[0])
        run = Run(document.id, document.judgements_of(row.cells[2]), row.whole_number(3), row.whole_number(4))
    score = row.number(5)
    if abs(score - run.score) > 0.005:
        raise row.error(f"the score is {score:g} on the page and {run.score:g} in the run")
    return run


def _check_row(row: MarkdownRow, header: Sequence[str], values: Sequence[float | str | None]) -> None:
    """Refuse cells that differ from the values that follow from the runs; None allows any cell."""
    place = f" in {row.cells[0]}" if isinstance(values[0], str) else ""
    for column, (name, value) in enumerate(zip(header, values, strict=True)):
        if isinstance(value, float) and abs((found := row.number(column)) - value) > ROUNDING:
            problem = f"{found:g} on the page and {value:.2f} in the runs"
        elif isinstance(value, str) and row.cells[column] != value:
            problem = f"{row.cells[column]} on the page and {value} in the runs"
        else:
            continue
        raise row.error(f"{name}{place} is {problem}")


def _read_decision(row: MarkdownRow, variant: Variant, best: Variant) -> Recommendation:
    compared, chosen, *_, reason = row.cells
    if compared != best.name:
        raise row.error(f"the best before this round is {best.name!r}, not {compared!r}")
    if chosen not in {best.name, variant.name}:
        raise row.error(f"the choice must be {best.name!r} or {variant.name!r}, not {chosen!r}")
    with row.place_errors():
        ruled = compare(best.summary, variant.summary)  # of the summaries, because evidence takes time
    _check_row(row, DECISION, (None, None, ruled.raw_diff, ruled.adjusted_diff, None))
    choice = VARIANT if chosen == variant.name else BEST
    # An author who changes the choice and leaves the reason of the rule has another reason.
    by_hand = choice != ruled.choice and reason == ruled.reason
    return replace(ruled, choice=choice, reason=BY_HAND if by_hand else reason)


_ROUND = re.compile(r"round[ \t]+(\d+):[ \t]*(.+)", re.IGNORECASE)


class HistoryChanged(GraceError):
    """The page was changed by another author since it was read, and is not overwritten."""


@dataclass(slots=True)
class History:
    """All rounds so far, and the page that holds them."""

    path: Path
    test_set: TestSet | None = None
    rounds: list[Round] = field(default_factory=list)
    """Oldest first. Only `record` adds to it."""
    text: str = "# History\n"
    """The page."""
    _stored: bytes | None = field(default=None, repr=False, compare=False)
    """The content of the file when it was last read or written; None where there was no file."""

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a page. A page that does not exist is a history without rounds.

        Raises:
            InvalidHistory: a table cannot be read, or differs from its runs; the message names the line.
            OSError: the page exists and cannot be read.
        """
        history = cls(Path(path))
        try:
            data = history.path.read_bytes()
        except FileNotFoundError:
            return history
        history._stored = data
        try:
            history.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidHistory("not UTF-8", file=str(path), line=data.count(b"\n", 0, error.start) + 1) from None
        history._read(history.text)
        return history

    @property
    def is_unrelated(self) -> bool:
        """Whether the file has text but no test set, so that it is not a history."""
        return self.test_set is None and bool(self.text.strip()) and self._stored is not None

    is_none = is_unrelated
    """The earlier name of `is_unrelated`."""

    @property
    def best(self) -> Variant | None:
        """The current best; None before the first round."""
        return self.best_before(len(self.rounds))

    def best_before(self, place: int) -> Variant | None:
        """Return the best variant before a round, which the round was compared with; None before the first.

        Args:
            place: the index of the round, from 0.
        """
        best = None
        for earlier in self.rounds[:place]:
            if best is None or (earlier.recommendation is not None and earlier.recommendation.choice == VARIANT):
                best = earlier.variant
        return best

    @property
    def improvements(self) -> list[float]:
        """By how much each variant was better than the best before it; the first round has no such value."""
        return [item.recommendation.raw_diff for item in self.rounds if item.recommendation is not None]

    @property
    def converged(self) -> bool:
        """Whether each of the last three rounds improved by less than 0.5."""
        return converged(self.improvements)

    def record(self, round: Round) -> Recommendation | None:  # noqa: A002 - the word of the field
        """Add a round, compared with the current best.

        Args:
            round: the round. Its own recommendation may choose otherwise than the rule, with a reason; the figures are computed from the runs.

        Returns:
            The decision; None for the first round.

        Raises:
            ValueError: the variant was run on another test set or has the name of an earlier one, or the round would not read back.
        """
        variant, best = round.variant, self.best
        if self.test_set is not None and variant.test_set != self.test_set:
            raise ValueError(f"the variant {variant.name} was run on another test set than the rounds before")
        if any(item.variant.name == variant.name for item in self.rounds):
            raise ValueError(f"there is already a variant {variant.name!r}; choose another name")
        if best is None and round.recommendation is not None:
            raise ValueError("the first round is compared with nothing, so it has no recommendation")
        notes = round.notes.replace("\r\n", "\n").strip("\n")
        recorded = Round(variant, None if best is None else _decide(best, variant, round.recommendation), notes)
        text = self.text if not self.text or self.text.endswith("\n") else self.text + "\n"
        added = [] if self.test_set is not None else [test_set_text(variant.test_set)]
        added.append(round_text(len(self.rounds) + 1, recorded, best))
        new = "".join(f"\n{part}" for part in added).replace("\n", "\r\n" if "\r\n" in text else "\n")
        self._check_reads_back(text, new, recorded)
        self.text, self.test_set = text + new, variant.test_set
        self.rounds.append(recorded)
        return recorded.recommendation

    def _check_reads_back(self, text: str, new: str, recorded: Round) -> None:
        """Refuse an addition to the page that would not be read as the round it holds; the rest was read before."""
        if lines_of(text + "x")[-1].inert:
            raise ValueError("this round would not read back: the page ends within a code fence or a comment")
        again = History(self.path, self.test_set, list(self.rounds))
        try:
            again._read(new)
        except InvalidHistory as error:
            raise ValueError(f"this round would not read back: {error}") from None
        if again.rounds[len(self.rounds) :] != [recorded]:
            raise ValueError("this round would not read back; its notes may contain headings of rounds, or tables")

    def save(self) -> None:
        """Write the page; it is replaced as a whole or not at all.

        Raises:
            HistoryChanged: another author has changed it since it was read.
            OSError: it cannot be written.
        """
        path = self.path.resolve()  # a link stays a link
        data = self.text.encode("utf-8")
        with _lock_folder(path.parent):
            try:
                current: bytes | None = path.read_bytes()
            except FileNotFoundError:
                current = None
            if current != self._stored:
                raise HistoryChanged(f"{self.path} has changed since it was read; nothing was written. Load it again")
            with whole_file(path) as file:
                file.write(data)
        self._stored = data

    def _read(self, text: str) -> None:
        sections = [Section(str(self.path))]
        titles: list[tuple[int, str]] = []
        for line in lines_of(text):
            heading = line.heading
            match = _ROUND.fullmatch(heading[1]) if heading is not None and heading[0] == 2 else None
            if match is not None:
                sections.append(Section(str(self.path)))
                titles.append((int(match[1]), unescape_cell(match[2])))
            sections[-1].lines.append(line)
        for section in sections:
            section.read_tables(TABLES)
        head, *rounds = sections
        self.test_set = read_test_set(head) if self.test_set is None else self.test_set
        for section, (number, name) in zip(rounds, titles, strict=True):
            if self.test_set is None:
                raise section.error("a round comes before the test set")
            if number != len(self.rounds) + 1:
                raise section.error(f"this should be round {len(self.rounds) + 1}")
            if any(item.variant.name == name for item in self.rounds):
                raise section.error(f"there is already a variant {name!r}")
            self.rounds.append(read_round(section, name, self.test_set, self.best))


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _decide(best: Variant, variant: Variant, own: Recommendation | None) -> Recommendation:
    ruled = compare(best, variant)
    if own is None:
        return ruled
    if own.choice not in {BEST, VARIANT}:
        raise ValueError(f"a choice must be {BEST!r} or {VARIANT!r}, not {own.choice!r}")
    return replace(ruled, choice=own.choice, reason=own.reason.strip())
