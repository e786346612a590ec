"""The cache of judgements, in memory or in a SQLite file. A file that cannot be used is a cache without entries, never an error."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_kp.errors import check_whole, is_unit

if TYPE_CHECKING:
    import sqlite3


class JudgementCache:
    """Earlier judgements by model, prompt version and texts; in memory, or in a SQLite file that outlives the process.

    It holds scores and redacted reasons, never the texts. Safe to share between threads.

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
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.error: str | None = None
        """Why the file cannot be used; None while it can."""

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()  # Python warns about a connection that is left to be collected

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the judgement under a key; None where there is none."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
            if self._path is not None:
                found = self._read(key)
                if found is not None:
                    self._keep(key, found)
            return found

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a judgement under a key."""
        with self._lock:
            self._keep(key, value)
            if self._path is not None:
                self._write(key, value)

    def _keep(self, cache_key: str, value: dict[str, Any]) -> None:
        self._kept[cache_key] = value
        self._kept.move_to_end(cache_key)
        while len(self._kept) > self._max:
            self._kept.popitem(last=False)

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        from grace_kp.trace import default_mode, keep_private

        if self._file is None:
            assert self._path is not None  # noqa: S101
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            keep_private(self._path, default_mode())
            file = sqlite3.connect(self._path, timeout=1.0, isolation_level=None, check_same_thread=False)
            file.execute("PRAGMA journal_mode = WAL")
            file.execute(
                "CREATE TABLE IF NOT EXISTS judgements (key TEXT PRIMARY KEY, at REAL NOT NULL, value TEXT NOT NULL)"
            )
            self._file = file
        return self._file

    def _read(self, cache_key: str) -> dict[str, Any] | None:
        try:
            row = self._open().execute("SELECT value FROM judgements WHERE key = ?", (cache_key,)).fetchone()
            value = None if row is None else json.loads(row[0])
        except Exception as error:  # noqa: BLE001 — a failing cache is an empty one
            self.error = f"{type(error).__name__}: {error}"
            return None
        score = value.get("score") if isinstance(value, dict) else None
        return value if is_unit(score) else None

    def _write(self, cache_key: str, value: dict[str, Any]) -> None:
        try:
            file = self._open()
            file.execute(
                "INSERT OR REPLACE INTO judgements VALUES (?,?,?)",
                (cache_key, time.time(), json.dumps(value, ensure_ascii=False)),
            )
            file.execute(
                "DELETE FROM judgements WHERE key IN (SELECT key FROM judgements ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (self._max,),
            )
        except Exception as error:  # noqa: BLE001 — a failing cache is an empty one
            self.error = f"{type(error).__name__}: {error}"

    def clear(self) -> None:
        """Drop all judgements, and rewrite the file without them.

        Raises:
            sqlite3.Error: the file cannot be rewritten.
        """
        with self._lock:
            self._kept.clear()
            if self._path is not None:
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
