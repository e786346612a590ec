"""`grace-kp approvals work MODULE`: executes approved actions that no process waits for, one at a time, until it is stopped."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grace_kp.cli._approval_page import TO_BE_USED, call_text, id_text, moment_text
from grace_kp.cli._inputs import load_module
from grace_kp.cli._output import clean, put_jsonl, say_error
from grace_kp.errors import ActionNotApproved, AlreadyDecided, ApprovalError, GraceError, StoreError
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, ModuleType

    from grace_kp.approvals import Approval, Tables
    from grace_kp.runtime import Grace

TICK = 0.25
"""Seconds between two looks at the store."""
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
            sys.stderr.write(
                f"executing approved actions of {clean(module)}; Ctrl-C ends it after the current action\n"
            )
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
        except AlreadyDecided as error:
            self._say(
                approval, "not carried out", str(error)
            )  # another worker was first, or the approval was withdrawn
        except ApprovalError as error:
            self._others.add((place, approval.id))
            self._say(approval, "left to others", str(error))
        except ActionNotApproved as error:
            self._say(approval, "not carried out", str(error))
        except Exception as error:  # noqa: BLE001 — a user's action may raise anything, and the next one must still run
            self.failed += 1
            self._say(approval, "failed", ": ".join(describe_error(error, 400)))
        else:
            self._say(approval, "done", f"{time.monotonic() - begun:.1f} s")

    def _say(self, approval: Approval, outcome: str, note: str = "") -> None:
        if self._as_json:
            put_jsonl(
                [{"at": time.time(), "id": approval.id, "action": approval.action, "outcome": outcome, "note": note}]
            )
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

    query = RowQuery(states=TO_BE_USED, limit=None)
    for row in _tables(grace).rows(query):
        approval = grace.approvals.get(row.id)
        is_left = approval.waits == "hand_over" or (approval.waits == "wait" and approval.is_awaited is False)
        if approval.state in TO_BE_USED and is_left and not approval.unencoded:
            yield approval


@contextmanager
def _stopping(worker: ApprovalWorker) -> Iterator[None]:
    """Make SIGTERM and SIGINT stop the worker after the current action, and a second one at once."""
    kept: dict[int, Any] = {}

    def stop(_number: int, _frame: FrameType | None) -> None:
        worker.stops = True
        for known, handler in kept.items():
            signal.signal(known, handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        kept[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for known, handler in kept.items():
            signal.signal(known, handler)
