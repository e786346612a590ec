"""The journal of open runs on its way to the store: rows are kept until they are written, and dropped when their run ends first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from grace_kp.store._record import JournalEntry
    from grace_kp.store._store import Store

MAX_ENDED = 10_000


class Journal:
    """The journal of one writer. A row is collected once, so a failed write must not lose it."""

    def __init__(self) -> None:
        self._rows: list[JournalEntry] = []
        self._ended: dict[str, None] = {}

    def add(self, rows: Sequence[JournalEntry]) -> None:
        """Add what has happened in an open run."""
        for row in rows:
            if row.seq == 0:  # a suspended run goes on under its id
                self._ended.pop(row.run_id, None)
        self._rows += rows

    def collect(self, runs: Iterator[Sequence[JournalEntry]], lock: AbstractContextManager[object]) -> None:
        """Add what has happened in each open run, one run at a time under `lock`."""
        while True:
            with lock:
                rows = next(runs, None)
                if rows is None:
                    return
                self.add(rows)

    @property
    def waits(self) -> bool:
        """Whether rows could not be written so far. No more are collected then, because an outage may last for hours."""
        return bool(self._rows)

    def write(self, store: Store) -> bool:
        """Write the rows; return False where there are none. Rows of ended runs are dropped: nobody would delete them."""
        rows = [row for row in self._rows if row.run_id not in self._ended]
        journal = getattr(store, "journal", None)
        if rows and journal is not None:
            journal(rows)
        self._rows.clear()
        return bool(rows)

    def end(self, run_ids: Iterable[str]) -> None:
        """Note that the traces of these runs are stored, and their journals deleted."""
        self._ended.update(dict.fromkeys(run_ids))
        while len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
