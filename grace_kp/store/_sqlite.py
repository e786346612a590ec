"""Traces in a SQLite file (WAL): one writer at a time, readers beside it, open runs in a journal that survives a kill."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import StoreError
from grace_kp.store._migrations import MIGRATIONS
from grace_kp.store._store import JournalEntry, Query, Record, scorer_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grace_kp.trace import ReasoningTrace

BUSY_MS = 2_000
STALE_SECONDS = 60.0
_COLUMNS = "id, created_at, domain, score, success, status, text, data"


class SqliteStore:
    """A SQLite file. Several processes and threads may use the same one.

    Raises:
        StoreError: the file cannot be opened, is no SQLite file, or was written by a newer version.
    """

    lasting = True
    """What is kept of actions outlives the process."""

    def __init__(self, path: str | Path, *, busy_ms: int = BUSY_MS) -> None:
        self.path = Path(path).expanduser()
        self._busy_ms = busy_ms
        self.lock = threading.RLock()
        """Held while the store is used."""
        self._abandoned: list[sqlite3.Connection] = []
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._owner: str | None = None
        self._beat = 0.0
        try:
            self._make_folder()
            self._connect()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StoreError(f"store {self.path}: cannot be opened: {error}") from None

    def _make_folder(self) -> None:
        folder = self.path.parent
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700)
        if not self.path.exists():
            # Traces are nobody else's business.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._busy_ms / 1_000, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        # The switch to WAL does not wait as other statements do when another process is making the same switch just now.
        deadline = time.monotonic() + self._busy_ms / 1_000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous = NORMAL")
        self._migrate(connection)
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
            )
            (version,) = connection.execute("SELECT COALESCE(MAX(version), 0) FROM schema_migrations").fetchone()
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"store {self.path}: schema version {version} is newer than this grace_kp knows ({len(MIGRATIONS)})"
                )
            for number in range(version, len(MIGRATIONS)):
                for statement in MIGRATIONS[number]:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO schema_migrations VALUES (?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))", (number + 1,)
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def after_fork(self) -> None:
        """In a forked child: the connection is the parent's, and not even its closing is ours."""
        self.lock = threading.RLock()
        if self._connection is not None:
            self._abandoned.append(self._connection)  # kept, because being collected would close it
        self._pid, self._connection, self._owner = os.getpid(), None, None

    @contextlib.contextmanager
    def _use(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        with self.lock:
            if self._pid != os.getpid():
                self.after_fork()
            connection = self._connection or self._connect()
            if not write:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def put(self, records: Sequence[Record], *, ended: Sequence[str] = ()) -> None:
        """Keep these traces, replacing those with the same id, and forget the journals of the runs in `ended`."""
        rows = [
            (r.id, r.created_at, r.domain, r.score, r.success, r.status, _storable(r.text), r.data) for r in records
        ]
        newest = {r.id: r for r in records}.values()
        said = [(r.id, scorer_name(name), score, passed) for r in newest for name, score, passed in r.scores]
        with self._use(write=True) as connection:
            connection.executemany(f"INSERT OR REPLACE INTO traces ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", rows)  # noqa: S608
            connection.executemany("DELETE FROM journal WHERE run_id = ?", [(run_id,) for run_id in ended])
            connection.executemany("DELETE FROM scores WHERE trace = ?", [(r.id,) for r in records])
            connection.executemany("INSERT INTO scores VALUES (?,?,?,?)", said)

    def journal(self, entries: Sequence[JournalEntry]) -> None:
        """Keep what has come of runs that are still open."""
        with self._use(write=True) as connection:
            owner = self._own(connection)
            connection.executemany(
                "INSERT OR REPLACE INTO journal (run_id, seq, owner, data) VALUES (?,?,?,?)",
                [(entry.run_id, entry.seq, owner, entry.data) for entry in entries],
            )

    def action(self, key: str) -> bytes | None:
        """What is kept of an action; None where nothing is."""
        with self._use() as connection:
            row = connection.execute("SELECT data FROM actions WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put_action(self, key: str, data: bytes, *, only_if: bytes | None) -> bool:
        """Keep this of an action where `only_if` stands now, None being nothing; False where something else stands.

        What returned True is on the disk, and not only on its way there.
        """
        with self.lock:
            with self._use() as connection:
                connection.execute("PRAGMA synchronous = FULL")
            try:
                with self._use(write=True) as connection:
                    if only_if is None:
                        sql, values = (
                            "INSERT INTO actions VALUES (?,?,?) ON CONFLICT DO NOTHING",
                            (key, time.time(), data),
                        )
                    else:
                        sql = "UPDATE actions SET at = ?, data = ? WHERE key = ? AND data = ?"
                        values = (time.time(), data, key, only_if)  # type: ignore[assignment]
                    return connection.execute(sql, values).rowcount == 1
            finally:
                with self._use() as connection:
                    connection.execute("PRAGMA synchronous = NORMAL")

    def report(self, process: str, data: bytes) -> None:
        """Keep what a process could not record, replacing what it said before; of all processes the last 200."""
        with self._use(write=True) as connection:
            connection.execute("INSERT OR REPLACE INTO reports VALUES (?,?,?)", (process, time.time(), data))
            connection.execute(
                "DELETE FROM reports WHERE process NOT IN (SELECT process FROM reports ORDER BY at DESC LIMIT 200)"
            )

    def reports(self, since: float = 0.0) -> list[bytes]:
        """What processes could not record since then (seconds since the epoch), newest first."""
        with self._use() as connection:
            rows = connection.execute("SELECT data FROM reports WHERE at >= ? ORDER BY at DESC", (since,)).fetchall()
        return [bytes(data) for (data,) in rows]

    def _own(self, connection: sqlite3.Connection) -> str:
        """This process as an owner of journals; its sign of life is renewed now and then."""
        now = time.time()
        if self._owner is None:
            self._owner = secrets.token_hex(8)
        elif now - self._beat < STALE_SECONDS / 6:
            return self._owner
        self._beat = now
        connection.execute(
            "INSERT OR REPLACE INTO owners VALUES (?,?,?,?,?)",
            (self._owner, os.getpid(), _host(), _started(os.getpid()), now),
        )
        return self._owner

    def recover(self) -> list[list[JournalEntry]]:
        """The journals of runs whose process died, each given to one caller only."""
        with self._use() as connection:
            if connection.execute("SELECT 1 FROM journal LIMIT 1").fetchone() is None:
                return []
        with self._use(write=True) as connection:
            dead = [owner for owner, *rest in connection.execute("SELECT * FROM owners") if _is_dead(*rest)]
            mine = self._own(connection)
            runs: dict[str, list[JournalEntry]] = {}
            for owner in dead:
                # A run that was stored after all is no lost run, even if a last row of its journal came late.
                connection.execute(
                    # One that was stored as suspended has gone on since, if it has a journal with a beginning.
                    "DELETE FROM journal WHERE owner = ? AND run_id IN (SELECT id FROM traces WHERE status <> 'suspended')",
                    (owner,),
                )
                rows = connection.execute(
                    "SELECT run_id, seq, data FROM journal WHERE owner = ? ORDER BY run_id, seq", (owner,)
                ).fetchall()
                for run_id, seq, data in rows:
                    runs.setdefault(run_id, []).append(JournalEntry(run_id, seq, bytes(data)))
                connection.execute("UPDATE journal SET owner = ? WHERE owner = ?", (mine, owner))
                connection.execute("DELETE FROM owners WHERE id = ?", (owner,))
        return [rows for rows in runs.values() if rows[0].seq == 0]

    def get(self, id: str) -> ReasoningTrace | None:  # noqa: A002
        """The trace of this id; None where there is none."""
        with self._use() as connection:
            row = connection.execute("SELECT data FROM traces WHERE id = ?", (id,)).fetchone()
        return None if row is None else _load(row[0])

    def query(self, **conditions: Any) -> list[ReasoningTrace]:
        """Traces that meet all conditions, newest first; see `Query`."""
        query = Query(**conditions)
        where, values = _where(query)
        limit = -1 if query.limit is None else query.limit
        with self._use() as connection:
            rows = connection.execute(
                f"SELECT data FROM traces {where} ORDER BY created_at DESC, number DESC LIMIT ? OFFSET ?",  # noqa: S608
                (*values, limit, query.offset),
            ).fetchall()
        return [_load(data) for (data,) in rows]

    def count(self, **conditions: Any) -> int:
        """How many traces meet all conditions."""
        where, values = _where(Query(**conditions))
        with self._use() as connection:
            (count,) = connection.execute(f"SELECT COUNT(*) FROM traces {where}", values).fetchone()  # noqa: S608
        return int(count)

    def iterate(self, **conditions: Any) -> Iterator[ReasoningTrace]:
        """Traces that meet all conditions, oldest first, one at a time."""
        where, values = _where(Query(**{"limit": None, **conditions}))
        with self._use() as connection:
            ids = connection.execute(
                f"SELECT number FROM traces {where} ORDER BY created_at, number",  # noqa: S608
                values,
            ).fetchall()
        for number in ids:
            with self._use() as connection:
                row = connection.execute("SELECT data FROM traces WHERE number = ?", number).fetchone()
            if row is not None:
                yield _load(row[0])

    def clear(self) -> int:
        """Forget all traces; how many there were."""
        with self._use(write=True) as connection:
            connection.execute("DELETE FROM scores")
            return int(connection.execute("DELETE FROM traces").rowcount)

    def close(self) -> None:
        """Close the file. It is opened again when it is used again."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._pid == os.getpid():
                connection.close()

    def describe(self) -> dict[str, Any]:
        """Kind, path, size in bytes, number of traces, schema version, journal mode."""
        with self._use() as connection:
            (traces,) = connection.execute("SELECT COUNT(*) FROM traces").fetchone()
            (version,) = connection.execute("SELECT MAX(version) FROM schema_migrations").fetchone()
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        size = self.path.stat().st_size
        return {
            "kind": "sqlite",
            "path": str(self.path),
            "bytes": size,
            "traces": traces,
            "schema_version": version,
            "journal_mode": mode,
        }


def _where(query: Query) -> tuple[str, list[Any]]:
    parts, values = _compared(
        ("domain", "=", query.domain),
        ("score", ">=", query.min_score),
        ("score", "<=", query.max_score),
        ("success", "=", query.success),
        ("status", "=", query.status),
        ("created_at", ">=", query.since),
        ("created_at", "<=", query.until),
    )
    if query.text is not None:
        parts.append("instr(text, ?) > 0")
        values.append(_storable(query.text))
    if query.asks_for_scores:
        said, more = _compared(
            ("name", "=", query.scorer),
            ("passed", "=", query.scorer_passed),
            ("score", ">=", query.min_scorer),
            ("score", "<=", query.max_scorer),
        )
        parts.append(f"id IN (SELECT trace FROM scores WHERE {' AND '.join(said)})")  # noqa: S608
        values += more
    return (f"WHERE {' AND '.join(parts)}" if parts else ""), values


def _compared(*conditions: tuple[str, str, Any]) -> tuple[list[str], list[Any]]:
    """The conditions that are given, as SQL and its values."""
    given = [(f"{column} {sign} ?", value) for column, sign, value in conditions if value is not None]
    return [sql for sql, _ in given], [value for _, value in given]


def _storable(text: str) -> str:
    """Case-folded for searching; half a surrogate pair, which SQLite cannot hold, becomes a question mark."""
    return text.casefold().encode("utf-8", errors="replace").decode("utf-8").replace("\0", " ")


def _load(data: bytes) -> ReasoningTrace:
    from grace_kp.trace import ReasoningTrace

    return ReasoningTrace.model_validate_json(data)


def _host() -> str:
    """This machine since it was started: process numbers mean something only there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    with contextlib.suppress(OSError):
        return f"{socket.gethostname()} {boot.read_text().strip()}"
    return socket.gethostname()


def _started(pid: int) -> str:
    """When a process began, in whatever unit the system has; empty where it does not say."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _is_dead(pid: int, host: str, started: str, seen: float) -> bool:
    if host != _host():
        return time.time() - seen > STALE_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(started) and _started(pid) != started
