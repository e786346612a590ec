"""`grace-kp approvals list | show | watch | work`: requests and approved actions; `verify | export | restored | forget`: their audit chain."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from grace_kp.cli._inputs import load_module
from grace_kp.cli._lookup import (
    ByOption,
    CommandInbox,
    IdArgument,
    JsonOption,
    StoreOption,
    YesOption,
    actor,
    change_inbox,
    describe_store,
    open_inbox,
)
from grace_kp.cli._output import clean, confirm, console, put_json, put_jsonl, say_error
from grace_kp.cli._page import TableColumn, TextTable, put, put_outcome, put_text
from grace_kp.errors import ActionNotApproved, AlreadyDecided, ApprovalError, GraceError, StoreError
from grace_kp.pages import APPROVAL_STATES, count_text, span_text
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType, ModuleType

    from rich.console import Console

    from grace_kp.approvals import Approval, Tables
    from grace_kp.runtime import Grace


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
    from grace_kp.approvals import RowQuery

    states = state or []
    wrong = next((each for each in states if each not in APPROVAL_STATES), None)
    if wrong is not None:
        raise ValueError(f"--state must be one of {', '.join(APPROVAL_STATES)}, not {wrong!r:.40}")
    is_past = bool(past or decided_by or since or states)
    with open_inbox(store) as inbox:
        verbs, at = inbox.verbs, seconds_since(since)
        if not is_past:
            found = verbs.pending(action, limit=limit, group=group)
        elif "pending" in states and decided_by is None:
            verbs.sweep()  # releases the claims of killed processes
            query = RowQuery(states=tuple(states), action=action, since=at, order="newest", limit=limit)
            found = [verbs.get(row.id) for row in inbox.tables.rows(query)]
        elif set(states) == {"pending"}:  # a person has decided none of them
            found = []
        else:
            ended = [each for each in states if each != "pending"]
            found = verbs.history(action=action, by=decided_by, since=at, states=ended, limit=limit)
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
    from grace_kp.approvals import RowQuery

    count = inbox.tables.count(RowQuery(states=("pending",)))
    unknown = inbox.tables.count(RowQuery(states=("unknown",)))
    approved = inbox.tables.count(RowQuery(states=TO_BE_USED))
    if not found and restricted and count:
        put_text(out, f"no pending requests match; the store has {count:,}: {describe_store(store)}")
    elif not found:
        hint = "`grace-kp approvals list --past` shows what was decided; `grace-kp approvals watch` waits for requests"
        put_text(out, f"nothing is pending in {describe_store(store)}\n{hint}")
    else:
        more = f" of {count:,}; --limit shows more" if len(found) == limit < count else " pending"
        hint = "`grace-kp approvals show ID` shows all of a request, `approve ID` decides it"
        put_text(out, f"{len(found):,}{more}; {hint}")
    if approved:
        command = "grace-kp approvals list --state approved --state edited"
        put_text(out, f"{approved:,} approved and not yet started: `{command}`")
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
    places: Annotated[bool, typer.Option("--places", help="Also show the texts that values with alarms are from.")] = False,
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
            put_approval(console(), approval, entries, full=full, places=places)


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


SWEEP_SECONDS = 5.0
"""Seconds between two looks without a change of the store: a waiting process may have exited."""


def work(
    module: Annotated[str, typer.Argument(metavar="MODULE", help="Module or .py file that defines the gates.")],
    once: Annotated[bool, typer.Option("--once", help="Execute what is approved now, then exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per outcome.")] = False,
) -> None:
    """Execute approved actions that no process waits for. SIGTERM or Ctrl-C ends the work after the current action.

    It uses the stores of the runtimes in MODULE. With --once the exit code is 1 if an action failed.

    Example: grace-kp approvals work shop.actions
    """
    worker = ApprovalWorker(_runtimes(load_module(module, "work")), as_json=as_json)
    with _stopping(worker):
        if not once and sys.stderr.isatty():
            ends = "Ctrl-C ends it after the current action"
            sys.stderr.write(f"executing approved actions of {clean(module)}; {ends}\n")
        worker.run(once=once)
    if once and worker.failed:
        raise typer.Exit(1)


def _runtimes(module: ModuleType) -> list[Grace]:
    """Return the runtimes in a module, or else the default one."""
    from grace_kp.runtime import Grace, default

    found = {id(value): value for value in vars(module).values() if isinstance(value, Grace)}
    return list(found.values()) or [default()]


class ApprovalWorker:
    """Executes approved actions whose gates belong to some runtimes."""

    def __init__(self, runtimes: list[Grace], *, as_json: bool) -> None:
        self._runtimes = runtimes
        self._as_json = as_json
        self._others: set[tuple[int, str]] = set()
        """Approvals that a runtime cannot execute, by its index and their id."""
        self._problem = ""
        self.stops = False
        self.failed = 0

    def run(self, *, once: bool) -> None:
        """Work until stopped; with `once`, until no approved action is left."""
        seen: list[int] = []
        looked = 0.0
        while not self.stops:
            try:
                now = [_tables(grace).changes() for grace in self._runtimes]
                if now != seen or time.monotonic() - looked > SWEEP_SECONDS:
                    seen, looked = now, time.monotonic()
                    for place, grace in enumerate(self._runtimes):
                        for approval in _ready(grace):
                            if not self.stops and (place, approval.id) not in self._others:
                                self._execute(place, approval)
                self._problem = ""
            except StoreError as error:
                if once:
                    raise
                if str(error) != self._problem:
                    say_error(f"waiting for the store: {error}")
                self._problem, seen = str(error), []
            if once:
                return
            time.sleep(TICK)

    def _execute(self, place: int, approval: Approval) -> None:
        begun = time.monotonic()
        self._say(approval, "taken up")
        try:
            self._runtimes[place].approvals.execute(approval.id)
        except (AlreadyDecided, ActionNotApproved) as error:  # also where another worker was first
            self._say(approval, "not carried out", str(error))
        except ApprovalError as error:
            self._others.add((place, approval.id))
            self._say(approval, "left to others", str(error))
        except Exception as error:  # noqa: BLE001 — a user's action may raise anything, and the next one must still run
            self.failed += 1
            self._say(approval, "failed", ": ".join(describe_error(error, 400)))
        else:
            self._say(approval, "done", f"{time.monotonic() - begun:.1f} s")

    def _say(self, approval: Approval, outcome: str, note: str = "") -> None:
        if self._as_json:
            stated = {"id": approval.id, "action": approval.action, "outcome": outcome, "note": note}
            put_jsonl([{"at": time.time(), **stated}])
            return
        text = f"{moment_text(time.time())}  {outcome:<8}  {id_text(approval.id)}  {call_text(approval)}"
        sys.stdout.write(f"{text}{f'  {clean(note)}' if note else ''}\n")
        sys.stdout.flush()


def _tables(grace: Grace) -> Tables:
    tables: Tables | None = getattr(grace.store, "approvals", None)
    if tables is None:
        raise GraceError("the store of this runtime keeps no approvals")
    return tables


def _ready(grace: Grace) -> Iterator[Approval]:
    """Yield the approved requests that no other process will execute, most urgent first."""
    from grace_kp.approvals import RowQuery

    for row in _tables(grace).rows(RowQuery(states=TO_BE_USED, limit=None)):
        approval = grace.approvals.get(row.id)
        is_left = approval.waits == "hand_over" or (approval.waits == "wait" and approval.is_awaited is False)
        if approval.state in TO_BE_USED and is_left and not approval.unencoded:
            yield approval


@contextmanager
def _stopping(worker: ApprovalWorker) -> Iterator[None]:
    """Make SIGTERM and SIGINT stop the worker after the current action, and a second one at once."""
    kept: dict[int, Any] = {}

    def restore() -> None:
        for known, handler in kept.items():
            signal.signal(known, handler)

    def stop(_number: int, _frame: FrameType | None) -> None:
        worker.stops = True
        restore()

    for number in (signal.SIGTERM, signal.SIGINT):
        kept[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


PROBLEMS = 20
"""Maximum of problems shown without --json."""


def verify(
    store: StoreOption = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File of checkpoints that was kept elsewhere. Without one, only accidental changes are found.")
    ] = None,
    write_checkpoint: Annotated[
        Path | None, typer.Option("--write-checkpoint", help="Append a checkpoint of the verified chain to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Verify that no entry of the chain was changed, removed, inserted or reordered. Exit with 1 if a problem was found.

    Example: grace-kp approvals verify --checkpoint /mnt/audit/approvals.jsonl --write-checkpoint /mnt/audit/approvals.jsonl
    """
    from grace_kp.approvals import read_checkpoints, verdict_text
    from grace_kp.approvals import verify as verify_chain
    from grace_kp.approvals import write_checkpoint as write

    with open_inbox(store) as inbox:
        points = None if checkpoint is None else read_checkpoints(checkpoint, secret=inbox.secret)
        found = verify_chain(inbox.tables, at=time.time(), checkpoint=points)
        if found.ok and write_checkpoint is not None:
            write(write_checkpoint, found.checkpoint, secret=inbox.secret)
    if as_json:
        put_json(found.to_dict())
    else:
        out = console()
        for problem in found.problems[:PROBLEMS]:
            put_text(out, f"{problem.kind}: {clean(problem.message)}", style="red")
        if found.problem_count > PROBLEMS:
            put_text(out, f"and {found.problem_count - PROBLEMS:,} more problems; --json lists them")
        put_text(out, verdict_text(found), style="" if found.ok else "bold")
        for sentence in found.unchecked:
            put_text(out, clean(sentence), style="yellow")
        if write_checkpoint is not None:
            written = f"checkpoint of entry {found.checkpoint.seq:,} appended to {clean(str(write_checkpoint))}"
            put_text(out, written if found.ok else "no checkpoint was written, because of the problems")
    if not found.ok:
        raise typer.Exit(1)


def mark_restored(
    store: StoreOption = None, by: ByOption = None, yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """After a restore from a backup, mark approved and started actions as unknown, and end standing approvals.

    Actions may have run after the backup was taken. Settle each with `reconcile`.
    """
    person = actor(by)
    with change_inbox(store) as inbox:
        if not yes:
            confirm(
                "mark everything",
                f"Mark all approved and started actions in {describe_store(store)} as unknown? Each then needs `reconcile`.",
            )
        count = inbox.verbs.restored(by=person)
    hint = "\n`grace-kp approvals list --state unknown` lists them; settle each with `reconcile`" if count else ""
    put_outcome({"unknown": count}, f"marked {count_text(count, 'approval')} as unknown{hint}", as_json=as_json)


def forget(
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only approvals that ended before this time: 90d (ago), 2026-01-31.")
    ],
    store: StoreOption = None,
    by: ByOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the arguments, notes and results of ended approvals. The chain stays verifiable.

    Example: grace-kp approvals forget --older-than 90d
    """
    from grace_kp.approvals import forget as forget_contents

    person, before = actor(by), seconds_since(older_than, "--older-than")
    with open_inbox(store) as inbox:
        if not yes:
            confirm(
                "forget",
                f"Delete the contents of approvals in {describe_store(store)} that ended before {older_than}? This cannot be undone.",
            )
        count = forget_contents(inbox.tables, before=before or 0.0, at=time.time(), actor=person)
    text = f"deleted the contents of {count:,} entr{'y' if count == 1 else 'ies'}"
    put_outcome({"deleted": count}, text, as_json=as_json)


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Output file; - is standard output.")] = "-",
    store: StoreOption = None,
    after: Annotated[int, typer.Option(min=0, help="Number of the last entry that was exported before.")] = 0,
    contents: Annotated[bool, typer.Option("--contents/--no-contents", help="Include arguments, notes and results.")] = True,
) -> None:  # fmt: skip
    """Write the chain as JSON lines. They can be verified without this library.

    Example: grace-kp approvals export chain.jsonl --no-contents
    """
    from grace_kp.approvals import export as export_chain
    from grace_kp.trace import write_whole

    with open_inbox(store) as inbox:
        lines = export_chain(inbox.tables, after=after, with_contents=contents)
        if file == "-":
            put_jsonl(lines)
            return
        texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    write_whole(Path(file), "".join(f"{text}\n" for text in texts))
    put_text(console(), f"exported {len(texts):,} entr{'y' if len(texts) == 1 else 'ies'} to {clean(file)}")
