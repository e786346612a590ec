"""`grace-kp eval`: score a file of cases with a suite, in parallel, and write reports as HTML or JUnit XML."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._inputs import load_module
from grace_kp.cli._lookup import JsonOption  # noqa: TC001 — Typer reads it
from grace_kp.cli._output import clean, console, progress, put_json, say_error
from grace_kp.cli._page import TableColumn, TextTable, put_text
from grace_kp.errors import GraceError, MissingExtra
from grace_kp.trace import storable, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[str, dict[str, Any]]


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

    with _unreadable_is_2():
        for name in imports or ():
            load_module(name, "--import")
        scorers = Suite.load(suite)
        rows = evaluate_cases(
            scorers,
            cases,
            jobs=jobs,
            details=as_json,
            progress=lambda rows, total: progress(rows, "evaluating", total=total),
        )
    title = storable(f"{Path(suite).name} over {cases.name}")
    for path, text in ((html, html_report), (junit, junit_report)):
        if path is not None:
            write_whole(path, text(rows, title))
    if as_json:
        put_json([{"id": name, **report} for name, report in rows])
    else:
        _show(rows)
    if not all(report["passed"] for _, report in rows):
        raise typer.Exit(1)


@contextmanager
def _unreadable_is_2() -> Iterator[None]:
    """Exit with 2 if a file cannot be read, so that a build server can tell it from a failed case."""
    try:
        yield
    except MissingExtra:
        raise
    except GraceError as error:
        say_error(error)
    except OSError as error:
        say_error(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
    else:
        return
    raise typer.Exit(2)


COLUMNS = (
    TableColumn("scorer", least=24),
    TableColumn("threshold", "figure", priority=2),
    TableColumn("mean", "figure"),
    TableColumn("least", "figure", priority=1),
    TableColumn("passes", "figure"),
)
SHOWN = 20
"""Maximum of failed cases shown with their diagnosis."""


def _show(rows: list[Row]) -> None:
    out = console()
    failed = [(name, report) for name, report in rows if not report["passed"]]
    for name, report in failed[:SHOWN]:
        put_text(out, f"fails  {clean(name)}  overall {report['overall']:.3f}", style="red")
        for line in report["diagnosis"]:
            indent = len(line) - len(line.lstrip(" "))
            put_text(out, clean(line), indent=7 + indent)
    if len(failed) > SHOWN:
        put_text(out, f"and {len(failed) - SHOWN:,} more; --html or --json shows all")
    shown = TextTable(*COLUMNS)
    for number, entry in enumerate(rows[0][1]["results"]):
        results = [report["results"][number] for _, report in rows]
        scores = [result["score"] for result in results]
        passing = sum(result["passed"] for result in results)
        figures = (f"{entry['threshold']:.2f}", f"{sum(scores) / len(scores):.3f}", f"{min(scores):.3f}")
        shown.add(entry["type"], *figures, f"{passing:,} of {len(results):,}")
    shown.print(out)
    put_text(out, f"{len(rows) - len(failed):,} of {len(rows):,} cases pass")
