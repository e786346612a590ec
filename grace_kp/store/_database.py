"""Connections to SQLite, transactions, and the files behind a connection. No other module of this room imports `sqlite3`.

SQLite finds the write-ahead log (`-wal`) and its index (`-shm`) of a database by their names. So SQLite would read a log that is left
behind as the log of the next database at the path, and processes with different databases would share the index.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import Resident, is_mine, watch
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.background import Lock

Connection = sqlite3.Connection
DatabaseError = sqlite3.Error
IntegrityError = sqlite3.IntegrityError
OperationalError = sqlite3.OperationalError
ONE_OF = "IN (SELECT value FROM json_each(?))"
"""Compares a column with a JSON list of any length."""
NO_CHECKPOINT_ON_CLOSE = 1006
"""SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE of SQLite."""
STEPS = 2_000
"""Steps of SQLite's machine between two looks at the clock."""
MOST_CONNECTIONS = 8
"""Connections to one file. More threads wait, because each connection has its own cache."""
Identity = tuple[int, int] | None


def connect(path: Path | str, *, busy_seconds: float, is_uri: bool = False) -> Connection:
    return sqlite3.connect(path, uri=is_uri, timeout=busy_seconds, isolation_level=None, check_same_thread=False)


def connect_to_read(path: Path, *, busy_seconds: float) -> Connection:
    """Return a connection to a file that must exist. See `open_to_read`, which keeps it from writing.

    A read-only connection to a file in WAL mode leaves `-wal` and `-shm` behind, because only a writer may remove them. So the
    connection may write, and `query_only` keeps it from writing. A file without write permission and without a WAL is opened as immutable.
    """
    path = path.resolve()
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    as_it_is = not writable and not Path(f"{path}-wal").exists()
    uri = f"{path.as_uri()}?{'mode=ro&immutable=1' if as_it_is else 'mode=rw'}"
    return connect(uri, busy_seconds=busy_seconds, is_uri=True)


def connect_to_existing(path: Path, *, busy_seconds: float) -> Connection:
    """Return a connection to a file that is not created where it is gone."""
    return connect(f"{path.absolute().as_uri()}?mode=rw", busy_seconds=busy_seconds, is_uri=True)


def connect_to_memory() -> Connection:
    return connect(":memory:", busy_seconds=0.0)


def switch_to_wal(connection: Connection, busy_seconds: float) -> None:
    """Let readers and a writer work at the same time."""
    deadline = time.monotonic() + busy_seconds
    while True:  # unlike other statements, this one does not wait while another process makes the same switch
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def is_busy(error: BaseException) -> bool:
    """Return whether a statement failed because another connection keeps the file locked."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def is_read_only(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY


@contextlib.contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Write all that is written inside, or nothing of it after an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def close_on_error(connection: Connection) -> Iterator[None]:
    """Close a connection that cannot be prepared in the block."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


@contextlib.contextmanager
def stopping_at(connection: Connection, deadline: float | None) -> Iterator[None]:
    """Leave the block without an error when a statement in it still runs at the deadline."""
    if deadline is None:
        yield
        return
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
    try:
        yield
    except OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
    finally:
        connection.set_progress_handler(None, 0)


class SharedConnection:
    """One connection for the threads of a process, one at a time."""

    path: Path | str
    """For messages."""
    file: Identity = None
    """Device and inode of the file; None for a database in memory."""
    lock_seconds = -1.0
    """Time that a thread waits for the others; without end if negative."""
    _connection: Connection | None = None

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while the connection is used."""
        self.abandoned: list[Connection] = []
        self._pid = os.getpid()

    def _open(self) -> Connection:
        raise NotImplementedError

    def _leave(self, connection: Connection) -> None:
        connection.close()

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # Python warns about a connection that is left to be collected. At the end of the process the module's names are gone.
        if self._connection is not None and self._pid == getpid():
            self._connection.close()

    @property
    def _is_mine(self) -> bool:
        return self._pid == os.getpid()

    def after_fork(self) -> None:
        """Replace lock and connection in a forked child. The connection is the parent's."""
        if self._is_mine:
            return
        if self._connection is not None and not leave_to_parent(self._connection, self.lock):
            self.abandoned.append(self._connection)  # kept, because garbage collection would close it
        self.lock = threading.RLock()
        self._pid, self._connection = os.getpid(), None

    def leave_parent(self) -> bool:
        """Leave the parent's connection in a forked child; return whether none is open here any more."""
        with self.lock:
            self.after_fork()
            return not self.abandoned

    @contextlib.contextmanager
    def _explain_errors(self, problem: str) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            raise StoreError(f"store {self.path}: {problem}: {error}") from error

    @contextlib.contextmanager
    def use(self, *, write: bool = False) -> Iterator[Connection]:
        """Lend the connection to the current thread, with `write` in a transaction."""
        lock = self.lock
        if not lock.acquire(timeout=self.lock_seconds):
            raise StoreError(
                f"store {self.path}: another thread of this process has used it for {self.lock_seconds:g} s; nothing was written; try again"
            )
        try:
            self.after_fork()
            connection = self._connection or self._open()
            with transaction(connection) if write else contextlib.nullcontext():
                yield connection
        finally:
            lock.release()

    def close(self) -> None:
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._is_mine:
                self._leave(connection)


class OpenFiles:
    """Device and inode of the files that a connection has opened. Create it right before the connection. The path may be a symbolic link."""

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
        """Whether the path names the opened database."""
        return _identity(self._path) == self._database

    def leave(self, connection: Connection) -> None:
        """Close the connection. Keep its writes where possible, and do not touch other files at the paths."""
        if _identity(self._real) != self._database:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that a renamed database has everything
            with contextlib.suppress(OSError), lock_folder(self._real.parent):
                # Removed before the connection is closed, because the number of a closed inode may be used again.
                for path, opened in self._beside.items():
                    if _identity(path) == opened:
                        path.unlink()
        elif any(_identity(path) not in {None, opened} for path, opened in self._beside.items()):
            # Another process has begun a new log for this database. The old one must not overwrite what that process wrote.
            configure: Any = getattr(connection, "setconfig", None)  # from Python 3.12 on
            if configure is not None:
                configure(NO_CHECKPOINT_ON_CLOSE, True)
        connection.close()


class Connections(Resident):
    """A few connections to one file for many threads. They are opened again after another file has replaced it.

    `create` creates a missing file, while other processes are kept from creating or removing it.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], Connection],
        *,
        create: Callable[[], object] | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self._path, self._connect, self._create, self._most = path, connect, create, most
        self._abandoned: list[Connection] = []
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._free: list[tuple[Connection, OpenFiles]] = []
        self._lock = threading.RLock()
        self._room = threading.BoundedSemaphore(self._most)
        self._is_closed = False

    def fork_locks(self) -> Sequence[Lock]:
        return (self._lock,)

    def after_fork(self) -> None:
        for connection, _ in self._free:
            if not leave_to_parent(connection, self._lock):
                self._abandoned.append(connection)
        self._begin()

    @property
    def file(self) -> Identity:
        """Device and inode of the file that the path names now; None if there is none."""
        return _identity(self._path)

    @contextlib.contextmanager
    def use(self) -> Iterator[Connection]:
        with self._room:
            connection, files = self._take()
            try:
                yield connection
            finally:
                # The stand-ins of `open_to_read` would hide the tables of a file that another process migrates.
                if connection.execute("SELECT 1 FROM temp.sqlite_master LIMIT 1").fetchone():
                    files.leave(connection)
                else:
                    with self._lock:
                        self._free.append((connection, files))
                if self._is_closed:
                    self.close()

    def _take(self) -> tuple[Connection, OpenFiles]:
        while True:
            with self._lock:
                if not self._free:
                    break
                connection, files = self._free.pop()
            if not files.are_displaced:
                return connection, files
            files.leave(connection)
        if self._create is None:
            return open_watched(self._path, self._connect)
        with lock_folder(self._path.parent):
            self._create()
            return open_watched(self._path, self._connect)

    def close(self) -> None:
        """Close the connections; those in use are closed when they come back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for connection, files in free:
            files.leave(connection)


def open_watched(path: Path, open_file: Callable[[], Connection]) -> tuple[Connection, OpenFiles]:
    """Return a connection to a file, with the files that it uses."""
    files = OpenFiles(path)
    connection = open_file()
    with close_on_error(connection):
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # opens the log
    files.look_beside()
    return connection, files


def leave_to_parent(connection: Connection, lock: object) -> bool:
    """Close a parent's connection in its forked child; return False, and leave it open, if it was in use during the fork.

    SQLite keeps a list of the locks of its process, and a child inherits the list without the locks. While a connection of the parent is
    open in the child, any other there relies on that list: another process could take the file for unused and remove the log, with what the
    child is about to write. Closing a connection that is idle in WAL mode changes nothing for the parent.
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
def lock_folder(folder: Path) -> Iterator[None]:
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
