"""A store whose file is deleted, renamed or replaced while it is open: one clear error, and nothing is lost silently."""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.store import JournalEntry, open_store
from grace_kp.store._database import NO_CHECKPOINT_ON_CLOSE, OpenFiles
from tests import warm
from tests.store.samples import record


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
def test_a_file_that_others_do_not_find_is_refused(store, path, displace):
    assert 1 == store.count()
    displace(path)
    before = path.exists()
    for use in (
        lambda: store.put([record(2)]),
        store.count,
        lambda: store.put_action("pay", b"1", only_if=None),
        lambda: store.states("x"),
        lambda: store.journal([JournalEntry("kp:trace:5", 0, b"{}")]),
    ):
        with pytest.raises(gk.StoreError, match=r"deleted, moved or replaced.*restart this program"):
            use()
    store.close()
    assert before == path.exists()
    assert ([9] if displace is replaced else [1] if path.exists() else []) == (found(path) if path.exists() else [])


@pytest.mark.parametrize("displace", [deleted, folder_removed, renamed, replaced])
def test_no_run_is_lost_in_a_file_that_was_displaced(path, displace):
    """They wait in memory, and after the exit beside the path, until the store is next opened."""
    code = f"""
        import shutil, sys
        from pathlib import Path
        import grace_kp as gk
        from tests.store.test_files import {displace.__name__} as displace
        grace = gk.Grace(store=f"sqlite:///{{sys.argv[1]}}", evaluator=None, embedder=None, reviewer=None)
        with grace.run("before"):
            pass
        assert grace.flush()
        displace(Path(sys.argv[1]))
        for number in range(3):
            with grace.run(f"after {{number}}"):
                pass
        assert grace.flush(timeout=0.2) is False
        assert "deleted, moved or replaced" in grace.status()["writer"]["last_error"]
    """
    ran = warm.run([sys.executable, "-c", textwrap.dedent(code), path], text=True)
    assert 0 == ran.returncode, ran.stderr
    assert "deleted, moved or replaced" in ran.stderr
    assert "3 run" in ran.stderr
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        assert {"after 0", "after 1", "after 2"} <= {trace.task.objective for trace in store.query()}


def test_a_file_that_is_put_back_is_used_again(store, path):
    path.parent.rename(path.parent.with_name("renamed"))
    with pytest.raises(gk.StoreError, match="deleted, moved or replaced"):
        store.put([record(2)])
    path.parent.with_name("renamed").rename(path.parent)
    store.put([record(2)])
    assert [1, 2] == found(path)


@pytest.mark.parametrize("displace", [renamed, folder_renamed])
def test_a_renamed_file_has_everything_that_was_written_to_it(store, path, displace):
    """What still stood in the log is in the file, and no log of it stays at the path."""
    displace(path)
    store.close()
    (moved,) = [each for each in path.parent.parent.rglob("*.db") if each != path]
    assert ([1], False) == (found(moved), path.exists())
    assert [moved.name] == [file.name for file in moved.parent.iterdir()]


def test_a_closed_store_opens_the_file_that_is_there_then(store, path):
    """Closing and opening is all that a program needs that does not want to restart."""
    path.unlink()
    store.close()
    store.put([record(2)])
    assert [2] == found(path)
    assert 0 == path.stat().st_mode & 0o077


def test_a_store_that_is_closed_late_harms_nobody(store, path):
    """The log of the new file stays when the last connection to the deleted one is closed."""
    path.unlink()
    with pytest.raises(gk.StoreError, match="deleted, moved or replaced"):
        store.put([record(9)])
    assert [] == [*path.parent.iterdir()]
    second = open_store(f"sqlite:///{path}")
    second.put([record(2)])
    store.close()
    second.put([record(3)])
    assert [2, 3] == found(path)
    second.close()


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_log_or_index_that_was_removed_is_noticed_and_nothing_is_lost(store, path, end):
    """The connection still has it, and writes what it holds into the file, which is then opened again."""
    Path(f"{path}{end}").unlink()
    assert 1 == store.count()
    store.put([record(2)])
    assert [1, 2] == found(path)
    with pytest.raises(gk.StoreError, match="log next to it was deleted"), store.use(write=True):
        Path(f"{path}{end}").unlink()  # what was written then may be in a log that nobody reads
    store.put([record(3)])
    assert [1, 2, 3] == found(path)


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


def test_a_log_beside_the_file_that_a_link_names(tmp_path):
    """The log stands beside the file, not beside the link; a link to another file is noticed, too."""
    first, second, link = tmp_path / "1" / "a.db", tmp_path / "2" / "b.db", tmp_path / "t.db"
    for each in (first, second):
        each.parent.mkdir()
    link.symlink_to(first)
    store = open_store(f"sqlite:///{link}")
    store.put([record(1)])
    link.unlink()
    link.symlink_to(second)
    with pytest.raises(gk.StoreError, match="deleted, moved or replaced"):
        store.put([record(2)])
    store.close()
    assert ([1], ["a.db"], []) == (
        found(first),
        [file.name for file in first.parent.iterdir()],
        [*second.parent.iterdir()],
    )
    store.put([record(2)])
    Path(f"{second}-wal").unlink()
    assert 1 == store.count()
    assert Path(f"{second}-wal").exists()
    store.close()


@pytest.mark.parametrize("contents", [b"these are the notes of somebody " * 40, None])
def test_a_file_that_is_no_store_is_left_as_it_is(store, path, contents):
    """The store says so with every use, and goes on when the file is gone."""
    store.close()
    path.unlink()
    path.write_bytes(contents) if contents else path.mkdir()
    with pytest.raises(gk.StoreError, match="cannot be opened"):
        store.put([record(3)])
    if contents:
        assert contents == path.read_bytes()
        path.unlink()
    else:
        path.rmdir()
    store.put([record(3)])
    assert [3] == found(path)
