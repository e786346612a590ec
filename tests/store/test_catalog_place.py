"""The place of an index: what one transaction leaves undone, and errors with the name of the index."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import open_store
from grace_kp.store._catalog_files import place_of


@pytest.fixture
def place(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    opened = place_of(store)
    yield opened
    opened.close()
    store.close()


def test_what_an_exception_leaves_is_undone(place):
    """The next transaction sees nothing of it."""
    with pytest.raises(sqlite3.OperationalError), place.writing() as connection:
        connection.executemany("DELETE FROM facts WHERE name <> ? AND name <> missing(?)", [("a", "b")])
    with place.reading() as connection:
        assert connection.execute("SELECT COUNT(*) FROM facts").fetchone()[0] > 0


def test_a_reader_sees_one_state(place):
    """Though a writer goes on."""
    with place.reading() as connection:
        before = connection.execute("SELECT COUNT(*) FROM facts").fetchone()
        with place.writing() as writer:
            writer.execute("DELETE FROM facts")
        assert before == connection.execute("SELECT COUNT(*) FROM facts").fetchone()


def test_errors_of_sqlite_become_errors_of_the_store(place):
    """The message names the index."""
    with (
        pytest.raises(StoreError, match=r"^the index .*t\.db\.index cannot be read: no such table: missing$"),
        place.reading() as connection,
    ):
        connection.execute("SELECT * FROM missing")


def test_only_one_writes(place, tmp_path):
    """Another is refused, not mixed in."""
    with place.writing():
        other = sqlite3.connect(f"{tmp_path}/t.db.index", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
