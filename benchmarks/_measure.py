"""What the benchmarks share: medians of interleaved rounds, tables, the machine in general terms. It measures nothing itself."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A Markdown table; all columns but the first are figures."""
    print(f"\n{title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|---" + "|--:" * (len(columns) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(cell if isinstance(cell, str) else figure(cell) for cell in row) + " |")
    sys.stdout.flush()


def figure(value: float) -> str:
    """A figure with about three significant digits, and commas from a thousand on."""
    if isinstance(value, int) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def interleaved(subjects: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each subject measured, round by round: a slow moment of the machine meets all of them, not one."""
    seen: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, measure in subjects.items():
            seen[name].append(measure())
    return seen


def seconds_of(work: Callable[[], Any], times: int = 1) -> float:
    """Seconds per call of `work`, over so many calls."""
    start = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - start) / times


def median_seconds(work: Callable[[], Any], *, rounds: int = 15, at_least: float = 0.02) -> float:
    """Median over rounds of the seconds per call; each round takes at least that long, so that the clock is fine enough."""
    work()
    times = 1
    while (spent := seconds_of(work, times) * times) < at_least:
        times = max(times + 1, int(times * min(10.0, 1.3 * at_least / max(spent, 1e-9))))
    return statistics.median(seconds_of(work, times) for _ in range(rounds))


def resident_mb() -> float:
    """Megabytes of this process in memory now; the peak where the system tells only that."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)


def machine() -> str:
    """The machine, as far as it matters for the figures."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def alone(script: str, task: str, *arguments: object) -> Any:
    """What a task of a script returns, as JSON, from a process of its own: `python SCRIPT --task TASK ARGUMENTS`.

    Raises:
        RuntimeError: the task failed; the message is what it wrote to stderr.
    """
    command = [*flags(), script, "--task", task, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def flags() -> list[str]:
    """So that a subprocess finds the same packages as this one, installed or not."""
    return [sys.executable, "-W", "ignore"]
