"""`grace-kp approvals`: list and show requests for approval. The verbs on them are in modules beside this one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli import _approval_words as words
from grace_kp.cli._approval_desk import ByOption, IdArgument, Office, actor, office
from grace_kp.cli._approval_page import ApprovalPage
from grace_kp.cli._lookup import StoreOption, described
from grace_kp.cli._output import clean, console, put_json, put_jsonl
from grace_kp.cli._page import put, put_text
from grace_kp.cli._table import Column, Table
from grace_kp.pages import APPROVAL_STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from grace_kp.approvals import Approval

approvals = typer.Typer(
    no_args_is_help=True, help="Requests for approval: list, show, decide, watch, carry out, verify."
)

LEVELS = {"escalate": "red", "confirm": "yellow"}
DECIDERS = Column("may decide", priority=3, least=8)
PENDING = (
    Column("id", "word"),
    Column("level", "word", priority=4, styles=LEVELS),
    Column("action", least=30),
    Column("age", "figure", priority=5),
    Column("left", "figure"),
    DECIDERS,
    Column("process", "word", priority=2, styles={"gone": "yellow", "unknown": "yellow"}),
)
ENDED = (
    Column("id", "word"),
    Column("state", "word", styles={"failed": "red", "unknown": "red", "rejected": "yellow"}),
    Column("action", least=22),
    Column("by", priority=1, least=6),
    Column("age", "figure", priority=2),
)


@approvals.command("list")
def list_approvals(
    store: StoreOption = None,
    action: Annotated[str | None, typer.Option(help="Only of this action, or of those that match a glob: 'refund*'.")] = None,
    group: Annotated[str | None, typer.Option(help="Only what members of this group may decide.")] = None,
    past: Annotated[bool, typer.Option("--past", help="What is no longer pending, newest first.")] = False,
    state: Annotated[list[str] | None, typer.Option(help=f"Only in this state: {', '.join(APPROVAL_STATES)}; may be repeated. Implies --past.")] = None,
    decided_by: Annotated[str | None, typer.Option("--decided-by", help="Only what this person decided. Implies --past.")] = None,
    since: Annotated[str | None, typer.Option(help="Only what changed at this time or later: 2h (ago), 2026-01-31. Implies --past.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Show pending requests with the same digest one by one.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of approvals.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON line per approval.")] = False,
) -> None:  # fmt: skip
    """List pending requests, the most urgent first.

    Example: grace-kp approvals list --action 'refund*'
    """
    is_past = bool(past or decided_by or since or state)
    with office(store) as place:
        if state:
            found = _in_states(place, state, action, seconds_since(since), limit)
        elif is_past:
            found = place.desk.history(action=action, by=decided_by, since=seconds_since(since), limit=limit)
        else:
            found = place.desk.pending(action, limit=limit, group=group)
        if as_json:
            put_json([approval.to_dict() for approval in found])
        elif as_jsonl:
            put_jsonl(approval.to_dict() for approval in found)
        elif is_past:
            _put_past(console(), found, store, limit)
        else:
            put_pending(console(), found, every=every)
            _put_footer(console(), place, store, found, limit=limit, restricted=bool(action or group))


def seconds_since(since: str | None, option: str = "--since") -> float | None:
    """Return a point in time that an option states, in seconds since the epoch.

    Raises:
        ValueError: it is no time.
    """
    from datetime import datetime

    from grace_kp.store import moment

    at = moment(since, option)
    return None if at is None else datetime.fromisoformat(at).timestamp()


def _in_states(
    place: Office, states: Sequence[str], action: str | None, since: float | None, limit: int
) -> list[Approval]:
    from grace_kp.approvals import RowQuery

    wrong = next((state for state in states if state not in APPROVAL_STATES), None)
    if wrong is not None:
        raise ValueError(f"--state must be one of {', '.join(APPROVAL_STATES)}, not {wrong!r:.40}")
    place.desk.sweep()  # what a killed process left is no longer claimed
    rows = place.tables.rows(RowQuery(states=tuple(states), action=action, since=since, order="newest", limit=limit))
    return [place.desk.get(row.id) for row in rows]


def put_pending(out: Console, found: Sequence[Approval], *, every: bool = False, now: float | None = None) -> None:
    """Write pending requests as a table.

    Args:
        out: the console.
        found: the requests.
        every: show requests with the same digest one by one, not as one row with their number.
        now: seconds since the epoch; the time of the clock when None.
    """
    now = time.time() if now is None else now
    restricted = any(approval.groups or approval.quorum > 1 for approval in found)
    rows = Table(*(column for column in PENDING if restricted or column is not DECIDERS))
    shown: set[tuple[str, str]] = set()
    for approval in found:
        asks = approval.digest, approval.domain
        if approval.same > 1 and asks in shown and not every:
            continue
        shown.add(asks)
        times = f"×{approval.same} " if approval.same > 1 and not every else ""
        rows.add(
            words.short_id(approval.id),
            clean(approval.level, 12),
            times + words.sentence(approval),
            words.duration(now - approval.created_at),
            words.time_left(approval, now),
            *([words.deciders(approval)] if restricted else []),
            words.process(approval),
        )
    if found:
        rows.print(out)


def _put_footer(
    out: Console, place: Office, store: str | None, found: Sequence[Approval], *, limit: int, restricted: bool
) -> None:
    """Write how many there are, what else needs a person, and what to do next."""
    from grace_kp.approvals import RowQuery

    count = place.tables.count(RowQuery(states=(words.PENDING,)))
    unknown = place.tables.count(RowQuery(states=(words.UNKNOWN,)))
    approved = place.tables.count(RowQuery(states=words.TO_BE_USED))
    if not found and restricted and count:
        put_text(out, f"no pending requests match; the store has {count:,}: {described(store)}")
    elif not found:
        put_text(out, f"nothing is pending in {described(store)}")
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
        put_text(out, f"{unknown:,} with an unknown outcome, to be settled by `reconcile`: `grace-kp approvals list --state unknown`", style="red")  # fmt: skip


def _put_past(out: Console, found: Sequence[Approval], store: str | None, limit: int) -> None:
    if not found:
        put_text(out, f"no past approvals match in {described(store)}")
        return
    now, rows = time.time(), Table(*ENDED)
    for approval in found:
        rows.add(
            words.short_id(approval.id),
            str(approval.state).replace("_", " "),
            words.sentence(approval),
            decided_by_text(approval) or "-",
            words.duration(now - changed_at(approval)),
        )
    rows.print(out)
    put(out, f"{len(found):,} shown{'; --limit shows more' if len(found) == limit else ''}")


def decided_by_text(approval: Approval) -> str:
    """Return who decided, reconciled or closed an approval."""
    outcome, decision = approval.outcome, approval.decision
    if outcome is not None and outcome.state == "not_done":
        return clean(outcome.actor.name)
    return "" if decision is None else clean(decision.actor.name)


def changed_at(approval: Approval) -> float:
    """Return when an approval last changed, as far as its facts state it."""
    times = [fact.at for fact in (approval.decision, approval.claim, approval.outcome) if fact is not None]
    return max([approval.created_at, *times])


@approvals.command()
def show(
    id: IdArgument,  # noqa: A002
    store: StoreOption = None,
    by: ByOption = None,
    full: Annotated[bool, typer.Option("--full", help="Fold and shorten nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the approval with its entries of the chain as JSON.")] = False,
) -> None:  # fmt: skip
    """Show one request in full: what would run, why a person is asked, who may decide, and what came of it. The chain records the view.

    Example: grace-kp approvals show 7f3a
    """
    from grace_kp.approvals import entry_of

    viewer = actor(by)
    with office(store) as place:
        approval = place.desk.get(place.find(id), viewer=viewer)
        entries = [entry_of(link) for link in place.tables.links(approval=approval.id, limit=10_000)]
        if as_json:
            put_json({**approval.to_dict(), "chain": entries})
        else:
            ApprovalPage(console(), full=full).print(approval, entries)
