"""`grace-kp approvals list | show | watch`: pending and past requests. These commands only read."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._approval_page import (
    TO_BE_USED,
    call_text,
    deciders_text,
    id_text,
    moment_text,
    process_word,
    put_approval,
    time_left_text,
)
from grace_kp.cli._lookup import ByOption, CommandInbox, IdArgument, StoreOption, actor, describe_store, open_inbox
from grace_kp.cli._output import clean, console, put_json, put_jsonl
from grace_kp.cli._page import TableColumn, TextTable, put, put_text
from grace_kp.pages import APPROVAL_STATES, span_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from grace_kp.approvals import Approval


approvals = typer.Typer(no_args_is_help=True, help="Requests for approval: list, show, decide, watch, execute, verify.")

TICK = 0.25
"""Seconds between two looks at the store."""
SHOWN = 200
"""Maximum of pending requests that `watch` shows."""
LEVELS = {"escalate": "red", "confirm": "yellow"}
DECIDERS = TableColumn("may decide", priority=3, least=8)
PENDING = (
    TableColumn("id", "word"),
    TableColumn("level", "word", priority=4, styles=LEVELS),
    TableColumn("action", least=30),
    TableColumn("age", "figure", priority=5),
    TableColumn("left", "figure"),
    DECIDERS,
    TableColumn("process", "word", priority=2, styles={"gone": "yellow", "unknown": "yellow"}),
)
ENDED = (
    TableColumn("id", "word"),
    TableColumn("state", "word", styles={"failed": "red", "unknown": "red", "rejected": "yellow"}),
    TableColumn("action", least=22),
    TableColumn("by", priority=1, least=6),
    TableColumn("age", "figure", priority=2),
)


@approvals.command("list")
def list_approvals(
    store: StoreOption = None,
    action: Annotated[str | None, typer.Option(help="Only this action, or actions that match a glob: 'refund*'.")] = None,
    group: Annotated[str | None, typer.Option(help="Only requests that members of this group may decide.")] = None,
    past: Annotated[bool, typer.Option("--past", help="Requests that are no longer pending, newest first.")] = False,
    state: Annotated[list[str] | None, typer.Option(help=f"Only in this state: {', '.join(APPROVAL_STATES)}; may be repeated. Implies --past.")] = None,
    decided_by: Annotated[str | None, typer.Option("--decided-by", help="Only requests that this person decided. Implies --past.")] = None,
    since: Annotated[str | None, typer.Option(help="Only requests that changed at this time or later: 2h (ago), 2026-01-31. Implies --past.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Show pending requests with the same digest separately.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of approvals.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON line per approval.")] = False,
) -> None:  # fmt: skip
    """List pending requests, the most urgent first.

    Example: grace-kp approvals list --action 'refund*'
    """
    states = state or []
    wrong = next((each for each in states if each not in APPROVAL_STATES), None)
    if wrong is not None:
        raise ValueError(f"--state must be one of {', '.join(APPROVAL_STATES)}, not {wrong!r:.40}")
    is_past = bool(past or decided_by or since or states)
    with open_inbox(store) as inbox:
        found = []
        if not is_past or "pending" in states:
            found = inbox.verbs.pending(action, limit=limit, group=group)
        if is_past and states != ["pending"]:
            at = seconds_since(since)
            found += inbox.verbs.history(action=action, by=decided_by, since=at, states=states, limit=limit)
            found = found[:limit]
        if as_json:
            put_json([approval.to_dict() for approval in found])
        elif as_jsonl:
            put_jsonl(approval.to_dict() for approval in found)
        elif is_past:
            _put_past(console(), found, store, limit)
        else:
            _put_pending(console(), found, every=every)
            _put_footer(console(), inbox, store, found, limit=limit, restricted=bool(action or group))


def seconds_since(since: str | None, option: str = "--since") -> float | None:
    """Parse the time of an option; return seconds since the epoch."""
    from datetime import datetime

    from grace_kp.store import moment

    at = moment(since, option)
    return None if at is None else datetime.fromisoformat(at).timestamp()


def _put_pending(out: Console, found: Sequence[Approval], *, every: bool = False) -> None:
    """Write pending requests as a table; without `every`, those with the same digest share a row."""
    now = time.time()
    restricted = any(approval.groups or approval.quorum > 1 for approval in found)
    rows = TextTable(*(column for column in PENDING if restricted or column is not DECIDERS))
    shown: set[tuple[str, str]] = set()
    for approval in found:
        asks = approval.digest, approval.domain
        if approval.same > 1 and asks in shown and not every:
            continue
        shown.add(asks)
        times = f"×{approval.same} " if approval.same > 1 and not every else ""
        rows.add(
            id_text(approval.id),
            clean(approval.level, 12),
            times + call_text(approval),
            span_text(now - approval.created_at),
            time_left_text(approval, now),
            *([deciders_text(approval)] if restricted else []),
            process_word(approval),
        )
    if found:
        rows.print(out)


def _put_footer(
    out: Console, inbox: CommandInbox, store: str | None, found: Sequence[Approval], *, limit: int, restricted: bool
) -> None:
    """Write the counts and the next commands."""
    from grace_kp.approvals import RowQuery

    count = inbox.tables.count(RowQuery(states=("pending",)))
    unknown = inbox.tables.count(RowQuery(states=("unknown",)))
    approved = inbox.tables.count(RowQuery(states=TO_BE_USED))
    if not found and restricted and count:
        put_text(out, f"no pending requests match; the store has {count:,}: {describe_store(store)}")
    elif not found:
        put_text(out, f"nothing is pending in {describe_store(store)}")
        put_text(
            out,
            "`grace-kp approvals list --past` shows what was decided; `grace-kp approvals watch` waits for requests",
        )
    else:
        more = f" of {count:,}; --limit shows more" if len(found) == limit < count else " pending"
        put_text(
            out, f"{len(found):,}{more}; `grace-kp approvals show ID` shows all of a request, `approve ID` decides it"
        )
    if approved:
        put_text(
            out, f"{approved:,} approved and not yet started: `grace-kp approvals list --state approved --state edited`"
        )
    if unknown:
        put_text(out, f"{unknown:,} with an unknown outcome; settle them with `reconcile`: `grace-kp approvals list --state unknown`", style="red")  # fmt: skip


def _put_past(out: Console, found: Sequence[Approval], store: str | None, limit: int) -> None:
    if not found:
        put_text(out, f"no past approvals match in {describe_store(store)}")
        return
    now, rows = time.time(), TextTable(*ENDED)
    for approval in found:
        outcome, decision = approval.outcome, approval.decision
        # A person closed an action that did not happen; else its decider is shown.
        closed = outcome if outcome is not None and outcome.state == "not_done" else decision
        times = [fact.at for fact in (decision, approval.claim, outcome) if fact is not None]
        rows.add(
            id_text(approval.id),
            str(approval.state).replace("_", " "),
            call_text(approval),
            "-" if closed is None else closed.actor.name,
            span_text(now - max([approval.created_at, *times])),
        )
    rows.print(out)
    put(out, f"{len(found):,} shown{'; --limit shows more' if len(found) == limit else ''}")


@approvals.command()
def show(
    id: IdArgument,  # noqa: A002
    store: StoreOption = None,
    by: ByOption = None,
    full: Annotated[bool, typer.Option("--full", help="Fold and shorten nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the approval with its entries of the chain as JSON.")] = False,
) -> None:  # fmt: skip
    """Show one request in full: action, reason, deciders, outcome. The chain records the view.

    Example: grace-kp approvals show 7f3a
    """
    from grace_kp.approvals import entry_of

    viewer = actor(by)
    with open_inbox(store) as inbox:
        approval = inbox.verbs.get(inbox.find(id), by=viewer)
        entries = [entry_of(link) for link in inbox.tables.links(approval=approval.id, limit=10_000)]
        if as_json:
            put_json({**approval.to_dict(), "chain": entries})
        else:
            put_approval(console(), approval, entries, full=full)


def watch(
    store: StoreOption = None,
    action: Annotated[str | None, typer.Option(help="Only this action, or actions that match a glob.")] = None,
    group: Annotated[str | None, typer.Option(help="Only requests that members of this group may decide.")] = None,
    bell: Annotated[bool, typer.Option("--bell", help="Ring when a request comes in.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per new, changed or ended request.")] = False,
) -> None:  # fmt: skip
    """Show the list of pending requests whenever it changes. Ctrl-C ends it.

    Example: grace-kp approvals watch --group finance --bell
    """
    known: dict[str, int] | None = None
    with suppress(KeyboardInterrupt), open_inbox(store) as inbox:
        for found in _pending_lists(inbox, action, group):
            now = {approval.id: approval.revision for approval in found}
            if as_json:
                ended = (known or {}).keys() - now.keys()
                changed = [approval for approval in found if (known or {}).get(approval.id) != approval.revision]
                put_jsonl(
                    {"event": str(approval.state), "approval": approval.to_dict()}
                    for approval in (*changed, *map(inbox.verbs.get, sorted(ended)))
                )
            elif now != known:
                rings = bell and known is not None and now.keys() - known.keys()
                out = console()  # as wide as the terminal is now
                out.file.write("\a" if rings else "")
                out.clear()  # at a terminal only
                count = f"{len(found):,}{' or more' if len(found) == SHOWN else ''}" if found else "nothing is"
                put(out, f"{count} pending  {moment_text(time.time())[11:]}")
                _put_pending(out, found)
                out.file.flush()
            known = now


def _pending_lists(inbox: CommandInbox, action: str | None, group: str | None) -> Iterator[list[Approval]]:
    """Yield the pending requests whenever they may have changed, without end."""
    seen, found = None, []
    while True:
        now, at = inbox.tables.changes(), time.time()
        if now != seen or any(approval.deadline is not None and approval.deadline <= at for approval in found):
            seen, found = now, inbox.verbs.pending(action, limit=SHOWN, group=group)
            yield found
        time.sleep(TICK)
