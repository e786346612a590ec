"""Cases in JSON lines, scored by a suite in several processes, and the reports over them: a page for people, JUnit XML for build servers."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from grace_kp.errors import GraceError, MissingExtra, brief
from grace_kp.pages import page, printable, safe, table
from grace_kp.scorers._edits import EditExpectation, EditResult, checked_object, result_from_trace
from grace_kp.trace import describe_error, object_without_duplicates, render, storable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from grace_kp.scorers._entry import Result
    from grace_kp.scorers._suite import Suite


_CASE = frozenset({"id", "actual", "trace", "inputs", "expected"})
_INPUTS = frozenset({"target", "position", "content", "index"})


class CaseError(GraceError, ValueError):
    """A case cannot be read. The message names file, line and field."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case."""

    id: str
    actual: EditResult
    expected: EditExpectation


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file, each line `{"id": …, "actual": {…}, "expected": {…}}`, with the fields of the records.

    Instead of `actual` a line may have a `trace`, and `inputs` with the names of the tool arguments that hold target, position, content and
    index.

    Raises:
        CaseError: a line cannot be read.
        OSError: the file cannot be read.
    """
    for number, line in read_lines(path):
        yield parse_case(line, number, path)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that is not blank."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def parse_case(line: bytes, number: int, path: Path) -> Case:
    """Return the case in a line; number and path are for its messages."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        fields = checked_object(json.loads(text, object_pairs_hook=object_without_duplicates), "the case", _CASE)
        actual = _result_of_trace(fields) if "trace" in fields else EditResult.from_dict(fields.get("actual"))
        return Case(str(fields.get("id", number)), actual, EditExpectation.from_dict(fields.get("expected")))
    except MissingExtra:
        raise
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8: {error.reason} at byte {error.start + 1} of the line"
    except RecursionError:
        problem = "nested too deeply"
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        problem = " ".join(str(error).split())
    raise CaseError(f"{path}:{number}: {problem}")


def _result_of_trace(fields: Mapping[str, Any]) -> EditResult:
    from grace_kp.trace import ReasoningTrace

    if "actual" in fields:
        raise ValueError("a case has either actual or trace, not both")
    inputs = checked_object(fields.get("inputs", {}), "inputs", _INPUTS)
    if not isinstance(fields["trace"], dict):
        raise ValueError(f"trace must be an object, not {brief(fields['trace'])}")
    return result_from_trace(ReasoningTrace.model_validate(fields["trace"]), **inputs)


Row = tuple[str, dict[str, Any]]
"""The id of a case, and its report as plain data."""
Progress = Callable[[Iterable[Row], int], Iterable[Row]]
PARALLEL_FROM = 500
"""From this number of cases on, several processes are faster than one."""
CHUNK = 50
"""Cases that a process takes at a time."""
_SCORE: list[Callable[[int], Row]] = []
"""The scoring function of a worker process."""


def evaluate_cases(
    suite: Suite,
    path: Path,
    *,
    jobs: int | None = None,
    details: bool = True,
    progress: Progress = lambda rows, _total: rows,
) -> list[Row]:
    """Score every case of a file, in the order of the file.

    Args:
        suite: the scorers.
        path: JSON lines as `read_cases` reads them.
        jobs: the number of processes; one for each usable core when None.
        details: whether the reports contain the details of each score.
        progress: wraps the rows while they are computed; its second argument is the number of cases.

    Raises:
        CaseError: a line cannot be read, or the file has no cases.
        OSError: the file cannot be read.
        GraceError: a worker process ended unexpectedly.
    """
    lines = list(read_lines(path))
    if not lines:
        raise CaseError(f"{path}: the file has no cases")

    def score(index: int) -> Row:
        number, line = lines[index]
        case = parse_case(line, number, path)
        report = suite.evaluate(case.actual, case.expected)
        return storable(case.id), {
            "passed": report.passed,
            "overall": report.overall,
            "results": [_result_dict(result, details) for result in report.results],
            "diagnosis": [storable(line) for line in report.diagnosis],
        }

    affinity = getattr(os, "sched_getaffinity", None)
    processes = jobs or (len(affinity(0)) if affinity is not None else os.cpu_count() or 1)
    # Forked processes inherit scorers that cannot be pickled. Forking is not safe on macOS.
    can_fork = "fork" in multiprocessing.get_all_start_methods() and platform.system() != "Darwin"
    if processes == 1 or len(lines) < PARALLEL_FROM or not can_fork:
        return list(progress(map(score, range(len(lines))), len(lines)))
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _start_worker, (score,))
    try:
        rows = pool.map(_score_in_worker, range(len(lines)), chunksize=CHUNK)  # forks before `progress` starts a thread
        return list(progress(rows, len(lines)))
    except BrokenProcessPool:
        raise GraceError("a process that scores cases ended unexpectedly") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result_dict(result: Result, details: bool) -> dict[str, Any]:
    document = {name: getattr(result, name) for name in ("type", "score", "weight", "threshold", "passed")}
    document["error"] = storable(result.error)
    if details:
        try:
            text = json.dumps(result.to_dict()["details"], ensure_ascii=False, allow_nan=False)
        except Exception:  # noqa: BLE001 — details of a user's scorer may be anything
            text = json.dumps(render(result.details), ensure_ascii=False)
        document["details"] = json.loads(storable(text))
    return document


def _start_worker(score: Callable[[int], Row]) -> None:
    """Keep the scoring function, which the worker inherits by forking because scorers need not be picklable."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends its workers
    _SCORE[:] = [score]


def _score_in_worker(index: int) -> Row:
    try:
        return _SCORE[0](index)
    except Exception as error:  # noqa: BLE001 — not every error can be pickled; the parent process reports this one
        message = str(error) if isinstance(error, GraceError) else ": ".join(describe_error(error, 400))
        raise GraceError(message) from None


def html_report(rows: Sequence[Row], title: str) -> str:
    """Return a page without external resources and scripts.

    It holds a summary, each scorer with its threshold, and each case with its diagnosis. Cases can be filtered by result and by the
    scorer that they fail.
    """
    passed = sum(report["passed"] for _, report in rows)
    mean = sum(report["overall"] for _, report in rows) / len(rows) if rows else 0.0
    scorers = rows[0][1]["results"] if rows else []
    needed = 16 + 6.5 * len(scorers)
    own, narrow = (files("grace_kp.scorers").joinpath(name).read_text("utf-8") for name in ("cases.css", "narrow.css"))
    style = f"{own}.report{{max-width:{max(70, needed):g}rem}}@media(max-width:{needed:g}rem){{{narrow}}}"
    choices = _choices(rows, scorers) if passed < len(rows) > 1 else []
    hiding = "".join(f"body:has(#{name}:checked) .case:not(.{name}){{display:none}}" for name, *_ in choices[1:])
    return page(
        title,
        f"<p>{passed:,} of {len(rows):,} cases pass; overall {mean:.3f} on average.</p><style>{style}{hiding}</style>"
        f"{_scorers_table(rows, scorers)}{_filters(choices)}{_cases_table(rows, scorers)}",
    )


def _choices(rows: Sequence[Row], scorers: Sequence[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Return the filters of the cases: the class of the matching cases, its words, and the number of cases."""
    failing = sum(not report["passed"] for _, report in rows)
    choices = [("all", "all", len(rows)), ("fails", "failed", failing), ("passes", "passed", len(rows) - failing)]
    for place, scorer in enumerate(scorers):
        count = sum(not report["results"][place]["passed"] for _, report in rows)
        choices.append((f"fails-{place}", f"failed in {scorer['type']}", count))
    return choices[:1] + [choice for choice in choices[1:] if choice[2]]


def _filters(choices: Sequence[tuple[str, str, int]]) -> str:
    if not choices:
        return ""
    inputs = "".join(
        f'<label><input type="radio" name="show" id="{name}"{" checked" if name == "all" else ""}> {safe(words)} ({count:,})</label>'
        for name, words, count in choices
    )
    return f"<fieldset><legend>Show cases</legend>{inputs}</fieldset>"


def _scorers_table(rows: Sequence[Row], scorers: Sequence[dict[str, Any]]) -> str:
    lines = []
    for place, scorer in enumerate(scorers):
        results = [report["results"][place] for _, report in rows]
        scores = [result["score"] for result in results]
        passing = sum(result["passed"] for result in results)
        figures = (
            f"{scorer['threshold']:.2f}",
            f"{scorer['weight']:g}",
            f"{sum(scores) / len(scores):.3f}",
            f"{min(scores):.3f}",
        )
        lines.append((scorer["type"], *figures, f"{passing:,} of {len(results):,}"))
    header = ("scorer", "threshold", "weight", "mean", "least", "passes")
    return table(header, lines, caption="Scorers") if lines else ""


def _cases_table(rows: Sequence[Row], scorers: Sequence[dict[str, Any]]) -> str:
    head = "".join(
        f'<th role="columnheader" scope="col" class="n">{safe(scorer["type"])}<small>at least {scorer["threshold"]:.2f}</small></th>'
        for scorer in scorers
    )
    body = "".join(_case_rows(name, report) for name, report in rows)
    return (
        f'<table role="table" class="cases"><caption>Cases</caption><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">case</th><th role="columnheader" scope="col">result</th>'
        f'<th role="columnheader" scope="col" class="n">overall</th>{head}</tr></thead>{body}</table>'
    )


def _case_rows(name: str, report: dict[str, Any]) -> str:
    results = report["results"]
    failed = "".join(f" fails-{place}" for place, result in enumerate(results) if not result["passed"])
    word = '<td role="cell" class="good" data-label="result">passes</td>' if report["passed"] else '<td role="cell" class="bad" data-label="result">fails</td>'  # fmt: skip
    row = (
        f'<tbody role="rowgroup" class="case {"passes" if report["passed"] else "fails"}{failed}"><tr role="row"><th role="rowheader" scope="row">{safe(name)}</th>{word}'
        f'<td role="cell" class="n" data-label="overall">{report["overall"]:.3f}</td>{"".join(map(_score_cell, results))}</tr>'
    )
    lines = safe("\n".join(report["diagnosis"]), lines=True)
    if lines:
        row += f'<tr role="row" class="why"><td role="cell" colspan="{3 + len(results)}"><details><summary>why</summary><pre>{lines}</pre></details></td></tr>'
    return f"{row}</tbody>"


def _score_cell(result: dict[str, Any]) -> str:
    text = "not scored" if result.get("error") else f"{result['score']:.2f}"
    mark = "" if result["passed"] else "✗ "
    label = safe(f"{result['type']}, at least {result['threshold']:.2f}")
    return f'<td role="cell" class="n {"good" if result["passed"] else "bad"}" data-label="{label}">{mark}{text}</td>'


def junit_report(rows: Sequence[Row], title: str) -> str:
    """JUnit XML: a test case for each case, whose failure is the diagnosis."""
    failed = sum(not report["passed"] for _, report in rows)
    suite = ElementTree.Element("testsuite", name=_plain(title), tests=str(len(rows)), failures=str(failed), errors="0")
    for name, report in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=_plain(title), name=_plain(name))
        if not report["passed"]:
            failure = ElementTree.SubElement(case, "failure", message=f"overall {report['overall']:.3f}")
            failure.text = _plain("\n".join(report["diagnosis"]))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _plain(text: str) -> str:
    return printable(text, keep="\n\t")
