"""The ledger of gated actions in a SQLite file: one row per action, replaced only from what it was."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from grace_kp.store._database import SharedConnection
from grace_kp.store._deletion import forgotten

if TYPE_CHECKING:
    import sqlite3


class ActionTable(SharedConnection):
    """The part of a store that keeps the ledger of actions."""

    def action(self, key: str) -> bytes | None:
        """Return the entry of an action in the ledger; None if there is none."""
        with self._use() as connection:
            return read_action(connection, key)

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Replace the entry of an action in the ledger if it equals `only_if`; None stands for no entry. Return whether it did."""
        with self._use(write=True) as connection:
            return replace_action(connection, key, data, only_if)


def read_action(connection: sqlite3.Connection, ledger_key: str) -> bytes | None:
    """Return the entry of an action; None if there is none."""
    keys = (ledger_key, forgotten(ledger_key))
    row = connection.execute("SELECT data FROM actions WHERE key IN (?, ?)", keys).fetchone()
    return None if row is None else bytes(row[0])


def replace_action(connection: sqlite3.Connection, ledger_key: str, data: bytes, only_if: bytes | None) -> bool:
    """Replace the entry of an action if it equals `only_if`, in the caller's transaction; None stands for no entry.

    Returns:
        Whether it did.
    """
    if only_if is None:
        sql = (
            "INSERT INTO actions SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM actions WHERE key = ?)"
            " ON CONFLICT DO NOTHING"
        )
        values: tuple[Any, ...] = (ledger_key, time.time(), data, forgotten(ledger_key))
    else:
        sql = "UPDATE actions SET at = ?, data = ? WHERE key IN (?, ?) AND data = ?"
        values = (time.time(), data, ledger_key, forgotten(ledger_key), only_if)
    return connection.execute(sql, values).rowcount == 1
