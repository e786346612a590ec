"""The protocol of a store: what counts as a store, and that a runtime needs no more than the protocol."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.store import Store, open_store


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
