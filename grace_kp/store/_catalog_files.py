"""The source of an index, which reads the runs of the store, and the place of the index: a file next to the store's, or memory.

A process that deletes runs erases them from the index as well, so that lists and figures stay complete. Words cannot be erased: they stay in
segments of their table until these are merged. So that table is dropped. The catalog of each process that serves the store indexes the words
again. Until then a search reads the contents of the runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from grace_kp.background import Resident, watch
from grace_kp.store._catalog_facts import StoredRun
from grace_kp.store._catalog_index import IndexWriter, create_tables, is_current
from grace_kp.store._database import (
    ONE_OF,
    Connection,
    Connections,
    DatabaseError,
    OperationalError,
    SharedConnection,
    connect,
    connect_to_existing,
    connect_to_memory,
    lock_folder,
    open_watched,
    transaction,
)
from grace_kp.trace import keep_private

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.background import Lock


BATCH_BYTES = 8 << 20
"""Documents read at a time, so that large ones do not fill the memory."""
ENDS = ("-wal", "-shm", "")
"""The files of a database. The log goes first: a database without its log is whole, but a log without its database would be read with
the next one."""
LOCK_SECONDS = 5.0
"""How long to wait for another process that writes to the index, or reads an old state of it."""
BUSY_SECONDS = 0.25
WRITER_CACHE_KB, READER_CACHE_KB = 64_000, 8_000


def index_of(store: Path) -> Path:
    """Return the path of the index of a store, whatever link the store was opened by."""
    return Path(f"{os.path.realpath(store)}.index")


def remove_index(store: Path) -> str:
    path = index_of(store)
    try:
        if any(Path(f"{path}{end}").exists() for end in ENDS):
            with lock_folder(path.parent):
                for end in ENDS:
                    Path(f"{path}{end}").unlink(missing_ok=True)
    except OSError as error:
        return f"{path} could not be removed ({error}) and may hold deleted contents; remove it, it is built again"
    return ""


class Extent(NamedTuple):
    newest: int
    """The largest number; 0 for an empty store."""
    runs: int
    """Runs with a number above the one that was asked about."""


class Source:
    """The runs in a database, with feedback, read over connections that no recorder waits for. Each read ends at once.

    The number of a run is its `changed`: it grows with each version of each run.
    """

    def __init__(self, connections: Connections | SharedConnection) -> None:
        self._connections = connections

    def identity(self) -> str:
        """Return the inode of the file, when it was created, and the id that it got with the tables of approvals."""
        sql = "SELECT MIN(applied_at), (SELECT COALESCE(MIN(id), '') FROM approval_identity) FROM schema_migrations"
        ((applied, own),) = self._rows(sql)
        return f"{self._connections.file} {applied} {own}"

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with self._connections.use() as connection:
            return connection.execute(sql, values).fetchall()

    def newest_numbers(self) -> tuple[int, int]:
        sql = "SELECT (SELECT COALESCE(MAX(changed), 0) FROM traces), (SELECT COALESCE(MAX(number), 0) FROM feedback)"
        newest, label = self._rows(sql)[0]
        return newest, label

    def extent(self, above: int = 0) -> Extent:
        """Return both figures from one snapshot; the count reads the smallest index."""
        sql = "SELECT (SELECT COALESCE(MAX(changed), 0) FROM traces), (SELECT COUNT(*) FROM traces WHERE changed > ?)"
        return Extent(*self._rows(sql, above)[0])

    def unseen(self, above: int, limit: int) -> int:
        """Return how many runs have a number above this one, and no more than `limit`."""
        return len(self._rows("SELECT 1 FROM traces WHERE changed > ? LIMIT ?", above, limit))

    def after(self, number: int, limit: int, *, back: bool = False) -> list[StoredRun]:
        """Return the next runs with larger numbers; with `back`, runs with this number or smaller ones, largest first."""
        condition = "changed <= ? ORDER BY changed DESC" if back else "changed > ? ORDER BY changed"
        found: list[StoredRun] = []
        size = 0
        with self._connections.use() as connection:
            columns = "changed, id, created_at, domain, score, success, status, text, data"
            sql = f"SELECT {columns} FROM traces WHERE {condition} LIMIT ?"  # noqa: S608
            cursor = connection.execute(sql, (number, limit))
            for row in cursor:
                found.append(StoredRun(*row))
                size += len(found[-1].data) + len(found[-1].text)
                if size > BATCH_BYTES:
                    break
            cursor.close()
        return found

    def ids(self) -> set[str]:
        return {name for (name,) in self._rows("SELECT id FROM traces")}

    def feedback(self, after: int, limit: int) -> list[tuple[int, str]]:
        return self._rows("SELECT number, trace FROM feedback WHERE number > ? ORDER BY number LIMIT ?", after, limit)

    def find_labelled(self, ids: Sequence[str]) -> set[str]:
        sql = f"SELECT DISTINCT trace FROM feedback WHERE trace {ONE_OF}"  # noqa: S608
        return {name for (name,) in self._rows(sql, json.dumps(list(ids)))}

    def containing(self, numbers: Sequence[int], folded: str) -> set[int]:
        """Return the numbers of those runs that contain a case-folded string."""
        sql = f"SELECT changed FROM traces WHERE changed {ONE_OF} AND instr(text, ?) > 0"  # noqa: S608
        return {number for (number,) in self._rows(sql, json.dumps(list(numbers)), folded)}

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the searchable strings of these runs, up to about `BATCH_BYTES`."""
        found: list[str | None] = []
        size = 0
        for number in numbers:
            rows = self._rows("SELECT text FROM traces WHERE changed = ?", number)
            found.append(rows[0][0] if rows else None)
            size += len(rows[0][0]) if rows else 0
            if size > BATCH_BYTES:
                break
        return found

    def close(self) -> None:
        self._connections.close()


class IndexInMemory(SharedConnection, Resident):
    """An index in memory. A forked child begins another one."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        watch(self)

    def _open(self) -> Connection:
        self._connection = connection = connect_to_memory()
        with transaction(connection):
            create_tables(connection, identity=self._source.identity(), with_words=False)
        return connection

    def fork_locks(self) -> Sequence[Lock]:
        return (self.lock,)


def _open_index(path: Path, cache_kb: int) -> Connection:
    connection = connect(path, busy_seconds=BUSY_SECONDS)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{cache_kb}")
    return connection


def open_index(path: Path, mode: int, source: Source) -> tuple[Connections, Connections]:
    """Return connections that read an index and one that writes it. They create the file, where it is missing or not usable."""
    create = partial(_create_index, path, mode, source)
    readers = Connections(path, partial(_open_index, path, READER_CACHE_KB), create=create)
    try:
        with readers.use():
            pass
    except BaseException:
        readers.close()
        raise
    return readers, Connections(path, partial(_open_index, path, WRITER_CACHE_KB), create=create, most=1)


def _create_index(path: Path, mode: int, source: Source) -> None:
    """Make sure that a usable index is at the path. Any other file there is replaced."""
    identity = source.identity()
    is_usable = _is_usable(path, identity)
    for end in () if is_usable else ENDS:
        Path(f"{path}{end}").unlink(missing_ok=True)
    keep_private(path, mode)
    if is_usable:
        return
    with contextlib.closing(connect(path, busy_seconds=BUSY_SECONDS)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            create_tables(connection, identity=identity, with_words=True)


def _is_usable(path: Path, identity: str) -> bool:
    if not path.exists():
        return False
    with contextlib.closing(connect(path, busy_seconds=BUSY_SECONDS)) as connection:
        try:
            return is_current(connection, identity)
        except DatabaseError as error:
            if isinstance(error, OperationalError):
                raise
            return False


def erase_deleted(store: Path, source: Source) -> str:
    """Erase the runs that the store no longer holds from its index, or remove the index. Return why it may still hold some."""
    return "" if _erase_deleted(index_of(store), source) else remove_index(store)


def _erase_deleted(path: Path, source: Source) -> bool:
    """Rewrite an index without deleted runs, without free space and its log; return whether nothing of them is left."""
    try:
        with lock_folder(path.parent):
            connection, files = open_watched(path, partial(connect_to_existing, path, busy_seconds=LOCK_SECONDS))
    except (DatabaseError, OSError):
        return False
    try:
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KB}")
        with transaction(connection):
            if not is_current(connection, source.identity()):
                return False
            IndexWriter(connection).erase_all_but(source.ids(), source.extent().newest)
        connection.execute("VACUUM")
        # An index that was put in its place meanwhile may have been filled before the deletion.
        return _empty_log(connection) and not files.are_displaced
    except DatabaseError:
        return False
    finally:
        files.leave(connection)


def _empty_log(connection: Connection) -> bool:
    deadline = time.monotonic() + LOCK_SECONDS
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # SQLite waits for readers, and not for a checkpoint by another process
    return True
