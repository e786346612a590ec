"""Requests for approval in the tables of a database: rows, the chain, its contents and documents, read and written over one connection.

The caller begins and ends the transactions. A listing names the index that it uses. Without statistics SQLite would guess, and might sort a
million past rows to list a hundred.
"""

from __future__ import annotations

import math
import re
import sys
from contextlib import nullcontext
from dataclasses import fields
from fnmatch import translate
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import OPEN, Link, Row
from grace_kp.errors import StoreError
from grace_kp.store._database import Connection, IntegrityError
from grace_kp.store._schema import mark_unclean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from grace_kp.approvals import RowQuery

_NAMES = tuple(field.name for field in fields(Row))
COLUMNS = ", ".join(_NAMES)
NEXT = {"due": "deadline, level DESC, created, number", "newest": "changed DESC, number DESC"}
"""The orders of a query, as SQL."""
MAX_BRANCHES = 100
"""How many listings SQLite merges into one; it allows 500."""
ACTIONS = """WITH RECURSIVE names (action) AS (
    SELECT MIN(action) FROM approvals INDEXED BY approvals_by_action
    UNION ALL
    SELECT (SELECT MIN(action) FROM approvals INDEXED BY approvals_by_action WHERE action > names.action)
    FROM names WHERE action IS NOT NULL)
SELECT action FROM names WHERE action IS NOT NULL"""
"""All names of actions. It reads one entry of the index per name."""
LINKS = "SELECT seq, hash, approval, data, salt, contents FROM approval_chain LEFT JOIN approval_contents USING (seq)"
KEPT = LINKS.replace("LEFT JOIN", "JOIN")
"""Entries of the chain: all, and those that have contents."""
Branch = tuple[str, list[Any]]
"""The part of a SELECT behind FROM, with its values."""
INSERT = f"INSERT INTO approvals ({COLUMNS}) VALUES ({'?, ' * COLUMNS.count(',')}?) ON CONFLICT DO NOTHING"  # noqa: S608
PUT_DOCUMENT = (
    "INSERT INTO approval_documents VALUES (?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data"
)
UPDATE = f"UPDATE approvals SET ({COLUMNS}) = ({'?, ' * COLUMNS.count(',')}?) WHERE id = ? AND revision = ?"  # noqa: S608


class ApprovalReads:
    """Reads of the tables. Each sees one state of them."""

    def _snapshot(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

    def row(self, approval: str) -> Row | None:
        """Return the row with this id; None if there is none."""
        found = self._find(f"SELECT {COLUMNS} FROM approvals WHERE id = ?", (approval,))  # noqa: S608
        return row_of(found[0]) if found else None

    def ids(self, begins: str, *, limit: int) -> list[str]:
        """Return the ids that begin with a text, at most `limit`, in alphabetical order."""
        within = "SELECT id FROM approvals WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        return [name for (name,) in self._find(within, (begins, begins + chr(sys.maxunicode), limit))]

    def rows(self, query: RowQuery) -> list[Row]:
        """Return the rows that match, in the order of the query."""
        with self._snapshot() as connection:
            actions = _actions(connection, query.action)
            if actions == [] or query.limit == 0:
                return []
            return [row_of(found[:-1]) for found in _find(connection, *listing(query, actions))]

    def count(self, query: RowQuery) -> int:
        """Return how many rows match, whatever the limit."""
        with self._snapshot() as connection:
            actions = _actions(connection, query.action)
            parts = [] if actions == [] else branches(query, actions)
            counted = [(f"SELECT COUNT(*) FROM {part}", values) for part, values in parts]  # noqa: S608
            return sum(number for sql, values in counted for (number,) in _find(connection, sql, values))

    def link(self, seq: int) -> Link | None:
        """Return the entry of the chain with this number; None if there is none."""
        found = self._find(f"{LINKS} WHERE seq = ?", (seq,))
        return link_of(found[0]) if found else None

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        """Return entries by number, those after `after`; with `kept`, only those whose contents are still there."""
        of_one, values = ("", []) if approval is None else (" AND approval = ?", [approval])
        select = KEPT if kept else LINKS
        found = self._find(f"{select} WHERE seq > ?{of_one} ORDER BY seq LIMIT ?", (after, *values, limit))
        return [link_of(entry) for entry in found]

    def links_before(self, before: int | None = None, *, limit: int = 1_000, approval: str | None = None) -> list[Link]:
        """Return the entries with smaller numbers than `before` (all when None), newest first."""
        of_one, values = ("", []) if approval is None else (" AND approval = ?", [approval])
        end = sys.maxsize if before is None else before
        found = self._find(f"{LINKS} WHERE seq < ?{of_one} ORDER BY seq DESC LIMIT ?", (end, *values, limit))
        return [link_of(entry) for entry in found]

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and an empty text before the first."""
        found = self._find("SELECT seq, hash FROM approval_chain ORDER BY seq DESC LIMIT 1")
        return (int(found[0][0]), str(found[0][1])) if found else (0, "")

    def document(self, kind: str, name: str) -> bytes | None:
        """Return a small document; None if there is none."""
        found = self._find("SELECT data FROM approval_documents WHERE kind = ? AND name = ?", (kind, name))
        return bytes(found[0][0]) if found else None

    def documents(self, kind: str) -> dict[str, bytes]:
        """Return all documents of a kind, by name."""
        found = self._find("SELECT name, data FROM approval_documents WHERE kind = ? ORDER BY name", (kind,))
        return {name: bytes(data) for name, data in found}

    def _find(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        with self._snapshot() as connection:
            return _find(connection, sql, values)


class ApprovalWrites(ApprovalReads):
    """Writes over a connection whose transaction the caller has begun.

    Args:
        connection: the connection.
        max_rows: how many rows the table may hold; None for any number.
    """

    has_forgotten = False
    """Whether contents were deleted, whose bytes are still in the file."""

    def __init__(self, connection: Connection, max_rows: int | None = None) -> None:
        self._lent: Connection | None = connection
        self._max_rows = max_rows

    def end(self) -> None:
        """Refuse any further use: the transaction has ended."""
        self._lent = None

    @property
    def _connection(self) -> Connection:
        if self._lent is None:
            raise StoreError("approvals are written inside of `transaction()` only")
        return self._lent

    def _snapshot(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._connection)

    def put(self, row: Row) -> bool:
        """Insert a row of revision 1, or replace the row of the revision before; return False, and put nothing, if there is another."""
        if row.revision == 1 and self._max_rows is not None:
            self._check_room(row, self._max_rows)
        values = values_of(row)
        sql, values = (INSERT, values) if row.revision == 1 else (UPDATE, (*values, row.id, row.revision - 1))
        try:
            return self._connection.execute(sql, values).rowcount == 1
        except (UnicodeError, OverflowError, IntegrityError) as error:
            raise StoreError(
                f"the request {row.id!r} holds a value that SQLite cannot: {error}; use another"
            ) from error

    def _check_room(self, row: Row, most: int) -> None:
        """Refuse a new row when the table is full. A forgotten row could run its action once more, so none is dropped."""
        (rows,) = self._connection.execute(
            "SELECT COALESCE(MAX(number), 0) FROM approvals"
        ).fetchone()  # none is ever deleted
        if rows >= most and self.row(row.id) is None:
            raise StoreError(
                f"the store in memory holds {rows:,} requests for approval, the most that it can, and forgets none; "
                "use a store in a file, such as sqlite:///path.db"
            )

    def append(self, link: Link) -> None:
        """Append an entry to the chain."""
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
            self._connection.execute(PUT_DOCUMENT, (kind, name, data))

    def forget(self, seqs: Sequence[int]) -> int:
        """Delete salt and contents of entries; return how many had some."""
        deleted = sum(
            self._connection.execute("DELETE FROM approval_contents WHERE seq = ?", (seq,)).rowcount for seq in seqs
        )
        self.has_forgotten = self.has_forgotten or bool(deleted)
        if deleted:
            mark_unclean(self._connection)
        return deleted


def _find(connection: Connection, sql: str, values: Sequence[object] = ()) -> list[Any]:
    try:
        return connection.execute(sql, values).fetchall()
    except (UnicodeError, OverflowError):  # half a surrogate pair, or a number beyond 64 bits: no row holds it
        return []


def _actions(connection: Connection, pattern: str | None) -> list[str] | None:
    """Return the names that a glob stands for; None without one."""
    if pattern is None:
        return None
    if not re.search(r"[*?[]", pattern):
        return [pattern]
    matches = re.compile(translate(pattern)).match
    return [name for (name,) in _find(connection, ACTIONS) if matches(name)]


def values_of(row: Row) -> tuple[Any, ...]:
    """Return the values of a row, in the order of `COLUMNS`."""
    deadline = math.inf if row.deadline is None else row.deadline
    return tuple(deadline if name == "deadline" else getattr(row, name) for name in _NAMES)


def row_of(values: Sequence[Any]) -> Row:
    """Return the row with these values of `COLUMNS`."""
    columns = dict(zip(_NAMES, values, strict=True))
    if columns["deadline"] == math.inf:
        columns["deadline"] = None
    columns["data"] = _bytes_of(columns["data"])
    return Row(**columns)


def link_of(values: Sequence[Any]) -> Link:
    """Return the entry with these values of `LINKS`."""
    seq, digest, approval, data, *contents = values
    salt, text = (None if value is None else _bytes_of(value) for value in contents)
    return Link(seq=seq, hash=digest, approval=approval, data=_bytes_of(data), salt=salt, contents=text)


def _bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace")


def listing(query: RowQuery, actions: Sequence[str] | None) -> Branch:
    """Return the statement that lists the rows of a query in its order, with its values."""
    found = branches(query, actions)
    parts = " UNION ALL ".join(f"SELECT {COLUMNS}, number FROM {part}" for part, _ in found)  # noqa: S608
    limit = -1 if query.limit is None else query.limit
    return (
        f"{parts} ORDER BY {NEXT[query.order]} LIMIT ? OFFSET ?",
        [value for _, values in found for value in values] + [limit, query.offset],
    )


def branches(query: RowQuery, actions: Sequence[str] | None) -> list[Branch]:
    """Return parts of the table that make up the rows of a query. None overlaps another, and an index has each in the query's order.

    Where the query names a key, a digest or a run, there is one part, which is small.
    """
    states = list(dict.fromkeys(map(str, query.states)))
    names = None if actions is None else list(dict.fromkeys(actions))
    for column, index in (
        ("key", "approvals_by_key"),
        ("digest", "approvals_by_digest"),
        ("run_id", "approvals_by_run"),
    ):
        if getattr(query, column) is not None:
            return [_branch(query, index, states, names)]
    if query.order == "due" and states and OPEN.issuperset(states):
        return [_branch(query, "approvals_open", [state], names) for state in states]
    if query.order == "newest" and names and len(names) <= MAX_BRANCHES:
        return [_branch(query, "approvals_by_action", states, [name]) for name in names]
    if states and len(states) <= MAX_BRANCHES:
        return [_branch(query, "approvals_by_state", [state], names) for state in states]
    return [_branch(query, "approvals_by_change" if query.order == "newest" else "", states, names)]


def _branch(query: RowQuery, index: str, states: Sequence[str], actions: Sequence[str] | None) -> Branch:
    conditions: list[str] = ["is_open = 1"] if index == "approvals_open" else []
    values: list[Any] = []
    for condition, value in (
        ("domain = ?", query.domain),
        ("key = ?", query.key),
        ("digest = ?", query.digest),
        ("run_id = ?", query.run_id),
        ("deadline <= ?", query.due_before),
        ("changed >= ?", query.since),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    for column, texts in (("state", states or None), ("action", actions)):
        if texts is not None:
            conditions.append(f"{column} = ?" if len(texts) == 1 else f"{column} IN ({', '.join('?' * len(texts))})")
            values += texts
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"approvals{f' INDEXED BY {index}' if index else ''}{where}", values
