"""Writing an index: names, marks and positions are those of the runs that it holds."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.runtime import record_of
from grace_kp.store._catalog_facts import TAGGED
from grace_kp.store._catalog_index import IndexWriter, json_reader
from grace_kp.store._catalog_schema import create_tables
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


def test_json_is_read_without_a_fast_reader(monkeypatch):
    """The extra is optional."""
    monkeypatch.setitem(__import__("sys").modules, "orjson", None)
    assert {"a": 1} == json_reader()(b'{"a": 1}')
