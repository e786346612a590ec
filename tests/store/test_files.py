"""A store whose file is deleted, renamed or replaced while it is open, and the log and index beside it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.store import JournalEntry, open_store
from grace_kp.store._files import NO_CHECKPOINT_ON_CLOSE, OpenFiles
from tests import warm
from tests.store.samples import ids, record


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def path(folder):
    return folder / "t.db"


@pytest.fixture
def store(path):
    opened = open_store(f"sqlite:///{path}")
    opened.put([record(1)])
    yield opened
    opened.close()


def found(path):
    """Return the runs that another process finds at a path."""
    code = """
        import sys
        from grace_kp.store import open_store
        for trace in open_store("sqlite:///" + sys.argv[1], create=False).iterate():
            print(trace.id.rpartition(":")[2])
    """
    ran = warm.run([sys.executable, "-c", textwrap.dedent(code), path], text=True)
    assert (0, "") == (ran.returncode, ran.stderr)
    return sorted(map(int, ran.stdout.split()))


def deleted(path):
    path.unlink()


def deleted_with_its_log(path):
    for each in path.parent.iterdir():
        each.unlink()


def renamed(path):
    path.rename(path.with_name("renamed.db"))


def folder_removed(path):
    shutil.rmtree(path.parent)


def folder_renamed(path):
    path.parent.rename(path.parent.with_name("renamed"))


def replaced(path):
    other = open_store(f"sqlite:///{path.with_name('other.db')}")
    other.put([record(9)])
    other.close()
    path.with_name("other.db").replace(path)


WAYS = [deleted, deleted_with_its_log, renamed, folder_removed, folder_renamed, replaced]


@pytest.mark.parametrize("displace", WAYS)
def test_what_is_written_after_reopening_is_at_the_path(store, path, displace):
    """Whatever became of the file, another process finds what is written then, and what else is there."""
    assert not store.is_displaced
    displace(path)
    store.put([record(2)])
    assert store.is_displaced
    store.reopen()
    assert (False, 1) == (store.is_displaced, store.times_reopened)
    store.put([record(2)])
    assert ([2, 9] if displace is replaced else [2]) == found(path)
    store.close()
    assert ([2, 9] if displace is replaced else [2]) == found(path)
    assert 0 == path.stat().st_mode & 0o077


@pytest.mark.parametrize("displace", [renamed, folder_renamed])
def test_a_renamed_file_has_everything_that_was_written_to_it(store, path, displace):
    """What still stood in the log is in the file."""
    displace(path)
    store.put([record(2)])
    store.reopen()
    (moved,) = [each for each in path.parent.parent.rglob("*.db") if each != path]
    assert ([1, 2], []) == (found(moved), found(path))


def test_two_stores_reopen_a_deleted_file_and_neither_harms_the_other(store, path):
    """The log that the first has created is not removed by the second, which knows that of the deleted file."""
    second = open_store(f"sqlite:///{path}")
    path.unlink()
    assert (True, True) == (store.is_displaced, second.is_displaced)
    store.reopen()
    store.put([record(2)])
    second.put([record(3)])
    second.reopen()
    assert (False, False) == (store.is_displaced, second.is_displaced)
    second.put([record(4)])
    store.put([record(5)])
    assert [2, 4, 5] == found(path)
    second.close()
    assert (False, [2, 4, 5]) == (store.is_displaced, found(path))


def test_a_store_that_is_closed_late_harms_nobody(store, path):
    """The log of the new file stays when the last connection to the deleted one is closed."""
    second = open_store(f"sqlite:///{path}")
    path.unlink()
    second.reopen()
    second.put([record(2)])
    store.close()
    assert (False, [2]) == (second.is_displaced, found(path))
    second.put([record(3)])
    assert [2, 3] == found(path)
    second.close()


def test_a_log_that_was_removed_is_noticed_and_nothing_is_lost(store, path):
    """The connection still has the log, and writes it into the file."""
    Path(f"{path}-wal").unlink()
    store.put([record(2)])
    assert store.is_displaced
    store.reopen()
    assert (False, [1, 2]) == (store.is_displaced, found(path))


def test_an_index_that_was_removed_is_noticed(store, path):
    """Another process would create a new one, and the two would not see each other's writes."""
    Path(f"{path}-shm").unlink()
    store.put([record(2)])
    assert store.is_displaced
    store.reopen()
    assert (False, [1, 2]) == (store.is_displaced, found(path))


def test_a_new_log_beside_the_same_file_is_not_overwritten_by_the_old(path):
    """From Python 3.12 on, the connection is closed without a checkpoint where another process has begun a log."""
    path.parent.mkdir()
    log = Path(f"{path}-wal")
    path.touch()
    log.touch()
    files = OpenFiles(path)
    files.look_beside()
    log.rename(log.with_name("away"))
    log.touch()
    calls = []
    files.leave(SimpleNamespace(setconfig=lambda *option: calls.append(option), close=lambda: calls.append("close")))
    assert [(NO_CHECKPOINT_ON_CLOSE, True), "close"] == calls
    assert log.exists()


def test_a_store_that_is_closed_leaves_everything_in_a_renamed_file(store, path):
    """Nobody has to reopen it first."""
    renamed(path)
    store.put([record(2)])
    store.close()
    assert ([1, 2], ["renamed.db"]) == (
        found(path.with_name("renamed.db")),
        [file.name for file in path.parent.iterdir()],
    )


def test_a_log_beside_the_file_that_a_link_names(tmp_path):
    """The log stands beside the file, not beside the link."""
    (tmp_path / "1").mkdir()
    (tmp_path / "t.db").symlink_to(tmp_path / "1" / "a.db")
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    (tmp_path / "1" / "a.db-wal").unlink()
    assert store.is_displaced
    store.close()


def test_runs_that_the_next_file_holds_stay_as_they_are_there(store, path):
    """A backup may hold them. What was taken along once is not taken along again."""
    store.put([record(n, awaits=("judgement",)) for n in (2, 3)])
    other = open_store(f"sqlite:///{path.with_name('other.db')}")
    other.put([record(2, score=0.9)])
    other.close()
    path.with_name("other.db").replace(path)
    store.reopen()
    assert ([2, 3], 0.9) == (found(path), store.get("kp:trace:2").metadata.quality_score)
    store.put([replace(record(3), completes=True)])
    path.unlink()
    store.reopen()
    assert [] == found(path)


def test_a_link_that_names_another_file(tmp_path):
    """The new file is used from then on; the old one has everything that was written before."""
    first, second, link = tmp_path / "1" / "a.db", tmp_path / "2" / "b.db", tmp_path / "t.db"
    for each in (first, second):
        each.parent.mkdir()
    link.symlink_to(first)
    store = open_store(f"sqlite:///{link}")
    store.put([record(1)])
    assert not store.is_displaced
    link.unlink()
    link.symlink_to(second)
    assert store.is_displaced
    store.reopen()
    store.put([record(2)])
    assert ([1], [2], [2]) == (found(first), found(second), found(link))
    store.close()
    assert (["a.db"], ["b.db"]) == tuple([file.name for file in each.parent.iterdir()] for each in (first, second))


@pytest.mark.parametrize("contents", [b"these are the notes of somebody " * 40, None])
def test_a_file_that_is_no_store_is_left_as_it_is(store, path, contents):
    """The store says so with every use, and goes on when the file is gone."""
    store.put([record(2, awaits=("judgement",))])
    path.unlink()
    path.write_bytes(contents) if contents else path.mkdir()
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        store.reopen()
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        store.put([record(3)])
    if contents:
        assert contents == path.read_bytes()
        path.unlink()
    else:
        path.rmdir()
    store.put([record(3)])
    assert [2, 3] == found(path)


def test_what_is_not_finished_goes_on_in_the_new_file(store, path):
    """Journals of open runs, traces that await something with their scores and attributes, and actions that ran."""
    waiting = record(2, awaits=("judgement", "scores"), scores=(("exact", 1.0, True),), attributes=(("tag", "", "a"),))
    store.put([waiting, record(3, awaits=("judgement",)), record(4, awaits=("judgement",))])
    store.put([replace(record(4), completes=True)])
    store.journal([JournalEntry("kp:trace:5", 0, b"{}"), JournalEntry("kp:trace:5", 1, b"{}")])
    assert store.put_action("pay", b"ran", only_if=None)
    path.unlink()
    store.delete(id="kp:trace:3")
    assert b"ran" == store.action("pay")  # the ledger follows the path by itself
    assert (False, [2]) == (store.is_displaced, ids(store.query(tags="a", scorer="exact")))
    store.put([replace(record(n), completes=True) for n in (2, 3, 4)])
    assert [2, 4] == found(path)
    rows = store._connection.execute("SELECT run_id, seq, owner FROM journal").fetchall()
    owners = store._connection.execute("SELECT id FROM owners").fetchall()
    assert [("kp:trace:5", 0, *owners[0]), ("kp:trace:5", 1, *owners[0])] == rows
    assert not store.put_action("pay", b"again", only_if=None)


def test_the_latest_batch_is_stored_again_as_it_was(store, path):
    """Also completions, whose first versions are in the old file alone."""
    store.put([record(2, awaits=("judgement",))])
    path.unlink()
    batch = [replace(record(2), completes=True), record(3), replace(record(8), completes=True)]
    store.put(batch)
    store.reopen()
    store.put(batch)
    assert [2, 3] == found(path)
    store.put([replace(record(2, score=0.9), completes=True)])
    assert 0.5 == store.get("kp:trace:2").metadata.quality_score


def test_recovered_runs_are_stored_in_the_new_file(store, path):
    """Their journals were in the old one."""
    code = textwrap.dedent("""
        import os, sys
        from grace_kp.store import open_store, JournalEntry
        open_store(sys.argv[1]).journal([JournalEntry("kp:trace:7", 0, b"{}")])
        os._exit(1)
    """)
    warm.run([sys.executable, "-c", code, f"sqlite:///{path}"])
    store.put([record(7, status="suspended")])
    assert [[JournalEntry("kp:trace:7", 0, b"{}")]] == store.recover()
    path.unlink()
    store.reopen()
    assert 1 == store._connection.execute("SELECT COUNT(*) FROM journal").fetchone()[0]
    store.put([record(7, status="interrupted")], ended=["kp:trace:7"])
    assert ([7], 0) == (found(path), store._connection.execute("SELECT COUNT(*) FROM journal").fetchone()[0])
