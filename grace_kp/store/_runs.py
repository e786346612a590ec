"""Runs in the tables of a database: stored, found, labelled and deleted. The stores in a file and in memory share this part.

It holds the SQL of runs, and no connection: a store lends one, inside a transaction where it is to be written.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from grace_kp.store._deletion import Deleted, Selection, delete_rows, mark_index
from grace_kp.store._query import Query, feedback_on, load_traces, where_of
from grace_kp.store._schema import insert_feedback, insert_records, mark_unclean
from grace_kp.store._state import StateTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from grace_kp.approvals import Tables
    from grace_kp.store._leases import Unfinished
    from grace_kp.store._record import FeedbackEntry, Record
    from grace_kp.trace import ReasoningTrace

DAY = 86_400


class RunTables(StateTable):
    """The part of a store that keeps runs."""

    _unfinished: Unfinished
    _approvals: Tables | None

    @property
    def approvals(self) -> Tables:
        """The tables of approvals."""
        raise NotImplementedError

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Store traces, replacing those with the same id, and delete the journals of the runs in `ended`.

        A record that comes too late is left out: a completion (`Record.completes`) of a run that was deleted or completed meanwhile, and
        the trace of an interrupted run (`recover`) whose process lived and stored the run itself.
        """
        with self.lock:
            with self._use(write=True) as connection:
                kept = self._unfinished.current(connection, records)
                insert_records(connection, kept)
                self._unfinished.note(connection, kept, ended)
            self._unfinished.done(records)

    def put_feedback(self, entries: Sequence[FeedbackEntry]) -> list[str]:
        """Add feedback to stored runs, in one transaction. Later versions of a trace keep it; deleting the run deletes it.

        Returns:
            The ids of traces that are not stored, each once. Their entries are left out.

        Raises:
            StoreError: the store cannot be written, for example because its file was opened for reading only.
        """
        with self._explain_errors("the feedback cannot be stored"), self._use(write=True) as connection:
            return insert_feedback(connection, entries)

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """Return the trace with this id; None if there is none."""
        return next(self._load("SELECT id, data FROM traces WHERE id = ?", id), None)

    def _load(self, sql: str, value: str | int) -> Iterator[ReasoningTrace]:
        with self._use() as connection:
            rows = connection.execute(sql, (value,)).fetchall()
            feedback = feedback_on(connection, [name for name, _ in rows])
        return load_traces(rows, feedback)

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Return the traces that meet all conditions, newest first; see `Query`."""
        with self._use() as connection:
            query = Query(**conditions)
            where, values = where_of(connection, query)
            rows = connection.execute(
                f"SELECT id, data FROM traces {where} ORDER BY created_at DESC, number DESC LIMIT ? OFFSET ?",  # noqa: S608
                (*values, -1 if query.limit is None else query.limit, query.offset),
            ).fetchall()
            feedback = feedback_on(connection, [name for name, _ in rows])
        return list(load_traces(rows, feedback))

    def count(self, **conditions: Any) -> int:
        """Return the number of traces that meet all conditions."""
        with self._use() as connection:
            where, values = where_of(connection, Query(**conditions))
            return int(connection.execute(f"SELECT COUNT(*) FROM traces {where}", values).fetchone()[0])  # noqa: S608

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Yield the traces that meet all conditions, oldest first."""
        with self._use() as connection:
            where, values = where_of(connection, Query(**{"limit": None, **conditions}))
            sql = f"SELECT number FROM traces {where} ORDER BY created_at, number"  # noqa: S608
            numbers = connection.execute(sql, values).fetchall()
        for (number,) in numbers:
            yield from self._load("SELECT id, data FROM traces WHERE number = ?", number)

    def delete(
        self,
        *,
        id: str | None = None,  # noqa: A002
        session: str | None = None,
        user: str | None = None,
        older_than: datetime | timedelta | str | None = None,
    ) -> Deleted:
        """Delete the runs that meet every condition, with the runs nested in them; see `Store.delete`."""
        selection = Selection(id=id, session=session, user=user, older_than=older_than)
        with self._use(write=True) as connection:
            return delete_rows(connection, selection)

    def retain(self, days: float) -> int:
        """Delete runs that began more than `days` days ago, and contents of approvals that ended before. Return how many runs were deleted."""
        with self._use() as connection:
            has_contents = connection.execute("SELECT 1 FROM approval_contents LIMIT 1").fetchone() is not None
        if has_contents:
            from grace_kp.approvals import forget  # only where there are approvals

            now = time.time()
            forget(self.approvals, before=now - days * DAY, at=now)
        return self.delete(older_than=timedelta(days=days))

    def clear(self) -> int:
        """Delete all traces and return how many there were."""
        with self._use(write=True) as connection:
            for table in ("scores", "attributes", "completions", "feedback"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608
            count = int(connection.execute("DELETE FROM traces").rowcount)
            mark_unclean(connection)
            mark_index(connection)
        return count
