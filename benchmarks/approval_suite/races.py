"""Races: processes do things with the same approval at the same moment, for one invoice after the other."""

from __future__ import annotations

import os
import random
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from fault_suite.forks import answers, start

import grace_kp as gk
from approval_suite.kills import finished, with_key
from approval_suite.programs import Plan, Program, acted_on
from approval_suite.verdicts import Verdict
from grace_kp.errors import ApprovalError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Contender = Callable[[Program, str], object]

STEP_SECONDS = 0.03
"""Time between one invoice and the next."""
SPREAD_SECONDS = 0.012
"""How far apart the contenders begin, at most."""
LATE_SECONDS = 0.5
"""Time for the processes to open the store."""
SHORT = "0.06s"
"""Use-by time of the race against expiry."""


def race(
    folder: Path,
    plan: Plan,
    contenders: list[tuple[Plan, Contender]],
    rounds: int,
    *,
    steps: int,
    refusable: bool = False,
) -> Verdict:
    """Have contenders meet at each invoice, bring all invoices to their end, and compare.

    Args:
        folder: where to work.
        plan: how requests are prepared.
        contenders: each a process of its own, with its plan.
        rounds: number of invoices.
        steps: what is prepared: 0 nothing, 1 requests, 2 decided requests.
        refusable: whether a contender refuses.
    """
    folder.mkdir()
    invoices = acted_on(rounds)
    errors = folder.parent / "errors"

    def prepare() -> None:
        program = Program(folder, plan)
        for invoice in invoices if steps else ():
            program.call(invoice)
        if steps >= 2:
            program.decide()

    answers([with_key(prepare, plan)], errors)
    begins = time.monotonic() + LATE_SECONDS
    pids = []
    for own, contend in contenders:

        def work(own: Plan = own, contend: Contender = contend) -> None:
            program = Program(folder, own, forbidden(own, folder))
            program.grace.approvals.pending(limit=1)
            for index, invoice in enumerate(invoices):
                due = begins + index * STEP_SECONDS + random.random() * SPREAD_SECONDS
                time.sleep(max(0.0, due - time.monotonic()))
                try:
                    contend(program, invoice)
                except (ApprovalError, StoreError, gk.ActionNotApproved):
                    continue  # somebody else was first

        pids.append(start(with_key(work, own), errors))
    failed = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(failed):
        raise RuntimeError(errors.read_text(encoding="utf-8", errors="replace")[-2_000:])
    return finished(folder, plan, invoices, rounds, refusable=refusable)


def forbidden(plan: Plan, folder: Path) -> Callable[[str], object]:
    """Return what an action does under a policy that forbids it: it leaves an effect that nobody has consented to."""

    def note(moment: str) -> None:
        if plan.floor != "confirm" and moment == "before":
            from approval_suite.journal import Journal

            Journal(folder / "effects").note(operation="under a policy that forbids it", invoice="", euros=0)

    return note


# The contenders


def call(program: Program, invoice: str) -> None:
    """Call the action."""
    program.call(invoice)


def execute(program: Program, invoice: str) -> None:
    """Carry out the approved action."""
    program.grace.approvals.execute(program.asked[invoice])


def withdraw(program: Program, invoice: str) -> None:
    """Withdraw the request or decision."""
    program.grace.approvals.withdraw(program.asked[invoice], by="bob")


def sweep(program: Program, invoice: str) -> None:
    """Write what is due, again and again."""
    ends = time.monotonic() + STEP_SECONDS / 2
    while time.monotonic() < ends:
        program.grace.approvals.sweep()


def ask_and_use_late(program: Program, invoice: str) -> None:
    """Ask, approve, and call again about when the use-by time passes."""
    program.call(invoice)
    program.decide_on(program.grace.approvals.get(program.asked[invoice]))
    time.sleep(random.uniform(0.045, 0.065))
    program.call(invoice)


def votes(verb: str, by: str) -> Contender:
    """Return a contender who decides as this person."""

    def vote(program: Program, invoice: str) -> None:
        program.decide_on(program.grace.approvals.get(program.asked[invoice]), by=by, verb=verb)

    return vote


def races(rounds: int) -> dict[str, Callable[[Path], Verdict]]:
    """Return the races by name, each as a function of its folder."""
    plain, sealed = Plan(), Plan(sealed=True)
    strict, denied = Plan(floor="escalate"), Plan(floor="deny")
    short, two = Plan(use_within=SHORT), Plan(quorum=2)

    def of(plan: Plan, contenders: list[tuple[Plan, Contender]], steps: int, **more: bool) -> Callable[[Path], Verdict]:
        return lambda folder: race(folder, plan, contenders, rounds, steps=steps, **more)

    return {
        "two claimants call": of(sealed, [(sealed, call), (sealed, call)], 2),
        "two claimants carry out": of(plain, [(plain, execute), (plain, execute), (plain, call)], 2),
        "two callers ask": of(plain, [(plain, call), (plain, call)], 0),
        "withdraw against claim": of(plain, [(plain, call), (plain, withdraw)], 2),
        "expiry against claim": of(short, [(short, ask_and_use_late), (short, sweep)], 0),
        "stricter policy against claim": of(plain, [(plain, call), (strict, call)], 2),
        "denying policy against claim": of(plain, [(plain, call), (denied, execute)], 2),
        "edit against vote": of(two, [(two, votes("approve", "ana")), (two, votes("edit", "bob"))], 1),
        "approve against reject": of(
            plain, [(plain, votes("approve", "ana")), (plain, votes("reject", "bob"))], 1, refusable=True
        ),
    }


def all_races(folder: Path, rounds: int) -> list[tuple[str, Verdict]]:
    """Return the verdict of each race; two at a time."""
    names = races(rounds)
    found = []
    for begin in range(0, len(names), 2):
        part = [*names.items()][begin : begin + 2]
        works = [lambda name=name, play=play: asdict(play(folder / name.replace(" ", "-"))) for name, play in part]
        found += [
            (name, Verdict(**row)) for (name, _), row in zip(part, answers(works, folder / "errors"), strict=True)
        ]
    return found
