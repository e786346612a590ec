"""`grace-kp score`: the value score of every run in files, with its parts, and a summary."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import console, plain, progress, put_json, put_jsonl, say_error, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.runtime._pipeline import Assessor
    from grace_kp.trace import ReasoningTrace

FIELDS = ("id", "score", "complexity", "novelty", "tool_diversity", "outcome_confidence", "profile", "overrides")


def assessor(profile: str) -> Assessor:
    """What fills in confidence and score, with this confidence profile.

    Raises:
        ValueError: an unknown profile.
    """
    from grace_kp.confidence import ConfidenceCalculator
    from grace_kp.runtime._pipeline import Assessor
    from grace_kp.value import ValueScorer

    return Assessor(ConfidenceCalculator(profile), ValueScorer())


def assessed(trace: ReasoningTrace, how: Assessor) -> dict[str, Any]:
    """The trace's document with its score; the confidence is computed only where the trace does not say one."""
    document = trace.to_dict()
    if document.get("grace", {}).get("unscored"):
        how.assess(document)
    else:
        how.value(document)
    return document


def score(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Traces or chat runs, JSON lines or JSON, .gz too; - is standard input."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a JSON line per run, as they come.")] = False,
    domain: Annotated[str | None, typer.Option(help="Task domain of runs that name none; selects the weights.")] = None,
    profile: Annotated[
        str, typer.Option(help="Confidence profile for runs without a confidence: grace or strict.")
    ] = "grace",
    summary: Annotated[bool, typer.Option("--summary/--no-summary", help="Print the summary below the table.")] = True,
) -> None:
    """Score every run in FILES: its value score and the parts, and a summary.

    Example: grace-kp score runs.jsonl.gz --json
    """
    how = assessor(profile)
    failures: list[str] = []
    rows = _rows(files, how, domain, failures)
    if as_jsonl:
        put_jsonl(_short(row) for row in rows)
    elif as_json:
        put_json([_short(row) for row in progress(rows, "scoring")])
    else:
        _show(list(progress(rows, "scoring")), failures, summary=summary)
    if failures:
        raise typer.Exit(1)


def _rows(files: list[str], how: Assessor, domain: str | None, failures: list[str]) -> Iterator[dict[str, Any]]:
    from grace_kp.errors import InvalidRecord
    from grace_kp.trace import read_traces

    for name in files:
        try:
            for item in read_traces(name, domain=domain):
                if isinstance(item, InvalidRecord):
                    failures.append(str(item))
                    say_error(item)
                else:
                    yield assessed(item, how)
        except InvalidRecord as error:
            failures.append(str(error))
            say_error(error)


def _short(document: dict[str, Any]) -> dict[str, Any]:
    return {"id": document["id"], **{name: document["grace"]["value"][name] for name in FIELDS[1:]}}


def _show(documents: list[dict[str, Any]], failures: list[str], *, summary: bool) -> None:
    out = console()
    rows = table(
        "run",
        "objective",
        "score",
        "C",
        "N",
        "D",
        "O",
        "conf",
        "ok",
        "overrides",
        right=("score", "C", "N", "D", "O", "conf"),
    )
    for document in documents:
        value = document["grace"]["value"]
        rows.add_row(
            _name(document),
            plain(document["task"]["objective"], 30),
            f"{value['score']:.3f}",
            *(f"{value[part]:.2f}" for part in ("complexity", "novelty", "tool_diversity", "outcome_confidence")),
            f"{document['outcome']['confidence']:.2f}",
            "yes" if document["metadata"]["success"] else "no",
            ", ".join(value["overrides"]),
        )
    if documents:
        out.print(rows)
    if summary:
        _summarise(documents, failures)


def _name(document: dict[str, Any]) -> str:
    source = document.get("grace", {}).get("source", {})
    if isinstance(source, dict) and "task_id" in source:
        trial = f"/{source['trial']}" if "trial" in source else ""
        return plain(f"{source['task_id']}{trial}", 16)
    return plain(document["id"].removeprefix("kp:trace:"), 8 + 1)


def _summarise(documents: list[dict[str, Any]], failures: list[str]) -> None:
    out = console()
    if not documents:
        out.print(f"no runs{f', {len(failures)} that could not be read' if failures else ''}")
        return
    scores = [document["metadata"]["quality_score"] for document in documents]
    solved = [document["metadata"]["quality_score"] for document in documents if document["metadata"]["success"]]
    failed = [document["metadata"]["quality_score"] for document in documents if not document["metadata"]["success"]]
    out.print(f"{len(documents):,} runs, {len(solved) / len(documents):.0%} successful", end="")
    out.print(f"; {len(failures)} could not be read" if failures else "")
    out.print(
        f"score       mean {statistics.fmean(scores):.3f}  median {statistics.median(scores):.3f}  "
        f"min {min(scores):.3f}  max {max(scores):.3f}"
    )
    if solved and failed:
        out.print(
            f"            successful {statistics.fmean(solved):.3f}, failed {statistics.fmean(failed):.3f} on average"
        )
    confidences = [document["outcome"]["confidence"] for document in documents]
    out.print(f"confidence  mean {statistics.fmean(confidences):.3f}  median {statistics.median(confidences):.3f}")
    applied = [name for document in documents for name in document["grace"]["value"]["overrides"]]
    if applied:
        out.print("overrides   " + ", ".join(f"{name} {applied.count(name)}" for name in dict.fromkeys(applied)))
    out.print("novelty     0.5 throughout: there is no embedder, so it was not measured")
