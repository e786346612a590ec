"""`grace-kp traces contribute`: send chosen traces to a knowledge registry after a confirmation."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._lookup import JsonOption, StoreOption, find, newest_first, open_for_reading, short_id
from grace_kp.cli._output import ask, clean, console, progress, put_json, say_error, visible_json
from grace_kp.cli._page import TableColumn, TextTable, put
from grace_kp.pages import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grace_kp.integrations.knowledgepulse import Contributed, Contribution, KnowledgePulse
    from grace_kp.trace import ReasoningTrace

_REASONS = 20


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
        leaving, staying = _chosen(progress(found, "looking"), registry, limit)
    if dry_run:
        _show([contribution for _, contribution in leaving] + staying, as_json=as_json)
        return
    if leaving:
        registry.check()
    if leaving and not yes:
        _ask(registry.url, [contribution for _, contribution in leaving], staying)
    sent = [registry.contribute(trace) for trace, _ in progress(leaving, "contributing", total=len(leaving))]
    if as_json:
        kept = [{"id": item.id, "status": "not_eligible", "reason": item.reason} for item in staying]
        put_json([asdict(item) for item in sent] + kept)
    else:
        _report(sent, staying)
    if any(item.status == "failed" for item in sent):
        raise typer.Exit(1)


def _chosen(
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


def _show(prepared: list[Contribution], *, as_json: bool) -> None:
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


def _ask(url: str, leaving: list[Contribution], staying: list[Contribution]) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say_error(
            "contribute asks for a confirmation, which needs a terminal; use --yes to send without asking, or --dry-run to look"
        )
        raise typer.Exit(2)
    rows = TextTable(
        TableColumn("id", "word"), TableColumn("objective"), TableColumn("domain", priority=1, least=8), TableColumn("score", "figure"), TableColumn("bytes", "figure")
    )  # fmt: skip
    for item in leaving:
        body = json.loads(item.body)
        metadata = body["metadata"]
        score = f"{metadata['quality_score']:.3f}"
        rows.add(
            short_id(item.id)[:8], body["task"]["objective"], metadata["task_domain"], score, f"{len(item.body):,}"
        )
    out = console(stderr=True)
    rows.print(out)
    for line in _reasons(staying):
        put(out, clean(line))
    if ask(f"Send {count_text(len(leaving), 'trace')} to {clean(url)}? Type yes: ").strip().lower() != "yes":
        say_error("nothing was sent")
        raise typer.Exit(1)


def _report(sent: list[Contributed], staying: list[Contribution]) -> None:
    for item in sent:
        _line(item.id, f"{item.status.replace('_', ' ')}{f': {item.reason}' if item.reason else ''}")
    for line in _reasons(staying):
        _line(line)
    if not sent and not staying:
        _line("no traces")


def _reasons(staying: list[Contribution]) -> Iterator[str]:
    for reason, count in Counter(item.reason for item in staying).most_common(_REASONS):
        yield f"{count:,} {'is' if count == 1 else 'are'} not sent: {reason}"
