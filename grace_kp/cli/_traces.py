"""`grace-kp traces`: what is in the store, one trace in full, in and out of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import bar, console, plain, progress, put_json, put_jsonl, say_error, table
from grace_kp.confidence import part_text, penalties_text
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

traces = typer.Typer(no_args_is_help=True, help="List, show, import and export stored traces.")

MAX_SCORES = 200

StoreOption = Annotated[
    str | None, typer.Option("--store", help="memory: or sqlite:///path.db; from the settings when not given.")
]
Domain = Annotated[str | None, typer.Option(help="Only this task domain.")]
MinScore = Annotated[float | None, typer.Option(help="Only scores from here on.")]
MaxScore = Annotated[float | None, typer.Option(help="Only scores up to here.")]
Success = Annotated[
    bool | None, typer.Option("--success/--failed", help="Only runs that succeeded, or only those that did not.")
]
Status = Annotated[str | None, typer.Option(help="Only this status, for example completed or interrupted.")]
Since = Annotated[str | None, typer.Option(help="Only from this time on: 2h, 7d, 2026-01-31.")]
Until = Annotated[str | None, typer.Option(help="Only up to this time.")]
Text = Annotated[str | None, typer.Option(help="Only with this text in objective, steps or result.")]
ScorerName = Annotated[
    str | None, typer.Option("--scorer", help="Only runs that this scorer or suite said something of.")
]
ScorerPassed = Annotated[
    bool | None,
    typer.Option(
        "--scorer-passed/--scorer-failed", help="Only where it was enough, or not (any scorer, without --scorer)."
    ),
]
MinScorer = Annotated[float | None, typer.Option(help="Only where that score is at least this.")]
MaxScorer = Annotated[float | None, typer.Option(help="Only where that score is at most this.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag; may be repeated.")]
User = Annotated[str | None, typer.Option(help="Only runs for this user.")]
Session = Annotated[str | None, typer.Option(help="Only runs of this session.")]
Metadata = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="KEY=VALUE", help="Only with this metadata; may be repeated.")
]


def opened(url: str | None) -> Store:
    """The store named, or the one that the settings name."""
    from grace_kp.settings import Settings
    from grace_kp.store import open_store

    return open_store(url or Settings.load().store)


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
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a JSON line per trace.")] = False,
) -> None:
    """The newest traces.

    Example: grace-kp traces list --since 2h --min-score 0.6
    """
    conditions = _conditions(locals())
    found = opened(store).query(limit=limit, **conditions)
    if as_json:
        put_json([trace.to_dict() for trace in found])
    elif as_jsonl:
        put_jsonl(trace.to_dict() for trace in found)
    elif not found:
        console().print("no traces")
    else:
        rows = table(
            "id", "when", "objective", "domain", "status", "steps", "conf", "score", right=("steps", "conf", "score")
        )
        for trace in found:
            rows.add_row(
                trace.id.removeprefix("kp:trace:")[:8],
                trace.metadata.created_at[:19].replace("T", " "),
                plain(trace.task.objective, 36),
                plain(trace.metadata.task_domain, 16),
                str((trace.grace or {}).get("status", "-")),
                str(len(trace.steps)),
                f"{trace.outcome.confidence:.2f}",
                f"{trace.metadata.quality_score:.3f}",
            )
        console().print(rows)


def _conditions(given: dict[str, Any]) -> dict[str, Any]:
    from dataclasses import fields

    from grace_kp.store import Query

    names = {item.name for item in fields(Query)} - {"limit", "offset"}
    conditions = {name: value for name, value in given.items() if name in names and value not in (None, [])}
    if "metadata" in conditions:
        pairs = [pair.partition("=") for pair in conditions["metadata"]]
        if not all(key and sign for key, sign, _ in pairs):
            raise ValueError("--metadata must read KEY=VALUE")
        conditions["metadata"] = {key: value for key, _, value in pairs}
    return conditions


@traces.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id, the beginning of one, or `last`.")],  # noqa: A002
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the document as it is stored.")] = False,
) -> None:
    """One trace: its steps, confidence, score and decisions.

    Example: grace-kp traces show last
    """
    trace = find(opened(store), id)
    if as_json:
        put_json(trace.to_dict())
    else:
        page(trace)


def find(store: Store, wanted: str) -> ReasoningTrace:
    """The trace of an id or the beginning of one; `last` is the newest.

    Raises:
        GraceError: there is none, or there are several.
    """
    if wanted == "last":
        newest = store.query(limit=1)
        if not newest:
            raise GraceError("the store is empty")
        return newest[0]
    found = store.get(wanted) or store.get(f"kp:trace:{wanted}")
    if found is not None:
        return found
    short = wanted.removeprefix("kp:trace:")
    matching = (
        [trace for trace in store.iterate() if trace.id.removeprefix("kp:trace:").startswith(short)]
        if len(short) >= 4
        else []
    )
    if len(matching) == 1:
        return matching[0]
    raise GraceError(f"{len(matching)} traces begin with {wanted!r}" if matching else f"no trace {wanted!r}")


def page(trace: ReasoningTrace) -> None:
    """A trace as a page for people."""
    out = console()
    grace = trace.grace or {}
    out.print(f"\n[bold]{plain(trace.task.objective, 200)}[/bold]")
    how = f"{grace.get('status', '-')}, {'successful' if trace.metadata.success else 'not successful'}"
    took = f", {grace['duration_ms']:,.0f} ms" if isinstance(grace.get("duration_ms"), int | float) else ""
    out.print(f"{trace.id}  {trace.metadata.created_at}  {plain(trace.metadata.task_domain)}  {how}{took}\n")
    attributes(grace)
    rows = table("#", "step", "tool", "ms", "content", right=("#", "ms"))
    for step in trace.steps:
        from grace_kp.trace._render import to_text

        content = step.content if step.content is not None else to_text(step.input) if step.input else ""
        latency = "" if step.latency_ms is None or step.type == "tool_call" else f"{step.latency_ms:,.1f}"
        rows.add_row(
            str(step.step_id), step.type, plain(step.tool.name, 24) if step.tool else "", latency, plain(content, 160)
        )
    out.print(rows)
    out.print(f"result      {plain(trace.outcome.result_summary, 400)}\n")
    figures(trace)
    for decision in grace.get("decisions", []):
        who = decision.get("response", {}).get("reviewer", "nobody")
        out.print(
            f"gate        {plain(str(decision.get('action')))}: {decision.get('level')} at {decision.get('score')}, {decision.get('outcome')} ({plain(str(who))})"
        )
    if "parent" in grace:
        out.print(f"parent      {grace['parent'].get('trace_id')}")
    for child in grace.get("children", []):
        out.print(f"child       {child}")


def attributes(grace: dict[str, Any]) -> None:
    """Tags, user, session and metadata of a trace, a line each."""
    from grace_kp.trace._render import to_text

    out = console()
    tags, metadata = grace.get("tags"), grace.get("metadata")
    if isinstance(tags, list) and tags:
        out.print(f"tags        {plain(', '.join(map(to_text, tags)))}")
    for name in ("user", "session"):
        if isinstance(grace.get(name), str):
            out.print(f"{name:<12}{plain(grace[name])}")
    for key, value in metadata.items() if isinstance(metadata, dict) else ():
        out.print(f"metadata    {plain(key)}: {plain(to_text(value), 200)}")


def figures(trace: ReasoningTrace) -> None:
    """Confidence and value score of a trace, with their parts."""
    out = console()
    grace = trace.grace or {}
    confidence, value = grace.get("confidence", {}), grace.get("value", {})
    failed = "  [red]run failed[/red]" if confidence.get("run_failed") else ""
    out.print(
        f"confidence  {trace.outcome.confidence:.3f} {bar(trace.outcome.confidence)} {confidence.get('level', '')}{failed}"
    )
    missing = confidence.get("not_evaluated", [])
    for part, number in confidence.get("breakdown", {}).items():
        told = part_text(None) if number is None or part in missing else f"{part_text(number)} {bar(number)}"
        out.print(f"  {part:<20}{told}")
    if confidence.get("penalties"):
        out.print(f"  {'penalties':<20}{plain(penalties_text(confidence['penalties']))}")
    if "own" in confidence:
        out.print(f"  {'computed':<20}{confidence['score']:.3f}, but the run set its own")
    out.print(
        f"score       {trace.metadata.quality_score:.3f} {bar(trace.metadata.quality_score)} {value.get('profile', '')}"
    )
    for part in ("complexity", "novelty", "tool_diversity", "outcome_confidence"):
        if part in value:
            note = "  (not measured)" if part == "novelty" and "novelty_fallback" in value else ""
            out.print(f"  {part:<20}{value[part]:.3f} {bar(value[part])}{note}")
    if value.get("overrides"):
        out.print(f"  {'overrides':<20}{', '.join(value['overrides'])}")
    said = grace.get("scores")
    for told in said[:MAX_SCORES] if isinstance(said, list) else ():
        if isinstance(told, dict):
            _scored(told)
    out.print()


def _scored(told: dict[str, Any]) -> None:
    """What one scorer said of a trace."""
    out = console()
    name = plain(("  " if "suite" in told else "") + str(told.get("name")), 28)
    score = told.get("score")
    if not isinstance(score, int | float) or isinstance(score, bool) or not 0 <= score <= 1:
        why = plain(str(told.get("error") or told.get("skipped") or "no score"), 160)
        out.print(f"{name:<28}not scored: {why}")
        return
    passed = told.get("passed")
    word = "passes" if passed is True else "[red]fails[/red]" if passed is False else ""
    out.print(f"{'  ' if 'suite' in told else ''}{name:<28}{score:.3f} {bar(score)} {word}")
    diagnosis = told.get("diagnosis")
    for line in diagnosis if isinstance(diagnosis, list) else ():
        out.print(f"    {plain(str(line), 160)}")


@traces.command("import")
def import_traces(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Traces or chat runs; - is standard input.")],
    store: StoreOption = None,
    domain: Annotated[str | None, typer.Option(help="Task domain of runs that name none.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Put the traces of FILES into the store; a trace that is there already is replaced.

    Secrets are removed first. Runs without a confidence get one.
    """
    from grace_kp.cli._score import assessed, assessor
    from grace_kp.errors import InvalidRecord
    from grace_kp.runtime._pipeline import record_of
    from grace_kp.trace import read_traces
    from grace_kp.trace._redact import redact_value

    target, how = opened(store), assessor("grace")
    batch: list[Any] = []
    done = problems = 0
    for name in files:
        try:
            for item in progress(read_traces(name, domain=domain), f"importing {name}"):
                if isinstance(item, InvalidRecord):
                    problems += 1
                    say_error(item)
                    continue
                document = redact_value(assessed(item, how), identifiers=item.metadata.privacy_level != "private")
                batch.append(record_of(document))
                done += 1
                if len(batch) >= 200:
                    target.put(batch)
                    batch = []
        except InvalidRecord as error:
            problems += 1
            say_error(error)
    if batch:
        target.put(batch)
    if as_json:
        put_json({"imported": done, "problems": problems})
    else:
        console().print(
            f"imported {done:,} trace{'' if done == 1 else 's'}{f', {problems} could not be read' if problems else ''}"
        )
    if problems:
        raise typer.Exit(1)


@traces.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; .gz packs it, - is standard output.")],
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the count as JSON.")] = False,
) -> None:
    """Write traces as JSON lines, oldest first. The file is there whole or not at all.

    Example: grace-kp traces export good.jsonl.gz --min-score 0.75
    """
    from grace_kp.trace import write_traces

    conditions = _conditions(locals())
    count = write_traces(
        file if file == "-" else Path(file), progress(opened(store).iterate(**conditions), "exporting")
    )
    if file != "-":
        if as_json:
            put_json({"exported": count, "file": file})
        else:
            console().print(f"exported {count:,} trace{'' if count == 1 else 's'} to {plain(file)}")
