"""The tables of an index. An index of another version is removed and built again."""

from __future__ import annotations

import sqlite3

VERSION = 2
BINS = 20
SUMS = ("runs", "failed", "score", "confidence", "with_confidence", "tokens", "judge_calls", "judge_tokens", "waiting")
"""Columns of `rollups`. Scores and confidences are summed in whole billionths, so that subtracting a run leaves nothing of it."""
HISTOGRAMS = (*(f"c{number}" for number in range(BINS)), *(f"s{number}" for number in range(BINS)))
"""Columns of `rollups`: runs by confidence and by score."""
SHIFT = 10
"""A position is the time of a run in milliseconds, shifted by so many bits, plus a number among the runs of the same millisecond."""
LAST_POSITION = (1 << 63) - 1
"""Behind all positions."""
TABLES = (
    # `late` is by how many milliseconds the position is later than the run, where one millisecond has too many runs.
    """CREATE TABLE runs (
        position INTEGER PRIMARY KEY, number INTEGER NOT NULL, agent INTEGER NOT NULL, domain INTEGER NOT NULL, status INTEGER NOT NULL,
        level INTEGER NOT NULL, score REAL NOT NULL, confidence REAL, root INTEGER NOT NULL, feedback INTEGER NOT NULL,
        late INTEGER NOT NULL)""",
    "CREATE TABLE shown (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, facts TEXT NOT NULL, marks TEXT NOT NULL)",
    """CREATE TABLE names (
        value INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, name TEXT NOT NULL, runs INTEGER NOT NULL, UNIQUE (kind, name))""",
    "CREATE TABLE marks (value INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (value, position)) WITHOUT ROWID",
    # The agent 0 stands for all agents.
    f"""CREATE TABLE rollups (
        agent INTEGER NOT NULL, day INTEGER NOT NULL, {", ".join(f"{name} INTEGER NOT NULL" for name in (*SUMS, *HISTOGRAMS))},
        PRIMARY KEY (agent, day)) WITHOUT ROWID""",
    """CREATE TABLE tallies (
        agent INTEGER NOT NULL, day INTEGER NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL,
        runs INTEGER NOT NULL, tokens INTEGER NOT NULL, fallbacks INTEGER NOT NULL, PRIMARY KEY (agent, day, kind, name)) WITHOUT ROWID""",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
)
WORDS = (
    """CREATE VIRTUAL TABLE words USING fts5 (
        text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1')""",
    "CREATE VIRTUAL TABLE words_terms USING fts5vocab (words, row)",
    "INSERT INTO words (words, rank) VALUES ('hashsize', 33554432)",
    "INSERT INTO words (words, rank) VALUES ('automerge', 8)",
)


def create_tables(connection: sqlite3.Connection, *, identity: str, with_words: bool) -> None:
    """Create the tables in an empty database, in the caller's transaction.

    Args:
        connection: the database.
        identity: distinguishes the store.
        with_words: whether texts are indexed, where SQLite has the means.
    """
    for statement in TABLES:
        connection.execute(statement)
    if with_words and has_trigrams(connection):
        create_words(connection)
    values = {"version": VERSION, "store": identity, "runs": 0, "unreadable": 0, "label": 0, "latest": 0}
    connection.executemany("INSERT INTO facts VALUES (?, ?)", values.items())


def create_words(connection: sqlite3.Connection) -> None:
    """Create the empty index of words."""
    for statement in WORDS:
        connection.execute(statement)


def has_trigrams(connection: sqlite3.Connection) -> bool:
    """Return whether this SQLite has FTS5 with the tokenizer for trigrams."""
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5 (text, tokenize='trigram')")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.Error:
        return False
    return True


def has_words(connection: sqlite3.Connection) -> bool:
    """Return whether texts are indexed."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone() is not None


def words_from(connection: sqlite3.Connection) -> int | None:
    """Return the position from which on the words of all runs are indexed, while those before it are not; None if all words are."""
    row = connection.execute("SELECT value FROM facts WHERE name = 'words_from'").fetchone()
    return None if row is None else int(row[0])


def is_current(connection: sqlite3.Connection, identity: str) -> bool | None:
    """Return whether the database is an index of this version of this store; None for an empty database."""
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        return None
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is None:
        return False
    found = dict(connection.execute("SELECT name, value FROM facts WHERE name IN ('version', 'store')"))
    return found == {"version": VERSION, "store": identity}
