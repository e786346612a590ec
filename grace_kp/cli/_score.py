"""`grace-kp score`: the value score of each run in files. `grace-kp eval`: the scores of cases by a suite, with reports as HTML or JUnit XML."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._inputs import Unreadable, load_module, readable
from grace_kp.cli._lookup import JsonOption, short_id
from grace_kp.cli._output import clean, console, error_text, progress, put_json, put_jsonl
from grace_kp.cli._page import TableColumn, TextTable, put, put_field, put_text
from grace_kp.errors import GraceError, MissingExtra, SettingsError
from grace_kp.levels import waits
from grace_kp.pages import count_text, penalty_text
from grace_kp.trace import storable, write_whole

if TYPE_CHECKING:
    from grace_kp.runtime import Assessor
    from grace_kp.trace import ReasoningTrace

FIELDS = ("id", "score", "complexity", "novelty", "tool_diversity", "outcome_confidence", "profile", "overrides")


def assessor(profile: str) -> Assessor:
    from grace_kp.runtime import Assessor, ProfileSet
    from grace_kp.value import ValueScorer

    try:
        return Assessor(ProfileSet.of(profile), ValueScorer)
    except SettingsError as error:
        if profile.endswith(".json"):
            raise
        raise typer.BadParameter(str(error)) from None


def assess_trace(trace: ReasoningTrace, how: Assessor) -> dict[str, Any]:
    """Return the document of the trace with its score, and with a confidence if it had none."""
    document = trace.to_dict()
    (how.assess if document.get("grace", {}).get("unscored") else how.value)(document)
    return document


def score(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Traces or chat runs as JSON or JSON lines, plain or .gz; - is standard input."
        ),
    ],
    as_json: JsonOption = False,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON line per run as soon as it is scored.")
    ] = False,
    domain: Annotated[
        str | None, typer.Option(help="Task domain for runs without one; it selects the weights.")
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            help="Confidence profile for runs without a confidence: grace, strict, or the file of a learned one."
        ),
    ] = "grace",
    summary: Annotated[bool, typer.Option("--summary/--no-summary", help="Print the summary below the table.")] = True,
) -> None:
    """Score each run in FILES: print its value score with the parts, and a summary.

    Example: grace-kp score runs.jsonl.gz --json
    """
    how = assessor(profile)
    unreadable = Unreadable()
    rows = (assess_trace(trace, how) for trace in readable(files, "scoring", unreadable, domain=domain))
    if as_jsonl:
        put_jsonl(_short(row) for row in rows)
    elif as_json:
        put_json([_short(row) for row in rows])
    else:
        _show(list(rows), unreadable, summary=summary)
    if unreadable.count:
        raise typer.Exit(1)


def _short(document: dict[str, Any]) -> dict[str, Any]:
    return {"id": document["id"], **{name: document["grace"]["value"][name] for name in FIELDS[1:]}}


COLUMNS = (
    TableColumn("run", "word"),
    TableColumn("objective", priority=3),
    TableColumn("score", "figure"),
    *(TableColumn(name, "figure", priority=2) for name in "CNDO"),
    TableColumn("conf", "figure", priority=1),
    TableColumn("ok", "word", styles={"no": "red"}),
    TableColumn("rules", priority=4),
)


def _show(documents: list[dict[str, Any]], unreadable: Unreadable, *, summary: bool) -> None:
    rows = TextTable(*COLUMNS)
    for document in documents:
        value = document["grace"]["value"]
        rows.add(
            _name(document),
            document["task"]["objective"],
            f"{value['score']:.3f}",
            *(f"{value[part]:.2f}" for part in ("complexity", "novelty", "tool_diversity", "outcome_confidence")),
            f"{document['outcome']['confidence']:.2f}",
            _ended_well(document),
            ", ".join(map(penalty_text, value["overrides"])),
        )
    if documents:
        rows.print(console())
    if summary:
        _summarise(documents, unreadable)


def _ended_well(document: dict[str, Any]) -> str:
    if waits(document["grace"].get("status")):
        return "-"
    return "yes" if document["metadata"]["success"] else "no"


def _name(document: dict[str, Any]) -> str:
    source = document.get("grace", {}).get("source", {})
    if isinstance(source, dict) and "task_id" in source:
        trial = f"/{source['trial']}" if "trial" in source else ""
        return clean(f"{source['task_id']}{trial}", 16)
    return clean(short_id(document["id"]))[:8]


def _summarise(documents: list[dict[str, Any]], unreadable: Unreadable) -> None:
    out = console()
    lost = f"{unreadable.count:,} could not be read" if unreadable.count else ""
    if not documents:
        put_text(out, f"no runs{f'; {lost}' if lost else ''}")
        return
    scores = [document["metadata"]["quality_score"] for document in documents]
    ended = [(document["metadata"]["quality_score"], _ended_well(document)) for document in documents]
    solved = [score for score, ok in ended if ok == "yes"]
    failed = [score for score, ok in ended if ok == "no"]
    waiting = len(documents) - len(solved) - len(failed)
    count = count_text(len(documents), "run")
    put(out, "")
    rate = f", {len(solved) / (len(documents) - waiting):.0%} successful" if solved or failed else ""
    left = f"{f', {waiting:,} waiting' if waiting else ''}{f'; {lost}' if lost else ''}"
    put_text(out, f"{count}{rate}{left}")
    put_field(
        out,
        "score",
        f"mean {statistics.fmean(scores):.3f}  median {statistics.median(scores):.3f}  min {min(scores):.3f}  max {max(scores):.3f}",
    )
    if solved and failed:
        means = f"successful {statistics.fmean(solved):.3f}, failed {statistics.fmean(failed):.3f} on average"
        put_field(out, "", means)
    figures = [document["outcome"]["confidence"] for document in documents]
    put_field(out, "confidence", f"mean {statistics.fmean(figures):.3f}  median {statistics.median(figures):.3f}")
    applied = Counter(name for document in documents for name in document["grace"]["value"]["overrides"])
    if applied:
        counts = (f"{penalty_text(name)} in {count_text(count, 'run')}" for name, count in applied.items())
        put_field(out, "rules", ", ".join(counts))
    put_field(out, "novelty", "0.5 throughout: not measured, because this command uses no embedder")


def evaluate(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A YAML file, or a preset: standard, strict, operation-focused.")
    ],
    cases: Annotated[
        Path, typer.Argument(metavar="CASES", help='JSON lines: {"id": …, "actual": {…}, "expected": {…}}.')
    ],
    html: Annotated[Path | None, typer.Option(help="Write an HTML page to this file.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")] = None,
    as_json: JsonOption = False,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import", metavar="MODULE", help="First import this module or .py file, which registers scorers."
        ),
    ] = None,
) -> None:
    """Score every case with a suite. The exit code is 1 if a case fails, and 2 if suite or cases cannot be read.

    Example: grace-kp eval suite.yaml cases.jsonl --html report.html
    """
    from grace_kp.scorers import Suite, evaluate_cases, html_report, junit_report

    try:
        for name in imports or ():
            load_module(name, "--import")
        rows = evaluate_cases(
            Suite.load(suite),
            cases,
            jobs=jobs,
            details=as_json,
            progress=lambda rows, total: progress(rows, "evaluating", total=total),
        )
    except MissingExtra:
        raise
    except (GraceError, OSError) as error:
        # Exit code 2, so that a build server can tell it from a failed case.
        raise ValueError(error_text(error)) from None
    title = storable(f"{Path(suite).name} over {cases.name}")
    for path, text in ((html, html_report), (junit, junit_report)):
        if path is not None:
            write_whole(path, text(rows, title))
    if as_json:
        put_json([{"id": name, **report} for name, report in rows])
    else:
        _show_cases(rows)
    if not all(report["passed"] for _, report in rows):
        raise typer.Exit(1)


SCORERS = (
    TableColumn("scorer", least=24),
    TableColumn("threshold", "figure", priority=2),
    TableColumn("mean", "figure"),
    TableColumn("least", "figure", priority=1),
    TableColumn("passes", "figure"),
)
SHOWN = 20
"""Maximum of failed cases shown with their diagnosis."""


def _show_cases(rows: list[tuple[str, dict[str, Any]]]) -> None:
    out = console()
    failed = [(name, report) for name, report in rows if not report["passed"]]
    for name, report in failed[:SHOWN]:
        put_text(out, f"fails  {clean(name)}  overall {report['overall']:.3f}", style="red")
        for line in report["diagnosis"]:
            put_text(out, clean(line), indent=7 + (len(line) - len(line.lstrip(" "))))
    if len(failed) > SHOWN:
        put_text(out, f"and {len(failed) - SHOWN:,} more; --html or --json shows all")
    shown = TextTable(*SCORERS)
    for number, entry in enumerate(rows[0][1]["results"]):
        results = [report["results"][number] for _, report in rows]
        scores = [result["score"] for result in results]
        passing = sum(result["passed"] for result in results)
        figures = (f"{entry['threshold']:.2f}", f"{sum(scores) / len(scores):.3f}", f"{min(scores):.3f}")
        shown.add(entry["type"], *figures, f"{passing:,} of {len(results):,}")
    shown.print(out)
    put_text(out, f"{len(rows) - len(failed):,} of {len(rows):,} cases pass")
