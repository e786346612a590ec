"""The place of an index: a file beside the store's, or memory for a store in memory or in a folder that cannot be written."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.store._catalog_files import ENDS, Connections, OneConnection, index_of, remove_index
from grace_kp.store._catalog_schema import create_tables, is_current
from grace_kp.store._database import transaction
from grace_kp.trace import keep_private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.store._catalog_source import Source

BUSY_SECONDS = 0.25
WRITER_CACHE_KB, READER_CACHE_KB = 64_000, 8_000


@dataclass(slots=True)
class Place:
    """The location of an index, and its store."""

    source: Source
    readers: Connections | OneConnection
    writer: Connections | OneConnection
    """The connection that writes."""
    store: Path | None
    """The file of the store; None for an index in memory."""
    name: str
    """For messages."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection on which everything is read from one state of the index.

        Raises:
            StoreError: the index cannot be read.
        """
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
        """Lend the connection that writes, in a transaction that keeps other processes from writing.

        Raises:
            sqlite3.OperationalError: another process writes.
        """
        with self.writer.use() as connection, transaction(connection):
            yield connection

    def rebuild(self) -> None:
        """Remove the index; it is begun anew when it is used next.

        Raises:
            StoreError: the file cannot be removed.
        """
        problem = "" if self.store is None else remove_index(self.store)
        if problem:
            raise StoreError(problem)

    def close(self) -> None:
        """Close all connections."""
        self.readers.close()
        self.writer.close()
        self.source.close()


def place_of(store: Any) -> Place:
    """Return where the index of a store is.

    Raises:
        StoreError: the store offers nothing that a catalog can follow.
    """
    offered = getattr(store, "changes", None)
    if not callable(offered):
        raise StoreError(f"{type(store).__name__} cannot be followed by a catalog; use memory: or sqlite:///path.db")
    source: Source = offered()
    path, mode = getattr(store, "path", None), getattr(store, "file_mode", 0o600)
    if isinstance(path, Path):
        index = index_of(path)
        create = _creator(index, mode, source)
        readers = Connections(index, _connector(index, READER_CACHE_KB), create=create)
        try:
            with readers.use():
                pass
        except (OSError, sqlite3.OperationalError):  # for example a folder that cannot be written
            readers.close()
        else:
            writer = Connections(index, _connector(index, WRITER_CACHE_KB), create=create, most=1)
            return Place(source, readers, writer, path, str(index))
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with transaction(connection):
        create_tables(connection, identity=source.identity(), with_words=False)
    only = OneConnection(connection)
    return Place(source, only, only, None, f"of {path or 'a store in memory'}")


def _connector(path: Path, cache_kb: int) -> Any:
    """Return a function that opens an index."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{cache_kb}")
        return connection

    return connect


def _creator(path: Path, mode: int, source: Source) -> Any:
    """Return a function that makes sure that a usable index stands at the path; it begins anew in place of any other file."""

    def create() -> None:
        identity = source.identity()
        if not _is_usable(path, identity):
            for end in ENDS:
                Path(f"{path}{end}").unlink(missing_ok=True)
        keep_private(path, mode)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            if is_current(connection, identity) is None:
                connection.execute("PRAGMA journal_mode = WAL")
                with transaction(connection):
                    create_tables(connection, identity=identity, with_words=True)
        finally:
            connection.close()

    return create


def _is_usable(path: Path, identity: str) -> bool:
    if not path.exists():
        return False
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        return is_current(connection, identity) is not False
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
