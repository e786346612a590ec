"""The file of an index and the connections to it: opened for many threads, and opened anew where another file stands at the path."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from grace_kp.background import Lock, Resident, watch
from grace_kp.store._database import OpenFiles, leave_to_parent, locked

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

MOST_CONNECTIONS = 8
"""Connections to one file. More threads wait: the machine has fewer cores, and each connection has a cache of its own."""
ENDS = ("-wal", "-shm", "")
"""The files of a database. The log goes first: a database without its log is whole, a log without its database would be taken for that of
the next one."""


def index_of(store: Path) -> Path:
    """Return the path of the index of a store, whatever link the store was opened by."""
    return Path(f"{os.path.realpath(store)}.index")


def remove_index(store: Path) -> str:
    """Remove the index of a store.

    Returns:
        Why it could not be removed and what to do; an empty text if it is gone.
    """
    path = index_of(store)
    try:
        if any(Path(f"{path}{end}").exists() for end in ENDS):
            with locked(path.parent):
                for end in ENDS:
                    Path(f"{path}{end}").unlink(missing_ok=True)
    except OSError as error:
        return f"{path} could not be removed ({error}) and may hold deleted contents; remove it, it is built again"
    return ""


class Connections(Resident):
    """A few connections to one file for many threads.

    Args:
        path: the file.
        connect: opens a connection to it.
        create: creates the file if there is none; called with other processes kept from creating or removing it. None for a file that others
            create.
        most: how many connections there are at most.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], sqlite3.Connection],
        *,
        create: Callable[[], object] | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self._path, self._connect, self._create, self._most = path, connect, create, most
        self._abandoned: list[sqlite3.Connection] = []
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._free: list[tuple[sqlite3.Connection, OpenFiles]] = []
        self._lock = threading.RLock()
        self._room = threading.BoundedSemaphore(self._most)
        self._is_closed = False

    def fork_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Leave the parent's connections to it."""
        for connection, _ in self._free:
            if not leave_to_parent(connection, self._lock):
                self._abandoned.append(connection)
        self._begin()

    @property
    def file(self) -> tuple[int, int] | None:
        """Device and inode of the file that the path names now; None if there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextlib.contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to the current thread.

        Raises:
            sqlite3.Error, OSError: the file cannot be opened.
        """
        with self._room:
            connection, files = self._take()
            try:
                yield connection
            finally:
                with self._lock:
                    self._free.append((connection, files))
                if self._is_closed:
                    self.close()

    def _take(self) -> tuple[sqlite3.Connection, OpenFiles]:
        while True:
            with self._lock:
                if not self._free:
                    break
                connection, files = self._free.pop()
            if not files.are_displaced:
                return connection, files
            files.leave(connection)
        if self._create is None:
            return self._open()
        with locked(self._path.parent):
            self._create()
            return self._open()

    def _open(self) -> tuple[sqlite3.Connection, OpenFiles]:
        files = OpenFiles(self._path)
        connection = self._connect()
        try:
            connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # opens the log
        except BaseException:
            connection.close()
            raise
        files.look_beside()
        return connection, files

    def close(self) -> None:
        """Close the connections; those in use are closed when they come back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for connection, files in free:
            files.leave(connection)


class OneConnection(Resident):
    """A database in memory for several threads, one at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        watch(self)

    def fork_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Replace the lock in a forked child, which has a copy of the database."""
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to the current thread."""
        with self._lock:
            yield self._connection

    @property
    def file(self) -> None:
        """No file."""
        return None

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._connection.close()
