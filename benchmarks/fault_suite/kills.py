"""Kills at random moments: an agent works in a fork, SIGKILL ends it, and another process compares its log with the store."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fault_suite.agents import Agents, Log, Plan, runtime
from fault_suite.forks import answers, start
from fault_suite.verdicts import verdict

if TYPE_CHECKING:
    from pathlib import Path

STYLES = ("sync", "threads", "async")
SOONEST, LATEST = 0.005, 0.25
BATCH = 20
COLUMNS = (
    "durability",
    "pace",
    "kills",
    "runs returned",
    "of them flushed",
    "lost after a flush",
    "lost without",
    "oldest lost, 99 % of kills, ms",
    "oldest lost, max, ms",
    "phantoms",
    "corrupt files",
    "files with a secret",
)


def plan_of(number: int, durability: str, *, judged: bool) -> Plan:
    """The plan of one kill; all styles at both paces occur equally often."""
    return Plan(
        durability=durability,
        style=STYLES[number % len(STYLES)],
        steady=number // len(STYLES) % 2 == 0,
        judged=judged,
        judge_seconds=(0.001, 0.02, 0.3)[number // 6 % 3],
        flush_share=0.05,
        seed=number,
    )


def kill(folder: Path, number: int, plan: Plan) -> tuple[Path, int]:
    """Let an agent work and kill it; return its folder and the time of the kill."""
    place = folder / f"{plan.durability}-{number}"
    place.mkdir()

    def work() -> None:
        Agents(runtime(place / "store.db", plan), Log(place / "log")).work(plan)

    pid = start(work, folder / "errors")
    time.sleep(random.Random(-number).uniform(SOONEST, LATEST))
    killed_at = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return place, killed_at


def share(folder: Path, numbers: list[int], durabilities: list[str], *, judged: bool) -> list[dict[str, Any]]:
    """Kill for these numbers, and compare in a further fork after each batch."""
    found: list[dict[str, Any]] = []
    for begin in range(0, len(numbers), BATCH):
        killed = []
        for number in numbers[begin : begin + BATCH]:
            for durability in durabilities:
                plan = plan_of(number, durability, judged=judged)
                killed.append((plan, *kill(folder, number, plan)))

        def compare(killed: list[tuple[Plan, Path, int]] = killed) -> list[dict[str, Any]]:
            rows = []
            for plan, place, killed_at in killed:
                rows.append({"durability": plan.durability, "steady": plan.steady, **asdict(verdict(place, killed_at))})
            return rows

        rows = answers([compare], folder / "errors")[0]
        for (_, place, _), row in zip(killed, rows, strict=True):
            if not (row["lost_flushed"] or row["phantoms"] or row["corrupt"] or row["secrets"]):
                shutil.rmtree(place)
        found += rows
    return found


def at_random(
    folder: Path, kills: int, durabilities: list[str], *, judged: bool, processes: int
) -> list[tuple[Any, ...]]:
    """The rows of the table: kills in all, spread over the settings and over both paces."""
    numbers = list(range(max(1, kills // len(durabilities))))
    works = [
        lambda part=numbers[index::processes]: share(folder, part, durabilities, judged=judged)
        for index in range(processes)
    ]
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = defaultdict(list)
    for row in (row for part in answers(works, folder / "errors") for row in part):
        groups[row["durability"], row["steady"]].append(row)
    return [
        table_row(durability, "steady" if steady else "as fast as possible", groups[durability, steady])
        for durability in durabilities
        for steady in (True, False)
        if groups[durability, steady]
    ]


def table_row(durability: str, pace: str, rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    oldest = sorted(row["oldest_ms"] for row in rows)
    total = {name: sum(row[name] for row in rows) for name in rows[0] if isinstance(rows[0][name], int)}
    return (
        durability,
        pace,
        len(rows),
        total["returned"],
        total["flushed"],
        total["lost_flushed"],
        total["lost"] - total["lost_flushed"],
        oldest[min(len(oldest) - 1, int(len(oldest) * 0.99))],
        oldest[-1],
        total["phantoms"],
        total["corrupt"],
        total["secrets"],
    )
