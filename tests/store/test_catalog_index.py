"""The tables of an index: they belong to one store and version, and names, marks and positions are those of the runs that they hold."""

from __future__ import annotations

import dataclasses
import json
import sqlite3

import pytest

from grace_kp.runtime import record_of
from grace_kp.store import RunRow
from grace_kp.store._catalog_facts import SHOWN, TAGGED
from grace_kp.store._catalog_index import (
    LAST_POSITION,
    IndexWriter,
    create_tables,
    has_trigrams,
    has_words,
    is_current,
    json_reader,
    words_from,
)
from grace_kp.store._catalog_search import row_of
from grace_kp.store._catalog_source import StoredRun
from tests.store.listed import run


def stored(number, name, **fields):
    """Return a run as a source yields it."""
    r = record_of(run(name, **fields))
    return StoredRun(number, r.id, r.created_at, r.domain, r.score, r.success, r.status, r.text, r.data)


@pytest.fixture
def connection():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(opened, identity="test", with_words=True)
    yield opened
    opened.close()


def tables(connection):
    """The rows of all tables but the words; names only if they are in use."""
    return {
        "runs": connection.execute("SELECT position, number, score, feedback FROM runs").fetchall(),
        "marks": connection.execute(
            "SELECT kind, name, position FROM marks JOIN names USING (value) ORDER BY 1, 2, 3"
        ).fetchall(),
        "names": connection.execute("SELECT kind, name, runs FROM names WHERE runs > 0 ORDER BY 1, 2").fetchall(),
        "sums": connection.execute("SELECT * FROM rollups WHERE agent = 0").fetchall(),
        "tallies": connection.execute("SELECT * FROM tallies WHERE agent = 0").fetchall(),
        "facts": connection.execute("SELECT name, value FROM facts WHERE name IN ('runs', 'unreadable')").fetchall(),
    }


def test_replacing_leaves_what_adding_would_have_made(connection):
    """Whatever was there before."""
    IndexWriter(connection).add([stored(5, "a", tags=["new"], domain="code")], {"kp:trace:a"})
    expected = tables(connection)
    connection.executescript(
        "DELETE FROM runs; DELETE FROM shown; DELETE FROM marks; DELETE FROM rollups; DELETE FROM tallies"
    )
    connection.executescript("UPDATE names SET runs = 0; UPDATE facts SET value = 0 WHERE name = 'runs'")
    writer = IndexWriter(connection)
    writer.add([stored(1, "a", tags=["old"], user="ana", success=False, status="suspended")], set())
    writer.label(["kp:trace:a", "kp:trace:none"])
    writer.add([stored(5, "a", tags=["new"], domain="code")], {"kp:trace:a"})
    assert expected == tables(connection)


def test_removing_leaves_nothing(connection):
    """Names that no run has any more are gone as well."""
    writer = IndexWriter(connection)
    writer.add(
        [stored(1, "a", tags=["x"], user="ana", evaluation={"calls": 1, "tokens": 3}), stored(2, "b")], {"kp:trace:a"}
    )
    writer.remove(["kp:trace:a", "kp:trace:b", "kp:trace:none"])
    empty = {name: [] for name in ("runs", "marks", "names", "sums", "tallies")}
    assert {**empty, "facts": [("runs", 0), ("unreadable", 0)]} == tables(connection)
    assert [] == connection.execute("SELECT name FROM names").fetchall()
    writer.add([stored(3, "c", tags=["x"])], set())
    assert [(TAGGED, "x", 1)] == connection.execute(
        "SELECT kind, name, runs FROM names WHERE kind = ?", (TAGGED,)
    ).fetchall()


def test_a_run_keeps_its_position_unless_its_time_changes(connection):
    """Cursors of pages stay valid."""
    writer = IndexWriter(connection)
    writer.add([stored(1, "a"), stored(2, "b")], set())
    before = connection.execute("SELECT id, position FROM shown ORDER BY id").fetchall()
    writer.add([stored(3, "a", domain="code")], set())
    assert before == connection.execute("SELECT id, position FROM shown ORDER BY id").fetchall()
    writer.add([stored(4, "a", created_at="2026-01-01T00:00:00.001Z")], set())
    assert ["kp:trace:b", "kp:trace:a"] == [
        name for (name,) in connection.execute("SELECT id FROM shown ORDER BY position")
    ]


def test_missing_words_are_indexed_from_the_newest_run_back(connection):
    """Those of runs that are added meanwhile as soon as their turn has come, and once only."""
    if not has_words(connection):
        pytest.skip("this SQLite has no trigrams")
    writer = IndexWriter(connection)
    made = [stored(n, str(n), text="same", created_at=f"2026-01-01T00:00:0{n}.000Z") for n in (1, 2, 3)]
    writer.add(made, set())
    texts = {run.number: run.text for run in made}
    assert not writer.add_words(lambda numbers: [], 10)
    connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
    connection.execute("INSERT INTO facts VALUES ('words_from', ?)", (LAST_POSITION,))

    def with_words():
        """The runs whose words are indexed."""
        found = connection.execute("SELECT id FROM words JOIN shown ON position = words.rowid WHERE words MATCH 'sam'")
        return [name.removeprefix("kp:trace:") for (name,) in found]

    def read(numbers):
        return [texts.get(number) for number in numbers][:1]

    seen = [with_words()]
    for late in (0, 4):
        assert writer.add_words(read, 2)
        seen.append(with_words())
        writer.add([stored(10 + late, str(late), text="same", created_at=f"2026-01-01T00:00:0{late}.000Z")], set())
        texts[10 + late] = "same"
    while writer.add_words(read, 2):
        pass
    assert [[], ["3"], ["2", "3"], ["0", "1", "2", "3", "4"]] == [*seen, with_words()]
    assert words_from(connection) is None


def test_json_is_read_without_a_fast_reader(monkeypatch):
    """The extra is optional."""
    monkeypatch.setitem(__import__("sys").modules, "orjson", None)
    assert {"a": 1} == json_reader()(b'{"a": 1}')


@pytest.fixture
def empty():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    yield opened
    opened.close()


def test_an_index_belongs_to_one_store_and_version(empty):
    """An empty database belongs to none yet."""
    assert is_current(empty, "a") is None
    create_tables(empty, identity="a", with_words=False)
    assert (True, False) == (is_current(empty, "a"), is_current(empty, "b"))
    empty.execute("UPDATE facts SET value = 0 WHERE name = 'version'")
    assert is_current(empty, "a") is False


def test_another_database_is_no_index(empty):
    """It is not read as one."""
    empty.execute("CREATE TABLE mine (x)")
    assert is_current(empty, "a") is False


def test_words_are_indexed_where_sqlite_can(empty):
    """Elsewhere texts are read one by one."""
    create_tables(empty, identity="a", with_words=True)
    assert has_trigrams(empty) is has_words(empty)


def test_words_can_lack_before_a_position(empty):
    """A new index lacks none."""
    create_tables(empty, identity="a", with_words=False)
    assert words_from(empty) is None
    empty.execute("INSERT INTO facts VALUES ('words_from', 7)")
    assert 7 == words_from(empty)


def test_every_field_of_a_row_is_kept():
    """Position, id and whether there is a label stand beside them."""
    assert ["position", "id", *SHOWN, "labelled"] == [field.name for field in dataclasses.fields(RunRow)]


def test_what_only_figures_need_is_left_out():
    """It stands at the end."""
    values = {name: name for name in SHOWN} | {"tags": ["x"]}
    row = row_of(5, "kp:trace:a", json.dumps([*values.values(), 1, 2, {}, {}]), 1)
    assert RunRow(position=5, id="kp:trace:a", labelled=True, **{**values, "tags": ("x",)}) == row
