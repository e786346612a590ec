"""Runs that a process cannot store before it ends wait beside the database, and whoever opens it next stores them."""

from __future__ import annotations

import json
import os
import sqlite3
import sys

import pytest

from grace_kp.runtime._backlog import WriterLimits
from grace_kp.runtime._writer import Writer
from grace_kp.store import JournalEntry
from grace_kp.store._sqlite import SqliteStore
from tests import warm
from tests.store.samples import ids, record

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
    assert (3, 0, 3, 0, 0) == tuple(stats[name] for name in ("settled", "written", "rescued", "lost", "pending"))
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
    writer._ended.append("kp:trace:1")
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


def test_what_cannot_be_kept_either_is_reported_as_never_written(path, locked, pipeline, monkeypatch, capfd):
    """With the reason, and no part of a file is left."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    writer = ended(path, pipeline, 1, 2)
    last = capfd.readouterr().err.splitlines()[-1]
    assert "grace_kp: runs of this process that are not in the store: 2 never written; " in last
    assert "no file beside it can be written: [Errno 28] No space left on device" in last
    assert (2, []) == (writer.stats()["pending"], files(path))


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
