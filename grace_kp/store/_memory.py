"""A store in memory with a bound: the tables of a SQLite file in a database that ends with the process. The oldest runs are dropped first.

One connection serves all threads, one at a time. A forked child begins with an empty store: it never uses its parent's connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from grace_kp.background import Resident, watch
from grace_kp.store._database import Connection, connect_to_memory, transaction
from grace_kp.store._deletion import delete_runs
from grace_kp.store._leases import Owners, Unfinished
from grace_kp.store._runs import RunTables
from grace_kp.store._schema import migrate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grace_kp.background import Lock
    from grace_kp.store._approvals import MemoryTables
    from grace_kp.store._catalog_files import Source
    from grace_kp.store._record import FeedbackEntry, JournalEntry, Record

MAX_TRACES = 10_000
MAX_MB = 64
SIZE = (
    "CREATE TABLE size (runs INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "INSERT INTO size VALUES (0, 0)",
    """CREATE TRIGGER run_stored AFTER INSERT ON traces BEGIN
        UPDATE size SET runs = runs + 1, bytes = bytes + LENGTH(NEW.data); END""",
    """CREATE TRIGGER run_replaced AFTER UPDATE OF data ON traces BEGIN
        UPDATE size SET bytes = bytes + LENGTH(NEW.data) - LENGTH(OLD.data); END""",
    """CREATE TRIGGER run_deleted AFTER DELETE ON traces BEGIN
        UPDATE size SET runs = runs - 1, bytes = bytes - LENGTH(OLD.data); END""",
    """CREATE TRIGGER feedback_stored AFTER INSERT ON feedback BEGIN
        UPDATE size SET bytes = bytes + LENGTH(NEW.data); END""",
    """CREATE TRIGGER feedback_deleted AFTER DELETE ON feedback BEGIN
        UPDATE size SET bytes = bytes - LENGTH(OLD.data); END""",
)
"""Keeps the number of runs, and the bytes of their documents and feedback."""


class MemoryStore(RunTables, Resident):
    """Keeps up to `max_traces` traces and `max_mb` megabytes of JSON. Beyond that it drops the oldest."""

    lasting = False
    path = "memory:"

    def __init__(self, max_traces: int = MAX_TRACES, max_mb: float = MAX_MB) -> None:
        super().__init__()
        self._max_traces = max_traces
        self._max_bytes = int(max_mb * (1 << 20))
        self.evicted = 0
        self._unfinished = Unfinished(Owners())
        watch(self)

    def _open(self) -> Connection:
        self._connection = connection = connect_to_memory()
        migrate(connection, "memory:")
        for statement in SIZE:
            connection.execute(statement)
        return connection

    def fork_locks(self) -> Iterator[Lock]:
        """Let no thread be inside SQLite during a fork: the child could wait for it without end."""
        yield self.lock

    def after_fork(self) -> None:
        """Start with an empty store in a forked child."""
        if not self._is_mine:
            super().after_fork()
            self.evicted = 0
            self._unfinished = Unfinished(Owners())
            if self._approvals is not None:
                self._approvals.forget()

    def changes(self) -> Source:
        from grace_kp.store._catalog_files import Source  # only in a process with a catalog

        return Source(self)

    def _open_approvals(self) -> MemoryTables:
        from grace_kp.store._approvals import MemoryTables

        return MemoryTables(self.use)

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        with self.lock:
            super().put(records, ended=ended)
            self._evict()

    def put_feedback(self, entries: Sequence[FeedbackEntry]) -> list[str]:
        with self.lock:
            missing = super().put_feedback(entries)
            self._evict()
        return missing

    def _evict(self) -> None:
        with self.use() as connection:
            while True:
                runs, size = connection.execute("SELECT runs, bytes FROM size").fetchone()
                is_too_large = size > self._max_bytes and runs > 1
                excess = max(runs - self._max_traces, int(is_too_large))  # by size, one run at a time
                if not excess:
                    return
                oldest = connection.execute("SELECT id FROM traces ORDER BY changed LIMIT ?", (excess,)).fetchall()
                with transaction(connection):
                    delete_runs(connection, [run for (run,) in oldest])
                self.evicted += excess

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Do nothing: memory does not outlive the process."""

    def recover(self) -> list[list[JournalEntry]]:
        """Return no journals: memory does not outlive the process."""
        return []

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def describe(self) -> dict[str, Any]:
        """Return kind, number of traces, bytes, and number of dropped traces."""
        with self.use() as connection:
            runs, size = connection.execute("SELECT runs, bytes FROM size").fetchone()
        return {"kind": "memory", "traces": runs, "bytes": size, "evicted": self.evicted}


def open_url(url: str, *, create: bool = True, file_mode: int | None = None) -> MemoryStore:  # noqa: ARG001 — a file's
    """Return a new store with the bounds in a URL such as `memory:?max_traces=500`, which `file_of` has checked."""
    options = dict(parse_qsl(url.partition("?")[2]))
    return MemoryStore(int(options.get("max_traces", MAX_TRACES)), float(options.get("max_mb", MAX_MB)))
