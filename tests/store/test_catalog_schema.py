"""The tables of an index: another version or another store means another index."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.store._catalog_index import create_tables, has_trigrams, has_words, is_current, words_from


@pytest.fixture
def connection():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    yield opened
    opened.close()


def test_an_index_belongs_to_one_store_and_version(connection):
    """An empty database belongs to none yet."""
    assert is_current(connection, "a") is None
    create_tables(connection, identity="a", with_words=False)
    assert (True, False) == (is_current(connection, "a"), is_current(connection, "b"))
    connection.execute("UPDATE facts SET value = 0 WHERE name = 'version'")
    assert is_current(connection, "a") is False


def test_another_database_is_no_index(connection):
    """It is not read as one."""
    connection.execute("CREATE TABLE mine (x)")
    assert is_current(connection, "a") is False


def test_words_are_indexed_where_sqlite_can(connection):
    """Elsewhere texts are read one by one."""
    create_tables(connection, identity="a", with_words=True)
    assert has_trigrams(connection) is has_words(connection)


def test_words_can_lack_before_a_position(connection):
    """A new index lacks none."""
    create_tables(connection, identity="a", with_words=False)
    assert words_from(connection) is None
    connection.execute("INSERT INTO facts VALUES ('words_from', 7)")
    assert 7 == words_from(connection)
