"""SIGKILL at every write: before each system call by which SQLite changes a file, in the middle of it, and at both sides of the effect.

The state before a write is that after the write before it, so every state that a kill can leave in the files occurs.
"""

from __future__ import annotations

import os
import signal
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fault_suite.forks import answers, start
from fault_suite.writes import before_each_write, library

from approval_suite.kills import finished, with_key
from approval_suite.programs import Plan, Program, acted_on
from approval_suite.verdicts import Verdict, total

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable
    from pathlib import Path

BATCH = 24
"""Invoices of a store, each of which sees one kill."""
MOST_WRITES = 500
PLAN = Plan(sealed=True)


def _decide(program: Program, invoice: str) -> None:
    for approval in program.grace.approvals.pending(limit=1_000):
        if approval.arguments["invoice"] == invoice:
            program.decide_on(approval)


def _withdraw(program: Program, invoice: str) -> None:
    for approval in program.grace.approvals.history(limit=1_000):
        if approval.arguments["invoice"] == invoice and approval.state in {"approved", "edited"}:
            program.grace.approvals.withdraw(approval.id, by="ana")


def _carry(program: Program, invoice: str) -> None:
    for approval in program.grace.approvals.history(limit=1_000):
        if approval.arguments["invoice"] == invoice and approval.state in {"approved", "edited"}:
            program.grace.approvals.execute(approval.id)


PHASES: dict[str, tuple[int, Callable[[Program, str], object]]] = {
    "asking": (0, lambda program, invoice: program.call(invoice)),
    "deciding": (1, _decide),
    "acting": (2, lambda program, invoice: program.call(invoice)),
    "carrying out": (2, _carry),
    "withdrawing": (2, _withdraw),
}
"""What is killed; and what was done before: nothing, the request, the request and the decision."""


def prepare(folder: Path, steps: int, invoices: list[str]) -> None:
    """Do without a fault what comes before the phase."""
    folder.mkdir()
    program = Program(folder, PLAN)
    if steps >= 1:
        for invoice in invoices:
            program.call(invoice)
    if steps >= 2:
        program.decide()
    program.grace.close()


def killed_at(folder: Path, phase: str, invoice: str, number: int, sqlite: ctypes.CDLL, *, midway: bool) -> bool:
    """Do one phase for an invoice and kill the process at this write; return whether it came to that."""

    def work() -> None:
        left = [number]

        def act(write_half: Callable[[], Any] | None) -> None:
            left[0] -= 1
            if left[0] == 0:
                if midway and write_half is not None:
                    write_half()
                os.kill(os.getpid(), signal.SIGKILL)

        before_each_write(sqlite, act)
        PHASES[phase][1](Program(folder, PLAN), invoice)

    pid = start(with_key(work, PLAN), folder.parent / "errors")
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def killed_inside(folder: Path, phase: str, invoice: str, moment: str) -> bool:
    """Do one phase for an invoice and kill the process before or after the effect."""

    def inside(now: str) -> None:
        if now == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    pid = start(
        with_key(lambda: PHASES[phase][1](Program(folder, PLAN, inside), invoice), PLAN), folder.parent / "errors"
    )
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def share(folder: Path, phase: str, sqlite: ctypes.CDLL, every: int, batch: int, *, midway: bool) -> dict[str, Any]:
    """Kill one phase at every n-th write, until it ends before its turn. Each store takes a batch of kills."""
    found = Verdict()
    number, reached = 1, True
    while reached and number <= MOST_WRITES:
        place = folder / f"{phase.replace(' ', '-')}-{midway}-{number}"
        invoices = acted_on(batch)
        answers(
            [with_key(lambda place=place: prepare(place, PHASES[phase][0], acted_on(batch)), PLAN)], folder / "errors"
        )
        killed = 0
        for invoice in invoices:
            reached = killed_at(place, phase, invoice, number, sqlite, midway=midway)
            killed += reached
            number += every
            if not reached:
                break
        found += finished(place, PLAN, invoices, killed)
    return asdict(found)


def inside_of(folder: Path, phase: str, moment: str, kills: int) -> dict[str, Any]:
    """Kill so many times at one side of the effect."""
    place = folder / f"{phase.replace(' ', '-')}-{moment}"
    invoices = acted_on(kills)
    answers([with_key(lambda: prepare(place, 2, invoices), PLAN)], folder / "errors")
    killed = sum(killed_inside(place, phase, invoice, moment) for invoice in invoices)
    return asdict(finished(place, PLAN, invoices, killed))


def at_every(folder: Path, *, every: int, inside: int, batch: int = BATCH) -> list[tuple[str, Verdict]]:
    """Return the verdict for each phase; empty where the system calls of SQLite cannot be replaced."""
    sqlite = library()
    works: dict[str, list[Callable[[], Any]]] = {}
    if sqlite is not None:
        for phase in PHASES:
            works[f"SIGKILL at each write, {phase}"] = [
                lambda phase=phase, midway=midway: share(folder, phase, sqlite, every, batch, midway=midway)
                for midway in (False, True)
            ]
    for moment in ("before", "after"):
        works[f"SIGKILL in the action, {moment} its effect"] = [
            lambda phase=phase, moment=moment: inside_of(folder, phase, moment, inside)
            for phase in ("acting", "carrying out")
        ]
    found = []
    for name, tasks in works.items():
        found.append((name, total(Verdict(**each) for each in answers(tasks, folder / "errors"))))
    return found
