"""`history.md`: a page that people read and the program reads back, with every round, its runs and what was decided.

The tables of runs are what counts: all other figures are worked out from them, and where the page says something else it is an error
with its line. Prose between the tables belongs to people and stays as it is; so do tables of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from grace_kp.errors import InvalidHistory
from grace_kp.rubric._compare import BEST, VARIANT, Recommendation, compare, converged
from grace_kp.rubric._judgement import Detection, Run
from grace_kp.rubric._summary import Summary, Variant
from grace_kp.rubric._tables import Section, Table, cell, sections_of, table_text
from grace_kp.rubric._test_set import Document, Problem, TestSet

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENTS = ("document", "domain", "bonus candidates")
PROBLEMS = ("document", "problem", "category", "severity", "kind", "key")
RUNS = ("document", "run", "judgements", "bonuses", "penalties", "score")
FIGURES = ("mean", "SD", "stability", "gap", "balance")
RATES = ("category", "rate", "of the best", "difference")
DECISION = ("compared with", "goes on with", "difference", "adjusted")
_ROUND = re.compile(r"Round (\d+): (.+)")


@dataclass(frozen=True, slots=True)
class Round:
    """One round: a variant, and what was decided between it and the best before."""

    variant: Variant
    recommendation: Recommendation | None = None
    """None for the first round, and until it is recorded."""
    notes: str = ""
    """Prose that stands below the round's heading."""


@dataclass(slots=True)
class _Kept:
    """A round as it stands on the page."""

    variant: Variant
    recommendation: Recommendation | None
    text: str


@dataclass(slots=True)
class History:
    """All rounds so far, and the page they stand on."""

    path: Path
    head: str = "# History\n"
    test_set: TestSet | None = None
    _rounds: list[_Kept] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a page; a page that is not there is a history without rounds.

        Raises:
            InvalidHistory: a table cannot be read, or says something else than its runs; the message names the line.
        """
        made = cls(Path(path))
        try:
            text = made.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return made
        made._read(text)
        return made

    @property
    def rounds(self) -> list[Round]:
        """The rounds, oldest first."""
        return [Round(one.variant, one.recommendation) for one in self._rounds]

    @property
    def best(self) -> Variant | None:
        """The current best; None before the first round."""
        found = None
        for one in self._rounds:
            if found is None or (one.recommendation is not None and one.recommendation.choice == VARIANT):
                found = one.variant
        return found

    @property
    def improvements(self) -> list[float]:
        """By how much each round's variant was better than the best before it; the first round is none."""
        return [one.recommendation.raw_diff for one in self._rounds if one.recommendation is not None]

    @property
    def converged(self) -> bool:
        """Whether the last three rounds brought less than 0.5 each."""
        return converged(self.improvements)

    def record(self, round: Round) -> Recommendation | None:  # noqa: A002 - the word of the field
        """Add a round; it is compared with the current best unless it says how that went.

        Raises:
            ValueError: its variant was run on another test set, or has the name of an earlier one.
        """
        variant, best = round.variant, self.best
        if self.test_set is not None and variant.test_set != self.test_set:
            raise ValueError(f"the variant {variant.name} was run on another test set than the rounds before")
        if any(one.variant.name == variant.name for one in self._rounds):
            raise ValueError(f"there is a variant {variant.name!r} already; give it a name of its own")
        recommendation = round.recommendation
        if recommendation is None and best is not None:
            recommendation = compare(best, variant)
        if self.test_set is None:
            self.test_set = variant.test_set
            self.head = self.head.rstrip("\n") + "\n\n" + _test_set_text(variant.test_set)
        text = _round_text(len(self._rounds) + 1, variant, best, recommendation, round.notes)
        self._rounds.append(_Kept(variant, recommendation, text))
        return recommendation

    @property
    def text(self) -> str:
        """The page."""
        return "\n".join([self.head.rstrip("\n") + "\n", *(one.text.rstrip("\n") + "\n" for one in self._rounds)])

    def save(self) -> None:
        """Write the page; it is there whole or not at all."""
        beside = self.path.with_name(f".{self.path.name}.new")
        beside.write_text(self.text, encoding="utf-8")
        beside.replace(self.path)

    def _read(self, text: str) -> None:
        head: list[str] = []
        for section in sections_of(text, str(self.path)):
            found = _ROUND.fullmatch(section.title)
            if found is None:
                head.append(section.text)
                if section.title == "Test set":
                    self.test_set = _read_test_set(section)
                continue
            if self.test_set is None:
                raise section.problem("a round stands before the test set", section.line)
            if int(found[1]) != len(self._rounds) + 1:
                raise section.problem(f"this should be round {len(self._rounds) + 1}", section.line)
            self._rounds.append(_read_round(section, cell(found[2]), self.test_set, self.best))
        self.head = "".join(head)


def _test_set_text(test_set: TestSet) -> str:
    documents = [(one.id, one.domain, one.bonus_candidates) for one in test_set.documents]
    problems = [
        (one.id, it.id, it.category, it.severity, it.kind or "-", it.key)
        for one in test_set.documents
        for it in one.problems
    ]
    return "\n".join(
        [
            "## Test set\n",
            f"{test_set.runs_per_document} runs for each document and variant.\n",
            table_text(DOCUMENTS, documents),
            table_text(PROBLEMS, problems),
        ]
    )


def _round_text(
    number: int, variant: Variant, best: Variant | None, recommendation: Recommendation | None, notes: str
) -> str:
    summary = variant.summary
    parts = [f"## Round {number}: {_one_line(variant.name)}\n"]
    if notes:
        parts.append(notes.strip("\n") + "\n")
    parts.append(table_text(RUNS, _run_rows(variant)))
    figures = (summary.mean, summary.sd, summary.stability, summary.cross_doc_gap, summary.balance)
    parts.append(table_text(FIGURES, [tuple(_shown(value) for value in figures)]))
    old = best.summary.category_rates if best is not None and recommendation is not None else {}
    rates = [
        (category, _shown(rate), _shown(old[category]), f"{rate - old[category]:+.2f}")
        if category in old
        else (category, _shown(rate), "-", "-")
        for category, rate in summary.category_rates.items()
    ]
    parts.append(table_text(RATES, rates))
    if best is not None and recommendation is not None:
        chosen = variant.name if recommendation.choice == VARIANT else best.name
        row = (best.name, chosen, f"{recommendation.raw_diff:+.2f}", f"{recommendation.adjusted_diff:+.2f}")
        parts.append(table_text(DECISION, [row]))
        parts.append(f"{recommendation.reason[:1].upper()}{recommendation.reason[1:]}.\n")
        if recommendation.evidence is not None:
            it = recommendation.evidence
            more = {None: "cannot be told", 0: "none"}.get(it.further_runs, str(it.further_runs))
            parts.append(
                f"Difference {it.mean_difference.low:+.2f} to {it.mean_difference.high:+.2f} ({it.mean_difference.level:.0%} bootstrap), "
                f"p = {it.p_value:.3f} over {it.pairs} pairs; further runs of each that would settle it: {more}.\n"
            )
    return "\n".join(parts)


def _run_rows(variant: Variant) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number, run in enumerate(variant.runs, 1):
        problems = variant.test_set.document(run.document).problems
        signs = "".join(run.judgements[problem.id].symbol for problem in problems)
        rows.append((run.document, number, signs, run.bonuses, run.penalties, f"{run.score:g}"))
    return rows


def _shown(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _one_line(text: str) -> str:
    if not text.strip() or "\n" in text or "\r" in text:
        raise ValueError(f"a variant's name must be one line, not {text!r}")
    return text.replace("\\", "\\\\").replace("|", "\\|")


def _read_test_set(section: Section) -> TestSet:
    documents, problems = section.table(DOCUMENTS), section.table(PROBLEMS)
    found = re.search(r"^(\d+) runs for each document", section.text, re.MULTILINE)
    by_document: dict[str, list[Problem]] = {row.cells[0]: [] for row in documents.rows}
    for row in problems.rows:
        document, name, category, severity, kind, key = row.cells
        if document not in by_document:
            raise section.problem(f"there is no document {document!r}", row.line)
        make = partial(Problem, name, category, severity, None if kind == "-" else kind, key)
        by_document[document].append(section.made(row.line, make))
    made = [
        section.made(
            row.line, partial(Document, row.cells[0], row.cells[1], tuple(by_document[row.cells[0]]), row.whole(2))
        )
        for row in documents.rows
    ]
    return section.made(documents.line, partial(TestSet, tuple(made), int(found[1]) if found else 2))


def _read_round(section: Section, name: str, test_set: TestSet, best: Variant | None) -> _Kept:
    table = section.table(RUNS)
    runs = [_read_run(section, table, number, test_set) for number in range(len(table.rows))]
    variant = section.made(table.line, lambda: Variant(name, tuple(runs), test_set))
    _agrees(section, variant.summary)
    recommendation = None
    decision = section.find(DECISION)
    if decision is not None and best is not None:
        (row, *rest) = decision.rows or [None]
        if row is None or rest:
            raise section.problem("a decision is one row", decision.line)
        if row.cells[0] != best.name:
            raise section.problem(f"the best before this round is {best.name!r}, not {row.cells[0]!r}", row.line)
        if row.cells[1] not in {best.name, name}:
            raise section.problem(f"it goes on with {best.name!r} or {name!r}, not {row.cells[1]!r}", row.line)
        ruled = compare(best, variant)
        choice = VARIANT if row.cells[1] == name else BEST
        reason = ruled.reason if choice == ruled.choice else "decided otherwise by hand"
        recommendation = Recommendation(
            choice, reason, ruled.raw_diff, ruled.adjusted_diff, ruled.regressions, ruled.evidence
        )
    elif best is not None:
        raise section.problem("this round has no decision", section.line)
    return _Kept(variant, recommendation, section.text)


def _read_run(section: Section, table: Table, number: int, test_set: TestSet) -> Run:
    row = table.rows[number]
    document = section.made(row.line, lambda: test_set.document(row.cells[0]))
    signs = list(row.cells[2])
    if len(signs) != len(document.problems):
        raise section.problem(
            f"{document.id} has {len(document.problems)} problems, and {len(signs)} are judged", row.line
        )
    pairs: Sequence[tuple[Problem, str]] = list(zip(document.problems, signs, strict=True))
    made = section.made(
        row.line,
        lambda: Run(
            document.id, {problem.id: Detection.of(sign) for problem, sign in pairs}, row.whole(3), row.whole(4)
        ),
    )
    said = row.number(5)
    if abs(said - made.score) > 0.005:
        raise section.problem(f"the score is said to be {said:g}, and the run comes to {made.score:g}", row.line)
    return made


def _agrees(section: Section, summary: Summary) -> None:
    figures = section.find(FIGURES)
    for row in figures.rows if figures is not None else []:
        for place, value in ((0, summary.mean), (1, summary.sd), (3, summary.cross_doc_gap), (4, summary.balance)):
            said = row.number(place)
            if abs(said - value) > 0.0051:
                raise section.problem(
                    f"{FIGURES[place]} is said to be {said:g}, and the runs come to {value:.2f}", row.line
                )


__all__ = ["History", "InvalidHistory", "Round"]
