"""The catalog of a store: an index for pages, kept in a file beside the store by the process that serves them, never by a recorder.

It follows the store: what was recorded, completed or deleted by any process is indexed in the background. Everything in it can be derived from the
store, so it may be deleted at any time.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from grace_kp.background import Worker
from grace_kp.errors import StoreError
from grace_kp.store._catalog_facts import AGENT, DOMAIN, SCORER, STATUS, TAGGED
from grace_kp.store._catalog_figures import Group, RunFigures, read_figures
from grace_kp.store._catalog_follower import Follower
from grace_kp.store._catalog_place import place_of
from grace_kp.store._catalog_query import CatalogQuery
from grace_kp.store._catalog_rows import Progress, RunPage, RunRow
from grace_kp.store._catalog_search import Search

if TYPE_CHECKING:
    from grace_kp.store._catalog_place import Place

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
_log = logging.getLogger("grace_kp.store")


class Catalog:
    """The index of a store. Several threads may use it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._follower = Follower(place)
        self._worker = Worker(self._work, name="catalog")
        self._seen: tuple[float, tuple[int, int]] | None = None
        self._is_busy = True
        self._trouble = ""

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
            after: only runs newer than this position: those that are nearest to it.
            limit: rows of the page.
            seconds: how long to search at most.

        Raises:
            ValueError: a time of the query cannot be read.
        """
        with self._place.reading() as connection:
            return Search(connection, self._place.source, seconds).page(query, before, after, limit)

    def names(self, kind: str, limit: int = 200) -> list[str]:
        """Return the values of `agent`, `domain`, `status`, `tag` or `scorer` that occur, most frequent first.

        Raises:
            ValueError: there is no such kind.
        """
        if kind not in NAMES:
            raise ValueError(f"kind must be one of {', '.join(NAMES)}, not {kind!r:.60}")
        with self._place.reading() as connection:
            found = connection.execute(
                "SELECT name FROM names WHERE kind = ? AND runs > 0 ORDER BY runs DESC, name LIMIT ?",
                (NAMES[kind], limit),
            )
            return [name for (name,) in found]

    def figures(self, since: str, until: str, *, agent: str | None = None) -> RunFigures:
        """Return the figures of the runs that began on these days (`2026-11-01`, both included; UTC).

        Raises:
            ValueError: a day is no date.
        """
        with self._place.reading() as connection:
            return read_figures(connection, since, until, agent)

    def progress(self) -> Progress:
        """Return how much of the store is indexed."""
        return self._follower.progress()

    def refresh(self, seconds: float | None = None) -> Progress:
        """Index what is new, for at most this long, and return the progress.

        Raises:
            StoreError: the store or the index cannot be used.
        """
        try:
            deadline = None if seconds is None else time.monotonic() + seconds
            is_current = False
            while not is_current:
                is_done = self._follower.advance()
                is_current = is_done and self._follower.check(now=True)
                if deadline is not None and time.monotonic() > deadline:
                    break
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the index {self._place.name} cannot be brought up to date: {error}") from error
        return self._follower.progress(counted_now=True)

    def follow(self) -> None:
        """Keep the index up to date in the background until `close`."""
        self._worker.wake()

    def close(self) -> None:
        """Stop following, and release files."""
        self._worker.stop(STOP_SECONDS)
        self._follower.close()
        self._place.close()

    def _work(self) -> float:
        """Index for a short while; return when to go on."""
        start = time.monotonic()
        try:
            self._look()
            self._follower.check(now=self._place.store is None)
            is_done = self._follower.advance(is_busy=self._is_busy)
            while not is_done and time.monotonic() - start < TURN_SECONDS:
                is_done = self._follower.advance(is_busy=self._is_busy)
        except (sqlite3.Error, OSError, StoreError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning(
                    "the index %s cannot be brought up to date, it is tried again: %s", self._place.name, error
                )
            return FAILED_SECONDS
        self._trouble = ""
        if is_done:
            return LOOK_SECONDS
        share = BUSY_SHARE if self._is_busy else QUIET_SHARE
        return (time.monotonic() - start) * (1 / share - 1)

    def _look(self) -> None:
        """Note whether others write much to the store; until that is known, assume it."""
        now, changed = time.monotonic(), self._place.source.changed()
        if self._seen is None:
            self._seen = now, changed
        elif now - self._seen[0] >= RATE_SECONDS:
            stored = sum(changed) - sum(self._seen[1])
            self._is_busy = stored / (now - self._seen[0]) > BUSY_RATE
            self._seen = now, changed


def open_catalog(store: Any) -> Catalog:
    """Return the catalog of a store.

    Raises:
        StoreError: the store offers nothing that a catalog can follow.
    """
    return Catalog(place_of(store))
