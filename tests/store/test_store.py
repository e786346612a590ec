"""The store that a URL names, conditions on its traces, and feedback and state beside them."""

from __future__ import annotations

import json
import multiprocessing
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.approvals import RowQuery
from grace_kp.errors import StoreError
from grace_kp.store import FeedbackEntry, Query, Store, file_of, mark_of, moment, open_store, to_bytes
from tests.store.samples import MARK, Own, document, holding, ids, put, record, set_back


def test_a_runtime_works_with_a_store_of_the_users():
    store = Own()
    with gk.Grace(store=store, evaluator=None, embedder=None, reviewer=None) as grace:
        with grace.run("an objective") as run:
            grace.thought("hm")
        assert grace.flush()
        assert "an objective" == store.get(run.id).task.objective
        assert ([run.id], 1) == ([trace.id for trace in grace.store.query()], grace.store.count())
        assert 1 == grace.store.delete(id=run.id)
    assert isinstance(store, Store)


def test_an_object_without_the_methods_is_no_store():
    assert not isinstance(object(), Store)
    with pytest.raises(gk.StoreError, match="object is not a store: it has no put, get, query"):
        open_store(object())


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
@pytest.mark.parametrize("name", ["accuracy", "a\0b", "\ud800"])
def test_a_score_is_found_by_the_name_that_it_was_recorded_under(url, name, tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/t.db" if url == "sqlite" else url)
    store.put([record(1, scores=((name, 0.5, True),)), record(2)])
    assert [1] == ids(store.query(scorer=name))
    store.close()


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("mysql://x", "known are"), ("sqlite:///", "names no file"), ("sqlite:///:memory:", "memory:"), ("postgresql://h/db", "PostgreSQL"),
        ("memory:?max=3", "unknown option"), ("memory:?max_traces=no", "max_traces"), (object(), "not a store"),
    ],
)  # fmt: skip
def test_unknown_stores_are_refused_with_advice(url, hint):
    with pytest.raises(gk.StoreError, match=hint):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///a/t.db", Path("a/t.db")),
        ("sqlite:////a/t.db", Path("/a/t.db")),
        ("sqlite:///~/t.db", Path("~/t.db")),
        ("memory:", None),
    ],
)
def test_the_file_of_a_url(url, path):
    assert (path and path.expanduser()) == file_of(url)


def test_a_file_opened_for_reading_must_exist(tmp_path):
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path / 't.db'}", create=False)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("2026-01-02", "2026-01-02T00:00:00.000Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"),
        (
            datetime(2026, 1, 2, 3, 4, 5, 678_900),  # noqa: DTZ001
            "2026-01-02T03:04:05.678Z",
        ),
        ("0926-01-02", "0926-01-02T00:00:00.000Z"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00.000Z"),
    ],
)
def test_a_moment_has_one_form(value, expected):
    """UTC with milliseconds, so that texts compare as times do; a time without a zone is UTC."""
    assert expected == moment(value, "since")


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "soon", "9999999999999999d", 5, "2026-13-01"])
def test_other_moments_are_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^since must be"):
        Query(since=value)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"tags": 3}, "tags must be a list of strings, not 3"),
        ({"metadata": [1]}, "metadata must be a dict with strings as keys, not [1]"),
        ({"min_score": float("nan")}, "min_score must be a number, not nan"),
        ({"scorer_passed": 1}, "scorer_passed must be true or false, not 1"),
        ({"limit": True}, "limit must be a whole number from 0, not True"),
    ],
)
def test_conditions_that_cannot_be_used_are_named(conditions, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Query(**conditions)


@pytest.fixture
def url(url):
    store = open_store(url)
    put(store, document("a"))
    store.close()
    return url


def entry(name, number=0, **fields):
    return FeedbackEntry(f"kp:trace:{name}", float(number), "user", to_bytes({"correct": True, "source": "user", "number": number, **fields}))  # fmt: skip


def numbers(trace):
    return [item["number"] for item in trace.grace["feedback"]]


def add_one(name, once=None):
    """Return a change that counts in a state; with `once`, only the first for that purpose."""

    def change(read):
        mark = name if once is None else mark_of(name, once)
        if once is not None and mark in read(mark):
            return {}
        return {mark: "", name: str(int(read(name).get(name, 0)) + 1)}

    return change


def state_many(url, first):
    store = open_store(url)
    for number in range(first, first + 25):
        assert [] == store.put_feedback([entry("a", number)])
        put(store, document("a", text=str(number)))
        store.change_states(add_one("count"))
        store.change_states(add_one("runs", once=f"kp:trace:{number % 100}"))
    store.close()


def test_processes_never_overwrite_each_other(url):
    """Four processes label one trace while each also rewrites it, and change state in turn, once for each purpose."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=state_many, args=(url, first)) for first in (0, 100, 200, 300)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [0, 0, 0, 0] == [process.exitcode for process in processes]
    store = open_store(url)
    assert [n + first for first in (0, 100, 200, 300) for n in range(25)] == numbers(store.get("kp:trace:a"))
    assert {"count": "100", "runs": "25"} == {**store.states("count"), **store.states("runs")}
    store.close()


def test_a_deleted_label_leaves_no_bytes(url, tmp_path):
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
    tables = reader.approvals
    assert (0, [], (0, ""), "") == (tables.count(RowQuery()), tables.links(), tables.head(), tables.identity)
    assert [] == tables.rows(RowQuery(states=["pending"], action="x*"))
    writer = open_store(url)
    writer.put_feedback([entry("a")])
    assert ([0], 1) == (numbers(reader.get("kp:trace:a")), reader.count(feedback=True))
    reader.close()
    writer.close()


def test_half_a_character_in_a_label_costs_nothing(store):
    data = json.dumps({**document("b"), "grace": {"feedback": [{"correct": True, "source": "\ud800"}]}}).encode()
    store.put([replace(record(0, id="kp:trace:b"), data=data)])
    assert "\ud800" == store.get("kp:trace:b").grace["feedback"][0]["source"]
    assert (1, 1) == (store.count(feedback=True), store.count(feedback_source="?"))


def test_the_purpose_of_a_change_is_not_readable(tmp_path):
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    store.change_states(add_one("runs", once="kp:trace:secret"))
    store.close()
    assert b"secret" not in (tmp_path / "t.db").read_bytes()


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    url = f"sqlite:///{tmp_path / 't.db'}"
    open_store(url).close()
    reader = open_store(url, create=False)
    assert {} == reader.states("runs")
    with pytest.raises(StoreError, match="its state cannot be changed"):
        reader.change_states(lambda read: {"runs": "1"})
    reader.close()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("DROP TABLE state")
    connection.close()
    store = open_store(url)
    with pytest.raises(StoreError, match="its state cannot be read"):
        store.states("runs")
    store.close()
