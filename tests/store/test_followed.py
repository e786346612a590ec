"""Following a store in a SQLite file."""

from __future__ import annotations

import sqlite3

import pytest

from grace_kp.store import open_store
from tests.store.listed import run
from tests.store.samples import put


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
