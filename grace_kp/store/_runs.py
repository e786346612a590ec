"""The tables of a store, over a connection that it lends: runs, the ledger of gated actions, named state, and reports of processes.

The stores in a file and in memory share this part. Named state, such as the monitor of promises, holds no contents of runs, so deleting runs
does not change it. One process at a time changes a row.
"""

from __future__ import annotations

import hashlib
import json
import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from grace_kp.store._database import ONE_OF, Connection, SharedConnection
from grace_kp.store._deletion import TABLES, Deleted, Selection, delete_rows, hash_key
from grace_kp.store._query import Query, feedback_on, load_traces, searchable, where_of
from grace_kp.store._record import ACTIONS, find_missing, read_feedback, scorer_name
from grace_kp.store._schema import INDEX, PUT_STATE, mark_unclean
from grace_kp.store._store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from grace_kp.approvals import Tables
    from grace_kp.store._leases import Unfinished
    from grace_kp.store._record import FeedbackEntry, Record
    from grace_kp.trace import ReasoningTrace

    ReadStates = Callable[[str], Mapping[str, str]]
    """Returns the states whose name begins with a prefix, sorted by name."""

DAY = 86_400
COLUMNS = ("id", "created_at", "domain", "score", "success", "status", "text", "data")
"""The columns that a record fills."""
PUT_RUN = f"""INSERT INTO traces ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])}, rewritten = excluded.number"""  # noqa: S608
FORGET_ACTIONS = f"""CREATE TRIGGER IF NOT EXISTS actions_deleted AFTER DELETE ON traces BEGIN
    DELETE FROM feedback WHERE trace = '{ACTIONS}' || OLD.id; END"""  # noqa: S608
"""Deletes labels of actions with their run, also where a process of an earlier version deletes it."""
PUT_REPORT = (
    "INSERT INTO reports VALUES (?,?,?) ON CONFLICT (process) DO UPDATE SET at = excluded.at, data = excluded.data"
)


def mark_of(name: str, once: str) -> str:
    """Return the name of the row that records an applied change. The purpose cannot be read from the name."""
    return "#" + hashlib.sha256(f"{name}\0{once}".encode(errors="replace")).hexdigest()[:32]


class RunTables(SharedConnection, Store):
    """The tables of a store."""

    _unfinished: Unfinished
    _approvals: Any = None

    def action(self, key: str) -> bytes | None:
        """Return the entry of an action in the ledger; None if there is none."""
        with self.use() as connection:
            keys = (key, hash_key(key))
            row = connection.execute("SELECT data FROM actions WHERE key IN (?, ?)", keys).fetchone()
        return None if row is None else bytes(row[0])

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Replace the entry of an action in the ledger if it equals `only_if` (None: no entry exists). Return whether it was replaced."""
        if only_if is None:
            sql = (
                "INSERT INTO actions SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM actions WHERE key = ?)"
                " ON CONFLICT DO NOTHING"
            )
            values: tuple[Any, ...] = (key, time.time(), data, hash_key(key))
        else:
            sql = "UPDATE actions SET at = ?, data = ? WHERE key IN (?, ?) AND data = ?"
            values = (time.time(), data, key, hash_key(key), only_if)
        with self.use(write=True) as connection:
            return connection.execute(sql, values).rowcount == 1

    def states(self, prefix: str) -> dict[str, str]:
        """Return all state whose name begins with `prefix`, by name."""
        with self._explain_errors("its state cannot be read"), self.use() as connection:
            return _read_under(connection, prefix)

    def change_states(self, change: Callable[[ReadStates], Mapping[str, str | None]]) -> None:
        """Replace the states that `change` returns, by name, while no other process can change any; None deletes one.

        It is called with a function that returns the states under a prefix. An exception in it changes nothing.
        """
        with self._explain_errors("its state cannot be changed"), self.use(write=True) as connection:
            changes = change(partial(_read_under, connection)).items()
            connection.executemany(PUT_STATE, [row for row in changes if row[1] is not None])
            connection.executemany(
                "DELETE FROM state WHERE name = ?", [(name,) for name, value in changes if value is None]
            )

    def report(self, process: str, data: bytes) -> None:
        """Store the report of what a process could not record, replacing its earlier report. The newest 200 reports are kept."""
        with self.use(write=True) as connection:
            connection.execute(PUT_REPORT, (process, time.time(), data))
            connection.execute(
                "DELETE FROM reports WHERE process NOT IN (SELECT process FROM reports ORDER BY at DESC LIMIT 200)"
            )

    def reports(self, since: float = 0.0) -> list[bytes]:
        """Return the reports of what processes could not record since a time (seconds since the epoch), newest first."""
        with self.use() as connection:
            rows = connection.execute("SELECT data FROM reports WHERE at >= ? ORDER BY at DESC", (since,)).fetchall()
        return [bytes(data) for (data,) in rows]

    @property
    def approvals(self) -> Tables:
        """The tables of approvals, opened where there are gates that ask it."""
        with self.lock:
            if self._approvals is None:
                self._approvals = self._open_approvals()
            tables: Tables = self._approvals
            return tables

    def _open_approvals(self) -> Tables:
        raise NotImplementedError

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        with self.lock:
            with self.use(write=True) as connection:
                kept = self._unfinished.drop_late(connection, records)
                insert_records(connection, kept)
                self._unfinished.note(connection, kept, ended)
            self._unfinished.done(records)

    def put_feedback(self, entries: Sequence[FeedbackEntry]) -> list[str]:
        """Add feedback to stored runs, in one transaction. Later versions of a trace keep it; deleting the run deletes it.

        Return the ids of traces that are not stored, each once. Their entries are left out.
        """
        with self._explain_errors("the feedback cannot be stored"), self.use(write=True) as connection:
            return insert_feedback(connection, entries)

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        return next(self._load("SELECT id, data FROM traces WHERE id = ?", id), None)

    def _load(self, sql: str, *values: Any) -> Iterator[ReasoningTrace]:
        with self.use() as connection:
            rows = connection.execute(sql, values).fetchall()
            feedback = feedback_on(connection, [name for name, _ in rows])
        return load_traces(rows, feedback)

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        query = Query(**conditions)
        where, values = where_of(query)
        sql = f"SELECT id, data FROM traces {where} ORDER BY created_at DESC, number DESC LIMIT ? OFFSET ?"  # noqa: S608
        return list(self._load(sql, *values, -1 if query.limit is None else query.limit, query.offset))

    def count(self, **conditions: Any) -> int:
        with self.use() as connection:
            where, values = where_of(Query(**conditions))
            return int(connection.execute(f"SELECT COUNT(*) FROM traces {where}", values).fetchone()[0])  # noqa: S608

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        with self.use() as connection:
            where, values = where_of(Query(**{"limit": None, **conditions}))
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
        return self._delete(Selection(id=id, session=session, user=user, older_than=older_than))

    def _delete(self, selection: Selection) -> Deleted:
        with self.use(write=True) as connection:
            return delete_rows(connection, selection)

    def retain(self, days: float) -> int:
        """Delete runs that began more than `days` days ago, and contents of approvals that ended before. Return how many runs were deleted."""
        with self.use() as connection:
            has_contents = connection.execute("SELECT 1 FROM approval_contents LIMIT 1").fetchone() is not None
        if has_contents:
            from grace_kp.approvals import forget  # only where there are approvals

            now = time.time()
            forget(self.approvals, before=now - days * DAY, at=now)
        return self.delete(older_than=timedelta(days=days))

    def clear(self) -> int:
        with self.use(write=True) as connection:
            (count,) = connection.execute("SELECT COUNT(*) FROM traces").fetchone()
            for table, _ in TABLES:
                if table != "journal":
                    connection.execute(f"DELETE FROM {table}")  # noqa: S608
            mark_unclean(connection)
            mark_unclean(connection, INDEX)
        return int(count)


def _read_under(connection: Connection, prefix: str) -> dict[str, str]:
    sql = "SELECT name, value FROM state WHERE name >= ? AND name < ? ORDER BY name"
    return dict(connection.execute(sql, (prefix, prefix + "\U0010ffff")).fetchall())


def insert_records(connection: Connection, records: Sequence[Record]) -> None:
    """Store records, replacing those with the same id, in the caller's transaction."""
    rows = [(r.id, r.created_at, r.domain, r.score, r.success, r.status, searchable(r.text), r.data) for r in records]
    newest = {r.id: r for r in records}
    scores = [(r.id, scorer_name(name), score, passed) for r in newest.values() for name, score, passed in r.scores]
    for table in ("scores", "attributes"):
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:  # noqa: S608
            connection.execute(
                f"DELETE FROM {table} WHERE trace {ONE_OF}",  # noqa: S608
                (json.dumps(list(newest)),),
            )
    connection.executemany(PUT_RUN, rows)
    connection.executemany("INSERT INTO scores VALUES (?,?,?,?)", scores)
    connection.executemany(
        "INSERT INTO attributes VALUES (?,?,?,?)",
        [(r.id, *row) for r in newest.values() for row in dict.fromkeys(r.attributes)],
    )
    for record in newest.values():
        entries = read_feedback(record)
        if entries:
            owners = (record.id, ACTIONS + record.id)
            known = connection.execute("SELECT data FROM feedback WHERE trace IN (?, ?)", owners)
            insert_feedback(connection, find_missing(entries, (bytes(data) for (data,) in known)))


def insert_feedback(connection: Connection, entries: Iterable[FeedbackEntry]) -> list[str]:
    """Add feedback to stored traces, in the caller's transaction. Return the ids of traces that are not stored, each once."""
    missing: dict[str, None] = {}
    for entry in entries:
        if entry.action:
            connection.execute(FORGET_ACTIONS)
        added = connection.execute(
            "INSERT INTO feedback (trace, at, source, data) SELECT ? || id, ?, ?, ? FROM traces WHERE id = ?",
            (ACTIONS if entry.action else "", entry.at, entry.source, entry.data, entry.trace),
        )
        if added.rowcount != 1:
            missing[entry.trace] = None
    return list(missing)
