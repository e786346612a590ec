"""The tables of an index, and writing them: runs are added, replaced and removed in one transaction each time, with the figures they change.

An index of another version is removed and built again.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from grace_kp.store._catalog_facts import (
    AGENT,
    DOMAIN,
    HISTOGRAMS,
    LABELLED,
    LEVEL,
    NO_LEVEL,
    SHOWN,
    STATUS,
    SUMS,
    Contributions,
    facts_of,
    milliseconds,
)
from grace_kp.store._database import ONE_OF, Connection, DatabaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from grace_kp.store._catalog_facts import StoredRun


VERSION = 3
SHIFT = 10
"""A position is the time of a run in milliseconds, shifted by so many bits, plus a number among the runs of the same millisecond."""
LAST_POSITION = (1 << 63) - 1
"""Behind all positions."""
SLOTS = 1 << SHIFT
REMOVED_AT_A_TIME = 1_000
END_OF_TEXT = "\n\n"
"""Ends every indexed text, so that each of its last characters begins a trigram too."""
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
    # The agent 0 means all agents.
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


def create_tables(connection: Connection, *, identity: str, with_words: bool) -> None:
    """Create the tables in an empty database, in the caller's transaction."""
    for statement in TABLES:
        connection.execute(statement)
    if with_words and has_trigrams(connection):
        create_words(connection)
    values = {"version": VERSION, "store": identity, "runs": 0, "unreadable": 0, "label": 0, "latest": 0}
    connection.executemany("INSERT INTO facts VALUES (?, ?)", values.items())


def create_words(connection: Connection) -> None:
    for statement in WORDS:
        connection.execute(statement)


def has_trigrams(connection: Connection) -> bool:
    """Return whether this SQLite has FTS5 with the tokenizer for trigrams."""
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5 (text, tokenize='trigram')")
        connection.execute("DROP TABLE temp.probe")
    except DatabaseError:
        return False
    return True


def has_words(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone() is not None


def words_from(connection: Connection) -> int | None:
    """Return the position from which on the words of all runs are indexed, while those before it are not; None if all words are."""
    row = connection.execute("SELECT value FROM facts WHERE name = 'words_from'").fetchone()
    return None if row is None else int(row[0])


def is_current(connection: Connection, identity: str) -> bool:
    """Return whether the database is an index of this version of this store."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is None:
        return False
    found = dict(connection.execute("SELECT name, value FROM facts WHERE name IN ('version', 'store')"))
    return found == {"version": VERSION, "store": identity}


class IndexWriter:
    """Adds runs to an index and removes them, inside the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parse: Callable[[bytes], Any] = json.loads
        with contextlib.suppress(ImportError):
            from orjson import loads

            self._parse = loads
        self._names: dict[tuple[int, str], int] = {}
        self._has_words = has_words(connection)

    def add(self, runs: Iterable[StoredRun], labelled: Collection[str]) -> None:
        """Add runs, replacing runs with the same id."""
        newest = {run.id: run for run in runs}
        found = [(milliseconds(run.created_at), run, facts_of(run, self._parse)) for run in newest.values()]
        found.sort(key=lambda each: (each[0], each[1].number))  # FTS5 wants ascending positions
        contributions, counts = Contributions(), Counter[int]()
        removed = self._remove(list(newest), contributions, counts)
        positions = self._positions([(run.id, at) for at, run, _ in found], removed)
        rows, shown, marks, words = [], [], [], []
        unreadable = latest = 0
        for (at, run, facts), position in zip(found, positions, strict=True):
            fields = dict(zip(SHOWN, facts.shown, strict=False))
            has_feedback = run.id in labelled
            if has_feedback:
                facts.marks.add((LABELLED, ""))
            values = {mark: self._value(mark) for mark in facts.marks}
            late = (position >> SHIFT) - at
            latest = max(latest, late)
            agent = values[AGENT, fields["agent"]]
            level = values[LEVEL, fields["level"] or NO_LEVEL]
            others = (values[DOMAIN, run.domain], values[STATUS, run.status], level)
            figures = (fields["score"], fields["confidence"], fields["parent"] is None, has_feedback, late)
            rows.append((position, run.number, agent, *others, *figures))
            shown.append((position, run.id, _compact(facts.shown), _compact([*values.values(), not facts.is_readable])))
            marks += [(value, position) for value in values.values()]
            counts.update(values.values())
            words.append((position, run.text + END_OF_TEXT))
            contributions.add(facts.shown, agent)
            unreadable += not facts.is_readable
        execute = self._connection.executemany
        execute("INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)
        execute("INSERT INTO shown VALUES (?,?,?,?)", shown)
        execute("INSERT INTO marks VALUES (?,?)", sorted(marks))
        if self._has_words:
            first = words_from(self._connection)  # those before it come with `add_words`
            self._insert_words(pair for pair in words if first is None or pair[0] >= first)
        self._finish(contributions, counts, runs=len(rows), unreadable=unreadable)
        if latest:
            self._connection.execute("UPDATE facts SET value = MAX(value, ?) WHERE name = 'latest'", (latest,))

    def add_words(self, read: Callable[[Sequence[int]], Sequence[str | None]], limit: int) -> bool:
        """Index the words of the next runs that lack them, from the newest back. Return whether there was anything to do."""
        first = words_from(self._connection)
        if first is None:
            return False
        rows = self._connection.execute(
            "SELECT position, number FROM runs WHERE position < ? ORDER BY position DESC LIMIT ?", (first, limit)
        ).fetchall()
        if not rows:
            self._connection.execute("DELETE FROM facts WHERE name = 'words_from'")
            return True
        texts = read([number for _, number in rows])
        found = list(zip((position for position, _ in rows), texts, strict=False))
        self._insert_words((position, text + END_OF_TEXT) for position, text in found if text is not None)
        self._connection.execute("UPDATE facts SET value = ? WHERE name = 'words_from'", (found[-1][0],))
        return True

    def _insert_words(self, pairs: Iterable[tuple[int, str]]) -> None:
        self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?,?)", sorted(pairs))

    def erase_all_but(self, kept: Collection[str], newest: int) -> None:
        """Remove all other runs from every table, and names that no other run has; `newest` is the newest number of the store.

        Words cannot be removed one by one, so all are indexed again.
        """
        execute = self._connection.execute
        ids = [name for (name,) in execute("SELECT id FROM shown") if name not in kept]
        contributions, counts = Contributions(), Counter[int]()
        for start in range(0, len(ids), REMOVED_AT_A_TIME):
            self._remove(ids[start : start + REMOVED_AT_A_TIME], contributions, counts)
        self._finish(contributions, counts)
        execute("DELETE FROM names WHERE runs <= 0")
        execute("UPDATE facts SET value = MIN(value, ?) WHERE name = 'newest'", (newest,))
        execute("UPDATE facts SET value = 0 WHERE name = 'label'")  # the numbers of deleted labels are used again
        if self._has_words:
            execute("DROP TABLE words_terms")
            execute("DROP TABLE words")
            create_words(self._connection)
            execute("INSERT OR REPLACE INTO facts VALUES ('words_from', ?)", (LAST_POSITION,))

    def label(self, ids: Iterable[str]) -> None:
        counts = Counter[int]()
        for name in dict.fromkeys(ids):
            row = self._connection.execute(
                "SELECT position, marks FROM shown JOIN runs USING (position) WHERE id = ? AND feedback = 0", (name,)
            ).fetchone()
            if row is not None:
                position, value = row[0], self._value((LABELLED, ""))
                self._connection.execute("UPDATE runs SET feedback = 1 WHERE position = ?", (position,))
                marks = _compact([value, *json.loads(row[1])])
                self._connection.execute("UPDATE shown SET marks = ? WHERE position = ?", (marks, position))
                self._connection.execute("INSERT OR IGNORE INTO marks VALUES (?,?)", (value, position))
                counts[value] += 1
        self._count_names(counts)

    def _remove(
        self, ids: Sequence[str], contributions: Contributions, counts: Counter[int]
    ) -> dict[str, tuple[int, int]]:
        """Remove runs; return time and position of the removed ones by id."""
        found = self._connection.execute(
            f"SELECT shown.id, position, agent, facts, marks FROM shown JOIN runs USING (position) WHERE id {ONE_OF}",  # noqa: S608
            (json.dumps(ids),),
        ).fetchall()
        gone, removed, unreadable = [], {}, 0
        for name, position, agent, facts, marks in found:
            shown = json.loads(facts)
            contributions.add(shown, agent, -1)
            *values, was_unreadable = json.loads(marks)
            unreadable += was_unreadable
            counts.subtract(values)
            gone += [(value, position) for value in values]
            removed[name] = (milliseconds(shown[0]), position)
        if found:
            positions = [(row[1],) for row in found]
            self._connection.executemany("DELETE FROM runs WHERE position = ?", positions)
            self._connection.executemany("DELETE FROM shown WHERE position = ?", positions)
            self._connection.executemany("DELETE FROM marks WHERE value = ? AND position = ?", gone)
            self._grow("runs", -len(found))
            self._grow("unreadable", -unreadable)
        return removed

    def _positions(self, wanted: Sequence[tuple[str, int]], before: dict[str, tuple[int, int]]) -> list[int]:
        """Return a free position for each run, in ascending order of time; a run that was there keeps its own."""
        kept = {name: before[name][1] for name, at in wanted if name in before and before[name][0] == at}
        taken = set(kept.values())
        positions: list[int] = []
        following = None
        for name, at in wanted:
            position = kept.get(name)
            if position is None:
                first = at << SHIFT
                if following is None or following <= first:
                    (last,) = self._connection.execute(
                        "SELECT MAX(position) FROM runs WHERE position >= ? AND position < ?", (first, first + SLOTS)
                    ).fetchone()
                    following = first if last is None else last + 1
                position = following
                while position in taken or self._is_taken(position):
                    position += 1
                following = position + 1
            positions.append(position)
        return positions

    def _is_taken(self, position: int) -> bool:
        return self._connection.execute("SELECT 1 FROM runs WHERE position = ?", (position,)).fetchone() is not None

    def _value(self, mark: tuple[int, str]) -> int:
        """Return the number of a name, entered if it is new."""
        value = self._names.get(mark)
        if value is None:
            row = self._connection.execute("SELECT value FROM names WHERE kind = ? AND name = ?", mark).fetchone()
            if row is None:
                cursor = self._connection.execute("INSERT INTO names (kind, name, runs) VALUES (?,?,0)", mark)
                value = int(cursor.lastrowid or 0)
            else:
                value = int(row[0])
            self._names[mark] = value
        return value

    def _finish(
        self, contributions: Contributions, counts: Counter[int], *, runs: int = 0, unreadable: int = 0
    ) -> None:
        contributions.write(self._connection)
        self._count_names(counts)
        self._grow("runs", runs)
        self._grow("unreadable", unreadable)

    def _count_names(self, counts: Counter[int]) -> None:
        self._connection.executemany(
            "UPDATE names SET runs = runs + ? WHERE value = ?",
            [(count, value) for value, count in counts.items() if count],
        )

    def _grow(self, name: str, by: int) -> None:
        if by:
            self._connection.execute("UPDATE facts SET value = value + ? WHERE name = ?", (by, name))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
