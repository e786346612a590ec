"""Feedback on stored runs: its own table, many processes, and what is left of it in the file."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
from dataclasses import replace

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import FeedbackEntry, open_store, to_bytes
from tests.store.samples import MARK, document, holding, put, record, set_back


def entry(name, number=0, **fields):
    return FeedbackEntry(f"kp:trace:{name}", float(number), "user", to_bytes({"correct": True, "source": "user", "number": number, **fields}))  # fmt: skip


def numbers(trace):
    return [item["number"] for item in trace.grace["feedback"]]


@pytest.fixture
def url(tmp_path):
    path = f"sqlite:///{tmp_path / 't.db'}"
    store = open_store(path)
    put(store, document("a"))
    store.close()
    return path


def state_many(url, first):
    store = open_store(url)
    for number in range(first, first + 25):
        assert [] == store.put_feedback([entry("a", number)])
        put(store, document("a", text=str(number)))
    store.close()


def test_processes_never_overwrite_each_other(url):
    """Four processes label the same trace while each also rewrites it."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=state_many, args=(url, first)) for first in (0, 100, 200, 300)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [0, 0, 0, 0] == [process.exitcode for process in processes]
    store = open_store(url)
    assert [n + first for first in (0, 100, 200, 300) for n in range(25)] == numbers(store.get("kp:trace:a"))
    store.close()


def test_a_deleted_label_leaves_no_bytes(url, tmp_path):
    """Notes may quote the run."""
    store = open_store(url)
    put(store, document("b"))
    store.put_feedback([entry("a", note=MARK * 500), entry("b")])
    assert 1 == store.delete(id="kp:trace:a")
    store.close()
    assert [] == holding(tmp_path)
    store = open_store(url)
    assert [0] == numbers(store.get("kp:trace:b"))
    store.put_feedback([entry("b", note=MARK)])
    store.clear()
    store.close()
    assert [] == holding(tmp_path)


def test_a_reader_shows_feedback_and_takes_none(url):
    """Also feedback that comes while it is open."""
    writer, reader = open_store(url), open_store(url, create=False)
    assert [] == writer.put_feedback([entry("a")])
    assert [0] == numbers(reader.get("kp:trace:a"))
    with pytest.raises(StoreError, match=r"t\.db: the feedback cannot be stored: attempt to write a readonly database"):
        reader.put_feedback([entry("a")])
    reader.close()
    writer.close()


def test_a_file_without_the_table_is_read_as_one_without_feedback(url, tmp_path):
    """A reader does not bring it up to date; as soon as a writer does, it sees the labels."""
    connection = sqlite3.connect(tmp_path / "t.db")
    tables = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE name GLOB 'approval*' AND type = 'table'"
        )
    ]
    for table in ("feedback", *tables):
        connection.execute(f"DROP TABLE {table}")
    set_back(connection, 5)
    connection.commit()
    connection.close()
    reader = open_store(url, create=False)
    assert (1, 0, 1) == (reader.count(), reader.count(feedback_source="user"), reader.count(feedback=False))
    assert "feedback" not in reader.get("kp:trace:a").grace
    writer = open_store(url)
    writer.put_feedback([entry("a")])
    assert ([0], 1) == (numbers(reader.get("kp:trace:a")), reader.count(feedback=True))
    reader.close()
    writer.close()


def test_half_a_character_in_a_label_costs_nothing(url):
    """A document of another program may hold what UTF-8 cannot."""
    store = open_store(url)
    data = json.dumps({**document("b"), "grace": {"feedback": [{"correct": True, "source": "\ud800"}]}}).encode()
    store.put([replace(record(0, id="kp:trace:b"), data=data)])
    assert "\ud800" == store.get("kp:trace:b").grace["feedback"][0]["source"]
    assert (1, 1) == (store.count(feedback=True), store.count(feedback_source="?"))
    store.close()
