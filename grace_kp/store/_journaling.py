"""Rows of journals on their way to the store: kept until they are written, dropped when their run has ended first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from grace_kp.store._record import JournalEntry
    from grace_kp.store._store import Store

MAX_ENDED = 10_000


class Journaling:
    """The journal of one writer. A row that was collected is not collected again, so it must not be lost when a write fails."""

    def __init__(self, collect: Callable[[], Sequence[JournalEntry]]) -> None:
        self._collect = collect
        self.fresh()

    def fresh(self) -> None:
        """Forget everything, in a forked child: the rows are the parent's."""
        self._rows: list[JournalEntry] = []
        self._ended: dict[str, None] = {}

    def collect(self) -> None:
        """Take what has come of the open runs since the last time."""
        rows = self._collect()
        for row in rows:
            if row.seq == 0:  # a suspended run goes on under its id
                self._ended.pop(row.run_id, None)
        self._rows += rows

    def write(self, store: Store) -> bool:
        """Write what waits; False where nothing does. Rows of runs that ended meanwhile are dropped: nobody would delete them."""
        rows = [row for row in self._rows if row.run_id not in self._ended]
        if rows:
            store.journal(rows)
        self._rows.clear()
        return bool(rows)

    def end(self, runs: Iterable[str]) -> None:
        """Note that the traces of these runs are stored, and their journals deleted."""
        self._ended.update(dict.fromkeys(runs))
        while len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
