"""A store in a SQLite file: one writer at a time and any number of readers, in any number of processes. A reader leaves no files behind.

The journal of open runs survives a kill. The store refuses a file that was deleted, moved or replaced while it is open, because other
processes would not find what is written to it.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from grace_kp.errors import StoreError
from grace_kp.store._database import (
    Connections,
    DatabaseError,
    OpenFiles,
    SharedConnection,
    close_on_error,
    connect,
    connect_to_existing,
    switch_to_wal,
)
from grace_kp.store._deletion import Deleted, Selection, delete_rows
from grace_kp.store._leases import Owners, Unfinished
from grace_kp.store._record import is_imported
from grace_kp.store._rescue import CannotOpen, RescueFiles
from grace_kp.store._runs import DAY, RunTables
from grace_kp.store._schema import (
    INDEX,
    MIGRATIONS,
    PAGE_BYTES,
    PUT_STATE,
    check_version,
    clean,
    migrate,
    open_to_read,
    overwrite,
    schema_version,
)
from grace_kp.store._store import file_of
from grace_kp.trace import PARENT, default_mode, keep_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.store._approvals import SqliteTables
    from grace_kp.store._catalog_files import Source
    from grace_kp.store._database import Connection
    from grace_kp.store._record import JournalEntry, Record


PATIENCE_SECONDS = 2.0
"""How long the catalog waits for a writer."""
BUSY_MS = 2_000
T = TypeVar("T")


class SqliteStore(RunTables):
    """A store in a SQLite file. Several processes and threads may use the same file.

    Raises:
        StoreError: the file cannot be opened, is not a SQLite file, or was written by a newer version.
    """

    lasting = True
    """The ledger of actions outlives the process."""
    path: Path
    _open_existing = staticmethod(connect_to_existing)
    """Opens a connection for the tables of approvals."""

    def __init__(
        self, path: str | Path, *, busy_ms: int = BUSY_MS, file_mode: int = 0o600, owners: Owners | None = None
    ) -> None:
        super().__init__()
        self.file_mode = file_mode
        self.path = Path(path).expanduser()
        self._rescue_files = RescueFiles(self.path, file_mode)
        self._busy_ms, self._synchronous = busy_ms, "NORMAL"
        self._owners = owners or Owners()
        self._unfinished = Unfinished(self._owners)
        self._is_displaced = False
        """Whether the file was left because others do not find it at the path."""
        self._open()

    def _open(self) -> Connection:
        try:
            self._make_folder()
            self._files = OpenFiles(self.path)
            self._connection = self._connect()
            self._files.look_beside()
        except (DatabaseError, OSError, StoreError) as error:
            raise CannotOpen(self.path, error, self._rescue_files.write) from None
        return self._connection

    def _make_folder(self) -> None:
        folder = self.path.parent
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700)
        keep_private(self.path, self.file_mode)

    def _connect(self) -> Connection:
        connection = connect(self.path, busy_seconds=self._busy_ms / 1_000)
        with close_on_error(connection):
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            switch_to_wal(connection, self._busy_ms / 1_000)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            migrate(connection, self.path)
            self._rescue_files.take_in(connection)
        return connection

    def _open_approvals(self) -> SqliteTables:
        from grace_kp.store._approvals import SqliteTables

        connect = partial(self._open_existing, self.path)
        return SqliteTables(self.path, leave_parent=self.leave_parent, connect=connect)

    @contextlib.contextmanager
    def use(self, *, write: bool = False) -> Iterator[Connection]:
        """Lend the connection; refuse a file that others do not find at the path."""
        with self.lock:
            self._leave_displaced()
            if self._is_displaced and not self._files.is_back:
                raise self._displacement_error()
            self._is_displaced = False
            with super().use(write=write) as connection:
                yield connection
            if write and self._leave_displaced():
                raise self._displacement_error()

    def _leave_displaced(self) -> bool:
        """Leave an open file that others do not find at the path, because its log would be taken for that of the next file."""
        if self._connection is None or not self._is_mine or not self._files.are_displaced:
            return False
        self._is_displaced = True
        super().close()
        return True

    def _leave(self, connection: Connection) -> None:
        self._files.leave(connection)

    def _displacement_error(self) -> StoreError:
        return StoreError(
            f"store {self.path}: its file or the log next to it was deleted, moved or replaced while this process uses it. Put the file back, or "
            "restart this program; runs that end until then wait in memory, and after its exit in a file next to the path, which is read when "
            "the store is next opened"
        )

    def after_fork(self) -> None:
        """Replace lock and connection in a forked child. The connection is the parent's."""
        if not self._is_mine:
            super().after_fork()
            self._owners.forget()
            self._unfinished.forget()

    def changes(self) -> Source:
        from grace_kp.store._catalog_files import Source  # only in a process with a catalog

        return Source(Connections(self.path, partial(open_to_read, self.path, busy_seconds=PATIENCE_SECONDS)))

    def _clean_files(self, connection: Connection) -> str:
        """Erase deleted runs from the index and the file. Return why one of them may still hold some."""

        def erase() -> str:
            from grace_kp.store._catalog_files import erase_deleted  # only where runs are deleted

            with contextlib.closing(self.changes()) as source:
                return erase_deleted(self.path, source)

        return "; ".join(filter(None, (clean(connection, INDEX, erase), overwrite(connection, self.path))))

    def sync_writes(self) -> None:
        """Have every write wait for the disk from now on, so that what is stored survives a power cut."""
        self._synchronous = "FULL"
        with self.use() as connection:
            connection.execute("PRAGMA synchronous = FULL")

    def rescue(
        self, records: Sequence[Record], ended: Sequence[str] = (), *, report: tuple[str, bytes] | None = None
    ) -> Path:
        """Write records that this process cannot store before it ends to a private file next to the database; return its path.

        The next process that opens the store for writing stores the records, deletes the journals of the runs in `ended` and adds `report`.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # it may have been removed meanwhile
        return self._rescue_files.write(records, ended, owner=self._owners.id, report=report)

    def _take_in_rescued(self) -> str:
        with self.use() as connection:
            return self._rescue_files.take_in(connection)

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        with self.use(write=True) as connection:
            self._unfinished.journal(connection, entries)

    def is_expected(self, id: str) -> bool:  # noqa: A002
        """Return whether a run with this id is open, in any process, or runs that were recorded here are nested in it."""
        with self.use() as connection:
            is_open = connection.execute("SELECT 1 FROM journal WHERE run_id = ? LIMIT 1", (id,)).fetchone() is not None
            nested = f"SELECT trace FROM attributes WHERE kind = '{PARENT}' AND name = '' AND value = ?"  # noqa: S608
            names = connection.execute(nested, (id,)).fetchall()
        return is_open or any(not is_imported(self.get(name)) for (name,) in names)

    def renew_lease(self) -> None:
        """Renew the lease on the runs of this process that are open or incomplete.

        While there are any, call it every few seconds. It uses the file only every ten seconds, and after a jump of the clock.
        """
        if self._owners.is_due:
            with self.use(write=True) as connection:
                self._owners.hold(connection)

    def recover(self) -> list[list[JournalEntry]]:
        """Return the journals of runs whose process died. Each journal is returned to one caller only.

        A process on this machine is dead when it has ended, any other when its lease has expired. So a run may be found only by a later
        call, so call it from time to time. It writes only if a process has died.
        """
        return self._take_over(self._unfinished.take_journals)

    def incomplete(self, parts: frozenset[str], limit: int = 500) -> list[bytes]:
        """Return documents of stored runs whose process died and which await at least one of these parts (`Record.awaits`).

        Each document is returned to one caller only, which stores it again with `Record.completes`.
        """

        def take(connection: Connection, dead: set[str]) -> list[bytes]:
            return self._unfinished.take_incomplete(connection, dead, parts, limit)

        return self._take_over(take)

    def _take_over(self, take: Callable[[Connection, set[str]], list[T]]) -> list[T]:
        with self.use() as connection:
            if not self._owners.dead(connection):
                return []
        with self.use(write=True) as connection:
            return take(connection, self._owners.dead(connection))

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Replace the entry of an action; see `RunTables.put_action`. When this returns True, the entry is on the disk."""
        with self.lock:
            with self.use() as connection:
                connection.execute("PRAGMA synchronous = FULL")
            try:
                return super().put_action(key, data, only_if=only_if)
            finally:
                with self.use() as connection:
                    connection.execute(f"PRAGMA synchronous = {self._synchronous}")

    def _delete(self, selection: Selection) -> Deleted:
        """Delete runs, also those in rescue files, so that their bytes are gone; `remains` of the report says why they are not."""
        with self.lock:
            waiting = self._take_in_rescued()
            with self.use(write=True) as connection:
                deleted = delete_rows(connection, selection, self._owners.dead(connection))
            with self.use() as connection:
                deleted.remains = "; ".join(filter(None, (self._clean_files(connection), waiting)))
        return deleted

    def retain(self, days: float) -> int:
        """Delete runs that began more than `days` days ago, and contents of approvals that ended before, at most once a day.

        Return how many runs were deleted.
        """
        now = time.time()
        with self.use(write=True) as connection:
            row = connection.execute("SELECT value FROM state WHERE name = 'retained_at'").fetchone()
            if row is not None and now - DAY < float(row[0]) <= now:
                return 0
            connection.execute(PUT_STATE, ("retained_at", str(now)))
        return super().retain(days)

    def clear(self) -> int:
        with self.lock:
            self._take_in_rescued()
            count = super().clear()
            with self.use() as connection:
                self._clean_files(connection)
        return count

    def close(self) -> None:
        """Close the file. The next use opens it again."""
        if self._approvals is not None:
            self._approvals.close()
        with self.lock:
            self._is_displaced = False
            if self._connection is not None and self._is_mine:
                with contextlib.suppress(DatabaseError):
                    self._connection.execute("PRAGMA busy_timeout = 0")  # an exit does not wait for this
                    self._owners.release(self._connection)
            super().close()

    def describe(self) -> dict[str, Any]:
        """Return kind, path, size in bytes, number of traces, schema version and journal mode."""
        with self.use() as connection:
            (traces,) = connection.execute("SELECT COUNT(*) FROM traces").fetchone()
            (version,) = connection.execute("SELECT MAX(version) FROM schema_migrations").fetchone()
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        return {
            "kind": "sqlite",
            "path": str(self.path),
            "bytes": self.path.stat().st_size,
            "traces": traces,
            "schema_version": version,
            "journal_mode": mode,
        }


class SqliteReader(SqliteStore):
    """A SQLite file that exists; it sees what writers have written up to now, and cannot write itself.

    Raises:
        StoreError: the file cannot be opened, is not a SQLite file, or was written by a newer version.
    """

    _version = len(MIGRATIONS)
    """The version of the schema. Of an earlier one, temporary tables stand in for missing ones."""
    _open_existing = staticmethod(open_to_read)

    def _make_folder(self) -> None:
        if self.path.exists():
            keep_private(self.path, self.file_mode)

    def _connect(self) -> Connection:
        connection = open_to_read(self.path, busy_seconds=BUSY_MS / 1_000)
        with close_on_error(connection):
            self._version = schema_version(connection)
            check_version(self._version, self.path)
        return connection

    @contextlib.contextmanager
    def use(self, *, write: bool = False) -> Iterator[Connection]:
        """Lend the connection; open a file of an earlier version again when a writer has brought it up to date."""
        with self.lock:
            is_earlier = self._version < len(MIGRATIONS)
            if self._connection is not None and is_earlier and schema_version(self._connection) != self._version:
                SharedConnection.close(self)
            with super().use(write=write) as connection:
                yield connection

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`, sorted."""
        with self.use() as connection:
            rows = connection.execute(
                "SELECT id FROM traces WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY id",
                (prefix, len(prefix), prefix),
            ).fetchall()
        return [name for (name,) in rows]


def open_url(url: str, *, create: bool = True, file_mode: int | None = None) -> SqliteStore | None:
    """Return the store in the file that a URL names, only to be read without `create`; None if the URL names no file."""
    file = file_of(url)
    if file is None:
        return None
    return (SqliteStore if create else SqliteReader)(file, file_mode=default_mode() if file_mode is None else file_mode)
