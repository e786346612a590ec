"""`grace-kp traces contribute`: chosen traces to a knowledge registry, after somebody has seen what would leave."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._lookup import StoreOption, find, reading, short_id
from grace_kp.cli._output import console, plain, progress, put_json, say_error, visible_json
from grace_kp.cli._table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grace_kp.integrations.knowledgepulse import Contributed, Contribution, KnowledgePulse
    from grace_kp.store import Store
    from grace_kp.trace import ReasoningTrace

_PAGE = 200
_REASONS = 20


def contribute(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="Ids, or their first characters. Without any: all traces that may be sent."
        ),
    ] = None,
    store: StoreOption = None,
    url: Annotated[str | None, typer.Option(help="URL of the registry. Default: the setting `registry_url`.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this task domain.")] = None,
    min_score: Annotated[float, typer.Option(min=0, max=1, help="Only scores of at least this.")] = 0.75,
    since: Annotated[
        str | None, typer.Option(help="Only runs that began since then: 2h (ago), 7d, 2026-01-31.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Send at most this many.")] = 100,
    include_grace: Annotated[
        bool, typer.Option("--include-grace", help="Also send the part `grace`, which is not in the public schema.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact requests, and send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Send traces to a knowledge registry. Only traces with visibility network or org are sent, without secrets and identifiers.

    The key is read from the environment variable GRACE_KP_REGISTRY_KEY.

    Example: grace-kp traces contribute --since 7d --dry-run
    """
    from grace_kp.integrations.knowledgepulse import KnowledgePulse

    registry = KnowledgePulse(url, threshold=min_score, include_grace=include_grace)
    conditions = {name: value for name, value in (("domain", domain), ("since", since)) if value is not None}
    with reading(store) as source:
        found = _named(source, ids) if ids else _newest(source, min_score=min_score, **conditions)
        leaving, staying = _chosen(progress(found, "looking"), registry, limit)
    if dry_run:
        _show([one for _, one in leaving] + staying, as_json=as_json)
        return
    if leaving:
        registry.check()
    if leaving and not yes:
        _ask(registry.url, leaving, staying)
    done = [registry.contribute(trace) for trace, _ in progress(leaving, "contributing", total=len(leaving))]
    if as_json:
        put_json([asdict(one) for one in done] + [_stays(one) for one in staying])
    else:
        _told(done, staying)
    if any(one.status == "failed" for one in done):
        raise typer.Exit(1)


def _named(source: Store, ids: list[str]) -> Iterator[ReasoningTrace]:
    yield from {trace.id: trace for trace in (find(source, one) for one in ids)}.values()


def _newest(source: Store, **conditions: object) -> Iterator[ReasoningTrace]:
    seen: set[str] = set()
    for offset in itertools.count(0, _PAGE):
        page = source.query(limit=_PAGE, offset=offset, **conditions)
        for trace in page:
            if trace.id not in seen:  # what is stored meanwhile moves the pages
                seen.add(trace.id)
                yield trace
        if len(page) < _PAGE:
            return


def _chosen(
    found: Iterable[ReasoningTrace], registry: KnowledgePulse, limit: int
) -> tuple[list[tuple[ReasoningTrace, Contribution]], list[Contribution]]:
    """Those that may leave, at most so many, and those met on the way that may not."""
    leaving: list[tuple[ReasoningTrace, Contribution]] = []
    staying: list[Contribution] = []
    for trace in found:
        one = registry.prepare(trace)
        if one.eligible:
            leaving.append((trace, one))
            if len(leaving) == limit:
                break
        else:
            staying.append(one)
    return leaving, staying


def _show(prepared: list[Contribution], *, as_json: bool) -> None:
    if as_json:
        put_json([{**asdict(one), "body": one.body.decode()} for one in prepared])
        return
    for one in prepared:
        if one.eligible:
            _line(f"{one.method} {one.url}")
            for name, value in one.headers.items():
                _line(f"{name}: {value}")
            sys.stdout.write(visible_json(json.loads(one.body), indent=2) + "\n\n")
        else:
            _line(f"{one.id} is not sent: {one.reason}")
    leaving = sum(one.eligible for one in prepared)
    _line(f"{leaving:,} of {len(prepared):,} would be sent; nothing was sent")


def _line(*parts: str) -> None:
    """A line that is not broken, so that it can be searched and copied."""
    console().print("  ".join(map(plain, parts)), soft_wrap=True)


def _ask(url: str, leaving: list[tuple[ReasoningTrace, Contribution]], staying: list[Contribution]) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say_error("nobody can be asked here: say --yes to send, or --dry-run to look")
        raise typer.Exit(2)
    rows = Table(
        Column("id", "word"), Column("objective"), Column("domain", priority=1, least=8), Column("score", "figure"), Column("bytes", "figure")
    )  # fmt: skip
    for _, one in leaving:
        body = json.loads(one.body)
        rows.add(
            short_id(one.id)[:8],
            body["task"]["objective"],
            body["metadata"]["task_domain"],
            f"{body['metadata']['quality_score']:.3f}",
            f"{len(one.body):,}",
        )
    out = console(stderr=True)
    rows.print(out)
    for reason, count in Counter(one.reason for one in staying).most_common(_REASONS):
        out.print(f"{count:,} {'is' if count == 1 else 'are'} not sent: {plain(reason)}")
    count = len(leaving)
    out.print(f"Send {count:,} trace{'' if count == 1 else 's'} to {plain(url)}? Type yes: ", end="", soft_wrap=True)
    try:
        answer = input()
    except EOFError:
        sys.stderr.write("\n")
        answer = ""
    if answer.strip().lower() != "yes":
        say_error("nothing was sent")
        raise typer.Exit(1)


def _told(done: list[Contributed], staying: list[Contribution]) -> None:
    for one in done:
        _line(one.id, f"{one.status.replace('_', ' ')}{f': {one.reason}' if one.reason else ''}")
    for reason, count in Counter(one.reason for one in staying).most_common(_REASONS):
        _line(f"{count:,} {'is' if count == 1 else 'are'} not sent: {reason}")
    if not done and not staying:
        _line("no traces")


def _stays(one: Contribution) -> dict[str, Any]:
    return {"id": one.id, "status": "not_eligible", "reason": one.reason}
