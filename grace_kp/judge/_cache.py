"""The cache of judgements, a SQLite database in memory or in a file. A file that cannot be used is a cache without entries, never an error."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.background import Lock, Resident, watch
from grace_kp.errors import check_whole, is_unit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


class JudgementCache(Resident):
    """Earlier judgements by model, prompt version and texts; in memory, or in a SQLite file that outlives the process.

    It holds scores and redacted reasons, never the judged contents. Safe to share between threads. In a forked child, a cache in memory
    begins empty.

    Args:
        path: the file; None keeps the judgements in memory.
        max_entries: number of judgements; beyond it the oldest are dropped.
    """

    _file: sqlite3.Connection | None = None

    def __init__(self, path: str | Path | None = None, *, max_entries: int = 10_000) -> None:
        check_whole("max_entries", max_entries)
        self._path = None if path is None else Path(path).expanduser()
        self._max = max_entries
        self._lock = threading.Lock()
        self.error: str | None = None
        """Why the file cannot be used; None while it can."""
        self._abandoned: list[sqlite3.Connection] = []
        """The parent's connections in a forked child: SQLite must neither use nor close them there."""
        watch(self)

    def fork_locks(self) -> Sequence[Lock]:
        """Return what is held during a fork."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Begin with another connection in the child."""
        self._lock = threading.Lock()
        if self._file is not None:
            self._abandoned.append(self._file)
            self._file = None

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the judgement under a key; None where there is none."""
        try:
            with self._lock:
                row = self._open().execute("SELECT value FROM judgements WHERE key = ?", (key,)).fetchone()
            value = None if row is None else json.loads(row[0])
        except Exception as error:  # noqa: BLE001 — a failing cache is an empty one
            self.error = f"{type(error).__name__}: {error}"
            return None
        return value if isinstance(value, dict) and is_unit(value.get("score")) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a judgement under a key."""
        oldest = "SELECT key FROM judgements ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?"
        try:
            with self._lock:
                file = self._open()
                row = (key, time.time(), json.dumps(value, ensure_ascii=False))
                file.execute("INSERT OR REPLACE INTO judgements VALUES (?,?,?)", row)
                file.execute(f"DELETE FROM judgements WHERE key IN ({oldest})", (self._max,))  # noqa: S608
        except Exception as error:  # noqa: BLE001 — a failing cache is an empty one
            self.error = f"{type(error).__name__}: {error}"

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        from grace_kp.trace import default_mode, keep_private

        if self._file is None:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                keep_private(self._path, default_mode())
            where = self._path or ":memory:"
            file = sqlite3.connect(where, timeout=1.0, isolation_level=None, check_same_thread=False)
            file.execute("PRAGMA journal_mode = WAL")
            file.execute(
                "CREATE TABLE IF NOT EXISTS judgements (key TEXT PRIMARY KEY, at REAL NOT NULL, value TEXT NOT NULL)"
            )
            self._file = file
        return self._file

    def __del__(self) -> None:
        # Python warns about a connection that is left to be collected. A finalizer would close it before the runs that end at exit are judged.
        if self._file is not None:
            self._file.close()

    def clear(self) -> None:
        """Drop all judgements, and rewrite the file without them.

        Raises:
            sqlite3.Error: the file cannot be rewritten.
        """
        with self._lock:
            file = self._open()
            file.execute("DELETE FROM judgements")
            file.execute("VACUUM")
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
