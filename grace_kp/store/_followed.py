"""What lets a catalog follow a store in a SQLite file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from grace_kp.store._catalog_source import SqliteSource


class Followed:
    """A store in a file whose changes can be read."""

    path: Path

    def _connect(self) -> sqlite3.Connection:
        """Open another connection to the file."""
        raise NotImplementedError

    def changes(self) -> SqliteSource:
        """Return what a catalog follows. It reads over connections of its own, and holds up no writer."""
        from grace_kp.store._catalog_files import Connections  # only in a process with a catalog
        from grace_kp.store._catalog_source import SqliteSource

        return SqliteSource(Connections(self.path, self._connect_to_follow))

    def _connect_to_follow(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection
