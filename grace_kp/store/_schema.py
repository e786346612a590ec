"""The schema of the SQLite store, as the steps that lead to it.

A step that was released is never changed; a new one is added.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from grace_kp.errors import StoreError
from grace_kp.store._database import DatabaseError, close_on_error, connect_to_read, transaction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from grace_kp.store._database import Connection

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
    ("CREATE TABLE completions (run_id TEXT PRIMARY KEY, owner TEXT NOT NULL, awaits TEXT NOT NULL) WITHOUT ROWID",),
    (
        """CREATE TABLE feedback (
            number INTEGER PRIMARY KEY, trace TEXT NOT NULL, at REAL NOT NULL, source TEXT NOT NULL, data BLOB NOT NULL)""",
        "CREATE INDEX feedback_by_trace ON feedback (trace, at)",
        "CREATE INDEX feedback_by_source ON feedback (source, trace)",
    ),
    (
        # `number` counts requests. `deadline` is infinite for never. `is_open` is 1 in the states of `OPEN`, else 0;
        # it is computed, so that no change of this column alone hides an open request.
        """CREATE TABLE approvals (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state TEXT NOT NULL, action TEXT NOT NULL, domain TEXT NOT NULL,
            key TEXT, digest TEXT NOT NULL, run_id TEXT, level INTEGER NOT NULL, deadline REAL NOT NULL, created REAL NOT NULL,
            changed REAL NOT NULL, revision INTEGER NOT NULL, waiter TEXT, data BLOB NOT NULL,
            is_open INTEGER AS (state IN ('pending', 'approved', 'edited', 'claimed')) VIRTUAL)""",
        """CREATE INDEX approvals_open ON approvals (state, deadline, level DESC, created, number, action)
            WHERE is_open = 1""",
        "CREATE INDEX approvals_by_change ON approvals (changed)",
        "CREATE INDEX approvals_by_state ON approvals (state, changed)",
        "CREATE INDEX approvals_by_action ON approvals (action, changed, number, state)",
        "CREATE INDEX approvals_by_key ON approvals (key) WHERE key IS NOT NULL",
        "CREATE INDEX approvals_by_digest ON approvals (digest)",
        "CREATE INDEX approvals_by_run ON approvals (run_id) WHERE run_id IS NOT NULL",
        """CREATE TABLE approval_chain (
            seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, approval TEXT, data BLOB NOT NULL)""",
        "CREATE INDEX approval_chain_by_approval ON approval_chain (approval, seq) WHERE approval IS NOT NULL",
        "CREATE TABLE approval_contents (seq INTEGER PRIMARY KEY, salt BLOB, contents BLOB)",
        """CREATE TABLE approval_documents (
            kind TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID""",
        """CREATE TABLE approval_processes (
            id TEXT PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL, started TEXT NOT NULL, seen REAL NOT NULL)""",
        "CREATE TABLE approval_identity (id TEXT NOT NULL)",
        "INSERT INTO approval_identity VALUES (lower(hex(randomblob(16))))",
    ),
    (
        # `changed` grows with every version of every run: it is the number that a new row would get. So the runs of earlier versions have one
        # without being rewritten, and so do runs that a process of an earlier version stores meanwhile.
        "ALTER TABLE traces ADD COLUMN rewritten INTEGER",
        "ALTER TABLE traces ADD COLUMN changed INTEGER AS (COALESCE(rewritten, number)) VIRTUAL",
        "CREATE INDEX traces_by_change ON traces (changed)",
    ),
)
PUT_STATE = "INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
DATABASE, INDEX = "unclean", "unclean_index"
"""The names of the marks of files that hold deleted contents, see `mark_unclean`."""
PAGE_BYTES = 8_192
"""Page size of new files. A trace takes several pages of the default 4,096 bytes, and each page is written twice."""
APPROVALS = 7
"""The version of the schema that added the tables of approvals."""
READABLE = 4
"""The first version of the schema that can be read: it lacks only what `open_to_read` adds."""


def migrate(connection: Connection, path: Path | str) -> None:
    """Bring a file to this version of the schema."""
    with transaction(connection):
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
        )
        (version,) = connection.execute("SELECT COALESCE(MAX(version), 0) FROM schema_migrations").fetchone()
        check_version(version, path)
        for number in range(version, len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migrations VALUES (?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))", (number + 1,)
            )


def check_version(version: int, path: Path | str) -> None:
    """Refuse a file of a newer version."""
    if version > len(MIGRATIONS):
        raise StoreError(
            f"store {path}: schema version {version} is newer than this grace_kp knows ({len(MIGRATIONS)})"
        )


def schema_version(connection: Connection) -> int:
    """Return the version of the schema; 0 for a file that has none yet."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone() is None:
        return 0
    (version,) = connection.execute("SELECT COALESCE(MAX(version), 0) FROM schema_migrations").fetchone()
    return int(version)


def open_to_read(path: Path, *, busy_seconds: float) -> Connection:
    """Return a connection to a file that exists; it cannot write. What a file of an earlier version lacks are temporary tables without rows."""
    connection = connect_to_read(path, busy_seconds=busy_seconds)
    with close_on_error(connection):
        version = schema_version(connection)
        if version < READABLE:
            migrate(connection, path)
            version = len(MIGRATIONS)
        _complete(connection, version)
        connection.execute("PRAGMA query_only = ON")
    return connection


def _complete(connection: Connection, version: int) -> None:
    for statements in MIGRATIONS[version:APPROVALS]:
        for statement in statements:
            if not statement.startswith("INSERT"):
                elsewhere = statement.replace("CREATE TABLE ", "CREATE TEMP TABLE ")
                connection.execute(elsewhere.replace("CREATE INDEX ", "CREATE INDEX temp."))
    if version <= APPROVALS:
        connection.execute("CREATE TEMP VIEW traces AS SELECT *, number AS changed FROM main.traces")


def mark_unclean(connection: Connection, file: str = DATABASE) -> None:
    """Note, in the transaction that deletes, that a file of the store holds deleted contents until `clean` has succeeded."""
    connection.execute(PUT_STATE, (file, secrets.token_hex(8)))


def clean(connection: Connection, file: str, rewrite: Callable[[], str]) -> str:
    """Rewrite a file that is marked as unclean. Return why it may still hold deleted contents; empty if it does not."""
    mark = connection.execute("SELECT value FROM state WHERE name = ?", (file,)).fetchone()
    problem = "" if mark is None else rewrite()
    if mark is not None and not problem:
        # Another process may have deleted since the file was rewritten. Its mark is another and stays.
        connection.execute("DELETE FROM state WHERE name = ? AND value = ?", (file, *mark))
    return problem


def overwrite(connection: Connection, path: Path) -> str:
    """Rewrite an unclean database without its free space and empty the write-ahead log; see `clean`.

    Zeroing deleted rows (`secure_delete`) is not enough: pages that were rebuilt keep copies of rows that have moved.
    """

    def rewrite() -> str:
        again = "delete again, for example `grace-kp traces delete --older-than 100000d`, when"
        try:
            connection.execute("VACUUM")
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except DatabaseError as error:
            return f"{path} could not be rewritten ({error}) and may hold deleted contents; {again} that can be done"
        if is_busy:
            return f"another connection reads {path}, so it and {path.name}-wal still hold deleted contents; {again} it has finished"
        return ""

    return clean(connection, DATABASE, rewrite)
