"""Faults of the place: a full disk, a locked file, a restored backup, a clock that is wrong."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fault_suite.forks import answers, start

from approval_suite.journal import facts
from approval_suite.kills import finished
from approval_suite.programs import Plan, Program, acted_on
from approval_suite.verdicts import Verdict
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

DISK = 12 << 20
DAY = 86_400


def prepared(place: Path, plan: Plan, invoices: list[str], *, decided: bool = True) -> None:
    """Ask about each invoice, and decide, in a process of its own."""

    def prepare() -> None:
        program = Program(place, plan)
        for invoice in invoices:
            program.call(invoice)
        if decided:
            program.decide()
        program.grace.close()

    answers([prepare], place.parent / "errors")


# A full disk


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """Return whether the folder is a small disk in memory; else it is a plain folder. The journals stand beside it."""
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    mounted = libc.mount(b"tmpfs", bytes(place), b"tmpfs", 0, f"size={DISK}".encode()) == 0
    for name in ("effects", "calls", "decisions"):
        (place / name).symlink_to(place.parent / f"{place.name}-{name}")
    try:
        yield mounted
    finally:
        if mounted:
            libc.umount2(bytes(place), 2)


class Filled:
    """Fills the disk once the effect has happened, and frees it after a while, or never."""

    def __init__(self, place: Path, seconds: float, *, is_disk: bool) -> None:
        self._place, self._seconds, self._is_disk = place, seconds, is_disk

    def __call__(self, moment: str) -> None:
        if moment != "after":
            return
        if self._is_disk:
            self._fill(self._place / "ballast")
        else:
            largest = max(path.stat().st_size for path in self._place.glob("store.db*"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
        if self._seconds:
            threading.Timer(self._seconds, self._free).start()

    def _fill(self, ballast: Path) -> None:
        with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def _free(self) -> None:
        if self._is_disk:
            (self._place / "ballast").unlink(missing_ok=True)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def full_disk(folder: Path, count: int, seconds: float) -> tuple[dict[str, Any], bool]:
    """Fill the disk after the effect of each action. With `seconds` it is freed again; else the process is killed while it is full."""
    place, plan, invoices = folder / f"full-{seconds}", Plan(), acted_on(count)
    with small_disk(place) as is_disk:
        prepared(place, plan, invoices)
        for invoice in invoices:
            filled = Filled(place, seconds, is_disk=is_disk)
            pid = start(
                lambda invoice=invoice, filled=filled: Program(place, plan, filled).call(invoice), folder / "errors"
            )  # type: ignore[misc]
            if not seconds:
                while invoice not in {fact["invoice"] for fact in facts(place / "effects")}:
                    time.sleep(0.01)
                time.sleep(0.3)
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            (place / "ballast").unlink(missing_ok=True)
        found = finished(place, plan, invoices, count, keep=True)
    return asdict(found), is_disk


# A locked file


def locked(folder: Path, count: int, seconds: float) -> dict[str, Any]:
    """Lock the file for seconds while programs ask, decide and report."""
    place, plan, invoices = folder / "locked", Plan(), acted_on(count)
    errors = folder / "errors"
    place.mkdir()
    half = invoices[: count // 2]
    prepared(place, plan, half)

    def lock() -> None:
        connection = sqlite3.connect(place / "store.db", timeout=60, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")

    def act(invoice: str) -> None:
        Program(
            place, plan, lambda moment: moment == "after" and os.waitpid(start(lock, errors), os.WNOHANG) and None
        ).call(invoice)

    def decide() -> None:
        with contextlib.suppress(StoreError):  # the file could not be opened in time
            Program(place, plan).decide(by="dora")

    pids = [start(lambda invoice=invoice: act(invoice), errors) for invoice in half[:2]]  # type: ignore[misc]
    time.sleep(0.2)
    pids += [start(lambda invoice=invoice: Program(place, plan).call(invoice), errors) for invoice in invoices[2:]]  # type: ignore[misc]
    pids += [start(decide, errors)]
    for pid in pids:
        os.waitpid(pid, 0)
    return asdict(finished(place, plan, invoices, count))


# A restored backup


def restored(folder: Path, count: int, *, is_marked: bool) -> dict[str, Any]:
    """Back up with decided requests, act, restore the backup, and go on; with `is_marked`, after `approvals restored`."""
    place, plan, invoices = folder / f"restored-{is_marked}", Plan(), acted_on(count)
    errors = folder / "errors"
    place.mkdir()
    prepared(place, plan, invoices)
    source, target = sqlite3.connect(place / "store.db"), sqlite3.connect(place / "backup")
    with contextlib.closing(source), contextlib.closing(target):
        source.backup(target)

    def act() -> dict[str, int]:
        program = Program(place, plan)
        for invoice in invoices[: count // 2]:
            program.call(invoice)
        for beside in place.glob("store.db-*"):
            beside.unlink()
        (place / "backup").replace(place / "store.db")
        refused = 0
        for invoice in invoices[count // 2 :]:  # in the process that has the lost file open
            refused += program.call(invoice) == "failed"
        return {"refused": refused}

    def go_on() -> dict[str, int]:
        program = Program(place, plan)
        marked = program.grace.approvals.restored(by="ops") if is_marked else 0
        if not is_marked:
            for invoice in invoices:
                program.call(invoice)
        return {"marked": marked}

    acted = answers([act], errors)[0]
    went_on = answers([go_on], errors)[0]
    found = finished(place, plan, invoices, count, keep=True)
    effects: dict[str, set[str]] = {}
    times: dict[str, int] = {}
    for fact in facts(place / "effects"):
        effects.setdefault(fact["invoice"], set()).add(fact["operation"])
        times[fact["invoice"]] = times.get(fact["invoice"], 0) + 1
    twice = [invoice for invoice, number in times.items() if number > 1]
    one_key = sum(len(effects[invoice]) == 1 for invoice in twice)
    return {"verdict": asdict(found), **acted, **went_on, "twice": len(twice), "one_key": one_key}


# A wrong clock


SHIFTED = """
import sys, time
real = time.time
time.time = lambda: real() + float(sys.argv[1])
sys.path[:0] = [sys.argv[2]]
from pathlib import Path
from approval_suite.places import shifted_program
shifted_program(Path(sys.argv[3]))
"""


def shifted_program(place: Path) -> None:
    """Do what stdin says, in a process whose clock was set before anything was imported."""
    program = Program(place, Plan())
    for line in sys.stdin:
        role, *invoices = line.split()
        for invoice in invoices if role == "call" else ():
            program.call(invoice)
        if role == "decide":
            program.decide()
        elif role == "sweep":
            program.grace.approvals.sweep()
        print("done", flush=True)


def clocks(folder: Path, count: int) -> dict[str, Any]:
    """Ask, decide, sweep and act in processes whose clocks are right, a day ahead and a day back, in every order."""
    place = folder / "clocks"
    place.mkdir()
    suite = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-W", "ignore", "-c", SHIFTED]
    programs = {
        shift: subprocess.Popen(
            [*command, str(shift), suite, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for shift in (0, DAY, -DAY)
    }

    def do(shift: int, *words: str) -> None:
        program = programs[shift]
        assert program.stdin is not None
        assert program.stdout is not None
        print(*words, file=program.stdin, flush=True)
        if program.stdout.readline() != "done\n":
            raise RuntimeError(f"the process with a clock {shift} s ahead has ended")

    orders = list(itertools.product(programs, programs, programs))
    for number, (asking, deciding, acting) in enumerate(orders):
        invoices = [str(10 * (count * number + index)) for index in range(count)]
        do(asking, "call", *invoices)
        do(deciding, "decide")
        do(-acting, "sweep")
        do(acting, "call", *invoices)
    for program in programs.values():
        program.communicate()
    return asdict(finished(place, Plan(), [], len(orders) * count))


def rows(folder: Path, count: int, seconds: float) -> tuple[list[tuple[str, Verdict]], list[str]]:
    """Return the verdicts, and sentences about what is not promised or was not tried."""
    errors = folder / "errors"
    (freed, is_disk), (killed, _), busy, marked, unmarked = answers(
        [
            lambda: full_disk(folder, count, 0.7),
            lambda: full_disk(folder, count, 0.0),
            lambda: locked(folder, max(6, count), seconds),
            lambda: restored(folder, 2 * count, is_marked=True),
            lambda: restored(folder, 2 * count, is_marked=False),
        ],
        errors,
    )
    disk = "disk" if is_disk else "largest file"
    found = [
        (f"full {disk} after the effect, then room again", Verdict(**freed)),
        (f"full {disk} after the effect, killed while full", Verdict(**killed)),
        (f"file locked for {seconds:g} s", Verdict(**busy)),
        ("restored backup, marked by `approvals restored`", Verdict(**marked["verdict"])),
    ]
    calls = marked["refused"] + unmarked["refused"]
    remarks = [
        (
            f"Restored without `approvals restored` (not promised): {unmarked['twice']} second effects of {count}, with the same idempotency "
            f"key {unmarked['one_key']}. The process that had the lost file open refused {calls} of {2 * count} calls."
        )
    ]
    found.append(
        (
            "clocks right, a day ahead, a day back",
            Verdict(**answers([lambda: clocks(folder, min(3, count))], errors)[0]),
        )
    )
    return found, remarks
