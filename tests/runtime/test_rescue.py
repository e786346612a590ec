"""Runs that a process cannot store before it ends wait beside the database, and whoever opens it next stores them."""

from __future__ import annotations

import json
import logging
import os
import pickle
import sqlite3
import stat
import sys
import threading
from dataclasses import replace

import pytest

import grace_kp as gk
from grace_kp.runtime import record_of
from grace_kp.runtime._backlog import WriterLimits
from grace_kp.runtime._writer import Writer
from grace_kp.store import JournalEntry, RescueFiles, open_store
from grace_kp.store._sqlite import SqliteStore
from tests import warm
from tests.store.samples import MARK, document, holding, ids, record

NO_PATIENCE = WriterLimits(exit_seconds=0.0, busy_exit_seconds=0.0)


@pytest.fixture
def path(tmp_path):
    """A database with the run 0."""
    file = tmp_path / "t.db"
    store = SqliteStore(file)
    store.put([record(0)])
    store.close()
    return file


@pytest.fixture
def locked(path):
    """The database, which another process keeps locked until the test calls `locked.rollback()`."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def rescue(path, *records, **options):
    """Leave records beside the database, as a process does that ends."""
    return RescueFiles(path).write(records, **options)


def files(path):
    return sorted(file.name for file in path.parent.iterdir() if ".rescue-" in file.name)


def stored(path):
    store = SqliteStore(path)
    found = sorted(ids(store.query()))
    store.close()
    return found


def ended(path, pipeline, *runs, **options):
    """A writer that cannot write and whose process has ended."""
    writer = Writer(lambda: SqliteStore(path, busy_ms=1, **options), pipeline, NO_PATIENCE)
    for run in runs:
        writer.submit(run)
    writer.at_exit()
    return writer


def test_runs_that_a_locked_database_does_not_take_are_stored_at_the_next_opening(path, locked, pipeline, capfd):
    """They are settled before, stderr names the file, and no run counts as lost, but a flush was not possible."""
    writer = ended(path, pipeline, 1, 2, 3)
    (name,) = files(path)
    assert (
        f"grace_kp: 3 runs wait in {path.parent / name} and will be stored when the store is next opened; "
        f"the store cannot write: store {path}: cannot be opened: database is locked\n"
    ) in capfd.readouterr().err
    stats = writer.stats()
    assert (3, 0, 3, 0, 0) == (stats.settled, stats.written, stats.rescued, stats.lost, stats.pending)
    assert not writer.flush(0.0)
    locked.rollback()
    assert [0, 1, 2, 3] == stored(path)
    assert [] == files(path)


def test_an_open_store_that_becomes_locked_is_the_same(path, pipeline):
    """The journals of the runs are deleted, too."""
    writer = Writer(lambda: SqliteStore(path, busy_ms=1), pipeline, NO_PATIENCE)
    writer.store().journal([JournalEntry("kp:trace:1", 0, b"{}"), JournalEntry("kp:trace:9", 0, b"{}")])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer._settler.ended.append("kp:trace:1")
    writer.submit(1)
    writer.at_exit()
    other.execute("ROLLBACK")
    assert [0, 1] == stored(path)
    assert [("kp:trace:9",)] == other.execute("SELECT run_id FROM journal").fetchall()
    other.close()


def test_a_process_that_leaves_twice_keeps_its_runs_once(path, locked, pipeline, capfd):
    """What ends after the exit is kept at once, in a file of its own."""
    writer = ended(path, pipeline, 1)
    writer.at_exit()
    assert 1 == len(files(path))
    capfd.readouterr()
    writer.submit(2)
    assert "grace_kp: 1 run waits in" in capfd.readouterr().err
    assert 2 == len(files(path))
    locked.rollback()
    assert [0, 1, 2] == stored(path)


def test_a_writer_that_was_closed_keeps_its_runs_at_the_exit(path, locked, pipeline):
    """Closing may fail as the exit may."""
    writer = Writer(lambda: SqliteStore(path, busy_ms=1), pipeline, NO_PATIENCE)
    writer.submit(1)
    writer.close(0.0)
    assert [] == files(path)
    writer.at_exit()
    locked.rollback()
    assert [0, 1] == stored(path)


def test_a_forked_child_does_not_keep_the_runs_of_its_parent(path, locked, pipeline):
    """The parent does."""
    writer = Writer(lambda: SqliteStore(path, busy_ms=1), pipeline, NO_PATIENCE)
    writer.submit(1)
    assert not writer.flush(0.0)
    writer.after_fork()
    writer.at_exit()
    assert [] == files(path)


def test_what_cannot_be_kept_either_is_reported_as_never_written(path, locked, pipeline, monkeypatch, capfd):
    """With the reason, and no part of a file is left."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    writer = ended(path, pipeline, 1, 2)
    last = capfd.readouterr().err.splitlines()[-1]
    assert "grace_kp: runs of this process that are not in the store: 2 never written; " in last
    assert "no file beside it can be written: [Errno 28] No space left on device" in last
    assert (2, []) == (writer.stats().pending, files(path))


def test_a_store_of_a_users_own_may_keep_runs(pipeline, capfd):
    """If it has a method for that; otherwise they are reported as never written."""

    class Full:
        def put(self, records, *, ended=()):
            raise OSError("full")

    def leave(store):
        writer = Writer(lambda: store, pipeline, NO_PATIENCE)
        writer.submit(1)
        writer.at_exit()
        return capfd.readouterr().err

    store, kept = Full(), []
    assert "1 never written; the store cannot write: OSError: full" in leave(store)
    store.rescue = lambda records, ended, report: kept.extend(records) or "the safe"
    assert "grace_kp: 1 run waits in the safe" in leave(store)
    assert [record(1)] == kept


def test_a_store_that_cannot_be_closed_does_not_hide_what_was_lost(pipeline, capfd):
    """The total is reported all the same."""

    class Broken:
        def put(self, records, *, ended=()):
            raise OSError("full")

        def close(self):
            raise OSError("gone")

    writer = Writer(Broken, pipeline, NO_PATIENCE)
    writer.submit(1)
    with pytest.raises(OSError, match="gone"):
        writer.at_exit()
    assert "1 never written; the store cannot write: OSError: full" in capfd.readouterr().err


def test_the_file_is_as_private_as_the_database(path):
    """Whatever the umask is."""
    before = os.umask(0)
    try:
        modes = {stat.S_IMODE(RescueFiles(path, mode).write([record(1)]).stat().st_mode) for mode in (0o600, 0o660)}
    finally:
        os.umask(before)
    assert {0o600, 0o660} == modes


def test_a_database_behind_a_link_has_its_files_beside_the_target(path, tmp_path):
    """So that all its names lead to them."""
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    assert path.parent == rescue(link, record(1)).parent
    assert [0, 1] == stored(path)


def test_two_that_open_the_store_at_once_store_each_run_once(path):
    """Each file is stored by one of them."""
    for number in range(1, 13):
        rescue(path, record(number), record(number + 20))
    opened, failed = [], []

    def work():
        try:
            opened.append(SqliteStore(path, busy_ms=60_000))
        except gk.StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in opened:
        store.close()
    assert ([], []) == (failed, files(path))
    assert [0, *range(1, 13), *range(21, 33)] == stored(path)


def test_a_run_that_was_deleted_after_it_had_been_stored_does_not_come_back(path):
    """A process may die after it has stored the runs of a file, before it removes the file."""
    file = rescue(path, record(1), record(2))
    contents = file.read_bytes()
    store = SqliteStore(path)
    file.write_bytes(contents)  # as if it had not been removed
    assert 1 == store.delete(id="kp:trace:1")
    assert [] == files(path)
    assert [2, 0] == ids(store.query())
    store.close()


@pytest.mark.parametrize("delete", ["delete", "clear"])
def test_no_byte_of_a_deleted_run_is_left_beside_the_database(path, delete):
    """Even if the file came while the store was open."""
    store = SqliteStore(path)
    rescue(path, record_of(document("victim", text=MARK, user="u")), record(5))
    assert [] != holding(path.parent)
    count = store.delete(user="u") if delete == "delete" else store.clear()
    assert (1 if delete == "delete" else 3) == count
    assert [] == holding(path.parent)
    assert ([] if delete == "clear" else [0, 5]) == sorted(ids(store.query()))
    store.close()


def test_a_deletion_reports_a_file_that_may_hold_deleted_runs(path):
    """It cannot be read, so it is left in place."""
    file = rescue(path, record(1))
    file.write_bytes(file.read_bytes()[:-5])
    store = SqliteStore(path)
    report = store.delete(id="kp:trace:0")
    assert (1, False) == (report, report.clean)
    assert f"the runs in {file} cannot be stored and removed from there: it is cut off" == report.remains
    store.close()


def test_a_damaged_file_is_reported_once_and_stays(path, caplog):
    """The store opens all the same, and takes in the others."""
    broken = rescue(path, record(1), record(2))
    broken.write_bytes(broken.read_bytes()[:-5])
    rescue(path, record(3))
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        store = SqliteStore(path)
        store.recover()
    assert [3, 0] == ids(store.query())
    assert [f"the runs in {broken} cannot be stored and removed from there: it is cut off"] == caplog.messages
    assert [broken.name] == files(path)
    waiting = RescueFiles(path).waiting()
    assert (0, 0, (f"{broken}: it is cut off",)) == (waiting.files, waiting.runs, waiting.unusable)
    store.close()


def test_a_reader_leaves_the_files_alone(path):
    """Only somebody who writes stores what waits."""
    rescue(path, record(1), record(1, score=0.9))
    reader = open_store(f"sqlite:///{path}", create=False)
    assert 1 == reader.count()
    reader.close()
    waiting = RescueFiles(path).waiting()
    assert (1, 1, ()) == (waiting.files, waiting.runs, waiting.unusable)


def test_a_store_that_is_open_takes_in_what_comes_later(path):
    """When it looks for what dead processes have left."""
    store = SqliteStore(path)
    rescue(path, record(1))
    assert [] == store.recover()
    assert [1, 0] == ids(store.query())
    store.close()


def of(version, status="completed", awaits=(), completes=False, text=""):
    """A version of the run "r", told apart by its score."""
    found = record_of(document("r", text=text), awaits=frozenset(awaits), completes=completes)
    return replace(found, score=version, status=status)


@pytest.mark.parametrize(
    ("before", "waiting", "score"),
    [
        ([], [of(0.2)], 0.2),
        ([of(0.1, "interrupted")], [of(0.2)], 0.2),
        ([of(0.1, "interrupted", {"scores"})], [of(0.2)], 0.2),
        ([of(0.1)], [of(0.2, "interrupted")], 0.1),
        ([of(0.1)], [of(0.2, "suspended")], 0.1),
        ([of(0.1, "suspended")], [of(0.2)], 0.2),
        ([of(0.1, "suspended")], [of(0.2, "suspended", text="and on")], 0.2),
        ([of(0.1, "suspended", text="and on")], [of(0.2, "suspended")], 0.1),
        ([of(0.1)], [of(0.2, awaits={"scores"})], 0.1),
        ([of(0.1, awaits={"scores"})], [of(0.2)], 0.2),
        ([of(0.1, awaits={"scores"})], [of(0.2, completes=True)], 0.2),
        ([of(0.1)], [of(0.2, completes=True)], 0.1),
        ([], [of(0.2, awaits={"scores"}), of(0.3, completes=True)], 0.3),
        ([], [of(0.2, completes=True)], None),
    ],
)
def test_a_complete_or_newer_version_wins(path, before, waiting, score):
    """A run that was deleted while a process completed it does not come back."""
    store = SqliteStore(path)
    store.put(before)
    rescue(path, *waiting)
    store.recover()
    rows = store._connection.execute("SELECT score FROM traces WHERE id = 'kp:trace:r'").fetchall()
    assert ([] if score is None else [(score,)]) == rows
    store.close()


def test_what_a_kept_run_awaits_is_added_by_whoever_can(path):
    """The process that would have done it has ended."""
    rescue(path, of(0.2, awaits={"scores"}))
    store = SqliteStore(path)
    assert 1 == len(store.incomplete(frozenset({"scores"})))
    store.put([of(0.3, completes=True)])
    assert [] == store.incomplete(frozenset({"scores"}))
    assert 1 == store.count(min_score=0.25, max_score=0.35)
    store.close()


def test_only_the_journals_of_the_process_itself_are_deleted(path):
    """Another one may have resumed a run under the same id."""
    store = SqliteStore(path)
    store.journal([JournalEntry("kp:trace:1", 0, b"{}")])
    rescue(path, record(1), ended=["kp:trace:1"], owner="somebody else")
    store.recover()
    assert (1,) == store._connection.execute("SELECT COUNT(*) FROM journal").fetchone()
    rescue(path, ended=["kp:trace:1"], owner=store._owners.id)
    store.recover()
    assert (0,) == store._connection.execute("SELECT COUNT(*) FROM journal").fetchone()
    store.close()


def test_what_the_process_could_not_record_gets_into_the_store_with_its_runs(path):
    """`grace-kp doctor` shows it."""
    rescue(path, record(1), report=("a process", b'{"dropped": 3}'))
    store = SqliteStore(path)
    assert [b'{"dropped": 3}'] == store.reports()
    store.close()


def test_a_report_of_losses_is_kept_without_runs(path, pipeline, capfd):
    """Stderr states them at the exit, and nothing else waits."""
    writer = Writer(lambda: SqliteStore(path, busy_ms=1), pipeline, NO_PATIENCE)
    writer.store()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer._backlog.lose(2, "a test says so")
    writer.at_exit()
    other.close()
    assert 1 == len(files(path))
    assert " wait" not in capfd.readouterr().err
    store = SqliteStore(path)
    assert [b"{}"] == store.reports()
    store.close()


def test_a_store_that_cannot_be_opened_can_be_sent_to_another_process(path):
    """Its error is one of ours."""
    path.write_text("not a database, but long enough to be looked at " * 10)
    with pytest.raises(gk.StoreError, match="cannot be opened: file is not a database") as caught:
        SqliteStore(path)
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value)))


PROGRAM = """
import sys
from dataclasses import replace
import grace_kp as gk
from grace_kp.store._sqlite import SqliteStore

grace = gk.Grace(store=SqliteStore(sys.argv[1], busy_ms=1), evaluator=None, embedder=None, reviewer=None, max_pending_mb=1)
writer = grace._writer
writer._limits = replace(writer._limits, exit_seconds=0.0, busy_exit_seconds=0.0)
@grace.agent
def agent(x): return x
"""


def test_a_process_that_ends_while_the_database_is_locked_loses_nothing(path):
    """Nor do its children, and what was lost otherwise is known, too."""
    program = (
        PROGRAM
        + """
import os, sqlite3
agent("first")
assert grace.flush()
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
for number in range(20):
    agent(number)
writer._backlog.lose(2, "a test says so")
assert not grace.flush(0.1)
if os.fork() == 0:
    agent("of the child")
else:
    assert os.wait()[1] == 0
"""
    )
    done = warm.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    assert "grace_kp: 20 runs wait in" in done.stderr
    assert "grace_kp: 1 run waits in" in done.stderr
    assert 2 == len(files(path))
    store = SqliteStore(path)
    assert 1 + 1 + 20 + 1 == store.count()
    assert 2 == sum(json.loads(data)["lost"] for data in store.reports())
    assert 0 == store.count(status="interrupted")
    store.close()
