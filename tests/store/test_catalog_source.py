"""What a catalog reads of a SQLite store, of earlier versions too, over connections that cannot write."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.store import CatalogQuery, FeedbackEntry, open_catalog, open_store
from tests.store.listed import run
from tests.store.samples import put, set_back


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
        set_back(connection, 5)
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


def changes_of(store, above=0):
    """The names of runs with a larger number, in the order of their numbers."""
    return [found.id.removeprefix("kp:trace:") for found in store.changes().after(above, 100)]


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_each_version_of_a_run_is_a_change(url, tmp_path):
    """A run that is stored again comes once, after all before it, and keeps its row and its feedback."""
    store = open_store(url if url == "memory:" else f"sqlite:///{tmp_path}/t.db")
    put(store, run("a"), run("b"), run("c"))
    store.put_feedback([FeedbackEntry("kp:trace:a", 1.0, "user", b"{}")])
    newest = store.changes().changed()[0]
    put(store, run("a"), run("d"), run("a"))
    assert (["b", "c", "d", "a"], ["d", "a"]) == (changes_of(store), changes_of(store, newest))
    assert 1 == store.count(feedback=True)
    with store._use() as connection:
        rows = connection.execute("SELECT id FROM traces ORDER BY number").fetchall()
    assert ["a", "b", "c", "d"] == [name.removeprefix("kp:trace:") for (name,) in rows]
    store.close()


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_the_number_of_a_deleted_run_is_not_used_again(url, tmp_path):
    """Whoever has read up to it would miss the next."""
    store = open_store(url if url == "memory:" else f"sqlite:///{tmp_path}/t.db")
    put(store, run("a"), run("b"), run("a"))
    newest = store.changes().changed()[0]
    store.delete(id="kp:trace:a")
    put(store, run("c"))
    assert ["c"] == changes_of(store, newest)
    store.clear()
    put(store, run("d"))
    assert ["d"] == changes_of(store, newest + 1)
    store.close()


def test_runs_of_a_file_of_an_earlier_version_keep_their_numbers(store):
    """So its index stays valid. A process of that version that still writes is followed, too."""
    before = [(found.number, found.id) for found in store.changes().after(0, 100)]
    path = store.path
    store.close()
    with sqlite3.connect(path) as connection:
        set_back(connection, 7)
    connection.close()
    reader = open_store(f"sqlite:///{path}", create=False)
    assert before == [(found.number, found.id) for found in reader.changes().after(0, 100)]
    newest = before[-1][0]
    assert (newest, 6, 2) == (*reader.changes().extent(), reader.changes().unseen(newest - 2, 100))
    put(store, run("new"), run("1"))
    columns = "id, created_at, domain, score, success, status, text, data"
    with sqlite3.connect(path) as connection:  # as an earlier version does
        connection.execute(
            f"INSERT OR REPLACE INTO traces ({columns}) SELECT {columns} FROM traces WHERE id = 'kp:trace:2'"
        )
    connection.close()
    assert ["new", "1", "2"] == changes_of(reader, newest)
    reader.close()
