"""Deletion from a SQLite store: the rows of a run in every table. The bytes that they leave are overwritten by `_overwriting`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.store._deletion import (
    Deleted,
    belongs_to,
    decisions_in,
    forgotten,
    nested_in,
    still_awaited,
    without_contents,
)
from grace_kp.store._overwriting import mark_index, mark_unclean
from grace_kp.store._schema import where_of
from grace_kp.trace import PARENT, attributes_in

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterable

    from grace_kp.store._catalog_erasure import HeldIndex
    from grace_kp.store._deletion import Selection


TABLES = (
    ("traces", "id"),
    ("scores", "trace"),
    ("attributes", "trace"),
    ("feedback", "trace"),
    ("journal", "run_id"),
    ("completions", "run_id"),
)
"""The tables that hold a run, each with the column of its id."""


def delete_rows(
    connection: sqlite3.Connection, selection: Selection, dead: Container[str] = (), index: HeldIndex | None = None
) -> Deleted:
    """Delete the selected runs and the runs nested in them, inside the caller's transaction.

    Args:
        connection: the connection to the store.
        selection: which runs.
        dead: the owners whose open runs count as interrupted; those of any other owner are not deleted.
        index: the index of the store; it records which runs it must erase.

    Raises:
        StoreError: the run named by the selection is still open.
    """
    still_open, lost = _journaled(connection, selection, dead)
    if selection.id is not None and selection.id in still_open:
        raise StoreError(f"the run {selection.id} is still open; delete it when it has ended")
    awaited = dict(connection.execute("SELECT run_id, id FROM approvals WHERE run_id IS NOT NULL AND is_open = 1"))
    if selection.id is not None and selection.id in awaited:
        raise StoreError(still_awaited(selection.id, awaited[selection.id]))
    where, values = where_of(selection.query)
    if selection.id is not None:
        where, values = f"{where} {'AND' if where else 'WHERE'} id = ?", [*values, selection.id]
    found = [run for (run,) in connection.execute(f"SELECT id FROM traces {where}", values)]  # noqa: S608
    kept = still_open.keys() | awaited.keys()
    matching_and_open = kept & {*found, *(run for run, matches in still_open.items() if matches)}
    runs, decisions, stored = _with_nested(connection, [*found, *lost], kept)
    delete_runs(connection, runs)
    actions = _empty_actions(connection, decisions) if decisions else 0
    named = [] if selection.id is None else [selection.id]  # its trace may have been deleted before
    emptied = _empty_approvals(connection, {*runs, *named})
    deleted = len(stored.union(lost) & set(runs))
    if deleted:
        _empty_reports(connection)
        mark = mark_index(connection)
        if index is not None:
            index.expect(connection, runs, mark)
    if runs or emptied:
        mark_unclean(connection)
    return Deleted(deleted, actions=actions + emptied, open=sorted(matching_and_open))


def delete_runs(connection: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Delete the rows of runs in every table, inside the caller's transaction."""
    for table, column in TABLES:
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(run,) for run in runs])  # noqa: S608


def _journaled(
    connection: sqlite3.Connection, selection: Selection, dead: Container[str]
) -> tuple[dict[str, bool], list[str]]:
    """Return which open runs with a journal match the selection, and the matching runs of dead processes."""
    parts: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for run, owner, data in connection.execute("SELECT run_id, owner, data FROM journal ORDER BY run_id, seq"):
        parts.setdefault(run, (owner, []))[1].append(json.loads(data))
    still_open: dict[str, bool] = {}
    lost: list[str] = []
    for run, (owner, rows) in parts.items():
        known: dict[str, Any] = next((row["attributes"] for row in reversed(rows) if "attributes" in row), {})
        matches = selection.matches(run, rows[0].get("created_at", ""), attributes_in({"grace": known}))
        stored = connection.execute("SELECT status FROM traces WHERE id = ?", (run,)).fetchone()
        if stored is not None and stored[0] != "suspended":
            continue  # a late row of a run that has ended
        if owner not in dead:
            still_open[run] = matches
        elif matches:
            lost.append(run)
    return still_open, lost


def _with_nested(
    connection: sqlite3.Connection, wanted: Iterable[str], still_open: Iterable[str]
) -> tuple[list[str], set[str], set[str]]:
    """Return these runs with the runs nested in them, their decisions, and which of them are stored. Skip open runs."""
    waiting, seen = list(wanted), set(still_open)
    runs: list[str] = []
    decisions: set[str] = set()
    stored: set[str] = set()
    while waiting:
        run = waiting.pop()
        if run in seen:
            continue
        seen.add(run)
        runs.append(run)
        row = connection.execute("SELECT data FROM traces WHERE id = ?", (run,)).fetchone()
        if row is not None:
            stored.add(run)
            document = json.loads(row[0])
            decisions.update(decisions_in(document))
            waiting.extend(nested_in(document))
        waiting.extend(
            nested
            for (nested,) in connection.execute(
                "SELECT trace FROM attributes WHERE kind = ? AND name = '' AND value = ?", (PARENT, run)
            )
        )
    return runs, decisions, stored


def _empty_actions(connection: sqlite3.Connection, decisions: set[str]) -> int:
    """Remove the contents from the ledger's entries of these decisions. The entries stay: an action that ran must not run again."""
    rows = connection.execute("SELECT key, data FROM actions").fetchall()
    emptied = [(forgotten(key), without_contents(bytes(data)), key) for key, data in rows if belongs_to(key, decisions)]
    connection.executemany("UPDATE OR REPLACE actions SET key = ?, data = ? WHERE key = ?", emptied)
    return len(emptied)


def _empty_approvals(connection: sqlite3.Connection, runs: Iterable[str]) -> int:
    """Remove the contents of requests for approval that these runs made. What was decided stays, and can still be verified."""
    names = [
        name for run in runs for (name,) in connection.execute("SELECT id FROM approvals WHERE run_id = ?", (run,))
    ]
    if not names:
        return 0
    from grace_kp.approvals import forget_approvals
    from grace_kp.store._approvals import ApprovalWrites

    return forget_approvals(ApprovalWrites(connection), names, at=time.time())


def _empty_reports(connection: sqlite3.Connection) -> None:
    """Remove the messages from the reports of processes: a message may quote a deleted run."""
    for process, data in connection.execute("SELECT process, data FROM reports").fetchall():
        report = {**json.loads(data), "last_trouble": None}
        connection.execute("UPDATE reports SET data = ? WHERE process = ?", (json.dumps(report).encode(), process))
