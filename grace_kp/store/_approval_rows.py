"""Reads and writes of the tables of approvals over one connection to SQLite, inside the caller's transaction."""

from __future__ import annotations

import re
import sqlite3
import sys
from fnmatch import translate
from typing import TYPE_CHECKING

from grace_kp.errors import StoreError
from grace_kp.store._approval_query import ACTIONS, COLUMNS, KEPT, LINKS, branches, link_of, listing, row_of, values_of
from grace_kp.store._overwriting import mark_unclean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.approvals import Link, Row, RowQuery

INSERT = f"INSERT INTO approvals ({COLUMNS}) VALUES ({'?, ' * COLUMNS.count(',')}?) ON CONFLICT DO NOTHING"  # noqa: S608
UPDATE = f"UPDATE approvals SET ({COLUMNS}) = ({'?, ' * COLUMNS.count(',')}?) WHERE id = ? AND revision = ?"  # noqa: S608


class SqliteReads:
    """Reads over a connection. Inside a transaction all of them see the same state."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _find(self, sql: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, values)
        except (UnicodeError, OverflowError):  # half a surrogate pair, or a number beyond 64 bits: no row holds it
            return self._connection.execute("SELECT NULL WHERE 0")

    def row(self, approval: str) -> Row | None:
        """Return the row with this id; None if there is none."""
        found = self._find(f"SELECT {COLUMNS} FROM approvals WHERE id = ?", (approval,)).fetchone()  # noqa: S608
        return None if found is None else row_of(found)

    def ids(self, begins: str, *, limit: int) -> list[str]:
        """Return the ids that begin with a text, at most `limit`, in alphabetical order."""
        within = "SELECT id FROM approvals WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        return [name for (name,) in self._find(within, (begins, begins + chr(sys.maxunicode), limit))]

    def rows(self, query: RowQuery) -> list[Row]:
        """Return the rows that match, in the order of the query."""
        actions = self._actions(query.action)
        if actions == [] or query.limit == 0:
            return []
        return [row_of(found[:-1]) for found in self._find(*listing(query, actions)).fetchall()]

    def count(self, query: RowQuery) -> int:
        """Return how many rows match, whatever the limit."""
        actions = self._actions(query.action)
        if actions == []:
            return 0
        parts = branches(query, actions)
        return sum(n for part, values in parts for (n,) in self._find(f"SELECT COUNT(*) FROM {part}", values))  # noqa: S608

    def _actions(self, pattern: str | None) -> list[str] | None:
        """Return the names that a glob stands for; None without one."""
        if pattern is None:
            return None
        if not re.search(r"[*?[]", pattern):
            return [pattern]
        matches = re.compile(translate(pattern)).match
        return [name for (name,) in self._find(ACTIONS).fetchall() if matches(name)]

    def link(self, seq: int) -> Link | None:
        """Return the entry of the chain with this number; None if there is none."""
        found = self._find(f"{LINKS} WHERE seq = ?", (seq,)).fetchone()
        return None if found is None else link_of(found)

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        """Return entries by number, those after `after`; with `kept`, only those whose contents are still there."""
        of_one, values = ("", []) if approval is None else (" AND approval = ?", [approval])
        select = KEPT if kept else LINKS
        found = self._find(f"{select} WHERE seq > ?{of_one} ORDER BY seq LIMIT ?", (after, *values, limit))
        return [link_of(entry) for entry in found.fetchall()]

    def links_before(self, before: int | None = None, *, limit: int = 1_000, approval: str | None = None) -> list[Link]:
        """Return the entries with smaller numbers than `before` (all when None), newest first."""
        of_one, values = ("", []) if approval is None else (" AND approval = ?", [approval])
        end = self.head()[0] + 1 if before is None else before
        found = self._find(f"{LINKS} WHERE seq < ?{of_one} ORDER BY seq DESC LIMIT ?", (end, *values, limit))
        return [link_of(entry) for entry in found.fetchall()]

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and an empty text before the first."""
        found = self._find("SELECT seq, hash FROM approval_chain ORDER BY seq DESC LIMIT 1").fetchone()
        return (0, "") if found is None else (int(found[0]), str(found[1]))

    def document(self, kind: str, name: str) -> bytes | None:
        """Return a small document; None if there is none."""
        found = self._find("SELECT data FROM approval_documents WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        return None if found is None else bytes(found[0])

    def documents(self, kind: str) -> dict[str, bytes]:
        """Return all documents of a kind, by name."""
        found = self._find("SELECT name, data FROM approval_documents WHERE kind = ? ORDER BY name", (kind,)).fetchall()
        return {name: bytes(data) for name, data in found}


class SqliteWrites(SqliteReads):
    """Writes over a connection whose transaction the caller has begun."""

    has_forgotten = False
    """Whether contents were deleted, whose bytes are still in the file."""

    def put(self, row: Row) -> bool:
        """Insert a row of revision 1, or replace the row of the revision before; return False, and put nothing, if there is another.

        Raises:
            StoreError: a value cannot be stored, such as half a surrogate pair or a number that is none.
        """
        values = values_of(row)
        sql, values = (INSERT, values) if row.revision == 1 else (UPDATE, (*values, row.id, row.revision - 1))
        try:
            return self._connection.execute(sql, values).rowcount == 1
        except (UnicodeError, OverflowError, sqlite3.IntegrityError) as error:
            raise StoreError(
                f"the request {row.id!r} holds a value that SQLite cannot: {error}; use another"
            ) from error

    def append(self, link: Link) -> None:
        """Append an entry to the chain.

        Raises:
            StoreError: its number is not that after the head.
        """
        newest, _ = self.head()
        if link.seq != newest + 1:
            raise StoreError(f"entry {link.seq} cannot follow entry {newest} of the chain; append entry {newest + 1}")
        self._connection.execute(
            "INSERT INTO approval_chain VALUES (?, ?, ?, ?)", (link.seq, link.hash, link.approval, link.data)
        )
        if link.salt is not None or link.contents is not None:
            self._connection.execute(
                "INSERT INTO approval_contents VALUES (?, ?, ?)", (link.seq, link.salt, link.contents)
            )

    def put_document(self, kind: str, name: str, data: bytes | None) -> None:
        """Put a document, or delete it with None."""
        if data is None:
            self._connection.execute("DELETE FROM approval_documents WHERE kind = ? AND name = ?", (kind, name))
        else:
            self._connection.execute("INSERT OR REPLACE INTO approval_documents VALUES (?, ?, ?)", (kind, name, data))

    def forget(self, seqs: Sequence[int]) -> int:
        """Delete salt and contents of entries; return how many had some."""
        deleted = sum(
            self._connection.execute("DELETE FROM approval_contents WHERE seq = ?", (seq,)).rowcount for seq in seqs
        )
        self.has_forgotten = self.has_forgotten or bool(deleted)
        if deleted:
            mark_unclean(self._connection)
        return deleted
