"""`grace-kp eval`: a suite of scorers over a file of cases, in parallel, with a page and JUnit XML on request."""

from __future__ import annotations

import importlib
import importlib.util
import json
import multiprocessing
import os
import platform
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import clean, console, progress, put_json, say_error
from grace_kp.cli._page import put_text
from grace_kp.cli._table import Column, Table
from grace_kp.errors import GraceError, MissingExtra
from grace_kp.trace._files import write_whole
from grace_kp.trace._render import describe_error, render, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grace_kp.scorers import Result, Suite

    Row = tuple[str, dict[str, Any]]

PARALLEL_FROM = 500
"""Cases from which on several processes are worth their start."""
CHUNK = 50
"""Cases that a process takes at a time."""
_SCORE: list[Callable[[int], Row]] = []


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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
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
    from grace_kp.scorers._reports import to_html, to_junit

    with _unreadable_is_2():
        for name in imports or ():
            _import(name)
        rows = _rows(suite, cases, jobs or _cores(), details=as_json)
    title = storable(f"{Path(suite).name} over {cases.name}")
    for path, text in ((html, to_html), (junit, to_junit)):
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
    """What cannot be read is wrong usage, so that a build server can tell it from a case that fails."""
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


def _import(name: str) -> None:
    """Import a module by its name, also from the folder we are in, or a file by its path."""
    file = Path(name)
    try:
        if name.endswith(".py"):
            sys.path.insert(0, str(file.resolve().parent))
            # A file may be called like a module that is there, and must not take its place.
            called = f"grace_kp_import_{file.stem}" if file.stem in sys.modules else file.stem
            spec = importlib.util.spec_from_file_location(called, file)
            if spec is None or spec.loader is None:
                raise ImportError("this is not a Python file")
            sys.modules[called] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, str(Path.cwd()))
            importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — the user's module may raise anything, and may want to end the program
        raise GraceError(f"--import {name}: {': '.join(describe_error(error, 400))}") from None


def _rows(suite: str, cases: Path, jobs: int, *, details: bool) -> list[Row]:
    from grace_kp.scorers import Suite
    from grace_kp.scorers._cases import CaseError, case_from, read_lines

    made = Suite.from_yaml(suite) if suite.endswith((".yaml", ".yml")) else Suite.preset(suite)
    lines = list(read_lines(cases))
    if not lines:
        raise CaseError(f"{cases}: the file has no cases")

    def score(number: int) -> Row:
        line, text = lines[number]
        case = case_from(text, line, cases)
        return _row(made, case.id, case.actual, case.expected, details)

    if jobs == 1 or len(lines) < PARALLEL_FROM or not _can_fork():
        return list(progress(map(score, range(len(lines))), "evaluating", total=len(lines)))
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _begin, (score,))
    try:
        rows = pool.map(
            _scored, range(len(lines)), chunksize=CHUNK
        )  # forks here, before the progress bar brings a thread
        return list(progress(rows, "evaluating", total=len(lines)))
    except BrokenProcessPool:
        raise GraceError("a process that scores cases ended unexpectedly") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _row(suite: Suite, name: str, actual: Any, expected: Any, details: bool) -> Row:
    """What is shown of a case: texts that can be written, and details, where they are wanted, as plain data."""
    report = suite.evaluate(actual, expected)
    told = {
        "passed": report.passed,
        "overall": report.overall,
        "results": [_told(one, details) for one in report.results],
        "diagnosis": [storable(line) for line in report.diagnosis],
    }
    return storable(name), told


def _told(result: Result, details: bool) -> dict[str, Any]:
    told = {name: getattr(result, name) for name in ("type", "score", "weight", "threshold", "passed")}
    told["error"] = storable(result.error)
    if details:
        try:
            text = json.dumps(result.to_dict()["details"], ensure_ascii=False, allow_nan=False)
        except Exception:  # noqa: BLE001 — details of a user's scorer may be anything
            text = json.dumps(render(result.details), ensure_ascii=False)
        told["details"] = json.loads(storable(text))
    return told


def _can_fork() -> bool:
    """Forked processes have the suite as it is, with scorers that could not be sent to another. On a Mac forking is not safe."""
    return "fork" in multiprocessing.get_all_start_methods() and platform.system() != "Darwin"


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def _begin(score: Callable[[int], Row]) -> None:
    """In a worker: what it scores with. It is inherited by forking, as a scorer of the user's may be none that can be sent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who presses Ctrl-C ends the command, and that ends us
    _SCORE[:] = [score]


def _scored(number: int) -> Row:
    try:
        return _SCORE[0](number)
    except Exception as error:  # noqa: BLE001 — told by the one that waits for it; not every error can be sent
        told = str(error) if isinstance(error, GraceError) else ": ".join(describe_error(error, 400))
        raise GraceError(told) from None


COLUMNS = (
    Column("scorer", least=24),
    Column("threshold", "figure", priority=2),
    Column("mean", "figure"),
    Column("least", "figure", priority=1),
    Column("passes", "figure"),
)
SHOWN = 20
"""Failed cases that are shown with their diagnosis."""


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
    shown = Table(*COLUMNS)
    for number, entry in enumerate(rows[0][1]["results"]):
        results = [report["results"][number] for _, report in rows]
        scores = [result["score"] for result in results]
        passing = sum(result["passed"] for result in results)
        figures = (f"{entry['threshold']:.2f}", f"{sum(scores) / len(scores):.3f}", f"{min(scores):.3f}")
        shown.add(entry["type"], *figures, f"{passing:,} of {len(results):,}")
    shown.print(out)
    put_text(out, f"{len(rows) - len(failed):,} of {len(rows):,} cases pass")
