"""The source of a catalog: new and changed runs by number, feedback, and the runs that contain a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

from grace_kp.store._reading import has_feedback_table

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


class Source(Protocol):
    """A store that a catalog follows. A run that is stored again gets a new number, larger than all before."""

    def identity(self) -> str:
        """Return what distinguishes this store from another at the same place."""
        ...

    def changed(self) -> tuple[int, int]:
        """Return the newest numbers of runs and labels, which change whenever something was stored."""
        ...

    def extent(self, above: int = 0) -> Extent:
        """Return the newest number, and how many runs have a number above this one."""
        ...

    def unseen(self, above: int, limit: int) -> int:
        """Return how many runs have a number above this one, and no more than `limit`; quick for few."""
        ...

    def after(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with larger numbers, in ascending order."""
        ...

    def up_to(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with this number or smaller ones, in descending order."""
        ...

    def ids(self) -> Iterable[str]:
        """Return the ids of all runs."""
        ...

    def feedback(self, after: int, limit: int) -> list[tuple[int, str]]:
        """Return the next labels as (number of the label, id of the run), in ascending order."""
        ...

    def labelled(self, ids: Sequence[str]) -> set[str]:
        """Return which of these runs have feedback."""
        ...

    def containing(self, numbers: Sequence[int], folded: str) -> set[int]:
        """Return the numbers of those runs whose text contains a case-folded text."""
        ...

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the case-folded texts of the first of these runs, at least one; None for a run that is gone."""
        ...

    def close(self) -> None:
        """Release files."""
        ...


class Lender(Protocol):
    """Lends connections to a store."""

    @property
    def file(self) -> tuple[int, int] | None:
        """Device and inode of the file; None for a store in memory."""
        ...

    def use(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection to the current thread."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


_RUN = "number, id, created_at, domain, score, success, status, text, data"


class SqliteSource:
    """The runs in a SQLite file, read over connections that no recorder waits for. Each read ends at once."""

    def __init__(self, connections: Lender) -> None:
        self._connections = connections

    def identity(self) -> str:
        """Return the inode of the file, when it was created, and the id that it got with the tables of approvals."""
        with self._connections.use() as connection:
            (applied,) = connection.execute("SELECT MIN(applied_at) FROM schema_migrations").fetchone()
            named = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'approval_identity'").fetchone()
            (own,) = connection.execute("SELECT MIN(id) FROM approval_identity").fetchone() if named else ("",)
        return f"{self._connections.file} {applied} {own}"

    def changed(self) -> tuple[int, int]:
        """Return the newest numbers of runs and labels."""
        with self._connections.use() as connection:
            (newest,) = connection.execute("SELECT COALESCE(MAX(number), 0) FROM traces").fetchone()
            if not has_feedback_table(connection):
                return newest, 0
            (label,) = connection.execute("SELECT COALESCE(MAX(number), 0) FROM feedback").fetchone()
        return newest, label

    def extent(self, above: int = 0) -> Extent:
        """Return both figures from one snapshot; the count reads the smallest index."""
        with self._connections.use() as connection:
            row = connection.execute(
                "SELECT (SELECT COALESCE(MAX(number), 0) FROM traces),"
                " (SELECT COUNT(*) FROM traces INDEXED BY traces_by_score WHERE number > ?)",
                (above,),
            ).fetchone()
        return Extent(*row)

    def unseen(self, above: int, limit: int) -> int:
        """Return how many runs have a number above this one, and no more than `limit`."""
        with self._connections.use() as connection:
            counted = "SELECT COUNT(*) FROM (SELECT 1 FROM traces WHERE number > ? LIMIT ?)"
            return int(connection.execute(counted, (above, limit)).fetchone()[0])

    def after(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with larger numbers."""
        return self._runs(f"SELECT {_RUN} FROM traces WHERE number > ? ORDER BY number LIMIT ?", number, limit)  # noqa: S608

    def up_to(self, number: int, limit: int) -> list[StoredRun]:
        """Return the next runs with this number or smaller ones."""
        return self._runs(f"SELECT {_RUN} FROM traces WHERE number <= ? ORDER BY number DESC LIMIT ?", number, limit)  # noqa: S608

    def _runs(self, sql: str, number: int, limit: int) -> list[StoredRun]:
        found: list[StoredRun] = []
        size = 0
        with self._connections.use() as connection:
            cursor = connection.execute(sql, (number, limit))
            for number_, name, created, domain, score, success, status, text, data in cursor:
                found.append(StoredRun(number_, name, created, domain, score, bool(success), status, text, bytes(data)))
                size += len(data) + len(text)
                if size > BATCH_BYTES:
                    break
            cursor.close()
        return found

    def ids(self) -> Iterable[str]:
        """Return the ids of all runs."""
        with self._connections.use() as connection:
            return [name for (name,) in connection.execute("SELECT id FROM traces")]

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
        with self._connections.use() as connection:
            found = connection.execute(
                "SELECT number FROM traces WHERE number IN (SELECT value FROM json_each(?)) AND instr(text, ?) > 0",
                (json.dumps(list(numbers)), folded),
            )
            return {number for (number,) in found}

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the texts of these runs, up to about `BATCH_BYTES`."""
        found: list[str | None] = []
        size = 0
        with self._connections.use() as connection:
            for number in numbers:
                row = connection.execute("SELECT text FROM traces WHERE number = ?", (number,)).fetchone()
                found.append(None if row is None else row[0])
                size += 0 if row is None else len(row[0])
                if size > BATCH_BYTES:
                    break
        return found

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()
