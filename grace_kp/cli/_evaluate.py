"""`grace-kp eval`: a suite of scorers over a file of cases, in parallel, with a page and JUnit XML on request."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import console, plain, progress, put_json, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.scorers import Suite
    from grace_kp.scorers._cases import Case

PARALLEL_FROM = 500
"""Cases from which on several processes are worth their start."""


def evaluate(
    suite: Annotated[str, typer.Argument(help="A YAML file, or a preset: standard, strict, operation-focused.")],
    cases: Annotated[Path, typer.Argument(help='JSON lines: {"id": …, "actual": {…}, "expected": {…}}.')],
    html: Annotated[Path | None, typer.Option(help="Write a page.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; all cores when not given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Score every case; exit code 1 when one fails.

    Example: grace-kp eval suite.yaml cases.jsonl --html report.html
    """
    from grace_kp.scorers import Suite
    from grace_kp.scorers._cases import read_cases
    from grace_kp.scorers._reports import to_html, to_junit

    made = Suite.from_yaml(suite) if suite.endswith((".yaml", ".yml")) else Suite.preset(suite)
    listed = list(read_cases(cases))
    rows = list(progress(_scored(made, listed, jobs or len(os.sched_getaffinity(0))), "evaluating"))
    for path, text in ((html, to_html), (junit, to_junit)):
        if path is not None:
            path.write_text(text(rows, f"{Path(suite).name} over {cases.name}"), encoding="utf-8")
    if as_json:
        put_json([{"id": name, **report} for name, report in rows])
    else:
        _show(rows)
    if not all(report["passed"] for _, report in rows):
        raise typer.Exit(1)


def _one(suite: Suite, case: Case) -> tuple[str, dict[str, Any]]:
    return case.id, suite.evaluate(case.actual, case.expected).to_dict()


def _scored(suite: Suite, cases: list[Case], jobs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if jobs == 1 or len(cases) < PARALLEL_FROM:
        yield from map(partial(_one, suite), cases)
        return
    # Forked, so that scorers which the user has registered are there; threads are none yet.
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        yield from pool.map(partial(_one, suite), cases, chunksize=100)


def _show(rows: list[tuple[str, dict[str, Any]]]) -> None:
    out = console()
    failed = [(name, report) for name, report in rows if not report["passed"]]
    for name, report in failed[:20]:
        out.print(f"[red]fails[/red]  {plain(name)}  overall {report['overall']:.3f}")
        for line in report["diagnosis"]:
            out.print(f"       {plain(line, 400)}")
    if len(failed) > 20:
        out.print(f"and {len(failed) - 20:,} more; --html or --json shows all")
    if rows:
        shown = table("scorer", "mean", "least", "passes", right=("mean", "least", "passes"))
        for number, one in enumerate(rows[0][1]["results"]):
            column = [report["results"][number] for _, report in rows]
            scores = [item["score"] for item in column]
            passing = f"{sum(item['passed'] for item in column):,}"
            shown.add_row(one["type"], f"{sum(scores) / len(scores):.3f}", f"{min(scores):.3f}", passing)
        out.print(shown)
    out.print(f"{len(rows) - len(failed):,} of {len(rows):,} cases pass")
