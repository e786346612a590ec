"""Bringing an index up to date: what is new in a store first, then what is older, from the newest back, then words that a deletion took along,
in short transactions.

Where it stands is kept in the index and changes in the same transaction as the runs. So a crash loses nothing, and processes that index the
same store take turns.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from grace_kp.background import Resident, watch
from grace_kp.store._catalog_index import IndexWriter
from grace_kp.store._catalog_rows import Progress

if TYPE_CHECKING:
    from grace_kp.store._catalog_place import Place
    from grace_kp.store._catalog_source import StoredRun

BATCH = 100
"""Runs of a transaction while others write to the store."""
OLD_BATCH = 1_000
"""Runs of a transaction otherwise: each transaction leaves a segment of words that must be merged."""
LABELS = 1_000
CHECK_SECONDS = 30.0
"""Seconds between two comparisons of the number of runs with that of the store."""
MOST_UNSEEN = 1_000
COUNT_SECONDS = 1.0
"""Greatest age, in seconds, of the number of runs that is shown."""


class Follower(Resident):
    """Brings an index up to date. Several threads may use it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._version: int | None = None
        self._up_to_date: object = None
        self._checked_at: float | None = None
        self._counted: tuple[float, int] | None = None
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Begin anew in a forked child: the parent's thread may hold the lock."""
        self._lock = threading.RLock()
        self._writer: IndexWriter | None = None
        self._connection: sqlite3.Connection | None = None

    def progress(self, *, counted_now: bool = False) -> Progress:
        """Return how much of the store is indexed.

        Args:
            counted_now: count the runs of the store even if they were counted a moment ago.

        Raises:
            StoreError: the index cannot be read.
        """
        with self._place.reading() as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
        done = facts["runs"]
        if not counted_now and facts.get("oldest") == 0:
            unseen = self._place.source.unseen(facts["newest"], MOST_UNSEEN)
            if unseen < MOST_UNSEEN:  # counting all runs takes longer
                return Progress(done=done, total=done + unseen, unreadable=facts["unreadable"])
        now = time.monotonic()
        if counted_now or self._counted is None or now - self._counted[0] > COUNT_SECONDS:
            self._counted = now, self._place.source.extent().runs
        return Progress(done=done, total=max(self._counted[1], done), unreadable=facts["unreadable"])

    def check(self, *, now: bool = False) -> bool:
        """Drop what the store no longer holds, and an index of another store. It looks from time to time, or `now`.

        Returns:
            Whether the index is as it was; False if something was dropped, or if another process writes to the index.

        Raises:
            sqlite3.Error, OSError, StoreError: the store or the index cannot be used.
        """
        with self._lock:
            at = time.monotonic()
            if not now and self._checked_at is not None and at - self._checked_at < CHECK_SECONDS:
                return True
            try:
                is_kept = self._compare()
            except sqlite3.DatabaseError as error:
                if _is_busy(error):
                    return False  # for example because it erases deleted runs
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self._place.rebuild()  # the file is damaged
                is_kept = False
            if not is_kept:
                self._up_to_date = None
            self._checked_at = at
            return is_kept

    def _compare(self) -> bool:
        source = self._place.source
        with self._place.writing() as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
            is_other = facts["store"] != source.identity()
            if not is_other and facts.get("newest") is None:
                return True
            extent = source.extent(0 if is_other else facts["oldest"])
            has_lost = extent.newest < facts["newest"] or (
                extent.newest == facts["newest"] and extent.runs != facts["runs"]
            )
            if (has_lost or is_other) and self._place.store is None:  # an index in memory cannot be removed
                kept = set() if is_other else set(source.ids())
                ids = [name for (name,) in connection.execute("SELECT id FROM shown")]
                self._writer_on(connection).remove([name for name in ids if name not in kept])
                # The newest run may be gone, and the numbers of labels are used again.
                connection.execute("UPDATE facts SET value = MIN(value, ?) WHERE name = 'newest'", (extent.newest,))
                connection.execute("UPDATE facts SET value = 0 WHERE name = 'label'")
                if is_other:  # such as that of a forked child
                    connection.execute("DELETE FROM facts WHERE name IN ('newest', 'oldest')")
                    connection.execute("UPDATE facts SET value = ? WHERE name = 'store'", (source.identity(),))
                return False
        if is_other or has_lost:
            self._place.rebuild()
        return not (is_other or has_lost)

    def advance(self, *, is_busy: bool = False) -> bool:
        """Index the next runs or labels, in one transaction. Return whether nothing is left.

        Args:
            is_busy: whether others are busy, so that a transaction should be short.

        Raises:
            sqlite3.Error, OSError: the store or the index cannot be used.
        """
        with self._lock:
            try:
                with self._place.writer.use() as connection:
                    (version,) = connection.execute("PRAGMA data_version").fetchone()  # changes when others write
                state = (self._place.source.changed(), self._place.writer.file, version)
                if state == self._up_to_date:
                    return True
                with self._place.writing() as connection:
                    is_done = self._index_next(connection, BATCH if is_busy else OLD_BATCH)
            except sqlite3.Error as error:
                self._writer = None
                if _is_busy(error):
                    return False  # another process indexes
                raise
            self._up_to_date = state if is_done else None
            return is_done

    def _index_next(self, connection: sqlite3.Connection, batch: int) -> bool:
        source = self._place.source
        facts = dict(connection.execute("SELECT name, value FROM facts WHERE name IN ('newest', 'oldest', 'label')"))
        if facts.get("newest") is None:
            facts["newest"] = facts["oldest"] = source.extent().newest
        newest, oldest, label = (int(facts[name]) for name in ("newest", "oldest", "label"))
        is_done = False
        if runs := source.after(newest, batch):
            self._add(connection, runs)
            newest = runs[-1].number
        elif labels := source.feedback(label, LABELS):
            self._writer_on(connection).label([name for _, name in labels])
            label = labels[-1][0]
        elif oldest and (runs := source.up_to(oldest, batch)):
            self._add(connection, runs)
            oldest = runs[-1].number - 1
        else:
            oldest = 0
            is_done = not self._writer_on(connection).add_words(source.texts, batch)
        values = {"newest": newest, "oldest": oldest, "label": label}
        if values != facts:
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", values.items())
        return is_done

    def _add(self, connection: sqlite3.Connection, runs: list[StoredRun]) -> None:
        self._writer_on(connection).add(runs, self._place.source.labelled([run.id for run in runs]))

    def _writer_on(self, connection: sqlite3.Connection) -> IndexWriter:
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if self._writer is None or self._connection is not connection:
            self._writer, self._connection = IndexWriter(connection), connection
        elif version != self._version:
            self._writer.forget_names()
        self._version = version
        return self._writer

    def close(self) -> None:
        """Forget the connection."""
        with self._lock:
            self._writer = self._connection = None


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
