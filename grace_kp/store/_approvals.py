"""The tables of approvals: rows, the chain, its contents and documents, in a SQLite file and in memory.

A listing names its index. Without statistics SQLite would guess, and might sort a million past rows to list a hundred.

A file has two connections for these tables. One writes, with every write on disk when its transaction ends. The other reads, so that listings never
wait for a writer. Both belong to the file that was opened first: after a change of files, actions that have run could run again.
"""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import sys
import threading
from dataclasses import fields
from fnmatch import translate
from functools import partial
from typing import TYPE_CHECKING, Any

from grace_kp.approvals import OPEN, Link, Row
from grace_kp.background import Resident, watch
from grace_kp.errors import StoreError
from grace_kp.store._database import (
    Connection,
    DatabaseError,
    IntegrityError,
    OpenFiles,
    SharedConnection,
    close_on_error,
    connect_to_existing,
    is_busy,
    is_read_only,
    transaction,
)
from grace_kp.store._leases import Leases
from grace_kp.store._schema import mark_unclean, overwrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from grace_kp.approvals import RowQuery, Writes
    from grace_kp.background import Lock

BUSY_SECONDS = 10.0
"""Time that a write waits for other processes and threads."""
MAX_ROWS = 100_000
"""Maximum number of requests in memory."""
_NAMES = tuple(field.name for field in fields(Row))
COLUMNS = ", ".join(_NAMES)
NEXT = {"due": "deadline, level DESC, created, number", "newest": "changed DESC, number DESC"}
"""The orders of a query in SQL."""
MAX_BRANCHES = 100
"""Maximum number of merged listings; SQLite allows 500."""
ACTIONS = """WITH RECURSIVE names (action) AS (
    SELECT MIN(action) FROM approvals INDEXED BY approvals_by_action
    UNION ALL
    SELECT (SELECT MIN(action) FROM approvals INDEXED BY approvals_by_action WHERE action > names.action)
    FROM names WHERE action IS NOT NULL)
SELECT action FROM names WHERE action IS NOT NULL"""
"""All names of actions, with one read of the index per name."""
LINKS = "SELECT seq, hash, approval, data, salt, contents FROM approval_chain LEFT JOIN approval_contents USING (seq)"
KEPT = LINKS.replace("LEFT JOIN", "JOIN")
"""Entries of the chain that have contents."""
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

    @property
    def identity(self) -> str:
        with self._snapshot() as connection:
            return identity_of(connection)

    def row(self, approval: str) -> Row | None:
        found = self._find(f"SELECT {COLUMNS} FROM approvals WHERE id = ?", (approval,))  # noqa: S608
        return row_of(found[0]) if found else None

    def ids(self, begins: str, *, limit: int) -> list[str]:
        within = "SELECT id FROM approvals WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        return [name for (name,) in self._find(within, (begins, begins + chr(sys.maxunicode), limit))]

    def rows(self, query: RowQuery) -> list[Row]:
        with self._snapshot() as connection:
            actions = _actions(connection, query.action)
            found = [] if actions == [] or query.limit == 0 else _find(connection, *listing(query, actions))
            return [row_of(values[:-1]) for values in found]

    def count(self, query: RowQuery) -> int:
        with self._snapshot() as connection:
            actions = _actions(connection, query.action)
            parts = [] if actions == [] else branches(query, actions)
            counted = [_find(connection, f"SELECT COUNT(*) FROM {part}", values) for part, values in parts]  # noqa: S608
            return sum(number for found in counted for (number,) in found)

    def link(self, seq: int) -> Link | None:
        found = self._find(f"{LINKS} WHERE seq = ?", (seq,))
        return link_of(found[0]) if found else None

    def links(
        self, *, after: int = 0, limit: int = 1_000, approval: str | None = None, kept: bool = False
    ) -> list[Link]:
        return self._links(f"{KEPT if kept else LINKS} WHERE seq > ?", "", after, limit, approval)

    def links_before(self, before: int | None = None, *, limit: int = 1_000, approval: str | None = None) -> list[Link]:
        return self._links(f"{LINKS} WHERE seq < ?", "DESC", sys.maxsize if before is None else before, limit, approval)

    def _links(self, select: str, order: str, seq: int, limit: int, approval: str | None) -> list[Link]:
        of_one, values = ("", []) if approval is None else (" AND approval = ?", [approval])
        found = self._find(f"{select}{of_one} ORDER BY seq {order} LIMIT ?", (seq, *values, limit))
        return [link_of(entry) for entry in found]

    def head(self) -> tuple[int, str]:
        found = self._find("SELECT seq, hash FROM approval_chain ORDER BY seq DESC LIMIT 1")
        return (int(found[0][0]), str(found[0][1])) if found else (0, "")

    def document(self, kind: str, name: str) -> bytes | None:
        found = self._find("SELECT data FROM approval_documents WHERE kind = ? AND name = ?", (kind, name))
        return bytes(found[0][0]) if found else None

    def documents(self, kind: str) -> dict[str, bytes]:
        found = self._find("SELECT name, data FROM approval_documents WHERE kind = ? ORDER BY name", (kind,))
        return {name: bytes(data) for name, data in found}

    def _find(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        with self._snapshot() as connection:
            return _find(connection, sql, values)


class ApprovalWrites(ApprovalReads):
    """Writes over a connection whose transaction the caller has begun, up to a maximum number of rows."""

    has_forgotten = False
    """Whether deleted contents are still in the file."""

    def __init__(self, connection: Connection, max_rows: int | None = None) -> None:
        self._lent: Connection | None = connection
        self._max_rows = max_rows
        self._head: tuple[int, str] | None = None
        """The newest entry: the transaction keeps others from appending one."""

    def end(self) -> None:
        """Refuse further use: the transaction has ended."""
        self._lent = None

    @property
    def _connection(self) -> Connection:
        if self._lent is None:
            raise StoreError("approvals are written inside of `transaction()` only")
        return self._lent

    def _snapshot(self) -> AbstractContextManager[Connection]:
        return contextlib.nullcontext(self._connection)

    def put(self, row: Row) -> bool:
        if row.revision == 1 and self._max_rows is not None and self.row(row.id) is None:
            # Rows are never deleted: the action of a forgotten one could run again.
            (rows,) = self._connection.execute("SELECT COALESCE(MAX(number), 0) FROM approvals").fetchone()
            if rows >= self._max_rows:
                raise StoreError(
                    f"the store in memory holds {rows:,} requests for approval, the maximum, and forgets none; "
                    "use a store in a file, such as sqlite:///path.db"
                )
        deadline = math.inf if row.deadline is None else row.deadline
        values = tuple(deadline if name == "deadline" else getattr(row, name) for name in _NAMES)
        sql, values = (INSERT, values) if row.revision == 1 else (UPDATE, (*values, row.id, row.revision - 1))
        try:
            return self._connection.execute(sql, values).rowcount == 1
        except (UnicodeError, OverflowError, IntegrityError) as error:
            problem = f"the request {row.id!r} holds a value that SQLite cannot: {error}; use another"
            raise StoreError(problem) from error

    def head(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry."""
        if self._head is None:
            self._head = super().head()
        return self._head

    def append(self, link: Link) -> None:
        newest, _ = self.head()
        if link.seq != newest + 1:
            raise StoreError(f"entry {link.seq} cannot follow entry {newest} of the chain; append entry {newest + 1}")
        entry, contents = (link.seq, link.hash, link.approval, link.data), (link.seq, link.salt, link.contents)
        self._connection.execute("INSERT INTO approval_chain VALUES (?, ?, ?, ?)", entry)
        if link.salt is not None or link.contents is not None:
            self._connection.execute("INSERT INTO approval_contents VALUES (?, ?, ?)", contents)
        self._head = link.seq, link.hash

    def put_document(self, kind: str, name: str, data: bytes | None) -> None:
        if data is None:
            self._connection.execute("DELETE FROM approval_documents WHERE kind = ? AND name = ?", (kind, name))
        else:
            self._connection.execute(PUT_DOCUMENT, (kind, name, data))

    def forget(self, seqs: Sequence[int]) -> int:
        delete = "DELETE FROM approval_contents WHERE seq = ?"
        deleted = sum(self._connection.execute(delete, (seq,)).rowcount for seq in seqs)
        if deleted:
            self.has_forgotten = True
            mark_unclean(self._connection)
        return deleted


def _find(connection: Connection, sql: str, values: Sequence[object] = ()) -> list[Any]:
    try:
        return connection.execute(sql, values).fetchall()
    except (UnicodeError, OverflowError):  # half a surrogate pair, or a number beyond 64 bits, which no row holds
        return []


def _actions(connection: Connection, pattern: str | None) -> list[str] | None:
    if pattern is None:
        return None
    if not re.search(r"[*?[]", pattern):
        return [pattern]
    matches = re.compile(translate(pattern)).match
    return [name for (name,) in _find(connection, ACTIONS) if matches(name)]


def row_of(values: Sequence[Any]) -> Row:
    columns = dict(zip(_NAMES, values, strict=True))
    if columns["deadline"] == math.inf:
        columns["deadline"] = None
    columns["data"] = _bytes_of(columns["data"])
    return Row(**columns)


def link_of(values: Sequence[Any]) -> Link:
    seq, digest, approval, data, *contents = values
    salt, text = (None if value is None else _bytes_of(value) for value in contents)
    return Link(seq=seq, hash=digest, approval=approval, data=_bytes_of(data), salt=salt, contents=text)


def _bytes_of(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "backslashreplace")


def listing(query: RowQuery, actions: Sequence[str] | None) -> Branch:
    """Return the statement that lists the rows of a query, with its values."""
    found = branches(query, actions)
    parts = " UNION ALL ".join(f"SELECT {COLUMNS}, number FROM {part}" for part, _ in found)  # noqa: S608
    values = [value for _, of_part in found for value in of_part]
    values += [-1 if query.limit is None else query.limit, query.offset]
    return f"{parts} ORDER BY {NEXT[query.order]} LIMIT ? OFFSET ?", values


def branches(query: RowQuery, actions: Sequence[str] | None) -> list[Branch]:
    """Return disjoint parts of the table that make up a query, each with an index in the order of the query.

    A key, a digest or a run has one small part, which SQLite sorts.
    """
    states = list(dict.fromkeys(map(str, query.states)))
    names = None if actions is None else list(dict.fromkeys(actions))
    for column in ("key", "digest", "run_id"):
        if getattr(query, column) is not None:
            return [_branch(query, f"approvals_by_{column.removesuffix('_id')}", states, names)]
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
    exact = [(f"{name} = ?", getattr(query, name)) for name in ("domain", "key", "digest", "run_id")]
    for condition, value in (*exact, ("deadline <= ?", query.due_before), ("changed >= ?", query.since)):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    for column, names in (("state", states or None), ("action", actions)):
        if names is not None:
            conditions.append(f"{column} = ?" if len(names) == 1 else f"{column} IN ({', '.join('?' * len(names))})")
            values += names
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"approvals{f' INDEXED BY {index}' if index else ''}{where}", values


def identity_of(connection: Connection) -> str:
    """Return the id of the store that a connection reads."""
    found = connection.execute("SELECT id FROM approval_identity").fetchone()
    return "" if found is None else str(found[0])


class ApprovalFile:
    """The file that was opened first, to notice when another is put in its place.

    A copy that is written over the file has the same inode and id, but lacks the newest entry of the chain that was seen.
    """

    def __init__(self, path: Path, connect: Callable[[], Connection], leave_parent: Callable[[], bool]) -> None:
        self.path = path
        self._connect, self._leave_parent = connect, leave_parent
        self.lock = threading.RLock()
        """Held while a connection is opened."""
        self.is_forked = False
        self.forget()

    def forget(self) -> None:
        """Accept the file that is found next: no connection is open."""
        self._files: OpenFiles | None = None
        self._identity, self._seen = "", (0, "")
        self.is_entered = False
        """Whether the log that the connections use was noted."""

    def after_fork(self, *, is_left: bool) -> None:
        """Expect the same file in a forked child, but perhaps another log: it is deleted with the last connection.

        Args:
            is_left: whether no connection of the parent to these tables is open here.
        """
        self.lock = threading.RLock()
        self.is_forked, self.is_left, self.is_entered = True, is_left, False
        if self._files is not None:
            self._files.leave_beside()

    def open(self) -> Connection:
        with self.lock:
            self.check()
            if self.is_forked and not (self.is_left and self._leave_parent()):
                raise StoreError(
                    f"store {self.path}: this process was forked while another thread used the store, and cannot share it safely; restart it, "
                    "or fork before the store is used"
                )
            files = self._files or OpenFiles(self.path)
            connection = self._connect()
            with close_on_error(connection):
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA secure_delete = ON")
                identity = identity_of(connection)
                if not self.is_entered:
                    self._files, self._identity, self.is_entered = files, self._identity or identity, True
                    files.look_beside()
                self.check(connection)
        return connection

    def leave(self, connection: Connection) -> None:
        with contextlib.suppress(DatabaseError):
            connection.close() if self._files is None else self._files.leave(connection)

    def note(self, head: tuple[int, str]) -> None:
        """Record the newest entry of the chain."""
        if head[0] > self._seen[0]:
            self._seen = head

    def check(self, connection: Connection | None = None) -> None:
        """Compare the file at the path, and the data of a connection, with the file that was opened."""
        (number, expected), problem = self._seen, ""
        if self._files is not None and self._files.are_displaced:
            problem = "was deleted, moved or replaced after it was opened"
        elif connection is not None and identity_of(connection) != self._identity:
            problem = "holds another store than the one that was opened"
        elif connection is not None and number:
            found = connection.execute("SELECT hash FROM approval_chain WHERE seq = ?", (number,)).fetchone()
            if found is None or found[0] != expected:
                problem = f"lacks entry {number} of its audit trail: an earlier state was written over it"
        if problem:
            raise StoreError(
                f"store {self.path} {problem}. Approvals do not go on in it, because an action could run twice. Restore what is missing, or "
                "run `grace-kp approvals restored` if a backup was put in its place; then restart this program"
            )


class ApprovalConnection(SharedConnection):
    """A connection to the tables of approvals in the file that was opened first."""

    def __init__(self, file: ApprovalFile, lock_seconds: float) -> None:
        super().__init__()
        self.path, self.place, self.lock_seconds = file.path, file, lock_seconds

    def _open(self) -> Connection:
        self._connection = self.place.open()
        return self._connection

    def _leave(self, connection: Connection) -> None:
        self.place.leave(connection)

    @contextlib.contextmanager
    def use(self, *, write: bool = False) -> Iterator[Connection]:
        """Lend the connection; refuse another file at the path."""
        with super().use(write=write) as connection:
            self.place.check()
            yield connection


class SqliteTables(ApprovalReads, Resident):
    """The tables of approvals in a SQLite file.

    If the file is deleted, replaced or restored while it is open, every use raises `StoreError` until the store is closed and opened again.

    Args:
        path: the file of a store that has been opened.
        busy_seconds: time that a write waits for other processes and threads.
        leave_parent: closes the other connections of the parent in a forked child; returns whether it could.
        connect: opens a connection, for example to read only; by default one that writes.
    """

    lasting = True

    def __init__(
        self,
        path: Path,
        *,
        busy_seconds: float = BUSY_SECONDS,
        leave_parent: Callable[[], bool] = lambda: True,
        connect: Callable[..., Connection] | None = None,
    ) -> None:
        self._path, self._busy_seconds = path, busy_seconds
        self._leases = Leases()
        connect = partial(connect or partial(connect_to_existing, path), busy_seconds=busy_seconds)
        self._place = ApprovalFile(path, connect, leave_parent)
        self._writing = ApprovalConnection(self._place, busy_seconds)
        self._reading = ApprovalConnection(self._place, busy_seconds)
        self._changes = 0
        self._version: tuple[Connection | None, int] = (None, 0)
        """The reading connection, and its `data_version`."""
        watch(self)

    def fork_locks(self) -> Iterator[Lock]:
        yield self._writing.lock
        yield self._reading.lock
        yield self._place.lock

    def after_fork(self) -> None:
        for connection in (self._writing, self._reading):
            connection.after_fork()
        self._place.after_fork(is_left=not (self._writing.abandoned or self._reading.abandoned))
        self._leases.forget()

    def close(self) -> None:
        with self._writing.lock, self._reading.lock:
            self._writing.close()
            self._reading.close()
            self._place.forget()

    @contextlib.contextmanager
    def _explain(self, act: str) -> Iterator[None]:
        try:
            yield
        except DatabaseError as error:
            problem = f"{type(error).__name__}: {error}"
            if is_busy(error):
                problem = f"another process has locked it for {self._busy_seconds:g} s; nothing was written; try again"
            elif is_read_only(error):
                allowed = "open it with create=True, as a user who may"
                problem = f"it was opened to be read only, or may not be written; {allowed}"
            raise StoreError(f"store {self._path}: its approvals cannot be {act}: {problem}") from error

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._explain("read"), self._reading.use() as connection:
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writes]:
        """Return a block whose writes are all kept, or after an exception none; see `Tables.transaction`.

        Contents that it deletes are overwritten at its end. If another process reads then, the next deletion overwrites them.
        """
        with self._explain("written"), self._writing.use() as connection:
            if connection.in_transaction:
                raise StoreError("a transaction on approvals is open in this thread; end it before the next begins")
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._place.check(connection)
                writes = ApprovalWrites(connection)
                try:
                    yield writes
                    head = writes.head()
                finally:
                    writes.end()
                self._place.check()
                try:
                    connection.execute("COMMIT")
                except DatabaseError as error:
                    raise StoreError(
                        f"store {self._path}: the disk failed while approvals were written ({error}); whether they are stored is "
                        "uncertain: read them again"
                    ) from error
            except BaseException:
                self._leases.lapse()
                try:
                    connection.rollback()
                except DatabaseError:
                    self._writing.close()  # closing it rolls back
                raise
            self._place.note(head)
            self._place.check()
            if writes.has_forgotten:
                with self._reading.use():  # no reader of this process keeps an old state
                    overwrite(connection, self._path)

    def changes(self) -> int:
        with self._explain("read"), self._reading.use() as connection:
            version = (connection, *connection.execute("PRAGMA data_version").fetchone())
            if version != self._version:
                self._version = version
                self._changes += 1
            return self._changes

    def hold(self) -> str:
        if self._leases.id is not None and not self._leases.is_due:
            return self._leases.id
        with self._explain("written"), self._writing.use() as connection, contextlib.ExitStack() as stack:
            if not connection.in_transaction:
                stack.enter_context(self.transaction())
            return self._leases.hold(connection)

    def is_alive(self, process: str) -> bool | None:
        with self._explain("read"), self._reading.use() as connection:
            return self._leases.is_alive(connection, process)


class MemoryTables(ApprovalReads):
    """The tables of approvals of a store in memory. They end with their process, and a forked child begins with empty ones.

    Args:
        use: lends the connection of the store to one thread.
        max_rows: maximum number of requests. None is deleted: the action of a forgotten one could run again.
    """

    lasting = False

    def __init__(self, use: Callable[[], AbstractContextManager[Connection]], max_rows: int = MAX_ROWS) -> None:
        self._use, self._max_rows = use, max_rows
        self._changes = 0
        self.forget()

    def forget(self) -> None:
        """Take another id, in a forked child."""
        self._process = secrets.token_hex(8)

    def _snapshot(self) -> AbstractContextManager[Connection]:
        return self._use()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writes]:
        with self._use() as connection:
            if connection.in_transaction:
                raise StoreError("a transaction on approvals is open in this thread; end it before the next begins")
            writes = ApprovalWrites(connection, self._max_rows)
            try:
                with transaction(connection):
                    yield writes
            finally:
                writes.end()
            self._changes += 1

    def changes(self) -> int:
        return self._changes

    def hold(self) -> str:
        with self._use():  # draws another id in a forked child
            return self._process

    def is_alive(self, process: str) -> bool | None:
        return True if process == self._process else None
