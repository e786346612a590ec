"""What counts over all runs and processes: the ledger of gated actions, named state such as the monitor of promises, and reports of processes.

The state holds no contents of runs, so deleting runs leaves it as it is. Each row is changed by one process at a time, and an entry of the
ledger only from what it was.
"""

from __future__ import annotations

import hashlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from grace_kp.store._database import Connection, SharedConnection
from grace_kp.store._deletion import hash_key
from grace_kp.store._schema import PUT_STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    ReadStates = Callable[[str], Mapping[str, str]]
    """Returns the states whose name begins with a prefix, sorted by name."""


PUT_REPORT = (
    "INSERT INTO reports VALUES (?,?,?) ON CONFLICT (process) DO UPDATE SET at = excluded.at, data = excluded.data"
)


def mark_of(name: str, once: str) -> str:
    """Return the name of the row that states that a change was applied; what it was for cannot be read from it."""
    return "#" + hashlib.sha256(f"{name}\0{once}".encode(errors="replace")).hexdigest()[:32]


class StateTable(SharedConnection):
    """The part of a store that keeps the ledger of actions, named state, and reports of what processes could not record."""

    def action(self, key: str) -> bytes | None:
        """Return the entry of an action in the ledger; None if there is none."""
        with self._use() as connection:
            keys = (key, hash_key(key))
            row = connection.execute("SELECT data FROM actions WHERE key IN (?, ?)", keys).fetchone()
        return None if row is None else bytes(row[0])

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Replace the entry of an action in the ledger if it equals `only_if`; None stands for no entry. Return whether it did."""
        if only_if is None:
            sql = (
                "INSERT INTO actions SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM actions WHERE key = ?)"
                " ON CONFLICT DO NOTHING"
            )
            values: tuple[Any, ...] = (key, time.time(), data, hash_key(key))
        else:
            sql = "UPDATE actions SET at = ?, data = ? WHERE key IN (?, ?) AND data = ?"
            values = (time.time(), data, key, hash_key(key), only_if)
        with self._use(write=True) as connection:
            return connection.execute(sql, values).rowcount == 1

    def state(self, name: str) -> str | None:
        """Return named state; None if there is none.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._explain_errors(f"state {name!r} cannot be read"), self._use() as connection:
            return _read(connection, name)

    def states(self, prefix: str) -> dict[str, str]:
        """Return all state whose name begins with `prefix`, by name.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._explain_errors("its state cannot be read"), self._use() as connection:
            return _under(connection, prefix)

    def update_state(self, name: str, change: Callable[[str | None], str], *, once: str | None = None) -> str | None:
        """Replace named state by what `change` makes of it, while no other process can change it.

        Args:
            name: the name of the state.
            change: called with the state, None if there is none, and returns the new state. An exception in it changes nothing.
            once: what the change is for, such as the id of a trace. A second change of this state for the same purpose is left out.

        Returns:
            The state afterwards.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._explain_errors(f"state {name!r} cannot be changed"), self._use(write=True) as connection:
            if once is not None and _is_marked(connection, mark_of(name, once)):
                return _read(connection, name)
            new = change(_read(connection, name))
            connection.execute(PUT_STATE, (name, new))
            return new

    def change_states(self, change: Callable[[ReadStates], Mapping[str, str | None]]) -> None:
        """Replace the states that `change` returns, by name, while no other process can change any; None deletes one.

        Args:
            change: called with a function that returns the states under a prefix. An exception in it changes nothing.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._explain_errors("its state cannot be changed"), self._use(write=True) as connection:
            changes = change(partial(_under, connection)).items()
            connection.executemany(PUT_STATE, [row for row in changes if row[1] is not None])
            connection.executemany(
                "DELETE FROM state WHERE name = ?", [(name,) for name, value in changes if value is None]
            )

    def report(self, process: str, data: bytes) -> None:
        """Store the report of what a process could not record, replacing its earlier report. The newest 200 reports are kept."""
        with self._use(write=True) as connection:
            connection.execute(PUT_REPORT, (process, time.time(), data))
            connection.execute(
                "DELETE FROM reports WHERE process NOT IN (SELECT process FROM reports ORDER BY at DESC LIMIT 200)"
            )

    def reports(self, since: float = 0.0) -> list[bytes]:
        """Return the reports of what processes could not record since a time (seconds since the epoch), newest first."""
        with self._use() as connection:
            rows = connection.execute("SELECT data FROM reports WHERE at >= ? ORDER BY at DESC", (since,)).fetchall()
        return [bytes(data) for (data,) in rows]


def _is_marked(connection: Connection, mark: str) -> bool:
    return connection.execute("INSERT INTO state VALUES (?, '') ON CONFLICT DO NOTHING", (mark,)).rowcount == 0


def _under(connection: Connection, prefix: str) -> dict[str, str]:
    sql = "SELECT name, value FROM state WHERE name >= ? AND name < ? ORDER BY name"
    return dict(connection.execute(sql, (prefix, prefix + "\U0010ffff")).fetchall())


def _read(connection: Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])
