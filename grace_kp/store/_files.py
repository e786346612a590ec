"""The files behind a connection to SQLite: whether they still stand at their paths, and how to leave them where they do not.

SQLite finds the write-ahead log (`-wal`) and its index (`-shm`) of a database by their names. So a log that is left behind would be read as
that of the next database at the path, and processes with different databases would share the index.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import is_mine

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_CHECKPOINT_ON_CLOSE = 1006
"""SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE of SQLite."""
Identity = tuple[int, int] | None


class OpenFiles:
    """The files that a connection has opened, by device and inode. Created right before the connection.

    Args:
        path: the path of the database, which may be a symbolic link.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._real = Path(os.path.realpath(path))
        self._database = _identity(path)
        self._beside: dict[Path, Identity] = {}

    def look_beside(self) -> None:
        """Note which log and index the connection uses. It opens them with its first transaction."""
        paths = [Path(f"{self._real}{end}") for end in ("-wal", "-shm")]
        self._beside = {path: found for path in paths if (found := _identity(path)) is not None}

    def leave_beside(self) -> None:
        """Forget which log and index were used: no connection is open any more."""
        self._beside = {}

    @property
    def are_displaced(self) -> bool:
        """Whether another process that opens the path would not find these files."""
        return not self.is_back or any(_identity(path) != opened for path, opened in self._beside.items())

    @property
    def is_back(self) -> bool:
        """Whether the database stands at its path."""
        return _identity(self._path) == self._database

    def leave(self, connection: sqlite3.Connection) -> None:
        """Close the connection, keep what it has written where that is possible, and leave other files at the paths alone."""
        if _identity(self._real) != self._database:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that a renamed database has everything
            self._remove_left_over()  # before the files are closed, because a closed inode may be used again
        elif any(_identity(path) not in {None, opened} for path, opened in self._beside.items()):
            # Another process has begun a new log for this database. The old one must not overwrite what that process wrote.
            configure: Any = getattr(connection, "setconfig", None)  # from Python 3.12 on
            if configure is not None:
                configure(NO_CHECKPOINT_ON_CLOSE, True)
        connection.close()

    def _remove_left_over(self) -> None:
        """Remove the log and the index of a database that stands there no more."""
        with contextlib.suppress(OSError), locked(self._real.parent):
            for path, opened in self._beside.items():
                if _identity(path) == opened:
                    path.unlink()


def leave_to_parent(connection: sqlite3.Connection, lock: object) -> bool:
    """Close a parent's connection in its forked child; return False, and leave it open, if it was in use during the fork.

    SQLite keeps a list of the locks of its process, and a child inherits the list without the locks. While a connection of the parent is
    open in the child, any other there relies on that list: another process could take the file for unused and remove the log, with what the
    child is about to write. Closing a connection that is idle in WAL mode changes nothing for the parent.

    Args:
        connection: the connection.
        lock: the reentrant lock under which it is used. The current thread holds it if no other did during the fork.
    """
    if not is_mine(lock) or connection.in_transaction:
        return False
    connection.close()
    return True


def _identity(path: Path) -> Identity:
    try:
        found = os.stat(path)  # noqa: PTH116 — after every batch
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from doing the same in a folder. Without this, each could remove what another has just created."""
    try:
        import fcntl
    except ImportError:  # such a system lets no file be removed while it is open
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
