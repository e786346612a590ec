"""A SQLite store for reading: it sees what was written, writes nothing, and leaves nothing beside the file."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.store import open_store
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
