"""The source of a catalog: new and changed runs by number, feedback, and the runs that contain a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from grace_kp.store._database import ONE_OF
from grace_kp.store._query import has_feedback_table

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

BATCH_BYTES = 8 << 20
"""Documents read at a time, so that large ones do not fill the memory."""


class StoredRun(NamedTuple):
    """A run as a store holds it. The text is case-folded."""

    number: int
    id: str
    created_at: str
    domain: str
    score: float
    success: bool
    status: str
    text: str
    data: bytes


class Extent(NamedTuple):
    """The size of a store."""

    newest: int
    """The largest number; 0 for an empty store."""
    runs: int
    """Runs with a number above the one that was asked about."""


class Lender(Protocol):
    """Lends connections to one database: a few to a file, or the only one to memory."""

    @property
    def file(self) -> tuple[int, int] | None:
        """Device and inode of the file; None for a database in memory."""
        ...

    def use(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection to the current thread."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


_RUN = "id, created_at, domain, score, success, status, text, data"


class Source:
    """The runs in a SQLite file, read over connections that no recorder waits for. Each read ends at once.

    The number of a run is its `changed`; in a file of an earlier version, which only a reader meets, that of its row.
    """

    def __init__(self, connections: Lender) -> None:
        self._connections = connections
        self._has_changes = False

    def identity(self) -> str:
        """Return the inode of the file, when it was created, and the id that it got with the tables of approvals."""
        with self._connections.use() as connection:
            (applied,) = connection.execute("SELECT MIN(applied_at) FROM schema_migrations").fetchone()
            named = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'approval_identity'").fetchone()
            (own,) = connection.execute("SELECT MIN(id) FROM approval_identity").fetchone() if named else ("",)
        return f"{self._connections.file} {applied} {own}"

    def _numbered(self, connection: sqlite3.Connection, sql: str) -> str:
        """Return a statement with the column that numbers the versions of runs in place of `{number}`."""
        if not self._has_changes:
            found = connection.execute("SELECT 1 FROM pragma_table_xinfo('traces') WHERE name = 'changed'")
            self._has_changes = found.fetchone() is not None
        return sql.replace("{number}", "changed" if self._has_changes else "number")

    def _rows(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self._connections.use() as connection:
            return connection.execute(self._numbered(connection, sql), values).fetchall()

    def changed(self) -> tuple[int, int]:
        """Return the newest numbers of runs and labels."""
        with self._connections.use() as connection:
            sql = self._numbered(connection, "SELECT COALESCE(MAX({number}), 0) FROM traces")
            (newest,) = connection.execute(sql).fetchone()
            if not has_feedback_table(connection):
                return newest, 0
            (label,) = connection.execute("SELECT COALESCE(MAX(number), 0) FROM feedback").fetchone()
        return newest, label

    def extent(self, above: int = 0) -> Extent:
        """Return both figures from one snapshot; the count reads the smallest index."""
        with self._connections.use() as connection:
            sql = self._numbered(
                connection,
                "SELECT (SELECT COALESCE(MAX({number}), 0) FROM traces),"
                " (SELECT COUNT(*) FROM traces INDEXED BY {index} WHERE {number} > ?)",
            )
            index = "traces_by_change" if self._has_changes else "traces_by_score"
            return Extent(*connection.execute(sql.replace("{index}", index), (above,)).fetchone())

    def unseen(self, above: int, limit: int) -> int:
        """Return how many runs have a number above this one, and no more than `limit`."""
        ((count,),) = self._rows(
            "SELECT COUNT(*) FROM (SELECT 1 FROM traces WHERE {number} > ? LIMIT ?)", (above, limit)
        )
        return int(count)

    def after(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with larger numbers."""
        return self._runs("{number} > ? ORDER BY {number}", number, limit)

    def up_to(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with this number or smaller ones."""
        return self._runs("{number} <= ? ORDER BY {number} DESC", number, limit)

    def _runs(self, condition: str, number: int, limit: int) -> list[StoredRun]:
        found: list[StoredRun] = []
        size = 0
        with self._connections.use() as connection:
            sql = f"SELECT {{number}}, {_RUN} FROM traces WHERE {condition} LIMIT ?"  # noqa: S608
            cursor = connection.execute(self._numbered(connection, sql), (number, limit))
            for number_, name, created, domain, score, success, status, text, data in cursor:
                found.append(StoredRun(number_, name, created, domain, score, bool(success), status, text, bytes(data)))
                size += len(data) + len(text)
                if size > BATCH_BYTES:
                    break
            cursor.close()
        return found

    def ids(self) -> Iterable[str]:
        """Return the ids of all runs."""
        return [name for (name,) in self._rows("SELECT id FROM traces", ())]

    def feedback(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Return the next labels."""
        with self._connections.use() as connection:
            if not has_feedback_table(connection):
                return []
            return connection.execute(
                "SELECT number, trace FROM feedback WHERE number > ? ORDER BY number LIMIT ?", (after, limit)
            ).fetchall()

    def labelled(self, ids: Sequence[str]) -> set[str]:
        """Return which of these runs have feedback."""
        with self._connections.use() as connection:
            if (
                not has_feedback_table(connection)
                or connection.execute("SELECT 1 FROM feedback LIMIT 1").fetchone() is None
            ):
                return set()
            found = connection.execute(
                "SELECT DISTINCT trace FROM feedback WHERE trace IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )
            return {name for (name,) in found}

    def containing(self, numbers: Sequence[int], folded: str) -> set[int]:
        """Return the numbers of those runs whose text contains a case-folded text."""
        sql = f"SELECT {{number}} FROM traces WHERE {{number}} {ONE_OF} AND instr(text, ?) > 0"  # noqa: S608
        return {number for (number,) in self._rows(sql, (json.dumps(list(numbers)), folded))}

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the texts of these runs, up to about `BATCH_BYTES`."""
        found: list[str | None] = []
        size = 0
        with self._connections.use() as connection:
            text_of = self._numbered(connection, "SELECT text FROM traces WHERE {number} = ?")
            for number in numbers:
                row = connection.execute(text_of, (number,)).fetchone()
                found.append(None if row is None else row[0])
                size += 0 if row is None else len(row[0])
                if size > BATCH_BYTES:
                    break
        return found

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()
