"""Erasing deleted runs from the index beside a store, in the process that deletes them, so that lists and figures stay complete.

Words cannot be erased from their index: they stay in its segments until these are merged. So that table is dropped. Whoever follows the store
indexes the words again, and a search reads the texts until then.
"""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

from grace_kp.store._catalog_files import index_of
from grace_kp.store._catalog_index import IndexWriter
from grace_kp.store._catalog_schema import LAST_POSITION, create_words, has_words, is_current
from grace_kp.store._database import OpenFiles, locked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from grace_kp.store._catalog_source import Source

LOCK_SECONDS = 5.0
"""How long to wait for another process that writes to the index, or reads an old state of it."""
CACHE_KB = 64_000


class HeldIndex:
    """An index that nobody else writes to from before a deletion until its runs are erased.

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
        """Note, in the transaction that deletes these runs, what is to be erased and what the newest numbers are.

        Args:
            store: the connection to the store.
            runs: the ids of the runs.
            mark: the mark of the deletion.
        """
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
    """Return the index of a store, with other processes kept from writing to it.

    Args:
        store: the file of the store.
        source: the store.

    Returns:
        The index; None if there is none, if it is that of another store or version, or if others do not let go of it.
    """
    path = index_of(store)
    try:
        with locked(path.parent):
            files = OpenFiles(path)
            connection = sqlite3.connect(
                f"{path.as_uri()}?mode=rw",
                uri=True,
                timeout=LOCK_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # opens the log
            except sqlite3.Error:
                connection.close()
                return None
            files.look_beside()
    except (sqlite3.Error, OSError):
        return None
    held = HeldIndex(connection, files)
    try:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        connection.execute("BEGIN IMMEDIATE")
        if is_current(connection, source.identity()):
            return held
    except sqlite3.Error:
        pass
    held.release()
    return None
