"""Rounds of a history: a variant and its decision, and the Markdown tables that hold the test set and each round.

`_tables` reads the Markdown; this module gives the tables their meaning and checks their figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from grace_kp.rubric._compare import BEST, VARIANT, Recommendation, compare
from grace_kp.rubric._judgement import Detection, Run
from grace_kp.rubric._summary import Variant
from grace_kp.rubric._tables import escaped, table_text
from grace_kp.rubric._test_set import Document, Problem, TestSet

if TYPE_CHECKING:
    from grace_kp.rubric._statistics import Evidence
    from grace_kp.rubric._summary import Summary
    from grace_kp.rubric._tables import Part, Row

DOCUMENTS = ("document", "domain", "bonus candidates", "runs")
PROBLEMS = ("document", "problem", "category", "severity", "kind", "key")
RUNS = ("document", "run", "judgements", "bonuses", "penalties", "score")
FIGURES = ("mean", "SD", "stability", "gap", "balance")
RATES = ("category", "rate", "of the best", "difference")
DECISION = ("compared with", "goes on with", "difference", "adjusted", "reason")
TABLES = (DOCUMENTS, PROBLEMS, RUNS, FIGURES, RATES, DECISION)
BY_HAND = "decided otherwise by hand"
NEAR = 0.0051
"""Figures stand on the page with two decimals."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round: a variant, and the decision between it and the best before."""

    variant: Variant
    recommendation: Recommendation | None = None
    """None for the first round, and until it is recorded. A recommendation read from a page has no evidence; `compare` computes it again."""
    notes: str = ""
    """Prose between the heading of the round and its first table."""


def test_set_text(test_set: TestSet) -> str:
    """The test set as it stands on a page."""
    documents = [(one.id, one.domain, one.bonus_candidates, test_set.runs_per_document) for one in test_set.documents]
    problems = [
        (one.id, it.id, it.category, it.severity, it.kind or "-", it.key)
        for one in test_set.documents
        for it in one.problems
    ]
    return "\n".join(["## Test set\n", table_text(DOCUMENTS, documents), table_text(PROBLEMS, problems)])


def round_text(number: int, round: Round, best: Variant | None) -> str:  # noqa: A002
    """A round as it stands on a page."""
    variant, recommendation = round.variant, round.recommendation
    summary = variant.summary
    parts = [f"## Round {number}: {escaped(variant.name)}\n"]
    if round.notes:
        parts.append(round.notes + "\n")
    parts.append(table_text(RUNS, _run_rows(variant)))
    figures = (summary.mean, summary.sd, summary.stability, summary.cross_doc_gap, summary.balance)
    parts.append(table_text(FIGURES, [tuple(_shown(value) for value in figures)]))
    old = best.summary.category_rates if best is not None else {}
    rates = [
        (category, _shown(rate), _shown(old[category]), f"{rate - old[category]:+.2f}")
        if category in old
        else (category, _shown(rate), "-", "-")
        for category, rate in summary.category_rates.items()
    ]
    parts.append(table_text(RATES, rates))
    if best is not None and recommendation is not None:
        chosen = variant.name if recommendation.choice == VARIANT else best.name
        figures_ = (f"{recommendation.raw_diff:+.2f}", f"{recommendation.adjusted_diff:+.2f}")
        parts.append(table_text(DECISION, [(best.name, chosen, *figures_, recommendation.reason)]))
        if recommendation.evidence is not None:
            parts.append(_evidence(recommendation.evidence))
    return "\n".join(parts)


def _evidence(it: Evidence) -> str:
    told = "Difference: no interval"
    if it.mean_difference is not None:
        low, high, level = it.mean_difference.low, it.mean_difference.high, it.mean_difference.level
        told = f"Difference {low:+.2f} to {high:+.2f} ({level:.0%} bootstrap)"
    return f"{told}, p = {it.p_value:.3f} over {it.pairs} pairs; further runs of each that would settle it: {it.further_runs_text}.\n"


def _run_rows(variant: Variant) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number, run in enumerate(variant.runs, 1):
        problems = variant.test_set.document(run.document).problems
        signs = "".join(run.judgements[problem.id].symbol for problem in problems)
        rows.append((run.document, number, signs, run.bonuses, run.penalties, f"{run.score:.15g}"))
    return rows


def _shown(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def read_test_set(head: Part) -> TestSet | None:
    """The test set of a page; None where there is none yet.

    Raises:
        InvalidHistory: it cannot be read.
    """
    _belongs(head, (DOCUMENTS, PROBLEMS), "a round begins with '## Round N: name'")
    if not head.tables:
        return None
    documents, problems = head.table(DOCUMENTS), head.table(PROBLEMS)
    by_document: dict[str, list[Problem]] = {row.cells[0]: [] for row in documents.rows}
    for row in problems.rows:
        document, name, category, severity, kind, key = row.cells
        if document not in by_document:
            raise head.problem(f"there is no document {document!r}", row.line)
        make = partial(Problem, name, category, severity, None if kind == "-" else kind, key)
        by_document[document].append(head.made(row.line, make))
    made = [
        head.made(
            row.line, partial(Document, row.cells[0], row.cells[1], tuple(by_document[row.cells[0]]), row.whole(2))
        )
        for row in documents.rows
    ]
    runs = {row.whole(3) for row in documents.rows}
    if len(runs) != 1:
        raise head.problem("all documents have the same number of runs, in one test set", documents.line)
    return head.made(documents.line, partial(TestSet, tuple(made), runs.pop()))


def _belongs(part: Part, known: tuple[tuple[str, ...], ...], hint: str) -> None:
    for header, table in part.tables.items():
        if header not in known:
            raise part.problem(
                f"the table with the columns {', '.join(header)} does not belong here; {hint}", table.line
            )


def read_round(
    part: Part, name: str, test_set: TestSet, best: Variant | None
) -> tuple[Variant, Recommendation | None, str]:
    """The variant of a round, what was decided, and its notes.

    Raises:
        InvalidHistory: a table is missing or cannot be read, or a figure is not what the runs come to.
    """
    _belongs(part, (RUNS, FIGURES, RATES, DECISION), "the test set stands before the first round")
    table = part.table(RUNS)
    runs = [_read_run(part, row, number, test_set) for number, row in enumerate(table.rows, 1)]
    variant = part.made(table.line, lambda: Variant(name, tuple(runs), test_set))
    _check_figures(part, variant.summary)
    _check_rates(part, variant.summary, best)
    if best is None:
        if DECISION in part.tables:
            raise part.problem("the first round is compared with nothing", part.tables[DECISION].line)
        return variant, None, _notes(part)
    return variant, _read_decision(part, variant, best), _notes(part)


def _notes(part: Part) -> str:
    first = min(table.line for table in part.tables.values())
    return "".join(line.text for line in part.lines[1:] if line.number < first).replace("\r\n", "\n").strip("\n")


def _read_run(part: Part, row: Row, number: int, test_set: TestSet) -> Run:
    if row.whole(1) != number:
        raise part.problem(f"this should be run {number}", row.line)
    document = part.made(row.line, lambda: test_set.document(row.cells[0]))
    signs = list(row.cells[2])
    if len(signs) != len(document.problems):
        raise part.problem(
            f"{document.id} has {len(document.problems)} problems, and {len(signs)} are judged", row.line
        )
    pairs = list(zip(document.problems, signs, strict=True))
    made = part.made(
        row.line,
        lambda: Run(
            document.id, {problem.id: Detection.of(sign) for problem, sign in pairs}, row.whole(3), row.whole(4)
        ),
    )
    said = row.number(5)
    if abs(said - made.score) > 0.005:
        raise part.problem(f"the score is said to be {said:g}, and the run comes to {made.score:g}", row.line)
    return made


def _only(part: Part, header: tuple[str, ...]) -> Row:
    table = part.table(header)
    if len(table.rows) != 1:
        raise part.problem(f"the table with the columns {', '.join(header)} has one row", table.line)
    return table.rows[0]


def _agree(part: Part, row: Row, place: int, name: str, value: float) -> None:
    said = row.number(place)
    if abs(said - value) > NEAR:
        raise part.problem(f"{name} is said to be {said:g}, and the runs come to {value:.2f}", row.line)


def _check_figures(part: Part, summary: Summary) -> None:
    row = _only(part, FIGURES)
    for place, value in ((0, summary.mean), (1, summary.sd), (3, summary.cross_doc_gap), (4, summary.balance)):
        _agree(part, row, place, FIGURES[place], value)
    if row.cells[2] != summary.stability:
        raise part.problem(
            f"stability is said to be {row.cells[2]}, and the runs come to {summary.stability}", row.line
        )


def _check_rates(part: Part, summary: Summary, best: Variant | None) -> None:
    table = part.table(RATES)
    rates = summary.category_rates
    if sorted(row.cells[0] for row in table.rows) != sorted(rates):
        raise part.problem(f"there must be one row for each category: {', '.join(rates)}", table.line)
    old = best.summary.category_rates if best is not None else {}
    for row in table.rows:
        category = row.cells[0]
        _agree(part, row, 1, f"the rate of {category}", rates[category])
        if category in old:
            _agree(part, row, 2, f"the best's rate of {category}", old[category])
            _agree(part, row, 3, f"the difference of {category}", rates[category] - old[category])
        elif row.cells[2:] != ("-", "-"):
            raise part.problem(f"{category} has nothing to be compared with; it must be '-'", row.line)


def _read_decision(part: Part, variant: Variant, best: Variant) -> Recommendation:
    row = _only(part, DECISION)
    if row.cells[0] != best.name:
        raise part.problem(f"the best before this round is {best.name!r}, not {row.cells[0]!r}", row.line)
    if row.cells[1] not in {best.name, variant.name}:
        raise part.problem(f"it goes on with {best.name!r} or {variant.name!r}, not {row.cells[1]!r}", row.line)
    ruled = part.made(row.line, lambda: compare(best.summary, variant.summary))  # evidence takes its time
    _agree(part, row, 2, "the difference", ruled.raw_diff)
    _agree(part, row, 3, "the adjusted difference", ruled.adjusted_diff)
    choice = VARIANT if row.cells[1] == variant.name else BEST
    # Who changes the choice by hand and leaves the rule's reason has another reason.
    reason = BY_HAND if choice != ruled.choice and row.cells[4] == ruled.reason else row.cells[4]
    return Recommendation(choice, reason, ruled.raw_diff, ruled.adjusted_diff, ruled.regressions)
