"""The file of an index: private, built again for whoever has it open, and erased when runs are deleted."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.runtime import record_of
from grace_kp.store import FeedbackEntry, Progress, Selection, _catalog_files, open_catalog, open_store
from grace_kp.store._catalog_files import index_of
from grace_kp.store._catalog_index import words_from
from grace_kp.store._deletion import delete_rows
from tests.store.listed import ORDINARY, figures, found, meets, pages, plain, queries, run, runs
from tests.store.samples import MARK, holding, put


def test_an_index_that_cannot_be_removed_is_reported_and_removed_later(tmp_path, monkeypatch, store):
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


def test_what_another_program_deletes_is_dropped(store):
    """A program that knows no index leaves it there, and so does one that dies in between: the numbers of runs tell."""
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


def test_another_store_at_the_path_gets_another_index(tmp_path, url):
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
def test_a_damaged_file_is_built_again(tmp_path, url, contents, store):
    put(store, run("a"))
    index_of(store.path).write_bytes(contents)
    catalog = open_catalog(store)
    assert Progress(done=1, total=1) == catalog.refresh()
    catalog.close()


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_it_is_as_private_as_the_store(tmp_path, url, mode):
    store = open_store(url, file_mode=mode)
    catalog = open_catalog(store)
    put(store, run("a"))
    catalog.refresh()
    files = [path for path in tmp_path.iterdir() if ".index" in path.name]
    assert {mode} == {stat.S_IMODE(path.stat().st_mode) for path in files}
    assert len(files) >= 2
    catalog.close()
    store.close()


def test_a_store_that_can_only_be_read_is_indexed_in_memory(tmp_path, url, monkeypatch):
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_connections(tmp_path, url, store, catalog):
    put(store, run("a"))
    catalog.refresh()
    child = os.fork()
    if child == 0:
        os._exit(0 if found(catalog) == ["a"] else 1)
    assert 0 == os.waitpid(child, 0)[1]
    store.put([record_of(run("b"))])
    catalog.refresh()
    assert ["a", "b"] == found(catalog)


ROOT = Path(__file__).resolve().parents[2]
PERIOD = ("2026-01-01", "2026-02-28")
"""Two months, in which most of the runs here began."""


def inode(store):
    path = index_of(store.path)
    return path.stat().st_ino if path.exists() else None


def in_index(store, ask):
    connection = sqlite3.connect(index_of(store.path))
    try:
        return ask(connection)
    finally:
        connection.close()


def names(connection):
    return {name for (name,) in connection.execute("SELECT name FROM names")}


def marked(name="b", **fields):
    evaluation = {
        "calls": 1,
        "tokens": 2,
        "self_evaluation": {"score": 0.5, "model": f"{MARK} model", "fallback": False},
    }
    return run(
        name, agent=f"{MARK} agent", domain=f"{MARK}-domain", text=f"{MARK} text {'更新' * 50}", tags=[f"{MARK} tag"], user=f"{MARK} user",
        session=f"{MARK} session", scores=[{"name": f"{MARK} scorer", "score": 0.5, "passed": True}], evaluation=evaluation, **fields,
    )  # fmt: skip


def test_nothing_of_a_deleted_run_is_left_and_the_rest_is_complete_at_once(tmp_path, store, catalog):
    """Text, names, sums; in the same file. Names that others use stay. Words are indexed again, without a new run."""
    kept = run("a", text="kept", user="ana", tags=["x"])
    put(store, kept, marked(), *(run(number, text=f"{number} 京都") for number in range(20)))
    put(store, marked(status="failed"))
    catalog.refresh()
    before = inode(store)
    assert before is not None
    deleted = store.delete(id="kp:trace:b")
    assert (1, True, "") == (deleted, deleted.clean, deleted.remains)
    assert [] == holding(tmp_path)
    assert (before, Progress(done=21, total=21)) == (inode(store), catalog.progress())
    assert (21, ["a"], ["a"]) == (len(found(catalog)), found(catalog, user="ana"), found(catalog, text="KEPT"))
    assert ["x"] == catalog.names("tag")
    assert 21 == catalog.figures(*PERIOD).total.runs
    assert not any(MARK in name for name in in_index(store, names))
    assert in_index(store, words_from) is not None
    catalog.refresh()
    assert (before, None) == (inode(store), in_index(store, words_from))
    assert (["a"], 20, []) == (
        found(catalog, text="KEPT"),
        len(found(catalog, text="京都")),
        found(catalog, text=MARK),
    )
    assert [] == holding(tmp_path)


def is_listed(store):
    with store.use() as connection:
        stored = connection.execute("SELECT changed FROM traces ORDER BY 1").fetchall()
    return stored == in_index(store, lambda index: index.execute("SELECT number FROM runs ORDER BY 1").fetchall())


@pytest.mark.usefixtures("small_windows")
@ORDINARY
@given(
    made=st.lists(runs(), min_size=1, max_size=12, unique_by=lambda made: made["id"]),
    later=st.lists(runs(), max_size=4, unique_by=lambda made: made["id"]),
    indexed=st.integers(0, 7), gone=st.lists(st.integers(0, 11), min_size=1, max_size=3), asked=st.lists(queries, min_size=1, max_size=6),
)  # fmt: skip
def test_after_random_deletions_the_index_is_that_of_the_runs_that_are_left(made, later, indexed, gone, asked):
    """Wherever the index was: partly built, its words partly indexed again, with runs that are replaced meanwhile."""
    for item in [*made, *later]:
        item["grace"].pop("parent", None)
    held = {item["id"]: item for item in made}
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(open_store(f"sqlite:///{folder}/t.db")) as store,
        contextlib.closing(open_catalog(store)) as catalog,
    ):
        put(store, *made)
        for _ in range(indexed):
            catalog.refresh(0)
        before, was_listed = inode(store), is_listed(store)
        for number in gone:
            assert store.delete(id=f"kp:trace:{number}").clean
            held.pop(f"kp:trace:{number}", None)
            assert (before, was_listed) == (inode(store), was_listed and is_listed(store))
            if was_listed:
                assert figures(held.values(), *PERIOD) == plain(catalog.figures(*PERIOD))
        put(store, *later)
        held.update({item["id"]: item for item in later})
        complete = 0
        for _ in range(40):
            catalog.refresh(0)
            if is_listed(store):
                assert figures(held.values(), *PERIOD) == plain(catalog.figures(*PERIOD))
                for query in asked:
                    wanted = {name for name, item in held.items() if meets(item, set(), query)}
                    assert wanted == {row.id for row in pages(catalog, query)}
                complete += in_index(store, words_from) is None
            if complete == 2:  # and once more when nothing was left to do
                break
        assert (before, 2) == (inode(store), complete)
        in_use = "SELECT name FROM names WHERE runs > 0"
        used = in_index(store, lambda index: {name for (name,) in index.execute(in_use)})
        assert used == in_index(store, marks)


def marks(connection):
    return {name for (name,) in connection.execute("SELECT DISTINCT name FROM marks JOIN names USING (value)")}


def test_the_newest_run_can_be_deleted_and_its_numbers_are_used_again(store, catalog):
    """A label that gets the number of a deleted one is followed, and the index stays."""
    put(store, run("a"), run("b"))
    store.put_feedback(
        [FeedbackEntry("kp:trace:b", 1.0, "user", b"{}"), FeedbackEntry("kp:trace:b", 2.0, "user", b"{}")]
    )
    catalog.refresh()
    before = inode(store)
    store.delete(id="kp:trace:b")
    store.put_feedback([FeedbackEntry("kp:trace:a", 3.0, "user", b"{}")])
    put(store, run("c"))
    assert Progress(done=2, total=2) == catalog.refresh()
    assert (["a"], ["c"], before) == (found(catalog, feedback=True), found(catalog, feedback=False), inode(store))


def test_a_follower_that_compares_in_between_keeps_the_index(store, catalog, monkeypatch):
    """It erases the runs itself, and builds nothing again."""
    put(store, run("a"), run("b"), run("c"))
    catalog.refresh()
    before, erase = inode(store), _catalog_files.erase_deleted
    monkeypatch.setattr(_catalog_files, "erase_deleted", lambda *args: (catalog.refresh(0), erase(*args))[1])
    assert store.delete(id="kp:trace:b").clean
    assert (before, ["a", "c"]) == (inode(store), found(catalog))


def test_an_index_of_a_store_that_a_backup_was_copied_into_is_built_again(tmp_path, store):
    """The copy has the identity of the store, and a run that the index no longer has."""
    put(store, run("a"), run("b"), run("c"))
    store.close()
    backup = store.path.read_bytes()
    with contextlib.closing(open_store(f"sqlite:///{store.path}")) as again:
        with contextlib.closing(open_catalog(again)) as catalog:
            catalog.refresh()
        again.delete(id="kp:trace:b")
    store.path.write_bytes(backup)
    again = open_store(f"sqlite:///{store.path}")
    with contextlib.closing(again), contextlib.closing(open_catalog(again)) as catalog:
        assert Progress(done=3, total=3, unreadable=0) == catalog.refresh(60)


DIE = """
    import os, sys
    from grace_kp.store import _catalog_files, open_store
    def open_and_die(*args):
        connection, files = open_watched(*args)
        connection.set_trace_callback(lambda sql: os._exit(9) if sql.startswith(sys.argv[2]) else None)
        return connection, files
    open_watched, _catalog_files.open_watched = _catalog_files.open_watched, open_and_die
    open_store(sys.argv[1]).delete(id="kp:trace:b")
"""


@pytest.mark.parametrize(
    "statement", ["DELETE FROM runs", "DROP TABLE words", "COMMIT", "VACUUM", "PRAGMA wal_checkpoint"]
)
@pytest.mark.parametrize("is_followed", [True, False])
def test_a_crash_between_the_store_and_its_index_leaves_no_contents(
    tmp_path, store, catalog, url, statement, is_followed
):
    """The next deletion erases both runs, even if it finds no run itself."""
    put(store, run("a", text="kept"), marked(), run("c", text=MARK[:5]))
    catalog.refresh()
    command = [sys.executable, "-c", textwrap.dedent(DIE), url, statement]
    child = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60, check=False)
    assert 9 == child.returncode
    if is_followed:
        catalog.refresh()
        assert ["a", "c"] == found(catalog)
    else:
        catalog.close()
    deleted = store.delete(id="kp:trace:c")
    assert (1, True) == (deleted, deleted.clean)
    assert [] == holding(tmp_path)
    with contextlib.closing(open_catalog(store)) as again:
        again.refresh()
        assert (["a"], ["a"]) == (found(again), found(again, text="kept"))
    assert [] == holding(tmp_path)


def test_what_a_deletion_in_another_process_has_left_is_erased_with_the_next(tmp_path, store, catalog):
    """Where that process has not locked the index yet."""
    put(store, run("a"), marked(), marked("c"))
    catalog.refresh()
    before = inode(store)
    with store.use(write=True) as connection:
        delete_rows(connection, Selection(id="kp:trace:b"))
    assert store.delete(id="kp:trace:c").clean
    assert (before, [], ["a"]) == (inode(store), holding(tmp_path), found(catalog))


def test_an_index_that_others_write_to_is_removed(tmp_path, store, catalog, monkeypatch):
    """As is one of which an old state is read all the time. It is built again."""
    monkeypatch.setattr("grace_kp.store._catalog_files.LOCK_SECONDS", 0.01)
    for statement in ("BEGIN IMMEDIATE", "BEGIN"):
        put(store, run("a"), marked())
        catalog.refresh()
        before = inode(store)
        other = sqlite3.connect(index_of(store.path), isolation_level=None)
        other.execute(statement)
        other.execute("SELECT COUNT(*) FROM runs").fetchone()
        deleted = store.delete(id="kp:trace:b")
        assert (1, True, None, []) == (deleted, deleted.clean, inode(store), holding(tmp_path))
        other.close()
        assert Progress(done=1, total=1) == catalog.refresh()
        assert (["a"], True) == (found(catalog), inode(store) is not None)
        assert before is not None


def test_an_index_that_is_replaced_meanwhile_is_removed(tmp_path, store, catalog, monkeypatch):
    put(store, marked())
    catalog.refresh()
    empty_log = _catalog_files._empty_log

    def empty_and_replace(connection):
        path = index_of(store.path)
        path.rename(tmp_path / "moved")
        path.write_bytes(MARK.encode())
        return empty_log(connection)

    monkeypatch.setattr(_catalog_files, "_empty_log", empty_and_replace)
    assert store.delete(id="kp:trace:b").clean
    assert inode(store) is None
