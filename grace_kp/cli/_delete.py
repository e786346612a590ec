"""`grace-kp traces delete`: delete runs with their contents, after a confirmation."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from grace_kp.cli._lookup import StoreOption, find, opened
from grace_kp.cli._output import console, plain, put_json, say_error


def delete(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="An id, or at least its first 3 characters.")] = None,  # noqa: A002
    store: StoreOption = None,
    session: Annotated[str | None, typer.Option(help="Runs of this session.")] = None,
    user: Annotated[str | None, typer.Option(help="Runs of this user.")] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Runs that began before this time: 30d (ago), 12h, 2026-01-31.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without a confirmation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON; needs --yes.")] = False,
) -> None:
    """Delete runs and the runs nested in them, with all their contents in the store. A run must meet all conditions.

    Example: grace-kp traces delete --user ana@example.com --older-than 30d
    """
    from grace_kp.store import Selection

    target = opened(store, must_exist=True)
    conditions: dict[str, Any] = {"session": session, "user": user, "older_than": older_than}
    conditions = {name: value for name, value in conditions.items() if value is not None}
    if id is not None:
        conditions["id"] = find(target, id).id
    selection = Selection(**conditions)
    if not yes:
        _confirm(target.count(session=session, user=user, until=selection.query.until), conditions)
    report = target.delete(**conditions)
    cache = _empty_judgements() if report else None
    if as_json:
        put_json({**report.to_dict(), **({} if cache is None else {"judge_cache": cache})})
    else:
        out = console()
        out.print(f"deleted {int(report):,} run{'' if report == 1 else 's'}")
        if report.actions:
            out.print(
                f"emptied {report.actions:,} entries of the ledger of actions; the ledger still knows that these actions ran"
            )
        if cache is not None:
            out.print(f"emptied the judgement cache {plain(cache)}")
        for run in report.open:
            out.print(f"still open, not deleted: {plain(run)}")
    if report.remains:
        say_error(report.remains)
    if report.remains or report.open:
        raise typer.Exit(1)


def _confirm(count: int, conditions: dict[str, Any]) -> None:
    what = ", ".join(f"{name.replace('_', ' ')} {plain(str(value))}" for name, value in conditions.items())
    if not sys.stdin.isatty():
        raise ValueError(
            "delete asks for a confirmation, and standard input is no terminal; use --yes to delete without asking"
        )
    runs = "1 run" if "id" in conditions else f"{count:,} run{'' if count == 1 else 's'}"
    typer.confirm(f"Delete {runs} ({what}) and the runs nested in them? This cannot be undone.", abort=True, err=True)


def _empty_judgements() -> str | None:
    """Empty the judgement cache, whose reasons may quote a deleted run; return its path, None without a cache."""
    from pathlib import Path

    from grace_kp.judge import JudgementCache
    from grace_kp.settings import Settings

    path = Settings.load().judge_cache
    if path is None or not Path(path).expanduser().exists():
        return None
    cache = JudgementCache(path)
    try:
        cache.clear()
    finally:
        cache.close()
    return path
