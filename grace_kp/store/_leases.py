"""The leases of processes: which owners of open runs and incomplete runs are dead, and which processes of approvals still run.

A process renews its lease while it has something to finish. A process number shortens the wait only in the machine, boot and PID namespace
that it belongs to: elsewhere the same number is another process, or none. An owner of runs whose lease has expired counts as dead, and another
process takes its runs over. A process of approvals whose lease has expired may only be stopped, and its action may go on. So it is gone only
where its machine says so.

One other process takes over the journals and the incomplete runs of a dead owner. If the owner was only stopped, two processes finish the
same run, and the store keeps the trace of the process that ran it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import socket
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from grace_kp.store._database import ONE_OF
from grace_kp.store._record import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grace_kp.store._database import Connection
    from grace_kp.store._record import Record


LEASE_SECONDS = 60.0
"""An owner that has not renewed its lease for this long is dead."""
RENEW_SECONDS = 10.0
"""How long after a renewal the next one is due."""
BUSY_SECONDS = 600.0
"""Lease of an owner whose process is known to run: it may be stopped, or in a call that lets no other thread run."""
_NO_NAMESPACES = frozenset({"darwin"})
"""Systems without PID namespaces, so that the name of the machine suffices."""
FORGET_SECONDS = 30 * 86_400.0
"""How long the lease of a process that nothing refers to is kept after its last renewal."""
_FORGET = """DELETE FROM approval_processes WHERE seen < ? AND id NOT IN (
    SELECT waiter FROM approvals WHERE waiter IS NOT NULL AND (is_open = 1 OR state = 'unknown'))"""
UNOWNED = ""
"""Owner of parts that neither the run's own process nor the one that took it over can add. Any process that can add them may take them."""


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


def start_of(pid: int) -> str:
    """Return when a process started, in the unit of the system; empty if the system does not tell."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def program() -> str:
    """Return an id that differs from the programs that this process ran before `exec`; empty if the system does not tell."""
    with contextlib.suppress(OSError):  # the vector holds addresses that differ for each program
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
    that has passed on this process's own clock, which stands still while the machine sleeps. Only at first sight is its wall time compared.
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
        if self.id is None:
            return False
        passed = self._clock() - self._renewed[0]
        return passed >= RENEW_SECONDS or abs(self._wall_clock() - self._renewed[1] - passed) >= RENEW_SECONDS

    def hold(self, connection: Connection) -> str:
        """Take or renew the lease in the caller's transaction; return the id of this owner."""
        if self.id is None:
            self.id = secrets.token_hex(8)
            self._identity = (self.id, os.getpid(), place(), f"{start_of(os.getpid())} {program()}")
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
        runs = _is_running_here(pid, where, start, here)
        if runs is False or (runs and pid == os.getpid()):
            return not runs
        is_late = runs is None and self._wall_clock() - seen > LEASE_SECONDS
        return self._has_expired(owner, seen, BUSY_SECONDS if runs else LEASE_SECONDS, is_late=is_late)

    def _has_expired(self, owner: str, seen: float, seconds: float, *, is_late: bool) -> bool:
        """Return whether a lease was not renewed for so long. Only at first sight does it count that its wall time `is_late`."""
        before, now = self._seen.get(owner), self._clock()
        if before is None or before[0] != seen:
            before = self._seen[owner] = (seen, now - LEASE_SECONDS - 1 if before is None and is_late else now)
        return now - before[1] > seconds


def _is_running_here(pid: int, where: str, start: str, here: str) -> bool | None:
    """Return whether a process with this number, place and start runs; None if it cannot be known here."""
    if not here or where != here:
        return None
    begin, _, its_program = start.partition(" ")
    if pid == os.getpid():
        mine = program()
        return begin == start_of(pid) and (mine == its_program or not mine or not its_program)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it runs under another user
    if has_ended(pid):
        return False
    now = start_of(pid)
    return now == begin if now and begin else None


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
        runs = _is_running_here(pid, where, start, place())
        if runs is False or (runs and pid == os.getpid()):
            return runs
        is_late = abs(self._wall_clock() - seen) > LEASE_SECONDS  # the clock there may be set otherwise
        return None if self._has_expired(process, seen, LEASE_SECONDS, is_late=is_late) else True


class Unfinished:
    """The unfinished runs of one store: the runs of its process, and runs that it took over."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self.forget()

    def forget(self) -> None:
        self._recovered: dict[str, int | None] = {}
        """Runs whose journals were taken over, with the version of their trace that was stored then."""
        self._adopted: set[str] = set()
        """Runs that were taken over and are not complete."""

    def journal(self, connection: Connection, entries: Sequence[JournalEntry]) -> None:
        if entries:
            owner = self._owners.hold(connection)
            connection.executemany(
                "INSERT INTO journal (run_id, seq, owner, data) VALUES (?,?,?,?)"
                " ON CONFLICT (run_id, seq) DO UPDATE SET owner = excluded.owner, data = excluded.data",
                [(entry.run_id, entry.seq, owner, entry.data) for entry in entries],
            )

    def drop_late(self, connection: Connection, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records that do not come too late.

        A record that completes a run comes too late if the run was deleted, completed or finished by its own process meanwhile. The
        trace of an interrupted run comes too late if the trace of the run was stored or deleted meanwhile.
        """
        if not self._recovered and not any(record.completes for record in records):
            return records
        kept: list[Record] = []
        stored_now: dict[str, bool] = {}
        for record in records:
            known = stored_now.get(record.id)
            if record.completes and not (self._may_complete(connection, record.id) if known is None else known):
                continue
            if record.id in self._recovered and _version_of(connection, record.id) != self._recovered[record.id]:
                continue
            stored_now[record.id] = bool(record.awaits)
            kept.append(record)
        return kept

    def _may_complete(self, connection: Connection, run_id: str) -> bool:
        row = connection.execute("SELECT owner FROM completions WHERE run_id = ?", (run_id,)).fetchone()
        return row is not None and (run_id not in self._adopted or row[0] == self._owners.id)

    def note(self, connection: Connection, records: Sequence[Record], ended: Iterable[str]) -> None:
        """Note which of the stored runs await something, and delete the journals of the runs in `ended`."""
        newest = {record.id: record for record in records}.values()
        if connection.execute("SELECT 1 FROM completions LIMIT 1").fetchone() is not None:
            connection.executemany(
                "DELETE FROM completions WHERE run_id = ?", [(record.id,) for record in newest if not record.awaits]
            )
        waiting = [record for record in newest if record.awaits]
        if waiting:
            owner = self._owners.hold(connection)
            connection.executemany(
                "INSERT INTO completions VALUES (?,?,?)"
                " ON CONFLICT (run_id) DO UPDATE SET owner = excluded.owner, awaits = excluded.awaits",
                [
                    (r.id, UNOWNED if r.completes and r.id in self._adopted else owner, " ".join(r.awaits))
                    for r in waiting
                ],
            )
        # The process of a run that was taken over may live and go on with its journal.
        connection.executemany(
            "DELETE FROM journal WHERE run_id = ? AND owner = COALESCE(?, owner)",
            [(run_id, self._owners.id if run_id in self._adopted else None) for run_id in ended],
        )

    def done(self, records: Iterable[Record]) -> None:
        """Take note, after the transaction, that the records were stored or came too late."""
        for record in records:
            self._recovered.pop(record.id, None)

    def take_journals(self, connection: Connection, dead: Iterable[str]) -> list[list[JournalEntry]]:
        """Take over the journals of dead owners; return those of interrupted runs."""
        execute, mine, owners = connection.execute, self._owners.hold(connection), json.dumps(list(dead))
        # A run that was stored is not lost, even if the last row of its journal came late. A run that was stored as suspended has
        # continued since, if its journal has a first row.
        is_stored = "run_id IN (SELECT id FROM traces WHERE status <> 'suspended')"
        execute(f"DELETE FROM journal WHERE owner {ONE_OF} AND {is_stored}", (owners,))  # noqa: S608
        rows = execute(f"SELECT run_id, seq, data FROM journal WHERE owner {ONE_OF} ORDER BY run_id, seq", (owners,))  # noqa: S608
        runs: dict[str, list[JournalEntry]] = {}
        for run_id, seq, data in rows.fetchall():
            runs.setdefault(run_id, []).append(JournalEntry(run_id, seq, bytes(data)))
        execute(f"UPDATE journal SET owner = ? WHERE owner {ONE_OF}", (mine, owners))  # noqa: S608
        execute(f"DELETE FROM owners WHERE id {ONE_OF}", (owners,))  # noqa: S608
        found = {run_id: entries for run_id, entries in runs.items() if entries[0].seq == 0}
        late = [(run_id, mine) for run_id in runs.keys() - found.keys()]
        connection.executemany("DELETE FROM journal WHERE run_id = ? AND owner = ?", late)
        self._recovered.update({run_id: _version_of(connection, run_id) for run_id in found})
        self._adopted.update(found)
        return list(found.values())

    def take_incomplete(
        self, connection: Connection, dead: Iterable[str], parts: frozenset[str], limit: int
    ) -> list[bytes]:
        """Take over stored runs of dead owners that await one of these parts; return their documents."""
        mine, owners = self._owners.hold(connection), json.dumps(list(dead))
        connection.execute("DELETE FROM completions WHERE run_id NOT IN (SELECT id FROM traces)")
        rows = connection.execute(
            f"SELECT run_id, awaits, data FROM completions JOIN traces ON id = run_id WHERE owner {ONE_OF}",  # noqa: S608
            (owners,),
        )
        taken = dict(islice(((run, data) for run, awaits, data in rows if not parts.isdisjoint(awaits.split())), limit))
        connection.executemany("UPDATE completions SET owner = ? WHERE run_id = ?", [(mine, run) for run in taken])
        self._adopted.update(taken)
        return [bytes(data) for data in taken.values()]


def _version_of(connection: Connection, run_id: str) -> int | None:
    """Return a number that differs for each version of a trace; None if there is no such trace."""
    row = connection.execute("SELECT changed FROM traces WHERE id = ?", (run_id,)).fetchone()
    return None if row is None else int(row[0])
