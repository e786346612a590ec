"""Compares the log of an agent with what its store holds after the fault, in a process that did not record."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grace_kp as gk
from fault_suite.agents import SECRET, History

if TYPE_CHECKING:
    from pathlib import Path

OBJECTIVE = re.compile(r"run (\d+)")


@dataclass
class Verdict:
    """What became of the runs of one process."""

    begun: int = 0
    returned: int = 0
    flushed: int = 0
    stored: int = 0
    lost_flushed: int = 0
    lost: int = 0
    """Runs that had returned and are not stored as completed; those that were flushed included."""
    oldest_ms: float = 0.0
    """Age of the oldest lost run at the kill; 0 if none is lost."""
    span_ms: float = 0.0
    """Time from the end of the oldest lost run to that of the newest."""
    interrupted: int = 0
    """Lost runs of which the journal was found: they are stored, as interrupted."""
    phantoms: int = 0
    """Runs that are stored twice, or were never begun."""
    corrupt: int = 0
    secrets: int = 0
    """Files that hold the secret in plain text."""


def verdict(folder: Path, killed_at: int) -> Verdict:
    """Open the store of a killed agent, which recovers it, and compare.

    Args:
        folder: holds `store.db` and the agent's `log`.
        killed_at: monotonic nanoseconds, read before the kill.
    """
    path, history = folder / "store.db", History.read(folder / "log")
    secrets = exposed(folder)
    stored = recovered(path) if path.exists() else []
    found = verdict_of(history, stored, max(killed_at, history.last))
    found.secrets = max(secrets, exposed(folder))
    found.corrupt = int(path.exists() and not is_intact(path))
    return found


def verdict_of(history: History, stored: list[tuple[int, str]], killed_at: int) -> Verdict:
    """Compare a log with the stored runs, as pairs of number and status."""
    completed = {number for number, status in stored if status == "completed"}
    ends = [history.returned[number] for number in history.returned.keys() - completed]
    times = Counter(number for number, _ in stored)
    lost = history.returned.keys() - completed
    phantoms = {number for number, count in times.items() if count > 1 or number not in history.begun}
    return Verdict(
        begun=len(history.begun),
        returned=len(history.returned),
        flushed=len(history.flushed),
        stored=len(completed),
        lost_flushed=len(history.flushed - completed),
        lost=len(lost),
        oldest_ms=(killed_at - min(ends)) / 1e6 if ends else 0.0,
        span_ms=(max(ends) - min(ends)) / 1e6 if ends else 0.0,
        interrupted=len(lost & times.keys()),
        phantoms=len(phantoms),
    )


def recovered(path: Path) -> list[tuple[int, str]]:
    """Number and status of every stored run, after this process has recovered what the dead one left."""
    with gk.Grace(store=f"sqlite:///{path}", embedder=None, evaluator=None) as grace:
        return [numbered(trace) for trace in grace.store.query(limit=None)]


def numbered(trace: Any) -> tuple[int, str]:
    number = OBJECTIVE.fullmatch(trace.task.objective)
    return int(number[1]) if number else -1, str(trace.status)


def is_intact(path: Path) -> bool:
    """Whether SQLite finds no fault in the file."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        except sqlite3.DatabaseError:
            return False


def exposed(folder: Path) -> int:
    """How many files hold the secret, or a half of it, because a page may end within it."""
    halves = (SECRET[: len(SECRET) // 2].encode(), SECRET[len(SECRET) // 2 :].encode())
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(any(half in path.read_bytes() for half in halves) for path in files)
