"""SIGKILL at random moments: programs that act, decide and carry out share a store and are killed and started again, thousands of times."""

from __future__ import annotations

import base64
import os
import random
import select
import shutil
import signal
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fault_suite.forks import answers, start

from approval_suite.programs import WAYS, Plan, Program, ended
from approval_suite.verdicts import Verdict, total, verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FEWEST_LEFT = 20
"""Invoices that are left to do at any time."""
SHARE_STARTING, SECONDS_STARTING = 0.1, 0.08
"""Share of the kills while a process starts, and how long it has."""
SECONDS_READY, STARTS_READY = 0.1, 2.5
"""How long a process that has opened the store lives at most, in seconds and in multiples of the time that it took to get there."""
STUCK = 30.0
KILLS_PER_STORE = 60
INSIDE_SECONDS = 0.006
KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()


def roles(folder: Path, plan: Plan, invoices: list[str]) -> list[Callable[[Callable[[], object]], object]]:
    """Return what each process of a store does, given a function to call once it has opened the store."""

    def linger(_moment: str) -> None:
        time.sleep(random.random() * INSIDE_SECONDS)  # so that many kills come inside of the action

    def opened(ready: Callable[[], object]) -> Program:
        program = Program(folder, plan, linger)
        program.grace.approvals.pending(limit=1)
        ready()
        return program

    found: list[Callable[[Callable[[], object]], object]] = [
        lambda ready: opened(ready).work(invoices),
        lambda ready: opened(ready).work(invoices),
        lambda ready: opened(ready).decide_on_and_on(),
    ]
    if plan.wait == "hand_over":
        found[1] = lambda ready: opened(ready).carry_on_and_on()
    return found


def with_key(work: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    """Return work that has the key in its environment where the plan seals."""

    def keyed(*arguments: Any) -> Any:
        os.environ.pop("GRACE_KP_KEY", None)
        if plan.sealed:
            os.environ["GRACE_KP_KEY"] = KEY
        return work(*arguments)

    return keyed


@dataclass
class Running:
    """A process that will be killed."""

    pid: int
    role: int
    ready: int
    """A pipe that it writes to once it has opened the store."""
    started: float
    due: float
    """When it is killed; set again when it is ready."""


def begin(role: int, work: Callable[[Callable[[], object]], object], errors: Path) -> Running:
    """Start a process; every third is killed while it starts, or soon after."""
    reader, writer = os.pipe()
    pid = start(lambda: work(lambda: os.write(writer, b".")), errors)
    os.close(writer)
    starting = random.random() < SHARE_STARTING
    now = time.monotonic()
    return Running(pid, role, reader, now, now + (random.uniform(0, SECONDS_STARTING) if starting else STUCK))


def next_to_kill(alive: list[Running]) -> Running:
    """Wait until the next process is due, and return it."""
    while True:
        first = min(alive, key=lambda each: each.due)
        left = first.due - time.monotonic()
        if left <= 0:
            return first
        waiting = {each.ready: each for each in alive if each.due - time.monotonic() > SECONDS_STARTING}
        for reader in select.select([*waiting], [], [], left)[0]:
            now = time.monotonic()
            took = now - waiting[reader].started
            waiting[reader].due = now + random.uniform(0, SECONDS_READY + STARTS_READY * took)


def kill(running: Running) -> bool:
    """Kill a process; return whether it was alive."""
    os.kill(running.pid, signal.SIGKILL)
    os.close(running.ready)
    return os.WIFSIGNALED(os.waitpid(running.pid, 0)[1])


def killed_store(folder: Path, plan: Plan, kills: int, invoices: list[str]) -> Verdict:
    """Kill the programs of one store so many times, bring all invoices to their end, and compare."""
    folder.mkdir()
    errors = folder.parent / "errors"
    alive: list[Running] = []
    done = 0
    while done < kills:
        if len(invoices) - len(ended(folder)) < FEWEST_LEFT:
            invoices.extend(more(invoices, FEWEST_LEFT))
        works = roles(folder, plan, invoices)
        for role in {*range(len(works))} - {each.role for each in alive}:
            alive.append(begin(role, with_key(works[role], plan), errors))
        due = next_to_kill(alive)
        done += kill(due)
        alive.remove(due)
    return finished(folder, plan, invoices, done + sum(map(kill, alive)))


def more(invoices: list[str], count: int) -> list[str]:
    """Return further numbers of invoices."""
    first = len(invoices)
    return [str(number) for number in range(first, first + count)]


def finished(
    folder: Path, plan: Plan, invoices: list[str], cases: int, *, refusable: bool = False, keep: bool = False
) -> Verdict:
    """Bring the invoices of a store to their end without a fault, and compare.

    Args:
        folder: where the store and the journals are.
        plan: how the programs ask.
        invoices: those that were asked about.
        cases: number of faults.
        refusable: whether any invoice may have been refused, so that it was refunded at most once.
        keep: whether the folder stays.
    """
    errors = folder.parent / "errors"
    unkilled = replace(plan, wait="raise", deadline="4h", use_within="24h")

    def finish() -> None:
        Program(folder, unkilled).finish(invoices)

    def compare() -> dict[str, Any]:
        return asdict(verdict(folder, cases=cases, invoices=invoices, refusable=refusable))

    answers([with_key(finish, plan)], errors)
    found = Verdict(**answers([with_key(compare, plan)], errors)[0])
    if not found.broken and not keep:
        shutil.rmtree(folder)
    return found


def plan_of(number: int) -> Plan:
    """Return the plan of a store: each way of waiting, with and without sealed arguments."""
    return Plan(wait=WAYS[number % len(WAYS)], sealed=number // len(WAYS) % 2 == 1)


def share(folder: Path, numbers: list[int], kills: int) -> list[dict[str, Any]]:
    """Kill the programs of several stores, one store after the other."""
    found = []
    for number in numbers:
        plan = plan_of(number)
        at = killed_store(folder / f"random-{number}", plan, kills, more([], FEWEST_LEFT))
        found.append({"wait": plan.wait, "verdict": asdict(at)})
    return found


def at_random(folder: Path, kills: int, *, processes: int) -> list[tuple[str, Verdict]]:
    """Return the verdict for each way of waiting."""
    stores = max(len(WAYS), round(kills / KILLS_PER_STORE))
    numbers = list(range(stores))
    works = [
        lambda part=numbers[index::processes]: share(folder, part, max(1, kills // stores))
        for index in range(processes)
    ]
    rows = [row for part in answers(works, folder / "errors") for row in part]
    return [
        (f"SIGKILL at random, {wait}", total(Verdict(**row["verdict"]) for row in rows if row["wait"] == wait))
        for wait in WAYS
    ]
