"""The part of a SQLite store that a catalog follows, and the address that opens a file for reading only."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.store._catalog_erasure import HeldIndex
    from grace_kp.store._catalog_source import SqliteSource

PATIENCE_SECONDS = 2.0


class Followed:
    """A store in a file whose changes can be read."""

    path: Path

    def changes(self) -> SqliteSource:
        """Return what a catalog follows. It reads over connections of its own, and holds up no writer."""
        from grace_kp.store._catalog_files import Connections  # only in a process with a catalog
        from grace_kp.store._catalog_source import SqliteSource

        return SqliteSource(Connections(self.path, self._connect_to_follow))

    @contextlib.contextmanager
    def _holding_index(self) -> Iterator[HeldIndex | None]:
        """Keep other processes from writing to the index of the store, during a deletion; None if there is none or they do not let go of it."""
        from grace_kp.store._catalog_files import index_of  # only where runs are deleted

        held = None
        if index_of(self.path).exists():
            from grace_kp.store._catalog_erasure import hold_index

            source = self.changes()
            held = hold_index(self.path, source)
            source.close()
        try:
            yield held
        finally:
            if held is not None:
                held.release()

    def _connect_to_follow(self) -> sqlite3.Connection:
        uri = uri_to_read(self.path.resolve())
        connection = sqlite3.connect(
            uri, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA query_only = ON")
        return connection


def uri_to_read(path: Path) -> str:
    """Return how a file is opened that must exist and is only read.

    A read-only connection to a file in WAL mode leaves `-wal` and `-shm` behind, because only a writer may remove them. So the
    connection may write, and `query_only` keeps it from writing. A file without write permission and without a WAL is opened as immutable.
    """
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    as_it_is = not writable and not Path(f"{path}-wal").exists()
    return f"{path.as_uri()}?{'mode=ro&immutable=1' if as_it_is else 'mode=rw'}"
