"""A store in memory as the source of a catalog."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from grace_kp.store._catalog_source import Extent, StoredRun
from grace_kp.store._schema import searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from grace_kp.store._record import Record
    from grace_kp.store._run_log import RunLog


class MemorySource:
    """The runs of a store in memory.

    Args:
        records: the runs by id.
        log: their order.
        lock: returns the lock under which both are used.
    """

    def __init__(
        self, records: Mapping[str, Record], log: RunLog, lock: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._records, self._log, self._lock = records, log, lock

    def identity(self) -> str:
        """Return a constant: the index lives no longer than the store."""
        return "memory"

    def changed(self) -> tuple[int, int]:
        """Return the number of changes, deletions included."""
        return self._log.changes, 0

    def extent(self, above: int = 0) -> Extent:
        """Return the newest number, and how many runs have a number above this one."""
        with self._lock():
            numbers = self._log.runs.values()
            return Extent(next(reversed(numbers), 0), sum(number > above for number in numbers))

    def unseen(self, above: int, limit: int) -> int:
        """Return how many runs have a number above this one, and no more than `limit`."""
        return min(limit, self.extent(above).runs)

    def after(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with larger numbers."""
        with self._lock():
            new = list(itertools.takewhile(lambda item: item[1] > number, reversed(self._log.runs.items())))
            return self._runs(new[::-1][:limit])

    def up_to(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with this number or smaller ones."""
        with self._lock():
            old = (item for item in reversed(self._log.runs.items()) if item[1] <= number)
            return self._runs(list(itertools.islice(old, limit)))

    def _runs(self, items: Iterable[tuple[str, int]]) -> list[StoredRun]:
        found = ((number, self._records.get(name)) for name, number in items)
        return [
            StoredRun(n, r.id, r.created_at, r.domain, r.score, r.success, r.status, searchable(r.text), r.data)
            for n, r in found
            if r is not None
        ]

    def ids(self) -> Iterable[str]:
        """Return the ids of all runs."""
        with self._lock():
            return list(self._log.runs)

    def feedback(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Return the next labels."""
        with self._lock():
            labels = ((number, name) for name, number in self._log.labels.items() if number > after)
            return list(itertools.islice(labels, limit))

    def labelled(self, ids: Sequence[str]) -> set[str]:
        """Return which of these runs have feedback."""
        with self._lock():
            return self._log.labels.keys() & set(ids)

    def containing(self, numbers: Sequence[int], folded: str) -> set[int]:
        """Return the numbers of those runs whose text contains a case-folded text."""
        wanted = set(numbers)
        with self._lock():
            names = [(name, number) for name, number in self._log.runs.items() if number in wanted]
            records = [(number, self._records.get(name)) for name, number in names]
        return {number for number, record in records if record is not None and folded in searchable(record.text)}

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the texts of these runs."""
        with self._lock():
            names = {number: name for name, number in self._log.runs.items()}
            records = [self._records.get(names.get(number, "")) for number in numbers]
        return [None if record is None else searchable(record.text) for record in records]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
