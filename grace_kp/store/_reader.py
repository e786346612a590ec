"""A SQLite store for commands that only read: nothing is created, and nothing is left beside the file."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from grace_kp.store._followed import uri_to_read
from grace_kp.store._open import file_of
from grace_kp.store._schema import APPROVALS, MIGRATIONS, READABLE, migrate
from grace_kp.store._sqlite import BUSY_MS, SqliteStore
from grace_kp.trace import default_mode, keep_private

if TYPE_CHECKING:
    from grace_kp.store._approval_tables import SqliteTables


class SqliteReader(SqliteStore):
    """A SQLite file that exists; it sees what writers have written up to now, and cannot write itself.

    Raises:
        StoreError: the file cannot be opened, is no SQLite file, or was written by a newer version.
    """

    def _make_folder(self) -> None:
        """Create nothing; close a file to others that may not open it."""
        if self.path.exists():
            keep_private(self.path, self.file_mode)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            uri_to_read(self.path.resolve()),
            uri=True,
            timeout=BUSY_MS / 1_000,
            isolation_level=None,
            check_same_thread=False,
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if not READABLE <= _schema_version(connection) <= len(MIGRATIONS):
            migrate(connection, self.path)
        connection.execute("PRAGMA query_only = ON")

    @property
    def approvals(self) -> SqliteTables:
        """The tables of approvals, to be read. A file of an earlier version has none, which reads as empty ones."""
        with self.lock:
            if self._approvals is None:
                from grace_kp.store._approval_tables import SqliteTables  # only where somebody asks for them

                self._approvals = SqliteTables(self.path, leave_parent=self.leave_parent, connect=self._connect_to_read)
            return self._approvals

    def _connect_to_read(self, busy_seconds: float) -> sqlite3.Connection:
        connection = self._connect()
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(busy_seconds * 1_000)}")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'approvals'").fetchone() is None:
                for statement in MIGRATIONS[APPROVALS - 1]:
                    if not statement.startswith("INSERT"):
                        elsewhere = statement.replace("CREATE TABLE ", "CREATE TEMP TABLE ")
                        connection.execute(elsewhere.replace("CREATE INDEX ", "CREATE INDEX temp."))
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def ids(self, prefix: str) -> list[str]:
        """The ids that begin with this, in their order."""
        with self._use() as connection:
            rows = connection.execute(
                "SELECT id FROM traces WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY id",
                (prefix, len(prefix), prefix),
            ).fetchall()
        return [name for (name,) in rows]


def _schema_version(connection: sqlite3.Connection) -> int:
    """The version of the schema; 0 for a file that has none yet."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone() is None:
        return 0
    (version,) = connection.execute("SELECT COALESCE(MAX(version), 0) FROM schema_migrations").fetchone()
    return int(version)


def open_url(url: str, *, create: bool = True, file_mode: int | None = None) -> SqliteStore | None:
    """Return the store in the file that a URL names, only to be read without `create`; None if the URL names no file.

    Raises:
        StoreError: the file cannot be opened.
    """
    file = file_of(url)
    if file is None:
        return None
    return (SqliteStore if create else SqliteReader)(file, file_mode=default_mode() if file_mode is None else file_mode)
