"""Named state and the ledger of actions in a SQLite file, across processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from grace_kp.errors import StoreError
from grace_kp.store import open_store

COUNT = """
import sys
from grace_kp.store._sqlite import SqliteStore
store = SqliteStore(sys.argv[1], busy_ms=60_000)
for number in range(40):
    store.update_state("count", lambda known: str(int(known or 0) + 1))
    store.update_state("runs", lambda known: str(int(known or 0) + 1), once=f"kp:trace:{number}")
store.close()
"""


def test_processes_change_state_in_turn(tmp_path):
    """Two processes at the same time lose no change, and apply a change for one purpose once."""
    path = tmp_path / "t.db"
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, str(path)]) for _ in range(2)]
    assert [0, 0] == [process.wait() for process in processes]
    store = open_store(f"sqlite:///{path}")
    assert ("80", "40") == (store.state("count"), store.state("runs"))
    store.close()


def test_the_purpose_of_a_change_is_not_readable(tmp_path):
    """Ids of runs that are deleted later do not stay in the file."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    store.update_state("runs", lambda known: "1", once="kp:trace:secret")
    store.close()
    assert b"secret" not in (tmp_path / "t.db").read_bytes()


def test_a_file_that_cannot_be_used_is_named(tmp_path):
    """For reading and for writing."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    open_store(url).close()
    reader = open_store(url, create=False)
    assert None is reader.state("runs")
    with pytest.raises(StoreError, match="'runs' cannot be changed"):
        reader.update_state("runs", lambda known: "1")
    with pytest.raises(StoreError, match="its state cannot be changed"):
        reader.change_states(lambda read: {"runs": "1"})
    reader.close()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("DROP TABLE state")
    connection.close()
    store = open_store(url)
    with pytest.raises(StoreError, match="'runs' cannot be read"):
        store.state("runs")
    store.close()


@pytest.mark.parametrize("before", [None, b"1"])
def test_an_entry_is_replaced_only_from_what_it_was(tmp_path, before):
    """Another connection to the same file has been faster."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    first, second = open_store(url), open_store(url)
    if before is not None:
        assert first.put_action("key", before, only_if=None)
    assert first.put_action("key", b"2", only_if=before)
    assert not second.put_action("key", b"3", only_if=before)
    assert b"2" == second.action("key")
    first.close()
    second.close()
