"""Settled runs on their way into the store, with what follows for each once it is there."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from grace_kp.store._backlog import Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.store._record import Record

MAX_BATCH = 128


class Pending:
    """Records in the order in which they are written, and marks between them. Runs are added while others are written."""

    def __init__(self) -> None:
        self._entries: deque[tuple[Record, object] | Mark] = deque()
        self.lock = threading.RLock()
        self._in_batch = 0
        """Entries that are being written."""
        self.bytes = 0
        self.newest: object = None
        """The run of the record that was added last."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, record: Record, follows: object, run: object = None) -> None:
        """Add the record of a run, with what follows once it is stored."""
        with self.lock:
            self.bytes += len(record.data)
            self.newest = run  # right before the next line, so that no interrupt comes between the two
            self._entries.append((record, follows))

    def add_mark(self, mark: Mark) -> None:
        """Add a mark, which is passed when everything before it is stored."""
        with self.lock:
            self._entries.append(mark)

    def replace(self, record: Record) -> bool:
        """Replace the version of a record that still waits and is not being written; return whether there is one."""
        with self.lock:
            for number, entry in enumerate(self._entries):
                if number >= self._in_batch and not isinstance(entry, Mark) and entry[0].id == record.id:
                    self.bytes += len(record.data) - len(entry[0].data)
                    self._entries[number] = (replace(record, completes=entry[0].completes), entry[1])
                    return True
        return False

    def batch(self, most: int | None = MAX_BATCH) -> tuple[list[Record], int]:
        """Return the records that are written next, or all for None, and how many entries these are with the marks between them."""
        with self.lock:
            entries = list(islice(self._entries, most))
            self._in_batch = len(entries)
        records = [entry[0] for entry in entries if not isinstance(entry, Mark)]
        return records, len(entries)

    def written(self, entries: int) -> tuple[list[object], list[Mark]]:
        """Remove the batch that was written; return what follows, and the marks between them."""
        with self.lock:
            done = [self._entries.popleft() for _ in range(entries)]
            self._in_batch = 0
            self.bytes -= sum(len(entry[0].data) for entry in done if not isinstance(entry, Mark))
        follows = [entry[1] for entry in done if not isinstance(entry, Mark) and entry[1] is not None]
        return follows, [entry for entry in done if isinstance(entry, Mark)]

    def failed(self) -> None:
        """Take note that the batch was not written."""
        self._in_batch = 0

    def detach(self) -> Sequence[object]:
        """Return what follows for all records, although they are not stored; nothing follows for them later."""
        follows = []
        with self.lock:
            for number, entry in enumerate(self._entries):
                if not isinstance(entry, Mark) and entry[1] is not None:
                    follows.append(entry[1])
                    self._entries[number] = (entry[0], None)
        return follows

    def count(self) -> int:
        """Return how many records wait."""
        with self.lock:
            return sum(not isinstance(entry, Mark) for entry in self._entries)
