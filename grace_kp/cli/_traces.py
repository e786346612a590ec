"""`grace-kp traces`: list, show, import and export stored traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._files import Unreadable, readable
from grace_kp.cli._lookup import StoreOption, described, find, opened, reading, short_id
from grace_kp.cli._output import clean, console, progress, put_json, put_jsonl
from grace_kp.cli._page import put, put_text
from grace_kp.cli._show import Sheet
from grace_kp.cli._table import Column, Table
from grace_kp.levels import RunStatus, waits

if TYPE_CHECKING:
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

traces = typer.Typer(no_args_is_help=True, help="List, show, import and export stored traces.")

MAX_BATCH_BYTES = 16 << 20

Domain = Annotated[str | None, typer.Option(help="Only runs of this task domain.")]
MinScore = Annotated[float | None, typer.Option(min=0, max=1, help="Minimum score.")]
MaxScore = Annotated[float | None, typer.Option(min=0, max=1, help="Maximum score.")]
Success = Annotated[bool | None, typer.Option("--success/--failed", help="Only successful runs, or only failed ones.")]
Status = Annotated[RunStatus | None, typer.Option(help="Only runs with this status.")]
Since = Annotated[
    str | None, typer.Option(help="Only runs that began at this time or later: 2h (ago), 7d, 2026-01-31.")
]
Until = Annotated[str | None, typer.Option(help="Only runs that began before this time, in the same forms.")]
Text = Annotated[str | None, typer.Option(help="Only runs with this text in the objective, the steps or the result.")]
ScorerName = Annotated[str | None, typer.Option("--scorer", help="Only runs scored by this scorer or suite.")]
ScorerPassed = Annotated[
    bool | None,
    typer.Option(
        "--scorer-passed/--scorer-failed", help="Only runs whose score from --scorer (default: any scorer) passes, or fails."
    ),
]  # fmt: skip
MinScorer = Annotated[float | None, typer.Option(min=0, max=1, help="Minimum score from --scorer.")]
MaxScorer = Annotated[float | None, typer.Option(min=0, max=1, help="Maximum score from --scorer.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only runs with this tag; may be repeated.")]
User = Annotated[str | None, typer.Option(help="Only runs for this user.")]
Session = Annotated[str | None, typer.Option(help="Only runs of this session.")]
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="KEY=VALUE", help="Only runs with this metadata; may be repeated."),
]

HasFeedback = Annotated[
    bool | None, typer.Option("--feedback/--no-feedback", help="Only runs with feedback, or only runs without.")
]
FeedbackSource = Annotated[
    str | None, typer.Option("--feedback-source", help="Only runs with, or with --no-feedback without, feedback from this source.")
]  # fmt: skip


@traces.command("list")
def list_traces(
    store: StoreOption = None,
    domain: Domain = None,
    min_score: MinScore = None,
    max_score: MaxScore = None,
    success: Success = None,
    status: Status = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    scorer: ScorerName = None,
    scorer_passed: ScorerPassed = None,
    min_scorer: MinScorer = None,
    max_scorer: MaxScorer = None,
    tags: Tags = None,
    user: User = None,
    session: Session = None,
    metadata: Metadata = None,
    feedback: HasFeedback = None,
    feedback_source: FeedbackSource = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of traces.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON line per trace.")] = False,
) -> None:
    """List the newest traces.

    Example: grace-kp traces list --since 2h --min-score 0.6
    """
    conditions = _conditions(locals())
    with reading(store) as source:
        found = source.query(limit=limit, **conditions)
        if as_json:
            put_json([trace.to_dict() for trace in found])
        elif as_jsonl:
            put_jsonl(trace.to_dict() for trace in found)
        elif found:
            _show_list(found, source.count(**conditions))
        else:
            put_text(console(), _nothing(source, store, conditions))


def _nothing(source: Store, url: str | None, conditions: dict[str, Any]) -> str:
    count = source.count() if conditions else 0
    if count:
        return f"no traces match; the store has {count:,}: {described(url)}"
    return f"no traces in {described(url)}"


LIST = (
    Column("id", "word"),
    Column("when (UTC)", "word", priority=3),
    Column("objective", least=14),
    Column("domain", priority=5, least=8),
    Column("status", "word", priority=2),
    Column("ok", "word", styles={"no": "red"}),
    Column("steps", "figure", priority=4),
    Column("conf", "figure", priority=1),
    Column("score", "figure"),
)


def _show_list(found: list[ReasoningTrace], count: int) -> None:
    rows = Table(*LIST)
    for trace in found:
        status = clean(str((trace.grace or {}).get("status", "-")), 12)
        rows.add(
            clean(short_id(trace.id))[:8],
            trace.metadata.created_at[:16].replace("T", " "),
            trace.task.objective,
            clean(trace.metadata.task_domain, 24),
            status,
            "-" if waits(status) else "yes" if trace.metadata.success else "no",
            f"{len(trace.steps):,}",
            f"{trace.outcome.confidence:.2f}",
            f"{trace.metadata.quality_score:.3f}",
        )
    out = console()
    rows.print(out)
    put(out, f"{len(found):,} of {count:,}{'; --limit shows more' if len(found) < count else ''}")


def _conditions(options: dict[str, Any]) -> dict[str, Any]:
    from dataclasses import fields

    from grace_kp.store import Query

    names = {field.name for field in fields(Query)} - {"limit", "offset"}
    conditions = {name: value for name, value in options.items() if name in names and value not in (None, [])}
    if "metadata" in conditions:
        pairs = [pair.partition("=") for pair in conditions["metadata"]]
        if not all(name and separator for name, separator, _ in pairs):
            raise ValueError("--metadata must read KEY=VALUE")
        conditions["metadata"] = {name: value for name, _, value in pairs}
    return conditions


@traces.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id, at least its first 3 characters, or `last`.")],  # noqa: A002
    store: StoreOption = None,
    full: Annotated[bool, typer.Option("--full", help="Shorten nothing.")] = False,
    nested: Annotated[bool, typer.Option("--nested", help="Show the nested runs in full, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the document as it is stored, with what has become of its requests for approval.")] = False,
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the trace as one HTML file that can be mailed.")] = None,
) -> None:  # fmt: skip
    """Show one trace: its steps, confidence, score, tokens, decisions and nested runs.

    Example: grace-kp traces show last --full
    """
    from grace_kp.runtime import with_outcomes

    with reading(store) as source:
        trace = with_outcomes(find(source, id), getattr(source, "approvals", None))
        if html is not None:
            trace.to_html(html)
            put_text(console(), f"wrote {clean(short_id(trace.id))[:8]} to {clean(html)}")
        elif as_json:
            put_json(trace.to_dict())
        else:
            Sheet(console(), full=full, nested=nested, store=source).print(trace)


@traces.command("import")
def import_traces(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Traces or chat runs; - is standard input.")],
    store: StoreOption = None,
    domain: Annotated[str | None, typer.Option(help="Task domain for runs without one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Import the traces of FILES into the store; a trace with the same id is replaced.

    Secrets are removed first. Runs without a confidence get one.
    """
    from grace_kp.cli._score import assessed, assessor
    from grace_kp.runtime import record_of
    from grace_kp.trace import redact_value

    target, how = opened(store), assessor("grace")
    batch: list[Any] = []
    unreadable = Unreadable()
    done = size = 0
    for trace in readable(files, "importing", unreadable, domain=domain):
        document = redact_value(assessed(trace, how), identifiers=trace.metadata.privacy_level != "private")
        batch.append(record_of(document))
        done += 1
        size += len(batch[-1].data)
        if len(batch) >= 200 or size > MAX_BATCH_BYTES:
            target.put(batch)
            batch, size = [], 0
    if batch:
        target.put(batch)
    if as_json:
        put_json({"imported": done, "problems": unreadable.count})
    else:
        problems = f", {unreadable.count:,} could not be read" if unreadable.count else ""
        put_text(console(), f"imported {done:,} trace{'' if done == 1 else 's'}{problems}")
    if unreadable.count:
        raise typer.Exit(1)


@traces.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Output file; .gz compresses it, - is standard output.")],
    store: StoreOption = None,
    domain: Domain = None,
    min_score: MinScore = None,
    max_score: MaxScore = None,
    success: Success = None,
    status: Status = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    scorer: ScorerName = None,
    scorer_passed: ScorerPassed = None,
    min_scorer: MinScorer = None,
    max_scorer: MaxScorer = None,
    tags: Tags = None,
    user: User = None,
    session: Session = None,
    metadata: Metadata = None,
    feedback: HasFeedback = None,
    feedback_source: FeedbackSource = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the count as JSON.")] = False,
) -> None:
    """Write traces as JSON lines, oldest first. If the export fails, no partial file is left.

    Example: grace-kp traces export good.jsonl.gz --min-score 0.75
    """
    from grace_kp.trace import write_traces

    conditions = _conditions(locals())
    with reading(store) as source:
        found = progress(source.iterate(**conditions), "exporting", total=source.count(**conditions))
        count = write_traces(file if file == "-" else Path(file), found)
        if file == "-":
            return
        if as_json:
            put_json({"exported": count, "file": file})
            return
        empty = "" if count else f"; {_nothing(source, store, conditions)}"
        put_text(console(), f"exported {count:,} trace{'' if count == 1 else 's'} to {clean(file)}{empty}")
