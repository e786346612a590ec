"""The leases of processes that wait for an approval or carry out an action, and what a lease says about its process.

A lease entitles to nothing. It differs from that of an owner of runs (`_owners`) in what an expired lease means: an owner counts as dead,
but an action may go on in a process that was only stopped. So a process is gone only where its machine says so.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from grace_kp.store._owners import LEASE_SECONDS, Owners, is_running, place

if TYPE_CHECKING:
    import sqlite3

FORGET_SECONDS = 30 * 86_400.0
"""How long the lease of a process that nothing refers to is kept after its last renewal."""
_FORGET = """DELETE FROM approval_processes WHERE seen < ? AND id NOT IN (
    SELECT waiter FROM approvals WHERE waiter IS NOT NULL AND (is_open = 1 OR state = 'unknown'))"""


class Leases(Owners):
    """The lease of this process, and the leases of others as this process has seen them."""

    table = "approval_processes"

    def hold(self, connection: sqlite3.Connection) -> str:
        """Take or renew the lease in the caller's transaction; return the id of this process."""
        if self.id is None:
            connection.execute(_FORGET, (self._wall_clock() - FORGET_SECONDS,))
        return super().hold(connection)

    def lapse(self) -> None:
        """Have the next `hold` renew the lease: the transaction of the last renewal was not committed."""
        self._renewed = (-math.inf, 0.0)

    def is_alive(self, connection: sqlite3.Connection, process: str) -> bool | None:
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
