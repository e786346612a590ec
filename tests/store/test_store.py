"""The protocol of a store, its records, and the store that a URL names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.store import Store, file_of, open_store
from grace_kp.store._record import scorer_name
from tests.store.samples import ids, record


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_the_stores_of_this_library_follow_the_protocol(url, tmp_path):
    """`isinstance` with the protocol answers for them."""
    store = open_store(f"sqlite:///{tmp_path}/t.db" if url == "sqlite" else url)
    assert isinstance(store, Store)
    store.close()


class Own:
    """A store of a user's, with the methods of the protocol and nothing else."""

    def __init__(self):
        self._store = open_store("memory:")
        for name in (
            "put",
            "journal",
            "recover",
            "get",
            "query",
            "count",
            "iterate",
            "delete",
            "clear",
            "close",
            "describe",
        ):
            setattr(self, name, getattr(self._store, name))


def test_a_runtime_works_with_a_store_of_the_users():
    """Without the optional methods for reports, retention and actions."""
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
    """The check names nothing that is missing, so `open_store` does."""
    assert not isinstance(object(), Store)
    with pytest.raises(gk.StoreError, match="object is no store: it has no put, get, query"):
        open_store(object())


@pytest.mark.parametrize(
    ("name", "stored"),
    [("accuracy", "accuracy"), ("Größe 精度", "Größe 精度"), ("a\0b", "a b"), ("\ud800", "?"), ("", "")],
)
def test_a_name_of_a_scorer_has_a_form_for_every_store(name, stored):
    """SQLite takes no NUL and no half of a surrogate pair; other names stay."""
    assert stored == scorer_name(name)


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
@pytest.mark.parametrize("name", ["accuracy", "a\0b", "\ud800"])
def test_a_score_is_found_by_the_name_that_it_was_recorded_under(url, name, tmp_path):
    """Also where the store holds the name in another form."""
    store = open_store(f"sqlite:///{tmp_path}/t.db" if url == "sqlite" else url)
    store.put([record(1, scores=((name, 0.5, True),)), record(2)])
    assert [1] == ids(store.query(scorer=name))
    store.close()


def test_a_record_does_not_change():
    """The writer's queue and the store share it."""
    item = record(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.score = 1.0
    assert item == record(1)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("mysql://x", "known are"), ("sqlite:///", "names no file"), ("sqlite:///:memory:", "memory:"), ("postgresql://h/db", "PostgreSQL"),
        ("memory:?max=3", "unknown option"), ("memory:?max_traces=no", "max_traces"), (object(), "no store"),
    ],
)  # fmt: skip
def test_unknown_stores_are_refused_with_advice(url, hint):
    """One line that says what is known."""
    with pytest.raises(gk.StoreError, match=hint):
        open_store(url)


def test_a_store_is_taken_as_it_is():
    """Anything with `put`, `get` and `query` is a store."""
    store = open_store("memory:")
    assert store is open_store(store)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///a/t.db", Path("a/t.db")),
        ("sqlite:////a/t.db", Path("/a/t.db")),
        ("memory:", None),
    ],
)
def test_the_file_of_a_url(url, path):
    """Relative, absolute and in the home folder; None where there is no file."""
    assert path == file_of(url)


def test_a_file_in_the_home_folder():
    """The tilde stands for it."""
    assert Path.home() / "t.db" == file_of("sqlite:///~/t.db")


def test_without_a_url_the_file_is_in_the_users_data_folder():
    """Its name is the same everywhere."""
    assert "traces.db" == file_of(None).name


def test_a_file_opened_for_reading_must_exist(tmp_path):
    """Reading creates nothing."""
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path / 't.db'}", create=False)
    assert [] == list(tmp_path.iterdir())
