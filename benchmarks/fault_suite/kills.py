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

from fault_suite.agents import Agents, History, Log, Plan, runtime
from fault_suite.forks import answers, start
from fault_suite.verdicts import verdict

if TYPE_CHECKING:
    from pathlib import Path

STYLES = ("sync", "threads", "async")
SOONEST, LATEST = 0.005, 0.25
PACES = {True: "steady", False: "as fast as possible"}
STORES = {True: "open", False: "opening"}
OPEN_SECONDS = 20.0
BATCH = 20
COLUMNS = (
    "durability",
    "pace",
    "store",
    "kills",
    "runs returned",
    "of them flushed",
    "lost after a flush",
    "lost without",
    "of them found as interrupted",
    "oldest lost, 99 %, ms",
    "max",
    "lost runs span, 99 %, ms",
    "max",
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


def is_opened(number: int) -> bool:
    """Whether the agent of this kill works with a store that is open, in every second round of styles and paces."""
    return number // (2 * len(STYLES)) % 2 == 1


def kill(folder: Path, number: int, plan: Plan) -> tuple[Path, int, float]:
    """Let an agent work and kill it; return its folder, the time of the kill, and how many ms too late this process woke up."""
    place = folder / f"{plan.durability}-{number}"
    place.mkdir()
    log = place / "log"

    def work() -> None:
        agents = Agents(runtime(place / "store.db", plan), Log(log))
        if is_opened(number):
            agents.run()
            agents.flush()
        agents.work(plan)

    pid = start(work, folder / "errors")
    ends = time.monotonic() + OPEN_SECONDS
    while is_opened(number) and not History.read(log).flushes and time.monotonic() < ends:
        time.sleep(0.002)
    due = time.monotonic() + random.Random(-number).uniform(SOONEST, LATEST)
    time.sleep(max(0.0, due - time.monotonic()))
    killed_at = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return place, killed_at, killed_at / 1e6 - due * 1e3


def share(folder: Path, numbers: list[int], durabilities: list[str], *, judged: bool) -> list[dict[str, Any]]:
    """Kill for these numbers, and compare in a further fork after each batch."""
    found: list[dict[str, Any]] = []
    for begin in range(0, len(numbers), BATCH):
        killed = []
        for number in numbers[begin : begin + BATCH]:
            for durability in durabilities:
                plan = plan_of(number, durability, judged=judged)
                killed.append((plan, number, *kill(folder, number, plan)))

        def compare(killed: list[tuple[Plan, int, Path, int, float]] = killed) -> list[dict[str, Any]]:
            rows = []
            for plan, number, place, killed_at, late in killed:
                group = {"durability": plan.durability, "pace": PACES[plan.steady], "store": STORES[is_opened(number)]}
                rows.append({**group, "late_ms": late, **asdict(verdict(place, killed_at))})
            return rows

        rows = answers([compare], folder / "errors")[0]
        for (_, _, place, _, _), row in zip(killed, rows, strict=True):
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
    rows = [row for part in answers(works, folder / "errors") for row in part]
    late = sorted(row["late_ms"] for row in rows)
    print(
        f"\nkilled {late[len(late) // 2]:.1f} ms after the chosen moment (99 %: {late[int(len(late) * 0.99)]:.1f} ms)"
    )
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["durability"], row["pace"], row["store"]].append(row)
    order = [(name, pace, store) for name in durabilities for pace in PACES.values() for store in STORES.values()]
    return [table_row(group, groups[group]) for group in order if groups[group]]


def table_row(group: tuple[str, str, str], rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    oldest, spans = (sorted(row[name] for row in rows) for name in ("oldest_ms", "span_ms"))
    total = {name: sum(row[name] for row in rows) for name in rows[0] if isinstance(rows[0][name], int)}
    return (
        *group,
        len(rows),
        total["returned"],
        total["flushed"],
        total["lost_flushed"],
        total["lost"] - total["lost_flushed"],
        total["interrupted"],
        oldest[min(len(oldest) - 1, int(len(oldest) * 0.99))],
        oldest[-1],
        spans[min(len(spans) - 1, int(len(spans) * 0.99))],
        spans[-1],
        total["phantoms"],
        total["corrupt"],
        total["secrets"],
    )
