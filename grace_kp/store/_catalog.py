"""The catalog of a store: an index for pages, in a file next to the store. The process that serves the pages keeps it, never a recorder.

The catalog follows the store in the background, whichever process records, completes or deletes runs. Everything in the index can be derived
from the store, so the file may be deleted at any time.

The follower indexes new runs first, then labels, then older runs from the newest back, and last the words that a deletion removed. Its
progress is kept in the index and changes in the same short transaction as the runs. So a crash loses nothing, and processes that index the
same store take turns.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import Resident, Worker, watch
from grace_kp.errors import StoreError
from grace_kp.store._catalog_facts import AGENT, DOMAIN, SCORER, STATUS, TAGGED, Group, RunFigures, read_figures
from grace_kp.store._catalog_files import IndexInMemory, index_of, open_index, remove_index
from grace_kp.store._catalog_index import IndexWriter
from grace_kp.store._catalog_search import CatalogQuery, RunPage, RunRow, Search
from grace_kp.store._database import DatabaseError, OperationalError, is_busy, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grace_kp.store._catalog_files import Source
    from grace_kp.store._database import Connection, Connections, SharedConnection


__all__ = ["Catalog", "CatalogQuery", "Group", "Progress", "RunFigures", "RunPage", "RunRow", "open_catalog"]

NAMES = {"agent": AGENT, "domain": DOMAIN, "status": STATUS, "tag": TAGGED, "scorer": SCORER}
LOOK_SECONDS = 0.5
"""Seconds between two looks for new runs."""
FAILED_SECONDS = 5.0
"""Seconds between two attempts while the store or the index cannot be used."""
TURN_SECONDS = 0.05
"""Seconds of work at a time."""
BUSY_RATE = 20.0
"""Runs and labels stored per second from which on others count as busy. They have the same processors and the same disk."""
BUSY_SHARE, QUIET_SHARE = 0.04, 0.7
"""Share of the time for which it works while others are busy, and otherwise."""
RATE_SECONDS = 0.2
"""Seconds over which the rate is measured."""
STOP_SECONDS = 5.0
BATCH = 100
"""Runs of a transaction while others write to the store."""
OLD_BATCH = 1_000
"""Runs of a transaction otherwise: each transaction leaves a segment of words that must be merged."""
LABELS = 1_000
CHECK_SECONDS = 30.0
"""Seconds between two comparisons of the number of runs with that of the store."""
MOST_UNSEEN = 1_000
_log = logging.getLogger("grace_kp.store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How much of the store is indexed."""

    done: int
    total: int
    unreadable: int = 0
    """Indexed runs whose document is not the JSON of a trace. They are found by their columns only."""


class Catalog(Resident):
    """The index of a store. Several threads may use it."""

    def __init__(self, store: Any) -> None:
        offered = getattr(store, "changes", None)
        if not callable(offered):
            raise StoreError(
                f"{type(store).__name__} cannot be followed by a catalog; use memory: or sqlite:///path.db"
            )
        self._source: Source = offered()
        self._store: Path | None = None
        """The file of the store; None for an index in memory."""
        self._readers: Connections | SharedConnection
        self._writer: Connections | SharedConnection
        self._readers = self._writer = IndexInMemory(self._source)
        path, mode = getattr(store, "path", None), getattr(store, "file_mode", 0o600)
        self._name = f"of {path or 'a store in memory'}"
        if isinstance(path, Path):
            with contextlib.suppress(OSError, OperationalError):  # for example a folder that cannot be written
                self._readers, self._writer = open_index(index_of(path), mode, self._source)
                self._store, self._name = path, str(index_of(path))
        self._worker = Worker(self._work, name="catalog")
        self._rate_seen = (-math.inf, 0)
        self._is_busy = False
        """Whether others write much to the store."""
        self._trouble = ""
        self._checked_at: float | None = None
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Replace the lock in a forked child: a thread of the parent may hold it."""
        self._lock = threading.RLock()
        self._up_to_date: object = None

    def find(
        self,
        query: CatalogQuery,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        seconds: float = 0.15,
    ) -> RunPage:
        """Return a page of the runs that meet a query, newest first.

        Args:
            query: the conditions.
            before: only runs older than this position.
            after: only runs newer than this position, nearest first.
            limit: rows of the page.
            seconds: how long to search at most.

        Raises:
            ValueError: a time of the query cannot be read.
        """
        with self._reading() as connection:
            return Search(connection, self._source, seconds).page(query, before, after, limit)

    def names(self, kind: str, limit: int = 200) -> list[str]:
        """Return the values of `agent`, `domain`, `status`, `tag` or `scorer` that occur, most frequent first.

        Raises:
            ValueError: the kind is unknown.
        """
        if kind not in NAMES:
            raise ValueError(f"kind must be one of {', '.join(NAMES)}, not {kind!r:.60}")
        with self._reading() as connection:
            found = connection.execute(
                "SELECT name FROM names WHERE kind = ? AND runs > 0 ORDER BY runs DESC, name LIMIT ?",
                (NAMES[kind], limit),
            )
            return [name for (name,) in found]

    def figures(self, since: str, until: str, *, agent: str | None = None) -> RunFigures:
        """Return the figures of the runs that began on these days (`2026-11-01`, both included; UTC).

        Raises:
            ValueError: a day is not a date.
        """
        with self._reading() as connection:
            return read_figures(connection, since, until, agent)

    def progress(self) -> Progress:
        """Return how much of the store is indexed."""
        with self._reading() as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
        done = facts["runs"]
        if facts.get("oldest") == 0:
            unseen = self._source.unseen(facts["newest"], MOST_UNSEEN)
            if unseen < MOST_UNSEEN:  # counting all runs takes longer
                return Progress(done=done, total=done + unseen, unreadable=facts["unreadable"])
        return Progress(done=done, total=max(self._source.extent().runs, done), unreadable=facts["unreadable"])

    def refresh(self, seconds: float | None = None) -> Progress:
        """Index what is new, for at most this long, and return the progress.

        Raises:
            StoreError: the store or the index cannot be used.
        """
        try:
            deadline = None if seconds is None else time.monotonic() + seconds
            is_current = False
            while not is_current:
                is_done = self._advance()
                is_current = is_done and self._check(now=True)
                if deadline is not None and time.monotonic() > deadline:
                    break
        except (DatabaseError, OSError) as error:
            raise StoreError(f"the index {self._name} cannot be brought up to date: {error}") from error
        return self.progress()

    def follow(self) -> None:
        """Keep the index up to date in the background until `close`."""
        self._worker.wake()

    def close(self) -> None:
        """Stop following, and release files."""
        self._worker.stop(STOP_SECONDS)
        self._readers.close()
        self._writer.close()
        self._source.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Lend a connection on which everything is read from one state of the index."""
        try:
            with self._readers.use() as connection:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
        except (DatabaseError, OSError) as error:
            raise StoreError(f"the index {self._name} cannot be read: {error}") from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._writer.use() as connection, transaction(connection):
            yield connection

    def _rebuild(self) -> None:
        if self._store is None:
            self._writer.close()  # an index in memory begins again when it is next opened
        elif problem := remove_index(self._store):
            raise StoreError(problem)

    def _work(self) -> float:
        """Index for a short while; return when to go on."""
        start = time.monotonic()
        try:
            if (elapsed := start - self._rate_seen[0]) >= RATE_SECONDS:
                newest = sum(self._source.newest_numbers())
                self._is_busy = (newest - self._rate_seen[1]) / elapsed > BUSY_RATE
                self._rate_seen = start, newest
            self._check(now=self._store is None)
            is_done = self._advance(is_short=self._is_busy)
            while not is_done and time.monotonic() - start < TURN_SECONDS:
                is_done = self._advance(is_short=self._is_busy)
        except (DatabaseError, OSError, StoreError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("the index %s cannot be brought up to date, it is tried again: %s", self._name, error)
            return FAILED_SECONDS
        self._trouble = ""
        if is_done:
            return LOOK_SECONDS
        share = BUSY_SHARE if self._is_busy else QUIET_SHARE
        return (time.monotonic() - start) * (1 / share - 1)

    def _check(self, *, now: bool = False) -> bool:
        """Drop runs that the store no longer holds, or an index of another store; every `CHECK_SECONDS`, or `now`. Return whether all was kept."""
        with self._lock:
            at = time.monotonic()
            if not now and self._checked_at is not None and at - self._checked_at < CHECK_SECONDS:
                return True
            try:
                is_kept = self._compare()
            except DatabaseError as error:
                if is_busy(error):
                    return False  # for example because it erases deleted runs
                if isinstance(error, OperationalError):
                    raise
                self._rebuild()  # the file is damaged
                is_kept = False
            if not is_kept:
                self._up_to_date = None
            self._checked_at = at
            return is_kept

    def _compare(self) -> bool:
        source = self._source
        with self._writing() as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
            if facts["store"] == source.identity():
                if facts.get("newest") is None:
                    return True
                extent = source.extent(facts["oldest"])
                if extent.newest > facts["newest"] or extent == (facts["newest"], facts["runs"]):
                    return True
                IndexWriter(connection).erase_all_but(source.ids(), extent.newest)
                (runs,) = connection.execute("SELECT value FROM facts WHERE name = 'runs'").fetchone()
                if runs == extent.runs:
                    return False
                # Else the store was replaced by an earlier copy, whose runs the index may lack.
        self._rebuild()
        return False

    def _advance(self, *, is_short: bool = False) -> bool:
        """Index the next runs or labels, in one transaction. Return whether nothing is left."""
        with self._lock:
            try:
                with self._writer.use() as connection:
                    (version,) = connection.execute("PRAGMA data_version").fetchone()  # changes when others write
                state = (self._source.newest_numbers(), self._writer.file, version)
                if state == self._up_to_date:
                    return True
                with self._writing() as connection:
                    is_done = self._index_next(connection, BATCH if is_short else OLD_BATCH)
            except DatabaseError as error:
                if is_busy(error):
                    return False  # another process indexes
                raise
            self._up_to_date = state if is_done else None
            return is_done

    def _index_next(self, connection: Connection, batch: int) -> bool:
        source = self._source
        facts = dict(connection.execute("SELECT name, value FROM facts WHERE name IN ('newest', 'oldest', 'label')"))
        if facts.get("newest") is None:
            facts["newest"] = facts["oldest"] = source.extent().newest
        newest, oldest, label = (int(facts[name]) for name in ("newest", "oldest", "label"))
        is_done = False
        if runs := source.after(newest, batch):
            IndexWriter(connection).add(runs, source.find_labelled([run.id for run in runs]))
            newest = runs[-1].number
        elif labels := source.feedback(label, LABELS):
            IndexWriter(connection).label([name for _, name in labels])
            label = labels[-1][0]
        elif oldest and (runs := source.after(oldest, batch, back=True)):
            IndexWriter(connection).add(runs, source.find_labelled([run.id for run in runs]))
            oldest = runs[-1].number - 1
        else:
            oldest = 0
            is_done = not IndexWriter(connection).add_words(source.texts, batch)
        values = {"newest": newest, "oldest": oldest, "label": label}
        if values != facts:
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", values.items())
        return is_done


def open_catalog(store: Any) -> Catalog:
    """Return the catalog of a store.

    Raises:
        StoreError: the store offers nothing that a catalog can follow.
    """
    return Catalog(store)
