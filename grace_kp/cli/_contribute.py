"""`grace-kp traces contribute`: chosen traces to a knowledge registry, after somebody has seen what would leave."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._output import console, plain, progress, put_json, say_error, table
from grace_kp.cli._traces import StoreOption, find, opened

if TYPE_CHECKING:
    from grace_kp.integrations.knowledgepulse import Contribution


def contribute(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Ids or beginnings of them; all that may leave when none is given."),
    ] = None,
    store: StoreOption = None,
    url: Annotated[str | None, typer.Option(help="The registry; from the settings when not given.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this task domain.")] = None,
    min_score: Annotated[float, typer.Option(min=0, max=1, help="The least score.")] = 0.75,
    since: Annotated[str | None, typer.Option(help="Only from this time on: 2h, 7d, 2026-01-31.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 100,
    include_grace: Annotated[
        bool, typer.Option("--include-grace", help="Send what is beyond the public schema too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show exactly what would leave, and send nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """Send traces to a knowledge registry: those visible to network or org, from a score on, without secrets and identifiers.

    The key is read from the environment variable GRACE_KP_REGISTRY_KEY.

    Example: grace-kp traces contribute --since 7d --dry-run
    """
    from grace_kp.integrations.knowledgepulse import KnowledgePulse

    registry = KnowledgePulse(url, threshold=min_score, include_grace=include_grace)
    source = opened(store)
    conditions = {name: value for name, value in (("domain", domain), ("since", since)) if value is not None}
    found = [find(source, one) for one in ids] if ids else source.query(min_score=min_score, limit=limit, **conditions)
    prepared = [(trace, registry.prepare(trace)) for trace in found]
    leaving = [(trace, one) for trace, one in prepared if one.eligible]
    if dry_run:
        _show([one for _, one in prepared], as_json=as_json)
        return
    if leaving and not yes:
        _ask(len(leaving), registry.url, [one for _, one in prepared])
    done = [registry.contribute(trace) for trace, _ in progress(leaving, "contributing")]
    results = [asdict(one) for one in done] + [
        {"id": one.id, "status": "not_eligible", "reason": one.reason} for _, one in prepared if not one.eligible
    ]
    if as_json:
        put_json(results)
    else:
        _told(results)
    if any(one.status == "failed" for one in done):
        raise typer.Exit(1)


def _show(prepared: list[Contribution], *, as_json: bool) -> None:
    if as_json:
        put_json([{**asdict(one), "body": one.body.decode()} for one in prepared])
        return
    out = console()
    for one in prepared:
        if one.eligible:
            out.print(f"\n{one.method} {plain(one.url)}")
            for name, value in one.headers.items():
                out.print(f"{name}: {plain(value)}")
            sys.stdout.write(json.dumps(json.loads(one.body), ensure_ascii=False, indent=2) + "\n")
        else:
            out.print(f"\n{one.id} stays here: {plain(one.reason)}")
    leaving = sum(one.eligible for one in prepared)
    out.print(f"\n{leaving:,} of {len(prepared):,} would leave; nothing was sent")


def _ask(count: int, url: str, prepared: list[Contribution]) -> None:
    if not sys.stdin.isatty():
        say_error("nobody can be asked here: say --yes to send, or --dry-run to look")
        raise typer.Exit(2)
    rows = table("id", "", "bytes", right=("bytes",))
    for one in prepared:
        rows.add_row(
            one.id.removeprefix("kp:trace:"),
            plain(one.reason or "leaves"),
            f"{len(one.body):,}" if one.eligible else "",
        )
    console(stderr=True).print(rows)
    answer = input(f"Send {count:,} trace{'' if count == 1 else 's'} to {plain(url)}? Type yes: ")
    if answer.strip().lower() != "yes":
        say_error("nothing was sent")
        raise typer.Exit(1)


def _told(results: list[dict[str, Any]]) -> None:
    out = console()
    for one in results:
        reason = f": {plain(one['reason'])}" if one.get("reason") else ""
        out.print(f"{one['id']}  {one['status'].replace('_', ' ')}{reason}")
    if not results:
        out.print("no traces")
