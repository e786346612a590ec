"""The schema of the SQLite store, as the steps that lead to it. A step that was released is never changed; a new one is added."""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE traces (
            number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL,
            domain TEXT NOT NULL, score REAL NOT NULL, success INTEGER NOT NULL, status TEXT NOT NULL,
            text TEXT NOT NULL, data BLOB NOT NULL)""",
        "CREATE INDEX traces_by_time ON traces (created_at DESC, number DESC)",
        "CREATE INDEX traces_by_domain ON traces (domain, created_at DESC)",
        "CREATE INDEX traces_by_score ON traces (score)",
        """CREATE TABLE owners (
            id TEXT PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL, started TEXT NOT NULL, seen REAL NOT NULL)""",
        """CREATE TABLE journal (
            run_id TEXT NOT NULL, seq INTEGER NOT NULL, owner TEXT NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (run_id, seq)) WITHOUT ROWID""",
        "CREATE INDEX journal_by_owner ON journal (owner)",
    ),
    (
        "CREATE INDEX traces_by_status ON traces (status, created_at DESC)",
        """CREATE TABLE actions (
            key TEXT PRIMARY KEY, at REAL NOT NULL, data BLOB NOT NULL) WITHOUT ROWID""",
        "CREATE TABLE reports (process TEXT PRIMARY KEY, at REAL NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
    ),
    (
        "CREATE TABLE scores (trace TEXT NOT NULL, name TEXT NOT NULL, score REAL, passed INTEGER)",
        "CREATE INDEX scores_by_trace ON scores (trace)",
        "CREATE INDEX scores_by_name ON scores (name, score)",
    ),
    (
        """CREATE TABLE attributes (
            trace TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL)""",
        "CREATE INDEX attributes_by_trace ON attributes (trace)",
        "CREATE INDEX attributes_by_value ON attributes (kind, name, value, trace)",
        "CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
)
