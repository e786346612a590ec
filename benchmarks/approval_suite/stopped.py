"""Processes that are only stopped, and processes in other PID namespaces: nobody can know whether they run.

The lease is shortened in every process of these scenarios, so that they take seconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sqlite3
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fault_suite.forks import answers, start

from approval_suite.journal import facts
from approval_suite.kills import begin, finished, kill, next_to_kill, roles, with_key
from approval_suite.programs import LEASE_SECONDS, Plan, Program, acted_on
from approval_suite.verdicts import Verdict, verdict
from grace_kp.errors import ApprovalError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NEW_MOUNTS, NEW_PIDS = 0x20000, 0x20000000
PRIVATE = 1 << 18 | 1 << 14


def stopped(folder: Path, moment: str, count: int) -> dict[str, Any]:
    """Stop processes inside of the action, reconcile once their lease has expired, and let them go on.

    Those stopped after their effect are reconciled as happened, which is true. Those before it as not happened, which becomes false.
    """
    place = folder / f"stopped-{moment}"
    place.mkdir()
    invoices, errors, plan = acted_on(count), folder / "errors", Plan(short_leases=True)

    def prepare() -> None:
        program = Program(place, plan)
        for invoice in invoices:
            program.call(invoice)
        program.decide()

    def act(invoice: str) -> None:
        Program(place, plan, lambda now: now == moment and stop(place)).call(invoice)

    def reconcile() -> dict[str, int]:
        program = Program(place, plan)
        claimed = [each for each in program.grace.approvals.history(limit=1_000) if each.state == "claimed"]
        early, refused, ends = 0, 0, time.monotonic() + 30
        while claimed and time.monotonic() < ends:
            for each in list(claimed):
                try:
                    program.grace.approvals.reconcile(each.id, happened=moment == "after", by="ops")
                    claimed.remove(each)
                    early += time.time() < each.claim.at + LEASE_SECONDS
                except ApprovalError:
                    refused += 1
            time.sleep(0.1)
        for invoice in invoices if moment == "before" else ():
            program.call(invoice)
        program.decide()
        for invoice in invoices if moment == "before" else ():
            program.call(invoice)
        return {"early": early, "refused": refused, "stuck": len(claimed)}

    answers([prepare], errors)
    pids = [start(lambda invoice=invoice: act(invoice), errors) for invoice in invoices]
    for pid in pids:
        os.waitpid(pid, os.WUNTRACED)
    reconciled = answers([reconcile], errors)[0]
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for pid in pids:
        os.waitpid(pid, 0)
    found = answers([lambda: asdict(verdict(place, cases=count, misled=moment == "before"))], errors)[0]
    return {"verdict": found, "late": late_reports(place, errors), **reconciled, **twice(place)}


def stop(place: Path) -> None:
    """Stop this process while none of its threads writes, since it would keep the store locked for the others."""
    with contextlib.closing(sqlite3.connect(place / "store.db", timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    os.kill(os.getpid(), signal.SIGSTOP)


def late_reports(place: Path, errors: Path) -> int:
    """Return the number of late reports in the chain."""
    from grace_kp.approvals import entry_of

    def count() -> int:
        tables = Program(place, Plan()).grace.store.approvals
        return sum(entry_of(link)["kind"] == "late_report" for link in tables.links(limit=10**6))

    return int(answers([count], errors)[0])


def twice(place: Path) -> dict[str, int]:
    """Return how many invoices were refunded twice, and how many of them under one idempotency key."""
    operations: dict[str, list[str]] = {}
    for fact in facts(place / "effects"):
        operations.setdefault(fact["invoice"], []).append(fact["operation"])
    double = [each for each in operations.values() if len(each) > 1]
    return {"twice": len(double), "one_key": sum(len({*each}) == 1 for each in double)}


def in_namespace(work: Callable[[], object], *, with_proc: bool) -> Callable[[], object]:
    """Return work that is done in a PID namespace of its own.

    Raises:
        OSError: this process may not create one.
    """

    def inside() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(NEW_PIDS | (NEW_MOUNTS if with_proc else 0)):
            raise OSError(ctypes.get_errno(), "unshare")
        pid = os.fork()
        if pid == 0:
            try:
                libc.prctl(1, signal.SIGKILL)  # die with the process outside
                if with_proc:
                    libc.mount(b"none", b"/", None, PRIVATE, None)
                    libc.mount(b"proc", b"/proc", b"proc", 0, None)
                work()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    return inside


def can_unshare(errors: Path) -> bool:
    """Return whether PID namespaces are permitted here."""
    try:
        answers([lambda: in_namespace(lambda: None, with_proc=True)() or 1], errors)
    except RuntimeError:
        return False
    return True


def namespaces(folder: Path, kills: int, *, with_proc: bool) -> dict[str, Any]:
    """Kill programs at random, each of which lives in a PID namespace of its own, so that all have the same number."""
    place = folder / f"namespaces-{with_proc}"
    place.mkdir()
    errors, plan, invoices = folder / "errors", Plan(short_leases=True), acted_on(12)
    alive: list[Any] = []
    done = 0

    def shorter(work: Callable[..., Any]) -> Callable[..., Any]:
        def short(ready: Callable[[], object]) -> Any:
            return in_namespace(lambda: work(ready), with_proc=with_proc)()

        return short

    while done < kills:
        works = roles(place, plan, invoices)
        for role in {*range(len(works))} - {each.role for each in alive}:
            alive.append(begin(role, with_key(shorter(works[role]), plan), errors))
        due = next_to_kill(alive)
        done += kill(due)
        alive.remove(due)
    done += sum(map(kill, alive))
    time.sleep(LEASE_SECONDS)
    return asdict(finished(place, plan, invoices, done))


def rows(folder: Path, count: int, kills: int) -> tuple[list[tuple[str, Verdict]], list[str]]:
    """Return the verdicts, and sentences about what is not promised or was not tried."""
    found, remarks = [], []
    after, before = answers(
        [lambda moment=moment: stopped(folder, moment, count) for moment in ("after", "before")], folder / "errors"
    )
    name = "SIGSTOP past the lease, reconciled as happened, SIGCONT"
    found.append((name, Verdict(**after["verdict"])))
    name = "SIGSTOP past the lease, wrongly reconciled as not happened, SIGCONT"
    found.append((name, Verdict(**before["verdict"])))
    remarks.append(
        f"Reconciled while stopped: {2 * count} processes; refused while the lease held {after['refused'] + before['refused']} times, "
        f"accepted before it had expired {after['early'] + before['early']}, never accepted {after['stuck'] + before['stuck']}; late reports "
        f"recorded {after['late'] + before['late']}. Second effects after the wrong reconciliation (not promised): {before['twice']}, with "
        f"the same idempotency key {before['one_key']}."
    )
    if can_unshare(folder / "errors"):
        for with_proc in (False, True):
            seen = "its own /proc" if with_proc else "the host's /proc"
            row = answers(
                [lambda with_proc=with_proc: namespaces(folder, kills, with_proc=with_proc)], folder / "errors"
            )[0]
            found.append((f"SIGKILL in PID namespaces, {seen}", Verdict(**row)))
    else:
        remarks.append("Not tried: PID namespaces, which this account may not create.")
    return found, remarks
