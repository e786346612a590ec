"""Kills at every write: each system call by which SQLite changes a file is replaced, in a fork, by one that counts and kills.

The VFS of SQLite lets a program replace its system calls, so this needs no compiler and no debugger. The process ends before the
n-th call or in the middle of it, with half of the bytes written.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sqlite3
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fault_suite.agents import Agents, Log, Plan, runtime
from fault_suite.forks import answers, start
from fault_suite.verdicts import verdict

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS, FLUSH_AFTER = 12, 4
MOST_WRITES = 2_000
BATCH = 20
COLUMNS = (
    "durability",
    "killed",
    "kills",
    "runs returned",
    "of them flushed",
    "lost after a flush",
    "lost without",
    "of them found as interrupted",
    "phantoms",
    "corrupt files",
    "files with a secret",
)
_POINTER, _SIZE, _OFFSET = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong
# The calls that change a file, with their signatures; a build of SQLite has some of them.
CALLS = {
    "write": ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, _POINTER, _SIZE),
    "pwrite": ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, _POINTER, _SIZE, _OFFSET),
    "pwrite64": ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, _POINTER, _SIZE, _OFFSET),
    "ftruncate": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, _OFFSET),
    "unlink": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p),
}
_kept: list[Any] = []


class Vfs(ctypes.Structure):
    """The head of `sqlite3_vfs`, version 3."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("methods", _POINTER * 13),
        ("set_system_call", ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p, _POINTER)),
        ("get_system_call", ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)),
    )


def library() -> ctypes.CDLL | None:
    """The SQLite that Python uses; None where its functions are not to be found."""
    sqlite3.connect(":memory:").close()
    try:
        paths = [
            line.split()[-1]
            for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
            if "sqlite3" in line
        ]
        found = ctypes.CDLL(next((path for path in paths if "libsqlite3" in path), paths[0] if paths else None))
        found.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
    except (OSError, AttributeError):
        return None
    return found


def before_each_write(sqlite: ctypes.CDLL, act: Callable[[Callable[[], Any] | None], None]) -> None:
    """Call `act` before each call that changes a file, with a function that writes a half where the call writes bytes."""
    vfs = sqlite.sqlite3_vfs_find(None)
    for name, signature in CALLS.items():
        address = vfs.contents.get_system_call(vfs, name.encode())
        if address:
            original = signature(address)

            def replaced(*arguments: Any, original: Any = original, writes: bool = "write" in name) -> Any:
                act((lambda: original(*arguments[:2], arguments[2] // 2, *arguments[3:])) if writes else None)
                return original(*arguments)

            _kept.append(signature(replaced))
            vfs.contents.set_system_call(vfs, name.encode(), ctypes.cast(_kept[-1], _POINTER))


def kill_at(place: Path, number: int, plan: Plan, sqlite: ctypes.CDLL, *, midway: bool) -> tuple[bool, int]:
    """Let an agent make its runs and kill it at this write; return whether it came to that, and when."""
    place.mkdir()

    def work() -> None:
        left = [number]

        def act(write_half: Callable[[], Any] | None) -> None:
            left[0] -= 1
            if left[0] == 0:
                if midway and write_half is not None:
                    write_half()
                os.kill(os.getpid(), signal.SIGKILL)

        before_each_write(sqlite, act)
        agents = Agents(runtime(place / "store.db", plan), Log(place / "log"))
        for index in range(1, RUNS + 1):
            agents.run()
            if index % FLUSH_AFTER == 0:
                agents.flush()
        agents.grace.close()

    pid = start(work, place.parent / "errors")
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status), time.monotonic_ns()


def share(folder: Path, plan: Plan, sqlite: ctypes.CDLL, every: int) -> list[dict[str, Any]]:
    """Kill at every write of one setting, before it and in the middle of it, until the agent ends before its turn."""
    found: list[dict[str, Any]] = []
    for midway in (False, True):
        killed: list[tuple[Path, int]] = []

        def compare(killed: list[tuple[Path, int]] = killed) -> list[dict[str, Any]]:
            return [asdict(verdict(place, moment)) for place, moment in killed]

        rows, reached, number = [], True, 1
        while reached and number <= MOST_WRITES:
            place = folder / f"{plan.durability}-{'midway' if midway else 'before'}-{number}"
            reached, moment = kill_at(place, number, plan, sqlite, midway=midway)
            killed.append((place, moment))
            if len(killed) == BATCH or not reached:
                rows += answers([compare], folder / "errors")[0]
                for done, _ in killed:
                    shutil.rmtree(done)
                killed.clear()
            number += every
        found += [{"durability": plan.durability, "midway": midway, **row} for row in rows]
    return found


def at_every(folder: Path, durabilities: list[str], *, judged: bool, every: int = 1) -> list[tuple[Any, ...]]:
    """The rows of the table; empty where the system calls of SQLite cannot be replaced."""
    sqlite = library()
    if sqlite is None:
        return []
    plans = [Plan(durability=name, judged=judged, judge_seconds=0.01) for name in durabilities]
    works = [lambda plan=plan: share(folder, plan, sqlite, every) for plan in plans]
    rows = [row for part in answers(works, folder / "errors") for row in part]
    return [
        table_row(plan.durability, "in the middle of a write" if midway else "before a write", group)
        for plan in plans
        for midway in (False, True)
        if (group := [row for row in rows if row["durability"] == plan.durability and row["midway"] == midway])
    ]


def table_row(durability: str, moment: str, rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    total = {name: sum(row[name] for row in rows) for name in rows[0] if isinstance(rows[0][name], int)}
    return (
        durability,
        moment,
        len(rows),
        total["returned"],
        total["flushed"],
        total["lost_flushed"],
        total["lost"] - total["lost_flushed"],
        total["interrupted"],
        total["phantoms"],
        total["corrupt"],
        total["secrets"],
    )
