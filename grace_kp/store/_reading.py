"""Traces as a SQLite file holds them: found by conditions, and completed with their feedback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from grace_kp.store._feedback import with_feedback
from grace_kp.store._record import load_trace
from grace_kp.store._schema import where_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from grace_kp.store._query import Query
    from grace_kp.trace import ReasoningTrace

PAGE = 500
"""Traces whose feedback is looked up together."""


def has_feedback_table(connection: sqlite3.Connection) -> bool:
    """Return whether the file has the table; only a reader meets a file that was written before there was one."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'feedback'")
    return found.fetchone() is not None


def find_traces(connection: sqlite3.Connection, query: Query) -> list[tuple[str, bytes]]:
    """Return id and document of the traces that meet a query, newest first."""
    where, values = where_of(query, has_feedback=has_feedback_table(connection))
    limit = -1 if query.limit is None else query.limit
    return connection.execute(
        f"SELECT id, data FROM traces {where} ORDER BY created_at DESC, number DESC LIMIT ? OFFSET ?",  # noqa: S608
        (*values, limit, query.offset),
    ).fetchall()


def find_numbers(connection: sqlite3.Connection, query: Query) -> list[tuple[int]]:
    """Return the numbers of the rows that meet a query, oldest first."""
    where, values = where_of(query, has_feedback=has_feedback_table(connection))
    sql = f"SELECT number FROM traces {where} ORDER BY created_at, number"  # noqa: S608
    return connection.execute(sql, values).fetchall()


def count_traces(connection: sqlite3.Connection, query: Query) -> int:
    """Return how many traces meet a query."""
    where, values = where_of(query, has_feedback=has_feedback_table(connection))
    (count,) = connection.execute(f"SELECT COUNT(*) FROM traces {where}", values).fetchone()  # noqa: S608
    return int(count)


def feedback_on(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, list[bytes]]:
    """Return the feedback on these traces, oldest first."""
    found: dict[str, list[bytes]] = {}
    if not ids or not has_feedback_table(connection):
        return found
    for start in range(0, len(ids), PAGE):
        rows = connection.execute(
            "SELECT trace, data FROM feedback WHERE trace IN (SELECT value FROM json_each(?)) ORDER BY at, number",
            (json.dumps(ids[start : start + PAGE]),),
        )
        for trace, data in rows:
            found.setdefault(trace, []).append(bytes(data))
    return found


def load_traces(rows: Iterable[tuple[str, bytes]], feedback: dict[str, list[bytes]]) -> Iterator[ReasoningTrace]:
    """Yield the traces of these documents with their feedback."""
    for name, data in rows:
        yield with_feedback(load_trace(data), feedback.get(name, ()))
