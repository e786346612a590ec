"""A SQLite store for reading: it sees what was written, writes nothing, and leaves nothing beside the file."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import open_store
from grace_kp.store._schema import READABLE
from tests.store.samples import ids, record


@pytest.fixture
def url(tmp_path):
    path = f"sqlite:///{tmp_path / 't.db'}"
    store = open_store(path)
    store.put([record(n) for n in range(3)])
    store.close()
    return path


def test_it_reads_and_leaves_nothing(url, tmp_path):
    """No log of a writer stays beside the file."""
    reader = open_store(url, create=False)
    assert [2, 1, 0] == ids(reader.query())
    reader.close()
    assert ["t.db"] == [path.name for path in tmp_path.iterdir()]


def test_it_cannot_write(url):
    """SQLite refuses, whatever method is called."""
    reader = open_store(url, create=False)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.put([record(9)])
    assert 3 == reader.count()
    reader.close()


def test_it_sees_what_a_writer_writes_later(url):
    """Both have the file open."""
    reader, writer = open_store(url, create=False), open_store(url)
    writer.put([record(7)])
    assert 4 == reader.count()
    reader.close()
    writer.close()


def test_ids_by_their_beginning(url):
    """Sorted; characters that mean something in patterns stand for themselves."""
    reader = open_store(url, create=False)
    assert ["kp:trace:0", "kp:trace:1", "kp:trace:2"] == reader.ids("kp:trace:")
    assert [] == reader.ids("kp%")
    reader.close()


def test_it_follows_a_file_that_was_replaced(url, tmp_path):
    """It takes nothing along; what is not there any more is an error until it is there again."""
    first = open_store(url)
    first.put_action("key", b"1", only_if=None)
    first.close()
    reader = open_store(url, create=False)
    (tmp_path / "t.db").unlink()
    assert reader.is_displaced
    with pytest.raises(StoreError, match="cannot be opened"):
        reader.reopen()
    writer = open_store(url)
    writer.put([record(5)])
    assert ([5], None) == (ids(reader.query()), reader.action("key"))
    reader.close()
    writer.close()


def test_a_file_of_the_last_version_is_read_where_it_cannot_be_changed(url, tmp_path):
    """A table that only writers need is not missed."""
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.execute("DROP TABLE completions")
    connection.execute(f"DELETE FROM schema_migrations WHERE version > {READABLE}")
    connection.commit()
    connection.close()
    before = (tmp_path / "t.db").read_bytes()
    reader = open_store(url, create=False)
    assert [2, 1, 0] == ids(reader.query())
    reader.close()
    assert before == (tmp_path / "t.db").read_bytes()
