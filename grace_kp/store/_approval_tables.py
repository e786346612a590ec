"""The tables of approvals. In a SQLite file they have connections of their own: every write is on the disk when its transaction ends.

One connection writes, the other reads, so that listings never wait for a writer. They belong to the file that was opened first: what was
decided or claimed in the one file would be open in another, so that an action could run twice.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from functools import partial
from typing import TYPE_CHECKING

from grace_kp.background import Resident, watch
from grace_kp.errors import StoreError
from grace_kp.store._approvals import ApprovalReads, ApprovalWrites
from grace_kp.store._database import (
    Connection,
    DatabaseError,
    OpenFiles,
    connect_to_existing,
    is_busy,
    is_read_only,
    leave_to_parent,
    transaction,
)
from grace_kp.store._deletion import overwrite
from grace_kp.store._leases import Leases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from grace_kp.approvals import Writes
    from grace_kp.background import Lock


class ApprovalFile:
    """The file at a path. Created right before the first connection to it.

    A copy that takes the place of the file is another file. A copy that is written over it has the same inode and the same id, so the newest
    entry of the chain that was seen must still be there, too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = OpenFiles(path)
        self._seen = (0, "")
        """Number and hash of the newest entry that was seen."""
        self.identity = ""
        """Id of the store."""
        self.is_entered = False
        """Whether a connection is open."""

    def enter(self, connection: Connection) -> None:
        """Note what a first connection has opened."""
        self.identity = self.identity or identity_of(connection)
        self._files.look_beside()
        self.is_entered = True

    def leave_to_parent(self) -> None:
        """Expect the same file in a forked child, but not the same log: it is removed once nobody has the file open."""
        self._files.leave_beside()
        self.is_entered = False

    def note(self, head: tuple[int, str]) -> None:
        """Note the newest entry of the chain."""
        if head[0] > self._seen[0]:
            self._seen = head

    def check(self, connection: Connection | None = None) -> None:
        """Compare the file at the path, and what a connection reads, with what was opened."""
        if self._files.are_displaced:
            raise self._error("is no longer the file that was opened: it was deleted, moved or replaced")
        if connection is None:
            return
        if identity_of(connection) != self.identity:
            raise self._error("holds another store than the one that was opened")
        number, expected = self._seen
        if number:
            found = connection.execute("SELECT hash FROM approval_chain WHERE seq = ?", (number,)).fetchone()
            if found is None or found[0] != expected:
                raise self._error(f"lacks entry {number} of its audit trail: an earlier state was written over it")

    def _error(self, problem: str) -> StoreError:
        return StoreError(
            f"store {self._path} {problem}. Approvals do not go on in it, because an action could run twice. Restore what is missing, or run "
            "`grace-kp approvals restored` if a backup was put in its place; then restart this program"
        )

    def leave(self, connection: Connection) -> None:
        """Close a connection."""
        self._files.leave(connection)


def identity_of(connection: Connection) -> str:
    """Return the id of the store that a connection reads."""
    found = connection.execute("SELECT id FROM approval_identity").fetchone()
    return "" if found is None else str(found[0])


BUSY_SECONDS = 10.0
"""How long a write waits for other processes, and for other threads."""
MAX_ROWS = 100_000
"""Requests for approval that a store in memory holds."""


class SqliteTables(ApprovalReads, Resident):
    """The tables of approvals in a SQLite file.

    If the file is deleted, replaced or restored while it is open, every use raises `StoreError` until the store is closed and opened again,
    for example because the program was restarted.

    Args:
        path: the file of a store that has been opened.
        busy_seconds: how long a write waits while another process, or another thread, writes.
        leases: the leases of processes.
        leave_parent: closes in a forked child what else its parent has open of this file; returns whether it could.
        connect: opens a connection that waits for others for `busy_seconds`, for example to read only; by default one that writes.
    """

    lasting = True

    def __init__(
        self,
        path: Path,
        *,
        busy_seconds: float = BUSY_SECONDS,
        leases: Leases | None = None,
        leave_parent: Callable[[], bool] = lambda: True,
        connect: Callable[..., Connection] | None = None,
    ) -> None:
        self._path, self._busy_seconds = path, busy_seconds
        self._leases = leases or Leases()
        self._place: ApprovalFile | None = None
        self._leave_parent, self._connect = leave_parent, connect or partial(connect_to_existing, path)
        self._abandoned: list[Connection] = []
        self._pid, self._is_forked = os.getpid(), False
        self._changes = 0
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._writing, self._reading = threading.RLock(), threading.RLock()
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        self._version: int | None = None
        """The `data_version` of the reading connection."""

    def fork_locks(self) -> Iterator[Lock]:
        """Let nothing be under way during a fork."""
        yield self._writing
        yield self._reading

    def after_fork(self) -> None:
        """Open connections of its own in a forked child, to the same file."""
        for connection, lock in ((self._writer, self._writing), (self._reader, self._reading)):
            if connection is not None and not leave_to_parent(connection, lock):
                self._abandoned.append(connection)
        if self._place is not None:
            self._place.leave_to_parent()
        self._pid, self._is_forked = os.getpid(), True
        self._leases.forget()
        self._begin()

    def close(self) -> None:
        """Close the connections. The next use opens the file that the path names then."""
        with self._writing, self._reading:
            place, self._place = self._place, None
            self._drop(place, self._writer)
            self._drop(place, self._reader)

    def _drop(self, place: ApprovalFile | None, connection: Connection | None) -> None:
        """Close a connection; the next use opens another."""
        if connection is None or self._pid != os.getpid():
            return
        if connection is self._writer:
            self._writer = None
        else:
            self._reader, self._version = None, None
        with contextlib.suppress(DatabaseError):
            if place is None:
                connection.close()
            else:
                place.leave(connection)

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        for connection in (self._writer, self._reader):
            if connection is not None and self._pid == getpid():
                connection.close()

    @contextlib.contextmanager
    def _held(self, name: str) -> Iterator[None]:
        """Hold the lock of one connection: `_writing` or `_reading`."""
        if self._pid != os.getpid():
            self.after_fork()
        lock: threading.RLock = getattr(self, name)
        if not lock.acquire(timeout=self._busy_seconds):
            raise StoreError(
                f"store {self._path}: another thread of this process has used its approvals for {self._busy_seconds:g} s; nothing was "
                "written; try again"
            )
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def _explain_errors(self, act: str) -> Iterator[None]:
        """Turn errors of SQLite into ours."""
        try:
            yield
        except DatabaseError as error:
            if is_busy(error):
                problem = f"another process has locked it for {self._busy_seconds:g} s; nothing was written; try again"
            elif is_read_only(error):
                problem = (
                    "it was opened to be read only, or may not be written; open it with create=True, as a user who may"
                )
            else:
                problem = f"{type(error).__name__}: {error}"
            raise StoreError(f"store {self._path}: its approvals cannot be {act}: {problem}") from error

    def _opened(self, connection: Connection | None) -> Connection:
        """Return the connection, or a new one to the file that was opened first."""
        if self._place is not None:
            self._place.check()
        if connection is not None:
            return connection
        if self._is_forked and (self._abandoned or not self._leave_parent()):
            raise StoreError(
                f"store {self._path}: this process was forked while another thread used the store, and cannot share it safely; start the "
                "process anew, or fork before the store is used"
            )
        place = self._place or ApprovalFile(self._path)
        connection = self._connect(busy_seconds=self._busy_seconds)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            if not place.is_entered:  # another thread may be opening the other connection, with a place of its own
                place.enter(connection)
            place.check(connection)
        except BaseException:
            connection.close()
            raise
        self._place = self._place or place
        return connection

    @contextlib.contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._held("_reading"), self._explain_errors("read"):
            self._reader = self._opened(self._reader)
            yield self._reader

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._read() as connection:
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writes]:
        """Return a block in which all is written or, after an exception, nothing; see `Tables.transaction`.

        Contents that it deletes with `forget` are overwritten after it, unless another process reads meanwhile: then the next deletion
        from this store does so.
        """
        with self._held("_writing"), self._explain_errors("written"):
            connection = self._writer = self._opened(self._writer)
            if connection.in_transaction:
                raise StoreError("a transaction on approvals is open in this thread; end it before the next begins")
            place = self._place
            assert place is not None  # noqa: S101 — `_opened` has set it
            try:
                connection.execute("BEGIN IMMEDIATE")
                place.check(connection)
                writes = ApprovalWrites(connection)
                try:
                    yield writes
                    head = writes.head()
                finally:
                    writes.end()
                place.check()
                self._commit(connection)
            finally:
                self._roll_back(connection)
            place.note(head)
            place.check()
            if writes.has_forgotten:
                self._overwrite(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except DatabaseError as error:
            self._leases.lapse()
            raise StoreError(
                f"store {self._path}: the disk failed while approvals were written ({error}); whether they are stored is uncertain: read them "
                "again"
            ) from error

    def _roll_back(self, connection: Connection) -> None:
        """Take back what is not committed."""
        if connection.in_transaction:
            self._leases.lapse()
            try:
                connection.execute("ROLLBACK")
            except DatabaseError:
                self._drop(None, connection)  # closing it takes back what is open

    def _overwrite(self, connection: Connection) -> None:
        with self._held("_reading"):
            overwrite(connection, self._path)

    @property
    def identity(self) -> str:
        """Id of the store, drawn when its tables were created. A copy of the file has the same."""
        with self._read() as connection:
            return identity_of(connection)

    def changes(self) -> int:
        """Return a number that differs whenever another process or thread may have written to the file."""
        with self._read() as connection:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._version = version
                self._changes += 1
            return self._changes

    def hold(self) -> str:
        """Take the lease of this process, or renew it when ten seconds have passed, and return its id."""
        if self._pid == os.getpid() and self._leases.id is not None and not self._leases.is_due:
            return self._leases.id
        with self._held("_writing"):
            if self._writer is not None and self._writer.in_transaction:
                with self._explain_errors("written"):
                    return self._leases.hold(self._writer)
            with self.transaction():
                assert self._writer is not None  # noqa: S101 — the transaction has opened it
                return self._leases.hold(self._writer)

    def is_alive(self, process: str) -> bool | None:
        """Return whether the process with this id runs; None if that cannot be known."""
        with self._read() as connection:
            return self._leases.is_alive(connection, process)


class MemoryTables(ApprovalReads):
    """The tables of approvals of a store in memory. They end with their process, and a forked child begins with empty ones.

    Args:
        use: lends the connection of the store, with other threads kept out.
        max_rows: how many requests there may be. None is dropped to make room: a forgotten one could run its action once more.
    """

    lasting = False

    def __init__(self, use: Callable[[], AbstractContextManager[Connection]], max_rows: int = MAX_ROWS) -> None:
        self._use, self._max_rows = use, max_rows
        self._changes = 0
        self.forget()

    def forget(self) -> None:
        """Take another id, in a forked child."""
        self._process = secrets.token_hex(8)

    def _snapshot(self) -> AbstractContextManager[Connection]:
        return self._use()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writes]:
        """Return a block in which all is written or, after an exception, nothing; see `Tables.transaction`."""
        with self._use() as connection:
            if connection.in_transaction:
                raise StoreError("a transaction on approvals is open in this thread; end it before the next begins")
            writes = ApprovalWrites(connection, self._max_rows)
            try:
                with transaction(connection):
                    yield writes
            finally:
                writes.end()
            self._changes += 1

    @property
    def identity(self) -> str:
        """Id of the tables, drawn when they are created."""
        with self._use() as connection:
            return identity_of(connection)

    def changes(self) -> int:
        """Return a number that grows with each transaction."""
        return self._changes

    def hold(self) -> str:
        """Return the id of this process."""
        with self._use():  # in a forked child this draws another id
            return self._process

    def is_alive(self, process: str) -> bool | None:
        """Return True for this process; no other can know these tables."""
        return True if process == self._process else None
