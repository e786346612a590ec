"""The tables of approvals in memory: those of a file, for a process that keeps nothing."""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import threading
import time
from dataclasses import replace
from fnmatch import translate
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from grace_kp.approvals import OPEN, RowQuery
from grace_kp.background import Resident, watch
from grace_kp.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grace_kp.approvals import Link, Row, Writes
    from grace_kp.background import Lock

MAX_ROWS = 100_000
FOUND_BY = ("key", "digest", "run_id")
"""Columns with few rows for each value."""


class MemoryTables(Resident):
    """Tables that end with their process. A forked child begins with empty ones: the requests are those of its parent.

    Nothing is dropped to make room: a forgotten row could run its action once more. A new row beyond `max_rows` is refused.
    """

    lasting = False

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self._max_rows = max_rows
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[str, Row] = {}
        self._numbers: dict[str, int] = {}
        """In which order rows were inserted, by id."""
        self._found: dict[tuple[str, str], dict[str, None]] = {}
        """Ids by column and value, for the state and the columns of `FOUND_BY`."""
        self._links: list[Link] = []
        self._documents: dict[str, dict[str, bytes]] = {}
        self._undo: list[Callable[[], object]] | None = None
        """How to take back what the open transaction wrote; None outside of one."""
        self._changes = 0
        self._process = secrets.token_hex(8)
        self.identity = secrets.token_hex(16)
        """Id of the tables, drawn when they are created."""

    def fork_locks(self) -> Iterator[Lock]:
        """Hold the lock during a fork."""
        yield self._lock

    def after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._begin()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writes]:
        """Return a block in which all is written or, after an exception, nothing.

        Raises:
            StoreError: this thread is in a transaction already.
        """
        with self._lock:
            if self._undo is not None:
                raise StoreError("a transaction on approvals is open in this thread; end it before the next begins")
            self._undo = []
            try:
                yield self
            except BaseException:
                for take_back in reversed(self._undo):
                    take_back()
                raise
            else:
                self._changes += 1
            finally:
                self._undo = None

    def changes(self) -> int:
        """Return a number that grows with each transaction."""
        return self._changes

    def hold(self) -> str:
        """Return the id of this process."""
        return self._process

    def is_alive(self, process: str) -> bool | None:
        """Return True for this process; no other can know these tables."""
        return True if process == self._process else None

    def row(self, approval: str) -> Row | None:
        """Return the row with this id; None if there is none."""
        with self._lock:
            return self._rows.get(approval)

    def ids(self, begins: str, *, limit: int) -> list[str]:
        """Return the ids that begin with a text, at most `limit`, in alphabetical order."""
        with self._lock:
            return sorted(name for name in self._rows if name.startswith(begins))[:limit]

    def rows(self, query: RowQuery) -> list[Row]:
        """Return the rows that match, in the order of the query."""
        with self._lock:
            found = self._matching(query)
            if query.order == "newest":
                found.sort(key=lambda row: (row.changed, self._numbers[row.id]), reverse=True)
            else:
                found.sort(key=lambda row: (_deadline(row), -row.level, row.created, self._numbers[row.id]))
        return found[query.offset : None if query.limit is None else query.offset + query.limit]

    def count(self, query: RowQuery) -> int:
        """Return how many rows match, whatever the limit."""
        with self._lock:
            return len(self._matching(query))

    def _matching(self, query: RowQuery) -> list[Row]:
        matches = _condition(query)
        return [row for name in self._candidates(query) if matches(row := self._rows[name])]

    def _candidates(self, query: RowQuery) -> Iterable[str]:
        """Return the ids among which those of a query are."""
        for column in FOUND_BY:
            value = getattr(query, column)
            if value is not None:
                return self._found.get((column, value), ())
        if query.states:
            return chain.from_iterable(self._found.get(("state", str(state)), ()) for state in {*query.states})
        return self._rows

    def link(self, seq: int) -> Link | None:
        """Return the entry of the chain with this number; None if there is none."""
        with self._lock:
            return self._links[seq - 1] if 1 <= seq <= len(self._links) else None

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        """Return entries by number, those after `after`; with `kept`, only those whose contents are still there."""
        with self._lock:
            all_after = islice(self._links, max(0, after), None)
            found = (
                link for link in all_after if approval in {None, link.approval} and (_has_contents(link) or not kept)
            )
            return list(islice(found, limit))

    def links_before(self, before: int | None = None, *, limit: int = 1_000, approval: str | None = None) -> list[Link]:
        """Return the entries with smaller numbers than `before` (all when None), newest first."""
        with self._lock:
            end = len(self._links) if before is None else min(max(0, before - 1), len(self._links))
            numbers = range(end - 1, -1, -1)
            found = (self._links[number] for number in numbers if approval in {None, self._links[number].approval})
            return list(islice(found, limit))

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and an empty text before the first."""
        with self._lock:
            return (self._links[-1].seq, self._links[-1].hash) if self._links else (0, "")

    def document(self, kind: str, name: str) -> bytes | None:
        """Return a small document; None if there is none."""
        with self._lock:
            return self._documents.get(kind, {}).get(name)

    def documents(self, kind: str) -> dict[str, bytes]:
        """Return all documents of a kind, by name."""
        with self._lock:
            return dict(sorted(self._documents.get(kind, {}).items()))

    def put(self, row: Row) -> bool:
        """Insert a row of revision 1, or replace the row of the revision before; return False, and put nothing, if there is another.

        Raises:
            StoreError: there is no room for a new row.
        """
        before = self._rows.get(row.id)
        if row.revision != (1 if before is None else before.revision + 1):
            return False
        if before is None and len(self._rows) >= self._max_rows:
            raise StoreError(
                f"the store in memory holds {len(self._rows):,} requests for approval, the most that it can, and forgets none; "
                "use a store in a file, such as sqlite:///path.db"
            )
        row = replace(row, state=str(row.state), deadline=None if row.deadline == math.inf else row.deadline)
        self._take_back(partial(self._replace, row.id, before))
        self._replace(row.id, row)
        return True

    def _replace(self, name: str, row: Row | None) -> None:
        """Put a row, or remove it with None, and keep what it is found by."""
        before = self._rows.pop(name, None) if row is None else self._rows.get(name)
        for entry in _entries(before):
            self._found[entry].pop(name, None)
            if not self._found[entry]:
                del self._found[entry]
        for entry in _entries(row):
            self._found.setdefault(entry, {})[name] = None
        if row is not None:
            self._rows[name] = row
            self._numbers.setdefault(name, len(self._numbers) + 1)

    def append(self, link: Link) -> None:
        """Append an entry to the chain.

        Raises:
            StoreError: its number is not that after the head.
        """
        newest, _ = self.head()
        if link.seq != newest + 1:
            raise StoreError(f"entry {link.seq} cannot follow entry {newest} of the chain; append entry {newest + 1}")
        self._take_back(partial(self._links.__delitem__, slice(newest, None)))
        self._links.append(link)

    def put_document(self, kind: str, name: str, data: bytes | None) -> None:
        """Put a document, or delete it with None."""
        documents = self._documents.setdefault(kind, {})
        self._take_back(partial(_set, documents, name, documents.get(name)))
        _set(documents, name, data)

    def forget(self, seqs: Sequence[int]) -> int:
        """Delete salt and contents of entries; return how many had some."""
        forgotten = 0
        for seq in seqs:
            link = self.link(seq)
            if link is not None and _has_contents(link):
                self._take_back(partial(self._links.__setitem__, seq - 1, link))
                self._links[seq - 1] = replace(link, salt=None, contents=None)
                forgotten += 1
        return forgotten

    def open_runs(self) -> dict[str, str]:
        """Return the runs that have an open approval, each with the id of one."""
        with self._lock:
            rows = self._matching(RowQuery(states=[*OPEN]))
        return {row.run_id: row.id for row in rows if row.run_id is not None}

    def forget_runs(self, runs: Iterable[str]) -> int:
        """Delete the contents of the approvals of runs; return how many approvals had some."""
        from grace_kp.approvals import forget_approvals

        with self.transaction() as writes:
            found = [row.id for run in runs for row in self._matching(RowQuery(run_id=run))]
            return forget_approvals(writes, found, at=time.time())

    def _take_back(self, step: Callable[[], object]) -> None:
        if self._undo is None:
            raise StoreError("approvals are written inside of `transaction()` only")
        self._undo.append(step)


def _has_contents(link: Link) -> bool:
    return link.salt is not None or link.contents is not None


def _set(documents: dict[str, bytes], name: str, data: bytes | None) -> None:
    if data is None:
        documents.pop(name, None)
    else:
        documents[name] = data


def _deadline(row: Row) -> float:
    return math.inf if row.deadline is None else row.deadline


def _entries(row: Row | None) -> list[tuple[str, str]]:
    """Return what a row is found by."""
    if row is None:
        return []
    return [(column, value) for column in ("state", *FOUND_BY) if (value := getattr(row, column)) is not None]


def _condition(query: RowQuery) -> Callable[[Row], bool]:
    """Return whether a row matches, as a function."""
    states = {*map(str, query.states)}
    named = re.compile(translate(query.action)).match if query.action is not None else None
    equal = [(name, value) for name in ("domain", *FOUND_BY) if (value := getattr(query, name)) is not None]

    def matches(row: Row) -> bool:
        return (
            (not states or row.state in states)
            and (named is None or named(row.action) is not None)
            and all(getattr(row, name) == value for name, value in equal)
            and (query.due_before is None or _deadline(row) <= query.due_before)
            and (query.since is None or row.changed >= query.since)
        )

    return matches
