"""The leases of processes: which owners of open runs and incomplete runs are dead, and which processes of approvals still run.

A process renews its lease while it has something to finish. A process number shortens the wait only in the machine, boot and PID namespace
that it belongs to: elsewhere the same number is another process, or none. The two kinds of lease differ in what an expired one means. An
owner of runs counts as dead, and another process takes its runs over. An action may go on in a process that was only stopped, so a process
of approvals is gone only where its machine says so. A lease entitles to nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from grace_kp.store._database import Connection


LEASE_SECONDS = 60.0
"""An owner that has not renewed its lease for this long is dead."""
RENEW_SECONDS = 10.0
"""How long after a renewal the next one is due."""
BUSY_SECONDS = 600.0
"""Lease of an owner whose process is known to run: it may be stopped, or in a call that lets no other thread run."""
_NO_NAMESPACES = frozenset({"darwin"})
"""Systems without PID namespaces, so that the name of the machine suffices."""


def place() -> str:
    """Return the machine, boot and PID namespace in which the number of this process is valid; empty if the system hides them."""
    if sys.platform in _NO_NAMESPACES:
        return socket.gethostname()
    try:
        if Path("/proc/self").readlink() != Path(str(os.getpid())):  # `/proc` shows another namespace
            return ""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def started(pid: int) -> str:
    """Return when a process started, in the unit of the system; empty if the system does not tell."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def program() -> str:
    """Return what distinguishes this program from those that its process ran before `exec`; empty if the system does not tell."""
    with contextlib.suppress(OSError):  # the vector holds addresses that the system draws anew for each program
        return hashlib.sha256(Path("/proc/self/auxv").read_bytes()).hexdigest()[:16]
    return ""


def has_ended(pid: int) -> bool:
    """Return whether each task of a process has ended, although its parent has not reaped it; False where the system does not tell.

    The first task alone says nothing: it may have ended while another thread goes on.
    """
    try:
        states = [(task / "stat").read_text().rpartition(")")[2][:2] for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:  # also where a thread ends meanwhile, which may have started another
        return False
    return bool(states) and {*states} <= {" Z", " X", " x"}


class Owners:
    """The lease of one store, and the leases of other owners as this store has seen them.

    The table holds wall time, which may be set or jump while a machine sleeps. So an owner that was seen before is judged by the time
    that has passed on this process's own clock without a renewal. Only at first sight is its wall time compared.

    Args:
        clock: seconds that only increase, and stand still while the machine sleeps.
        wall_clock: seconds since the epoch.
    """

    table = "owners"
    """The table of the leases."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self.forget()

    def forget(self) -> None:
        """Begin as a new owner, as in a forked child."""
        self.id: str | None = None
        """The id of this owner; None before it owns something."""
        self._identity: tuple[str, int, str, str] = ("", 0, "", "")
        self._renewed = (0.0, 0.0)
        self._seen: dict[str, tuple[float, float]] = {}
        """The renewal that was seen last of each other owner, and when on the own clock it was seen first."""

    @property
    def is_due(self) -> bool:
        """Whether the lease has to be renewed: it is old, or the wall clock has been set."""
        if self.id is None:
            return False
        passed = self._clock() - self._renewed[0]
        return passed >= RENEW_SECONDS or abs(self._wall_clock() - self._renewed[1] - passed) >= RENEW_SECONDS

    def hold(self, connection: Connection) -> str:
        """Take or renew the lease in the caller's transaction; return the id of this owner."""
        if self.id is None:
            self.id = secrets.token_hex(8)
            self._identity = (self.id, os.getpid(), place(), f"{started(os.getpid())} {program()}")
        now = self._wall_clock()
        connection.execute(
            f"INSERT INTO {self.table} VALUES (?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen",  # noqa: S608
            (*self._identity, now),
        )
        self._renewed = (self._clock(), now)
        return self.id

    def release(self, connection: Connection) -> None:
        """Leave to others what this owner could not complete, and give the lease back if it has no open runs."""
        if self.id is not None:
            connection.execute("UPDATE completions SET owner = '' WHERE owner = ?", (self.id,))
            connection.execute(
                "DELETE FROM owners WHERE id = ? AND NOT EXISTS (SELECT 1 FROM journal WHERE owner = ?)",
                (self.id, self.id),
            )

    def dead(self, connection: Connection) -> set[str]:
        """Return the ids of the owners that are dead. An owner without a lease has been found dead before."""
        here = place()
        rows = connection.execute("SELECT id, pid, host, started, seen FROM owners").fetchall()
        leases = {row[0] for row in rows}
        self._seen = {owner: seen for owner, seen in self._seen.items() if owner in leases}
        dead = {owner for owner, *lease in rows if owner != self.id and self._is_dead(owner, lease, here)}
        found = connection.execute("SELECT owner FROM journal UNION SELECT owner FROM completions")
        return dead | {owner for (owner,) in found if owner not in leases and owner != self.id}

    def _is_dead(self, owner: str, lease: tuple[int, str, str, float], here: str) -> bool:
        pid, where, start, seen = lease
        runs = is_running(pid, start) if here and where == here else None
        if runs is False or (runs and pid == os.getpid()):
            return not runs
        before, now = self._seen.get(owner), self._clock()
        if before is None or before[0] != seen:
            expired = before is None and runs is None and self._wall_clock() - seen > LEASE_SECONDS
            before = self._seen[owner] = (seen, now - LEASE_SECONDS - 1 if expired else now)
        return now - before[1] > (BUSY_SECONDS if runs else LEASE_SECONDS)


def is_running(pid: int, start: str) -> bool | None:
    """Return whether a process with this number and start runs here; None if the system does not tell."""
    begin, _, its_program = start.partition(" ")
    if pid == os.getpid():
        mine = program()
        return begin == started(pid) and (mine == its_program or not mine or not its_program)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it runs under another user
    if has_ended(pid):
        return False
    now = started(pid)
    return now == begin if now and begin else None


FORGET_SECONDS = 30 * 86_400.0
"""How long the lease of a process that nothing refers to is kept after its last renewal."""
_FORGET = """DELETE FROM approval_processes WHERE seen < ? AND id NOT IN (
    SELECT waiter FROM approvals WHERE waiter IS NOT NULL AND (is_open = 1 OR state = 'unknown'))"""


class Leases(Owners):
    """The lease of this process, and the leases of others as this process has seen them."""

    table = "approval_processes"

    def hold(self, connection: Connection) -> str:
        """Take or renew the lease in the caller's transaction; return the id of this process."""
        if self.id is None:
            connection.execute(_FORGET, (self._wall_clock() - FORGET_SECONDS,))
        return super().hold(connection)

    def lapse(self) -> None:
        """Have the next `hold` renew the lease: the transaction of the last renewal was not committed."""
        self._renewed = (-math.inf, 0.0)

    def is_alive(self, connection: Connection, process: str) -> bool | None:
        """Return whether the process with this id runs; None if that cannot be known."""
        if process == self.id:
            return True
        lease = connection.execute(
            "SELECT pid, host, started, seen FROM approval_processes WHERE id = ?", (process,)
        ).fetchone()
        if lease is None:
            return None
        pid, where, start, seen = lease
        here = place()
        runs = is_running(pid, start) if here and where == here else None
        if runs is False or (runs and pid == os.getpid()):
            return runs
        return True if self._is_fresh(process, seen) else None

    def _is_fresh(self, process: str, seen: float) -> bool:
        """Return whether a lease was renewed lately. Only at first sight is its wall time compared, which may be set or differ elsewhere."""
        before, now = self._seen.get(process), self._clock()
        if before is None or before[0] != seen:
            is_late = before is None and abs(self._wall_clock() - seen) > LEASE_SECONDS
            before = self._seen[process] = (seen, now - LEASE_SECONDS - 1 if is_late else now)
        return now - before[1] <= LEASE_SECONDS
