"""Bytes of deleted contents in a file, and the mark that there are some."""

from __future__ import annotations

import contextlib
import sqlite3

from grace_kp.store import open_store
from grace_kp.store._overwriting import forget_index, mark_index, mark_unclean, overwrite


def test_a_file_is_rewritten_once_it_is_marked(tmp_path):
    """The bytes are gone then, and so is the mark; another connection that reads is reported."""
    path = tmp_path / "a.db"
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        store.describe()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert "" == overwrite(connection, path)
        connection.execute("INSERT INTO state VALUES ('x', ?)", ("PLANTED" * 100,))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert b"PLANTED" in path.read_bytes()
        connection.execute("DELETE FROM state WHERE name = 'x'")
        mark_unclean(connection)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM state").fetchall()
            connection.execute("PRAGMA busy_timeout = 0")
            assert "still hold deleted contents" in overwrite(connection, path)
        assert "" == overwrite(connection, path)
        assert [] == connection.execute("SELECT * FROM state WHERE name = 'unclean'").fetchall()
    assert b"PLANTED" not in path.read_bytes()


def test_a_mark_of_an_index_stays_until_it_is_clean(tmp_path):
    """A second deletion learns that the index holds contents of another, which it does not know."""
    path = tmp_path / "a.db"
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        store.describe()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        first, second = mark_index(connection), mark_index(connection)
        assert (True, "") == (bool(first), second)
        assert "" == forget_index(connection, path)
        assert mark_index(connection) not in {"", first}
