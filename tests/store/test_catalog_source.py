"""What a catalog reads of a SQLite store, of earlier versions too, over connections that cannot write."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.store import CatalogQuery, open_catalog, open_store
from tests.store.listed import run
from tests.store.samples import put


@pytest.fixture
def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path}/t.db")
    put(opened, *(run(number, text="Text" if number % 2 else "") for number in range(6)))
    yield opened
    opened.close()


def test_runs_are_read_in_both_directions(store):
    """By number, up to a limit."""
    source = store.changes()
    assert [2, 3] == [found.number for found in source.after(1, 2)]
    assert [3, 2] == [found.number for found in source.up_to(3, 2)]
    assert (6, 4) == tuple(source.extent(2))
    assert (4, 3) == (source.unseen(2, 10), source.unseen(2, 3))


def test_large_documents_are_read_few_at_a_time(store, monkeypatch):
    """So that they do not fill the memory."""
    monkeypatch.setattr("grace_kp.store._catalog_source.BATCH_BYTES", 1)
    assert 1 == len(store.changes().after(0, 100))


def test_texts_are_compared_in_the_store(store):
    """The index keeps no copy of them."""
    assert {2, 6} == store.changes().containing([1, 2, 6], "text")


def test_texts_are_read_by_number(store, monkeypatch):
    """In the order that was asked for, up to some bytes; nothing stands for a run that is gone."""
    source = store.changes()
    texts = source.texts([2, 99, 1])
    assert (None, True, False) == (texts[1], "text" in texts[0], "text" in texts[2])
    monkeypatch.setattr("grace_kp.store._catalog_source.BATCH_BYTES", 1)
    assert texts[:1] == source.texts([2, 99, 1])


def test_the_identity_is_that_of_the_file(store, tmp_path):
    """Another store has another."""
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    assert store.changes().identity() == store.changes().identity()
    assert store.changes().identity() != other.changes().identity()
    other.close()


def test_a_file_without_a_table_of_feedback_is_followed(store):
    """It was written before there was one."""
    path = store.path
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE feedback")
        connection.execute("DELETE FROM schema_migrations WHERE version > 5")
    connection.close()
    reader = open_store(f"sqlite:///{path}", create=False)
    catalog = open_catalog(reader)
    assert 6 == catalog.refresh().done
    assert (6, 0) == tuple(len(catalog.find(CatalogQuery(feedback=value)).rows) for value in (False, True))
    catalog.close()
    reader.close()


@pytest.mark.parametrize("create", [True, False])
def test_a_follower_sees_what_is_stored_and_cannot_write(tmp_path, create):
    """Over connections of its own, in a store for reading only too."""
    url = f"sqlite:///{tmp_path}/t.db"
    store = open_store(url)
    opened = open_store(url, create=create)
    source = opened.changes()
    put(store, run("a"))
    assert ["kp:trace:a"] == [found.id for found in source.after(0, 10)]
    with source._connections.use() as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM traces")
    opened.close()
    store.close()
