"""How much judging may cost, and what was judged already: the spending limit and the cache."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

_CHARS_PER_TOKEN = 4
_MAX_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What judging has cost since the beginning."""

    calls: int
    tokens: int
    refused: int
    """Judgements that the limit did not allow."""


class SpendingLimit:
    """Bounds the calls and tokens of a judge, per minute and per run. Beyond it a judgement is a fallback that says so.

    Tokens are those the judge reports; for a call that is still to be made, a quarter of its characters. Safe to share between threads.

    Args:
        calls_per_minute: calls within any 60 seconds; None for no bound, as with the others.
        tokens_per_minute: tokens within any 60 seconds.
        calls_per_run: calls for one run.
        tokens_per_run: tokens for one run.
        clock: monotonic seconds; for tests.
    """

    def __init__(
        self,
        *,
        calls_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        calls_per_run: int | None = None,
        tokens_per_run: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        bounds = {
            "calls_per_minute": calls_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "calls_per_run": calls_per_run,
            "tokens_per_run": tokens_per_run,
        }
        for name, value in bounds.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} must be a whole number >= 0, or None for no bound (got {value!r})")
        self._bounds = bounds
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, int, int]] = deque()
        self._runs: OrderedDict[str, list[int]] = OrderedDict()
        self._calls = self._tokens = self._refused = 0

    @property
    def spent(self) -> Spent:
        """What has been spent so far."""
        with self._lock:
            return Spent(self._calls, self._tokens, self._refused)

    def reserve(self, run: str | None, characters: int) -> str | None:
        """Take one call with a prompt of this length; the reason where the limit does not allow it."""
        tokens = characters // _CHARS_PER_TOKEN
        with self._lock:
            now = self._clock()
            while self._recent and self._recent[0][0] <= now - 60:
                self._recent.popleft()
            minute = [sum(entry[place] for entry in self._recent) for place in (1, 2)]
            of_run = self._runs.get(run, [0, 0]) if run is not None else [0, 0]
            for name, used, more in (
                ("calls_per_minute", minute[0], 1),
                ("tokens_per_minute", minute[1], tokens),
                ("calls_per_run", of_run[0], 1),
                ("tokens_per_run", of_run[1], tokens),
            ):
                bound = self._bounds[name]
                if bound is not None and used + more > bound:
                    self._refused += 1
                    return f"the spending limit of {bound:,} {name.replace('_', ' ')} is reached"
            self._add(run, 1, tokens, now)
        return None

    def settle(self, run: str | None, characters: int, calls: int, tokens: int | None) -> None:
        """What a call that was reserved has really cost."""
        with self._lock:
            estimated = characters // _CHARS_PER_TOKEN
            self._add(run, calls - 1, 0 if tokens is None else tokens - estimated, self._clock())

    def _add(self, run: str | None, calls: int, tokens: int, now: float) -> None:
        if not calls and not tokens:
            return
        self._recent.append((now, calls, tokens))
        self._calls += calls
        self._tokens += tokens
        if run is not None:
            spent = self._runs.setdefault(run, [0, 0])
            spent[0] += calls
            spent[1] += tokens
            while len(self._runs) > _MAX_RUNS:
                self._runs.popitem(last=False)


class JudgementCache:
    """Judgements that were made, by model, prompt version and texts; in memory, or in a SQLite file that outlives the process.

    It holds scores and reasons without secrets, never the texts. A file that cannot be used is a cache without entries, never an
    error. Safe to share between threads.

    Args:
        path: the file; None keeps them in memory.
        max_entries: the oldest go beyond this.
    """

    def __init__(self, path: str | Path | None = None, *, max_entries: int = 10_000) -> None:
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ValueError(f"max_entries must be a whole number >= 1 (got {max_entries!r})")
        self._path = None if path is None else Path(path).expanduser()
        self._max = max_entries
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._file: sqlite3.Connection | None = None
        self.error: str | None = None
        """Why the file cannot be used, if it cannot."""

    def get(self, key: str) -> dict[str, Any] | None:
        """What was kept under this key."""
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
        """Keep this under the key."""
        with self._lock:
            self._keep(key, value)
            if self._path is not None:
                self._write(key, value)

    def _keep(self, key: str, value: dict[str, Any]) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > self._max:
            self._kept.popitem(last=False)

    def _opened(self) -> sqlite3.Connection:
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

    def _read(self, key: str) -> dict[str, Any] | None:
        try:
            row = self._opened().execute("SELECT value FROM judgements WHERE key = ?", (key,)).fetchone()
            value = None if row is None else json.loads(row[0])
        except Exception as error:  # noqa: BLE001 — a cache that fails is an empty one
            self.error = f"{type(error).__name__}: {error}"
            return None
        score = value.get("score") if isinstance(value, dict) else None
        usable = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
        return value if usable else None

    def _write(self, key: str, value: dict[str, Any]) -> None:
        try:
            file = self._opened()
            file.execute(
                "INSERT OR REPLACE INTO judgements VALUES (?,?,?)",
                (key, time.time(), json.dumps(value, ensure_ascii=False)),
            )
            file.execute(
                "DELETE FROM judgements WHERE key IN (SELECT key FROM judgements ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (self._max,),
            )
        except Exception as error:  # noqa: BLE001 — a cache that fails is an empty one
            self.error = f"{type(error).__name__}: {error}"

    def clear(self) -> None:
        """Forget all judgements, and rewrite the file without them.

        Raises:
            sqlite3.Error: the file cannot be rewritten.
        """
        with self._lock:
            self._kept.clear()
            if self._path is not None:
                file = self._opened()
                file.execute("DELETE FROM judgements")
                file.execute("VACUUM")
                file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
