"""The place of an index: a file beside the store's, or memory for a store in memory or in a folder that cannot be written.

Connections serve many threads, and are opened again after another file has replaced the index. A process that deletes runs erases them from
the index as well, so that lists and figures stay complete. Words cannot be erased: they stay in segments of their index until these are merged.
So that table is dropped. Whoever follows the store indexes the words again, and a search reads the texts until then.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, watch
from grace_kp.errors import StoreError
from grace_kp.store._catalog_index import LAST_POSITION, IndexWriter, create_tables, create_words, has_words, is_current
from grace_kp.store._database import (
    OpenFiles,
    connect,
    connect_to_existing,
    connect_to_memory,
    leave_to_parent,
    lock_folder,
    transaction,
)
from grace_kp.trace import keep_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grace_kp.store._catalog_source import Lender, Source


MOST_CONNECTIONS = 8
"""Connections to one file. More threads wait: the machine has fewer cores, and each connection has a cache of its own."""
ENDS = ("-wal", "-shm", "")
"""The files of a database. The log goes first: a database without its log is whole, a log without its database would be taken for that of
the next one."""
LOCK_SECONDS = 5.0
"""How long to wait for another process that writes to the index, or reads an old state of it."""
BUSY_SECONDS = 0.25
WRITER_CACHE_KB, READER_CACHE_KB = 64_000, 8_000


def index_of(store: Path) -> Path:
    """Return the path of the index of a store, whatever link the store was opened by."""
    return Path(f"{os.path.realpath(store)}.index")


def remove_index(store: Path) -> str:
    """Remove the index of a store."""
    path = index_of(store)
    try:
        if any(Path(f"{path}{end}").exists() for end in ENDS):
            with lock_folder(path.parent):
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
        """Lend a connection to the current thread."""
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
            return _open_watched(self._path, self._connect)
        with lock_folder(self._path.parent):
            self._create()
            return _open_watched(self._path, self._connect)

    def close(self) -> None:
        """Close the connections; those in use are closed when they come back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for connection, files in free:
            files.leave(connection)


def _open_watched(path: Path, open_file: Callable[[], sqlite3.Connection]) -> tuple[sqlite3.Connection, OpenFiles]:
    """Return a connection to a file, with the files that it uses."""
    files = OpenFiles(path)
    connection = open_file()
    try:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # opens the log
    except BaseException:
        connection.close()
        raise
    files.look_beside()
    return connection, files


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


@dataclass(slots=True)
class Place:
    """The location of an index, and its store."""

    source: Source
    readers: Lender
    writer: Lender
    """The connection that writes."""
    store: Path | None
    """The file of the store; None for an index in memory."""
    name: str
    """For messages."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection on which everything is read from one state of the index."""
        try:
            with self.readers.use() as connection:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the index {self.name} cannot be read: {error}") from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction that keeps other processes from writing."""
        with self.writer.use() as connection, transaction(connection):
            yield connection

    def rebuild(self) -> None:
        """Remove the index; it is begun anew when it is used next."""
        problem = "" if self.store is None else remove_index(self.store)
        if problem:
            raise StoreError(problem)

    def close(self) -> None:
        """Close all connections."""
        self.readers.close()
        self.writer.close()
        self.source.close()


def place_of(store: Any) -> Place:
    """Return where the index of a store is."""
    offered = getattr(store, "changes", None)
    if not callable(offered):
        raise StoreError(f"{type(store).__name__} cannot be followed by a catalog; use memory: or sqlite:///path.db")
    source: Source = offered()
    path, mode = getattr(store, "path", None), getattr(store, "file_mode", 0o600)
    if isinstance(path, Path):
        index = index_of(path)
        create = partial(_create_index, index, mode, source)
        readers = Connections(index, partial(_open_index, index, READER_CACHE_KB), create=create)
        try:
            with readers.use():
                pass
        except (OSError, sqlite3.OperationalError):  # for example a folder that cannot be written
            readers.close()
        else:
            writer = Connections(index, partial(_open_index, index, WRITER_CACHE_KB), create=create, most=1)
            return Place(source, readers, writer, path, str(index))
    connection = connect_to_memory()
    with transaction(connection):
        create_tables(connection, identity=source.identity(), with_words=False)
    only = OneConnection(connection)
    return Place(source, only, only, None, f"of {path or 'a store in memory'}")


def _open_index(path: Path, cache_kb: int) -> sqlite3.Connection:
    connection = connect(path, busy_seconds=BUSY_SECONDS)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{cache_kb}")
    return connection


def _create_index(path: Path, mode: int, source: Source) -> None:
    """Make sure that a usable index is at the path. Any other file there is replaced."""
    identity = source.identity()
    if not _is_usable(path, identity):
        for end in ENDS:
            Path(f"{path}{end}").unlink(missing_ok=True)
    keep_private(path, mode)
    with contextlib.closing(connect(path, busy_seconds=BUSY_SECONDS)) as connection:
        if is_current(connection, identity) is None:
            connection.execute("PRAGMA journal_mode = WAL")
            with transaction(connection):
                create_tables(connection, identity=identity, with_words=True)


def _is_usable(path: Path, identity: str) -> bool:
    if not path.exists():
        return False
    with contextlib.closing(connect(path, busy_seconds=BUSY_SECONDS)) as connection:
        try:
            return is_current(connection, identity) is not False
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            return False


class HeldIndex:
    """An index to which no other process writes from before a deletion until its runs are erased.

    Otherwise a follower could compare the index with the store in between, find that runs are missing, and build it again.
    """

    mark = ""
    """The mark of the deletion whose runs are to be erased; empty if there is none."""

    def __init__(self, connection: sqlite3.Connection, files: OpenFiles) -> None:
        self._connection, self._files = connection, files
        self._is_open = True
        self._runs: Sequence[str] = ()
        self._newest = self._label = 0

    def expect(self, store: sqlite3.Connection, runs: Sequence[str], mark: str) -> None:
        """Note, in the transaction that deletes these runs, what is to be erased and what the newest numbers are."""
        self._runs, self.mark = runs, mark
        (self._newest,) = store.execute("SELECT COALESCE(MAX(changed), 0) FROM traces").fetchone()
        (self._label,) = store.execute("SELECT COALESCE(MAX(number), 0) FROM feedback").fetchone()

    def erase(self) -> bool:
        """Erase the runs, and rewrite the file without free space and its log. Return whether nothing of them is left."""
        connection = self._connection
        try:
            IndexWriter(connection).remove(self._runs)
            # The numbers of deleted labels are used again.
            for name, newest in (("newest", self._newest), ("label", self._label)):
                connection.execute("UPDATE facts SET value = MIN(value, ?) WHERE name = ?", (newest, name))
            if has_words(connection):
                connection.execute("DROP TABLE words_terms")
                connection.execute("DROP TABLE words")
                create_words(connection)
                connection.execute("INSERT OR REPLACE INTO facts VALUES ('words_from', ?)", (LAST_POSITION,))
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            is_empty = _empty_log(connection)
        except sqlite3.Error:
            return False
        # An index that was put in its place meanwhile may have been filled before the deletion.
        return is_empty and not self._files.are_displaced

    def release(self) -> None:
        """Undo what was not finished, and close the file; nothing if it is closed."""
        if self._is_open:
            self._is_open = False
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._files.leave(self._connection)


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log; return whether that was possible."""
    deadline = time.monotonic() + LOCK_SECONDS
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # SQLite waits for readers, and not for a checkpoint by another process
    return True


def hold_index(store: Path, source: Source) -> HeldIndex | None:
    """Keep other processes from writing to the index of a store, and return it."""
    path = index_of(store)
    try:
        with lock_folder(path.parent):
            open_file = partial(connect_to_existing, path, busy_seconds=LOCK_SECONDS)
            connection, files = _open_watched(path, open_file)
    except (sqlite3.Error, OSError):
        return None
    held = HeldIndex(connection, files)
    try:
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KB}")
        connection.execute("BEGIN IMMEDIATE")
        if is_current(connection, source.identity()):
            return held
    except sqlite3.Error:
        pass
    held.release()
    return None
