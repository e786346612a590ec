"""The file of an index: private, without deleted contents, built again for whoever has it open, and read from one state."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from grace_kp.errors import StoreError
from grace_kp.runtime import record_of
from grace_kp.store import CatalogQuery, Progress, open_catalog, open_store
from grace_kp.store._catalog_files import Connections, index_of, place_of, remove_index
from tests.store.listed import run
from tests.store.samples import MARK, holding, put


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/t.db"


def found(catalog, **conditions):
    """The names of the runs that a catalog finds."""
    return sorted(row.id.removeprefix("kp:trace:") for row in catalog.find(CatalogQuery(**conditions)).rows)


@pytest.mark.parametrize("conditions", [{"id": "kp:trace:b"}, {"user": "bea"}, {"session": MARK}])
@pytest.mark.parametrize("is_open", [True, False])
def test_deleted_contents_are_in_no_file(tmp_path, url, conditions, is_open):
    """Neither in the index nor in its log, whether a catalog has them open or not; the rest is found again."""
    store = open_store(url)
    put(
        store,
        run("a", text="kept", user="ana"),
        run("b", agent=MARK, text=f"{MARK} text", tags=[MARK], user="bea", session=MARK),
    )
    catalog = open_catalog(store)
    catalog.refresh()
    assert ["b"] == found(catalog, text=MARK)
    if not is_open:
        catalog.close()
    assert store.delete(**conditions).clean
    assert [] == holding(tmp_path)
    if not is_open:
        catalog = open_catalog(store)
    assert [] == found(catalog, text=MARK)
    assert Progress(done=1, total=1) == catalog.refresh()
    assert (["a"], [], ["a"]) == (found(catalog), found(catalog, user="bea"), found(catalog, text="KEPT"))
    assert 1 == catalog.figures("2026-01-01", "2026-01-01").total.runs
    assert [] == holding(tmp_path)
    catalog.close()
    store.close()
    assert [] == holding(tmp_path)


def test_clearing_and_retention_leave_nothing_in_the_index(tmp_path, url):
    """They delete as `delete` does."""
    store = open_store(url)
    catalog = open_catalog(store)
    for forget in (store.clear, lambda: store.retain(1)):
        put(store, run("b", text=MARK))
        catalog.refresh()
        assert 1 == forget()
        assert [] == holding(tmp_path)
        assert Progress(done=0, total=0) == catalog.refresh()
    catalog.close()
    store.close()


def test_a_deletion_of_nothing_keeps_the_index(tmp_path, url):
    """Building it again takes time."""
    store = open_store(url)
    put(store, run("a"))
    catalog = open_catalog(store)
    catalog.refresh()
    before = index_of(store.path).stat().st_ino
    assert 0 == store.delete(id="kp:trace:none")
    assert (before, ["a"]) == (index_of(store.path).stat().st_ino, found(catalog))
    catalog.close()
    store.close()


def test_an_index_that_cannot_be_removed_is_reported_and_removed_later(tmp_path, url, monkeypatch):
    """`remains` names the file. The next deletion tries again, even if it finds no run."""
    store = open_store(url)
    put(store, run("b", text=MARK))
    catalog = open_catalog(store)
    catalog.refresh()
    catalog.close()

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched, contextlib.closing(sqlite3.connect(index_of(store.path))) as other:
        other.execute("BEGIN IMMEDIATE")  # so that it cannot be written to either
        patched.setattr("grace_kp.store._catalog_files.LOCK_SECONDS", 0.01)
        patched.setattr("pathlib.Path.unlink", refuse)
        deleted = store.delete(id="kp:trace:b")
    assert (1, False) == (deleted, deleted.clean)
    assert f"{index_of(store.path)} could not be removed" in deleted.remains
    assert store.delete(id="kp:trace:b").clean
    assert [] == holding(tmp_path)
    store.close()


def test_what_another_program_deletes_is_dropped(tmp_path, url):
    """A program that knows no index leaves it there, and so does one that dies in between: the numbers of runs tell."""
    store = open_store(url)
    put(store, *(run(name, text=MARK if name == "b" else "") for name in "abc"))
    catalog = open_catalog(store)
    catalog.refresh()
    catalog.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("DELETE FROM traces WHERE id = 'kp:trace:b'")
    connection.close()
    put(store, run("d"))
    catalog = open_catalog(store)
    assert Progress(done=3, total=3) == catalog.refresh()
    assert ["a", "c", "d"] == found(catalog)
    assert 3 == catalog.figures("2026-01-01", "2026-01-01").total.runs
    catalog.close()
    store.delete(id="kp:trace:none", older_than="1970-01-01")
    assert b"MARKER" not in index_of(store.path).read_bytes()
    store.close()


def test_another_process_sees_what_was_deleted(tmp_path, url):
    """It deletes in a process of its own while a catalog has the index open."""
    store = open_store(url)
    put(store, run("a"), run("b", text=MARK))
    catalog = open_catalog(store)
    catalog.refresh()
    program = f"from grace_kp.store import open_store; print(open_store({url!r}).delete(id='kp:trace:b').clean)"
    assert (
        "True\n"
        == subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    )
    catalog.refresh()
    assert ["a"] == found(catalog)
    assert [] == holding(tmp_path)
    catalog.close()
    store.close()


def test_another_store_at_the_path_gets_another_index(tmp_path, url):
    """Even if it has as many runs."""
    store = open_store(url)
    put(store, run("a"))
    catalog = open_catalog(store)
    catalog.refresh()
    catalog.close()
    store.close()
    store.path.unlink()
    store = open_store(url)
    put(store, run("b"))
    catalog = open_catalog(store)
    catalog.refresh()
    assert ["b"] == found(catalog)
    catalog.close()
    store.close()


@pytest.mark.parametrize("contents", [b"", b"no database at all", b"SQLite format 3\0" + b"x" * 5_000])
def test_a_damaged_file_is_built_again(tmp_path, url, contents):
    """It holds nothing that is not in the store."""
    store = open_store(url)
    put(store, run("a"))
    index_of(store.path).write_bytes(contents)
    catalog = open_catalog(store)
    assert Progress(done=1, total=1) == catalog.refresh()
    catalog.close()
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_it_is_as_private_as_the_store(tmp_path, url, mode):
    """Its log too."""
    store = open_store(url, file_mode=mode)
    catalog = open_catalog(store)
    put(store, run("a"))
    catalog.refresh()
    files = [path for path in tmp_path.iterdir() if ".index" in path.name]
    assert {mode} == {stat.S_IMODE(path.stat().st_mode) for path in files}
    assert len(files) >= 2
    catalog.close()
    store.close()


def test_a_link_leads_to_the_index_of_the_store(tmp_path, url):
    """Whoever deletes by one name removes what was built by the other."""
    open_store(url).close()
    (tmp_path / "link.db").symlink_to(tmp_path / "t.db")
    assert index_of(tmp_path / "t.db") == index_of(tmp_path / "link.db")


def test_a_store_that_can_only_be_read_is_indexed_in_memory(tmp_path, url, monkeypatch):
    """Nothing can be created beside it."""
    store = open_store(url)
    put(store, run("a", text="京都"))

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("grace_kp.store._catalog_files.keep_private", refuse)
    reader = open_store(url, create=False)
    catalog = open_catalog(reader)
    catalog.refresh()
    assert ["a"] == found(catalog, text="京")
    assert not index_of(store.path).exists()
    for item in (catalog, reader, store):
        item.close()


def test_removing_no_index_is_no_problem(tmp_path):
    """Most stores have none."""
    assert "" == remove_index(tmp_path / "t.db")


def test_connections_are_bounded_and_follow_the_file(tmp_path):
    """More threads wait; a file that replaces the file is opened by the next who asks."""
    path = tmp_path / "x.db"
    opened = []

    def connect():
        opened.append(sqlite3.connect(path, check_same_thread=False))
        return opened[-1]

    sqlite3.connect(path).close()
    path.touch()
    connections = Connections(path, connect, most=2)

    def read():
        with connections.use() as connection:
            connection.execute("SELECT 1").fetchone()

    threads = [threading.Thread(target=read) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) <= 2
    path.rename(tmp_path / "old.db")
    path.touch()
    with connections.use() as connection:
        assert connection is opened[-1]
        connection.execute("CREATE TABLE new (x)")
    assert b"CREATE TABLE new" in path.read_bytes()
    connections.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_connections(tmp_path, url):
    """The parent's stay the parent's."""
    store = open_store(url)
    put(store, run("a"))
    catalog = open_catalog(store)
    catalog.refresh()
    child = os.fork()
    if child == 0:
        os._exit(0 if found(catalog) == ["a"] else 1)
    assert 0 == os.waitpid(child, 0)[1]
    store.put([record_of(run("b"))])
    catalog.refresh()
    assert ["a", "b"] == found(catalog)
    catalog.close()
    store.close()


@pytest.fixture
def place(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/t.db")
    opened = place_of(store)
    yield opened
    opened.close()
    store.close()


def test_what_an_exception_leaves_is_undone(place):
    """The next transaction sees nothing of it."""
    with pytest.raises(sqlite3.OperationalError), place.writing() as connection:
        connection.executemany("DELETE FROM facts WHERE name <> ? AND name <> missing(?)", [("a", "b")])
    with place.reading() as connection:
        assert connection.execute("SELECT COUNT(*) FROM facts").fetchone()[0] > 0


def test_a_reader_sees_one_state(place):
    """Though a writer goes on."""
    with place.reading() as connection:
        before = connection.execute("SELECT COUNT(*) FROM facts").fetchone()
        with place.writing() as writer:
            writer.execute("DELETE FROM facts")
        assert before == connection.execute("SELECT COUNT(*) FROM facts").fetchone()


def test_errors_of_sqlite_become_errors_of_the_store(place):
    """The message names the index."""
    with (
        pytest.raises(StoreError, match=r"^the index .*t\.db\.index cannot be read: no such table: missing$"),
        place.reading() as connection,
    ):
        connection.execute("SELECT * FROM missing")


def test_only_one_writes(place, tmp_path):
    """Another is refused, not mixed in."""
    with place.writing():
        other = sqlite3.connect(f"{tmp_path}/t.db.index", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
