"""What is SQLite's own: the connection of a store that its threads share, opened when it is needed, and left to the parent after a fork."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING

from grace_kp.store._files import leave_to_parent
from grace_kp.store._schema import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class SharedConnection:
    """One connection for the threads of a process, one at a time."""

    path: Path | str
    """For messages."""
    _connection: sqlite3.Connection | None = None

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while the connection is used."""
        self._abandoned: list[sqlite3.Connection] = []
        self._pid = os.getpid()

    def _open(self) -> sqlite3.Connection:
        """Open the connection and keep it as `_connection`."""
        raise NotImplementedError

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # Python warns about a connection that is left to be collected. At the end of the process the module's names are gone.
        if self._connection is not None and self._pid == getpid():
            self._connection.close()

    @property
    def _is_mine(self) -> bool:
        """Whether the connection was not inherited from a parent."""
        return self._pid == os.getpid()

    def after_fork(self) -> None:
        """Replace lock and connection in a forked child. The connection is the parent's."""
        if self._is_mine:
            return
        if self._connection is not None and not leave_to_parent(self._connection, self.lock):
            self._abandoned.append(self._connection)  # kept, because garbage collection would close it
        self.lock = threading.RLock()
        self._pid, self._connection = os.getpid(), None

    def leave_parent(self) -> bool:
        """Leave the parent's connection in a forked child; return whether none is open here any more."""
        with self.lock:
            self.after_fork()
            return not self._abandoned

    @contextlib.contextmanager
    def _use(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        with self.lock:
            if not self._is_mine:
                self.after_fork()
            connection = self._connection or self._open()
            if not write:
                yield connection
                return
            with transaction(connection):
                yield connection


def connect_to_memory() -> sqlite3.Connection:
    """Return a connection to a new database in memory, which ends with it."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
