"""`grace-kp traces list | show | import | export | contribute | delete`: stored traces."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._inputs import REPORTED, Unreadable, read_files
from grace_kp.cli._lookup import (
    JsonOption,
    StoreOption,
    YesOption,
    describe_store,
    find,
    newest_first,
    open_chosen_store,
    open_for_reading,
    parameters_of,
    short_id,
)
from grace_kp.cli._output import ask, clean, confirm, console, progress, put_json, put_jsonl, say_error, visible_json
from grace_kp.cli._page import TableColumn, TextTable, put, put_outcome, put_text
from grace_kp.cli._trace_page import Sheet
from grace_kp.errors import InvalidRecord
from grace_kp.levels import RunStatus, waits
from grace_kp.pages import count_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from grace_kp.integrations.knowledgepulse import Contribution, KnowledgePulse
    from grace_kp.runtime import Assessor
    from grace_kp.store import Record, Store
    from grace_kp.trace import FileRun, ReasoningTrace


traces = typer.Typer(no_args_is_help=True, help="List, show, import and export stored traces.")

MAX_BATCH = 200
MAX_BATCH_BYTES = 16 << 20
LABEL_FIELDS = {"feedback", "action_feedback"}
"""The fields of `grace` that hold labels of the run, and of its actions."""
NOT_COMPARED = dict.fromkeys((*LABEL_FIELDS, "imported"))


def _only(runs: str, *names: str, **limits: Any) -> Any:
    return typer.Option(*names, help=f"Only runs {runs}", **limits)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """The options that select traces, named as the conditions of a query."""

    domain: Annotated[str | None, _only("of this task domain.")] = None
    min_score: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum score.")] = None
    max_score: Annotated[float | None, typer.Option(min=0, max=1, help="Maximum score.")] = None
    success: Annotated[
        bool | None, typer.Option("--success/--failed", help="Only successful runs, or only failed ones.")
    ] = None
    status: Annotated[RunStatus | None, _only("with this status.")] = None
    since: Annotated[str | None, _only("that began at this time or later: 2h (ago), 7d, 2026-01-31.")] = None
    until: Annotated[str | None, _only("that began before this time, in the same forms.")] = None
    text: Annotated[str | None, _only("with this string in the objective, the steps or the result.")] = None
    scorer: Annotated[str | None, _only("scored by this scorer or suite.", "--scorer")] = None
    scorer_passed: Annotated[
        bool | None,
        _only("whose score from --scorer (default: any scorer) passes, or fails.", "--scorer-passed/--scorer-failed"),
    ] = None
    min_scorer: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum score from --scorer.")] = None
    max_scorer: Annotated[float | None, typer.Option(min=0, max=1, help="Maximum score from --scorer.")] = None
    tags: Annotated[list[str] | None, _only("with this tag; may be repeated.", "--tag")] = None
    user: Annotated[str | None, _only("for this user.")] = None
    session: Annotated[str | None, _only("of this session.")] = None
    metadata: Annotated[
        list[str] | None, _only("with this metadata; may be repeated.", "--metadata", metavar="KEY=VALUE")
    ] = None
    feedback: Annotated[bool | None, _only("with feedback, or only runs without.", "--feedback/--no-feedback")] = None
    feedback_source: Annotated[
        str | None, _only("with, or with --no-feedback without, feedback from this source.", "--feedback-source")
    ] = None

    def conditions(self) -> dict[str, Any]:
        stated = {name: value for name, value in vars(self).items() if value not in (None, [])}
        if "metadata" in stated:
            pairs = [pair.partition("=") for pair in stated["metadata"]]
            if not all(name and separator for name, separator, _ in pairs):
                raise ValueError("--metadata must read KEY=VALUE")
            stated["metadata"] = {name: value for name, _, value in pairs}
        return stated


def _add_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `conditions` of a command by the options of `Filters`."""
    filters = parameters_of(Filters, [item.name for item in fields(Filters)])

    def run(**options: Any) -> None:
        chosen = Filters(**{parameter.name: options.pop(parameter.name) for parameter in filters})
        command(conditions=chosen.conditions(), **options)

    known = signature(command, eval_str=True).parameters.values()
    expanded: list[Parameter] = []
    for parameter in known:
        expanded += filters if parameter.name == "conditions" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
    run.__doc__ = command.__doc__
    run.__signature__ = Signature(expanded)  # type: ignore[attr-defined]
    return run


@traces.command("list")
@_add_filters
def list_traces(
    store: StoreOption = None,
    *,
    conditions: dict[str, Any],
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of traces.")] = 20,
    as_json: JsonOption = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON line per trace.")] = False,
) -> None:
    """List the newest traces.

    Example: grace-kp traces list --since 2h --min-score 0.6
    """
    with open_for_reading(store) as source:
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
        return f"no traces match; the store has {count:,}: {describe_store(url)}"
    return f"no traces in {describe_store(url)}"


LIST = (
    TableColumn("id", "word"),
    TableColumn("when (UTC)", "word", priority=3),
    TableColumn("objective", least=14),
    TableColumn("domain", priority=5, least=8),
    TableColumn("status", "word", priority=2),
    TableColumn("ok", "word", styles={"no": "red"}),
    TableColumn("steps", "figure", priority=4),
    TableColumn("conf", "figure", priority=1),
    TableColumn("score", "figure"),
)


def _show_list(found: list[ReasoningTrace], count: int) -> None:
    rows = TextTable(*LIST)
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


@traces.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id, at least its first 3 characters, or `last`.")],  # noqa: A002
    store: StoreOption = None,
    full: Annotated[bool, typer.Option("--full", help="Shorten nothing; add ids, digests and all parts of the figures.")] = False,
    nested: Annotated[bool, typer.Option("--nested", help="Show the nested runs in full, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the stored document, with the outcomes of its requests for approval.")] = False,
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write the trace as a self-contained HTML file.")] = None,
) -> None:  # fmt: skip
    """Show one trace: its steps, confidence, score, tokens, decisions and nested runs.

    Example: grace-kp traces show last --full
    """
    from grace_kp.runtime import with_outcomes

    with open_for_reading(store) as source:
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
    as_json: JsonOption = False,
) -> None:
    """Import the runs of FILES into the store. Stored runs are not changed.

    Secrets are removed first. Runs without a confidence get one. The labels in FILES get the source import:FILE.
    """
    from grace_kp.cli._score import assessor
    from grace_kp.runtime import record_of

    target, how, refused = open_chosen_store(store), assessor("grace"), Unreadable()
    batch: dict[str, Record] = {}
    done = same = size = 0
    for run in read_files(files, "importing", refused, partial(_runs_in, domain=domain)):
        if run.trace.id in batch or len(batch) >= MAX_BATCH or size > MAX_BATCH_BYTES:
            target.put(list(batch.values()))
            batch, size = {}, 0
        document = _prepare_import(run, how)
        stored = target.get(run.trace.id)
        if stored is not None and _is_same(stored.to_dict(), run.trace.to_dict(), document):
            same += 1
        elif conflict := _conflict(target, stored, run.trace):
            refused.add(problem := InvalidRecord(conflict, file=run.file, line=run.line, path=run.path))
            if refused.count <= REPORTED:
                say_error(problem)
        else:
            batch[run.trace.id] = record = record_of(document)
            size += len(record.data)
            done += 1
    target.put(list(batch.values()))
    skipped = f", skipped {same:,} already here" if same else ""
    problems = f", refused {refused.count:,}: {clean(str(refused.first))}" if refused.count else ""
    counts = {"imported": done, "already_here": same, "problems": refused.count}
    put_outcome(counts, f"imported {count_text(done, 'trace')}{skipped}{problems}", as_json=as_json)
    if refused.count:
        raise typer.Exit(1)


def _runs_in(source: Any, name: str, *, domain: str | None) -> Iterator[FileRun | InvalidRecord]:
    """Yield the runs of a file, or only a problem if it holds spans. The file is read twice to find out."""
    from grace_kp.trace import SpanFormat, read_runs

    with tempfile.SpooledTemporaryFile(MAX_BATCH_BYTES) as copy:
        first: Any = name
        # A pipe can be read only once, so its content is copied.
        if name == "-" or not (isinstance(source, str) or Path(name).is_file()):
            stream = getattr(sys.stdin, "buffer", sys.stdin) if name == "-" else source
            shutil.copyfileobj(stream, copy)
            first = source = SimpleNamespace(read=copy.read, fileno=stream.fileno)
            copy.seek(0)
        spans = next((run for run in read_runs(first, name=name, spans_only=True) if isinstance(run, SpanFormat)), None)
        copy.seek(0)
        yield from [spans] if spans is not None else read_runs(source, name=name, domain=domain)


def _prepare_import(run: FileRun, how: Assessor) -> dict[str, Any]:
    """Return a run with a confidence, without secrets, and with the file as the source of its labels."""
    from grace_kp.cli._score import assess_trace
    from grace_kp.store import IMPORT
    from grace_kp.trace import is_native, label, redact_value

    is_scored = is_native(run.document) and not {"confidence", "value"}.isdisjoint(run.trace.grace or ())
    document = run.trace.to_dict() if is_scored else assess_trace(run.trace, how)
    source = IMPORT + label(printable("stdin" if run.file == "-" else Path(run.file).name))
    labels = {name: _labels_of(document, (name,), source=source) for name in LABEL_FIELDS & document["grace"].keys()}
    document["grace"].update({"imported": True, **labels})
    redacted: dict[str, Any] = redact_value(document, identifiers=run.trace.metadata.privacy_level != "private")
    return redacted


def _conflict(store: Store, stored: ReasoningTrace | None, trace: ReasoningTrace) -> str:
    """Return how a run would conflict with the store; empty if it would not."""
    from grace_kp.store import is_imported

    is_expected = getattr(store, "is_expected", lambda _: False)
    if stored is not None or is_expected(trace.id):
        return (
            f"the run {trace.id} is here already, open or with other content or labels, and stays until it is deleted"
        )
    for linked in filter(None, [trace.parent_id, *trace.children, *(call.child for call in trace.calls)]):
        known = store.get(linked)
        if is_expected(linked) or not (known is None or is_imported(known)):
            return f"the run {trace.id} would be joined to the run {linked}, which was recorded here"
    return ""


def _is_same(stored: dict[str, Any], *read: dict[str, Any]) -> bool:
    """Return whether a file holds the stored run, without other labels."""
    known, stated = (_labels_of(document, source="", at="") for document in (stored, read[-1]))
    return _content(stored) in map(_content, read) and all(label in known for label in stated)


def _labels_of(document: dict[str, Any], names: Iterable[str] = LABEL_FIELDS, **fixed: str) -> list[dict[str, Any]]:
    grace = document.get("grace") or {}
    found = [entry for name in names if isinstance(grace.get(name), list) for entry in grace[name]]
    return [{**entry, **fixed} for entry in found if isinstance(entry, dict)]


def _content(document: dict[str, Any]) -> dict[str, Any]:
    grace, metadata = {**(document.get("grace") or {}), **NOT_COMPARED}, document["metadata"]
    if grace.get("created_from") in {"file", "unknown"}:  # the time is that of the file, which a copy changes
        grace, metadata = {**grace, "created_from": None}, {**metadata, "created_at": None}
    return {**document, "grace": grace, "metadata": metadata}


@traces.command("export")
@_add_filters
def export_traces(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Output file; .gz compresses it, - is standard output.")],
    store: StoreOption = None,
    *,
    conditions: dict[str, Any],
    as_json: JsonOption = False,
) -> None:
    """Write traces as JSON lines, oldest first. A failed export leaves no file.

    Example: grace-kp traces export good.jsonl.gz --min-score 0.75
    """
    from grace_kp.trace import write_traces

    with open_for_reading(store) as source:
        found = progress(source.iterate(**conditions), "exporting", total=source.count(**conditions))
        count = write_traces(file if file == "-" else Path(file), found)
        if file == "-":
            return
        empty = "" if count else f"; {_nothing(source, store, conditions)}"
        text = f"exported {count_text(count, 'trace')} to {clean(file)}{empty}"
        put_outcome({"exported": count, "file": file}, text, as_json=as_json)


def delete(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="An id, or at least its first 3 characters.")] = None,  # noqa: A002
    store: StoreOption = None,
    session: Annotated[str | None, typer.Option(help="Runs of this session.")] = None,
    user: Annotated[str | None, typer.Option(help="Runs of this user.")] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Runs that began before this time: 30d (ago), 12h, 2026-01-31.")
    ] = None,
    yes: YesOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON; needs --yes.")] = False,
) -> None:
    """Delete runs and their nested runs, with all their contents in the store. A run must meet all conditions.

    Example: grace-kp traces delete --user ana@example.com --older-than 30d
    """
    from grace_kp.store import Selection

    target = open_chosen_store(store, must_exist=True)
    conditions: dict[str, Any] = {"session": session, "user": user, "older_than": older_than}
    conditions = {name: value for name, value in conditions.items() if value is not None}
    if id is not None:
        conditions["id"] = find(target, id).id
    selection = Selection(**conditions)
    if not yes:
        count = 1 if "id" in conditions else target.count(session=session, user=user, until=selection.query.until)
        what = ", ".join(f"{name.replace('_', ' ')} {clean(str(value))}" for name, value in conditions.items())
        runs = count_text(count, "run")
        confirm("delete", f"Delete {runs} ({what}) and the runs nested in them? This cannot be undone.")
    report = target.delete(**conditions)
    cache = _empty_judgements() if report else None
    if as_json:
        put_json({**report.to_dict(), **({} if cache is None else {"judge_cache": cache})})
    else:
        out = console()
        put_text(out, f"deleted {count_text(int(report), 'run')}")
        if report.actions:
            put_text(
                out,
                f"emptied {report.actions:,} entries of the ledger of actions; the ledger still knows that these actions ran",
            )
        if cache is not None:
            put_text(out, f"emptied the judgement cache {clean(cache)}")
        for run in report.open:
            put_text(out, f"still open, not deleted: {clean(run)}")
    if report.remains:
        say_error(report.remains)
    if report.remains or report.open:
        raise typer.Exit(1)


def _empty_judgements() -> str | None:
    """Empty the judgement cache, whose reasons may quote a deleted run; return its path."""
    from grace_kp.judge import JudgementCache
    from grace_kp.settings import Settings

    path = Settings.load().judge_cache
    if path is None or not Path(path).expanduser().exists():
        return None
    with closing(JudgementCache(path)) as cache:
        cache.clear()
    return path


BYTES = TableColumn("bytes", "figure")


def contribute(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Ids or their first characters. Default: all traces that may be sent."),
    ] = None,
    store: StoreOption = None,
    url: Annotated[str | None, typer.Option(help="URL of the registry. Default: the setting `registry_url`.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this task domain.")] = None,
    min_score: Annotated[float, typer.Option(min=0, max=1, help="Minimum score.")] = 0.75,
    since: Annotated[
        str | None, typer.Option(help="Only runs that began at this time or later: 2h (ago), 7d, 2026-01-31.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of traces.")] = 100,
    include_grace: Annotated[
        bool, typer.Option("--include-grace", help="Also send the part `grace`, which is outside the public schema.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact requests without sending them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send without a confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Send traces to a knowledge registry. Only traces with visibility network or org are sent, without secrets and identifiers.

    The key is read from the environment variable GRACE_KP_REGISTRY_KEY.

    Example: grace-kp traces contribute --since 7d --dry-run
    """
    from grace_kp.integrations.knowledgepulse import KnowledgePulse

    registry = KnowledgePulse(url, threshold=min_score, include_grace=include_grace)
    conditions = {name: value for name, value in (("domain", domain), ("since", since)) if value is not None}
    with open_for_reading(store) as source:
        named = {trace.id: trace for trace in (find(source, name) for name in ids or ())}
        found = named.values() if ids else newest_first(source, min_score=min_score, **conditions)
        leaving, staying = _choose(progress(found, "looking"), registry, limit)
    prepared = [contribution for _, contribution in leaving]
    if dry_run:
        _show_requests([*prepared, *staying], as_json=as_json)
        return
    if leaving:
        registry.check()
    if leaving and not yes:
        _ask_to_send(registry.url, prepared, staying)
    sent = [registry.contribute(trace) for trace, _ in progress(leaving, "contributing", total=len(leaving))]
    if as_json:
        kept = [{"id": item.id, "status": "not_eligible", "reason": item.reason} for item in staying]
        put_json([asdict(item) for item in sent] + kept)
    else:
        lines = [
            (item.id, item.status.replace("_", " ") + (f": {item.reason}" if item.reason else "")) for item in sent
        ]
        for parts in [*lines, *((reason,) for reason in _reasons(staying))] or [("no traces",)]:
            _line(*parts)
    if any(item.status == "failed" for item in sent):
        raise typer.Exit(1)


def _choose(
    found: Iterable[ReasoningTrace], registry: KnowledgePulse, limit: int
) -> tuple[list[tuple[ReasoningTrace, Contribution]], list[Contribution]]:
    """Return up to `limit` traces that may be sent, and the traces skipped on the way."""
    leaving: list[tuple[ReasoningTrace, Contribution]] = []
    staying: list[Contribution] = []
    for trace in found:
        contribution = registry.prepare(trace)
        if contribution.eligible:
            leaving.append((trace, contribution))
            if len(leaving) == limit:
                break
        else:
            staying.append(contribution)
    return leaving, staying


def _show_requests(prepared: list[Contribution], *, as_json: bool) -> None:
    if as_json:
        put_json([{**asdict(item), "body": item.body.decode()} for item in prepared])
        return
    for item in prepared:
        if item.eligible:
            _line(f"{item.method} {item.url}")
            for name, value in item.headers.items():
                _line(f"{name}: {value}")
            sys.stdout.write(visible_json(json.loads(item.body), indent=2) + "\n\n")
        else:
            _line(f"{item.id} is not sent: {item.reason}")
    leaving = sum(item.eligible for item in prepared)
    _line(f"{leaving:,} of {len(prepared):,} would be sent; nothing was sent")


def _line(*parts: str) -> None:
    put(console(), "  ".join(map(clean, parts)))


def _ask_to_send(url: str, leaving: list[Contribution], staying: list[Contribution]) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ValueError(
            "contribute asks for a confirmation, which needs a terminal; use --yes to send without asking, or --dry-run to look"
        )
    rows = TextTable(*(column for column in LIST if column.name in {"id", "objective", "domain", "score"}), BYTES)
    for item in leaving:
        body = json.loads(item.body)
        metadata, size = body["metadata"], f"{len(item.body):,}"
        score = f"{metadata['quality_score']:.3f}"
        rows.add(short_id(item.id)[:8], body["task"]["objective"], metadata["task_domain"], score, size)
    out = console(stderr=True)
    rows.print(out)
    for line in _reasons(staying):
        put(out, clean(line))
    if ask(f"Send {count_text(len(leaving), 'trace')} to {clean(url)}? Type yes: ").strip().lower() != "yes":
        say_error("nothing was sent")
        raise typer.Exit(1)


def _reasons(staying: list[Contribution]) -> Iterator[str]:
    for reason, count in Counter(item.reason for item in staying).most_common(20):
        yield f"{count:,} {'is' if count == 1 else 'are'} not sent: {reason}"
