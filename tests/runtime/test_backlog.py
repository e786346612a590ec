"""What waits for the writer, settling through interrupts, the writer's care for its store, and runs that wait beside the database."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.runtime._backlog import LIVE_FACTOR, MIN_WAITING, Backlog, Mark, WriterLimits
from grace_kp.runtime._upkeep import Outage, Upkeep
from grace_kp.runtime._writer import MAX_INTERRUPTS, Pending, Writer
from grace_kp.store import JournalEntry
from grace_kp.store._sqlite import SqliteStore
from tests import warm
from tests.runtime.scripted import Pipeline
from tests.store.samples import file_with_a_run, record, rescue_files, stored


@given(
    st.integers(1, 1 << 40),
    st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 30)), min_size=1, max_size=20),
)
def test_the_runs_that_may_wait_fit_into_memory_by_the_size_of_the_last(max_bytes, runs):
    """A few may wait however large they are; a run larger than all before counts at once."""
    backlog = Backlog(max_bytes)
    for pending, size in runs:
        backlog.take_up(pending, size)
        assert backlog.most >= MIN_WAITING
        assert backlog.most == MIN_WAITING or backlog.most * LIVE_FACTOR * size <= max(0, max_bytes - pending)


async def test_a_mark_can_be_awaited_before_and_after_it_is_passed():
    mark = Mark()
    waiting = asyncio.ensure_future(mark_passed(mark))
    await asyncio.sleep(0)
    await asyncio.to_thread(mark.let_go)
    assert await waiting
    await mark
    assert mark.wait(0)


async def mark_passed(mark):
    await mark
    return mark.is_passed


def test_a_mark_whose_loop_is_closed_is_passed_quietly():
    mark = Mark()

    async def leaves():
        task = asyncio.ensure_future(mark_passed(mark))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leaves())
    mark.let_go()
    assert mark.is_passed


def test_losses_are_reported_as_they_happen_and_in_total(capfd):
    backlog = Backlog(1 << 20)
    assert not backlog.has_losses
    backlog.drop()
    backlog.drop()
    backlog.lose(1, "the file is gone")
    backlog.report_total(3, "the disk is full")
    assert backlog.has_losses
    assert capfd.readouterr().err.splitlines() == [
        "grace_kp: a run was dropped, and more may follow: the store is behind by 1 MB of runs (max_pending_mb)",
        "grace_kp: 1 run is not in the store: the file is gone",
        "grace_kp: runs of this process that are not in the store: 2 dropped, 1 lost, 3 never written; the disk is full",
    ]


class Small:
    """A run with few events."""

    events = ()


def test_one_large_run_leaves_room_for_many_small_ones():
    """What waits is measured by its own events, not by those of the last run."""
    backlog = Backlog(256 << 20)
    backlog.take_up(0, 8 << 20, events=2_000)
    assert backlog.most < 100
    backlog.queue.extend([Small()] * 1_000)
    assert backlog.has_room()
    backlog.queue.extend([Small()] * 99_000)
    assert not backlog.has_room()


def test_whoever_has_waited_in_vain_does_not_wait_again_until_something_is_written(monkeypatch):
    monkeypatch.setattr("grace_kp.runtime._backlog.PATIENCE_SECONDS", -1.0)
    backlog, wakes = Backlog(1), []
    backlog.queue.extend(range(MIN_WAITING))
    assert not backlog.wait_for_room(lambda: None)
    monkeypatch.undo()
    assert not backlog.wait_for_room(lambda: wakes.append(1))
    backlog.take_up(0)
    assert backlog.wait_for_room(backlog.queue.clear)
    assert [] == wakes


def test_a_version_that_is_being_written_is_not_replaced():
    pending = Pending()
    pending.add(record(1), None)
    pending.batch()
    assert not pending.replace(record(1, score=0.9))
    pending.keep_batch()
    assert pending.replace(record(1, score=0.9))


MB = 1 << 20


@pytest.fixture
def settler(pipeline, store):
    writer = Writer(lambda: store, pipeline, WriterLimits(max_pending_bytes=MB))
    yield writer
    writer._queue.clear()
    writer.close()


@pytest.fixture
def backlog(settler):
    return settler._backlog


@pytest.fixture
def pending(settler):
    return settler._pending


def settled(pending):
    return [int(item.id.rpartition(":")[2]) for item in pending.batch()[0]]


def test_an_interrupted_run_is_settled_again(settler, backlog, pending, pipeline):
    settle, interrupts = pipeline.settle, [KeyboardInterrupt, SystemExit]

    def interrupted(item):
        if interrupts:
            raise interrupts.pop()
        return settle(item)

    pipeline.settle = interrupted
    backlog.queue.extend([1, 2])
    for interrupt in (SystemExit, KeyboardInterrupt):
        with pytest.raises(interrupt):
            settler.settle()
    settler.settle()
    assert ([1, 2], 0, 2) == (settled(pending), backlog.lost, settler.stats()["settled"])


def test_a_run_that_was_interrupted_when_it_was_settled_is_stored_once(settler, backlog, pending, monkeypatch):
    run = object()
    monkeypatch.setattr(settler.pipeline, "settle", lambda item: (record(1), None))
    take_up = backlog.take_up
    monkeypatch.setattr(backlog, "take_up", lambda *sizes: (_ for _ in ()).throw(KeyboardInterrupt))
    backlog.queue.append(run)
    with pytest.raises(KeyboardInterrupt):
        settler.settle()
    monkeypatch.setattr(backlog, "take_up", take_up)
    settler.settle()
    assert ([1], 0) == (settled(pending), len(backlog.queue))


def test_a_run_whose_settling_never_gets_through_holds_up_no_other(settler, backlog, pending, pipeline, capfd):
    settle = pipeline.settle

    def panics(item):
        if item == "panic":
            raise BaseException("panic")
        return settle(item)

    pipeline.settle = panics
    backlog.queue.extend(["panic", 2])
    for _ in range(MAX_INTERRUPTS):
        with pytest.raises(BaseException, match="panic"):
            settler.settle()
    settler.settle()
    assert ([2], 1) == (settled(pending), backlog.lost)
    assert "1 run is not in the store: a run could not be finished: BaseException: panic" in capfd.readouterr().err


def test_nothing_is_settled_inside_a_settling_or_beyond_the_bound(settler, backlog, pending):
    backlog.queue.extend([1, 2])
    with settler._settling:
        settler.settle()
    assert 2 == len(backlog.queue)
    settler._limits = replace(settler._limits, max_pending_bytes=1)
    settler.settle()
    assert ([1], [2], True) == (settled(pending), list(backlog.queue), settler._is_full)


class Store:
    """A store that notes what is asked of it."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name not in {"recover", "incomplete", "renew_lease", "retain", "report"}:
            raise AttributeError(name)
        return lambda *values: self.calls.append((name, *values)) or []


def upkeep_of(store, pipeline, retention_days=0):
    return Upkeep(store, pipeline, retention_days, lambda: None, lambda: None)


def test_everything_is_done_when_it_is_due():
    """The lease only while something is open, the rest at first and then from time to time."""
    store, pipeline = Store(), Pipeline()
    upkeep = upkeep_of(store, pipeline, retention_days=3)
    upkeep.do_what_is_due()
    assert [("recover",), ("retain", 3)] == store.calls
    pipeline.is_busy, pipeline.parts = True, frozenset({"scores"})
    upkeep.do_what_is_due()
    assert [("renew_lease",), ("recover",), ("incomplete", {"scores"})] == store.calls[
        2:
    ]  # models were chosen meanwhile
    upkeep.do_what_is_due()
    assert ("renew_lease",) == store.calls[-1]


def test_a_plain_store_is_left_alone():
    """Three methods are all that a store must have."""
    upkeep = upkeep_of(object(), Pipeline(), retention_days=3)
    upkeep.recover()
    upkeep.do_what_is_due()
    backlog = Backlog(1)
    backlog.lose(1, "the file is gone")
    upkeep.report(backlog)


def test_a_report_that_could_not_be_stored_is_stored_later():
    store, pipeline, backlog = Store(), Pipeline(), Backlog(1)
    upkeep = upkeep_of(store, pipeline)
    backlog.lose(1, "the file is gone")
    store.report = lambda *report: (_ for _ in ()).throw(OSError("busy"))
    with pytest.raises(OSError, match="busy"):
        upkeep.report(backlog)
    del store.report
    pipeline.report = lambda dropped, lost: None
    upkeep.report(backlog)
    upkeep.report(backlog)
    assert [("report", "process", b"{}")] == store.calls


def test_the_store_is_left_alone_for_a_moment(monkeypatch):
    monkeypatch.setattr("grace_kp.runtime._upkeep.RETRY_SECONDS", (60.0, 60.0))
    outage = Outage()
    assert not outage.is_pausing
    outage.begin(OSError("gone"))
    assert outage.is_pausing
    outage.end()
    assert not outage.is_pausing


def test_a_lock_of_another_process_is_told_apart(tmp_path):
    outage = Outage()
    outage.begin(OSError("gone"))
    assert not outage.is_busy
    holder = sqlite3.connect(tmp_path / "t.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(tmp_path / "t.db", timeout=0)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        outage.begin(error)
    assert outage.is_busy
    holder.close()
    other.close()


NO_PATIENCE = WriterLimits(exit_seconds=0.0, busy_exit_seconds=0.0)


@pytest.fixture
def path(tmp_path):
    return file_with_a_run(tmp_path)


@pytest.fixture
def locked(path):
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def ended(path, pipeline, *runs, **options):
    writer = Writer(lambda: SqliteStore(path, busy_ms=1, **options), pipeline, NO_PATIENCE)
    for run in runs:
        writer.submit(run)
    writer.at_exit()
    return writer


def test_runs_that_a_locked_database_does_not_take_are_stored_at_the_next_opening(path, locked, pipeline, capfd):
    """They are settled before, stderr names the file, and no run counts as lost, but a flush was not possible."""
    writer = ended(path, pipeline, 1, 2, 3)
    (name,) = rescue_files(path)
    assert (
        f"grace_kp: 3 runs wait in {path.parent / name} and will be stored when the store is next opened; "
        f"the store cannot write: store {path}: cannot be opened: database is locked\n"
    ) in capfd.readouterr().err
    stats = writer.stats()
    assert (3, 0, 3, 0, 0) == tuple(stats[name] for name in ("settled", "written", "rescued", "lost", "pending"))
    assert not writer.flush(0.0)
    locked.rollback()
    assert [0, 1, 2, 3] == stored(path)
    assert [] == rescue_files(path)


def test_an_open_store_that_becomes_locked_is_the_same(path, pipeline):
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
    writer = ended(path, pipeline, 1)
    writer.at_exit()
    assert 1 == len(rescue_files(path))
    capfd.readouterr()
    writer.submit(2)
    assert "grace_kp: 1 run waits in" in capfd.readouterr().err
    assert 2 == len(rescue_files(path))
    locked.rollback()
    assert [0, 1, 2] == stored(path)


def test_what_cannot_be_kept_either_is_reported_as_never_written(path, locked, pipeline, monkeypatch, capfd):

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    writer = ended(path, pipeline, 1, 2)
    last = capfd.readouterr().err.splitlines()[-1]
    assert "grace_kp: runs of this process that are not in the store: 2 never written; " in last
    assert "no file next to it can be written: [Errno 28] No space left on device" in last
    assert (2, []) == (writer.stats()["pending"], rescue_files(path))


def test_a_store_of_a_users_own_may_keep_runs(pipeline, capfd):

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
    writer = Writer(lambda: SqliteStore(path, busy_ms=1), pipeline, NO_PATIENCE)
    writer.store()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer._backlog.lose(2, "a test says so")
    writer.at_exit()
    other.close()
    assert 1 == len(rescue_files(path))
    assert " wait" not in capfd.readouterr().err
    store = SqliteStore(path)
    assert [b"{}"] == store.reports()
    store.close()


LOCKED = """
import os, sqlite3, sys
from dataclasses import replace
import grace_kp as gk
from grace_kp.store._sqlite import SqliteStore

grace = gk.Grace(store=SqliteStore(sys.argv[1], busy_ms=1), evaluator=None, embedder=None, reviewer=None, max_pending_mb=1)
writer = grace._writer
writer._limits = replace(writer._limits, exit_seconds=0.0, busy_exit_seconds=0.0)
agent = grace.agent(lambda x: x, name="agent")
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


def test_a_process_that_ends_while_the_database_is_locked_loses_nothing(path):
    done = warm.run([sys.executable, "-c", LOCKED, path], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    assert "grace_kp: 20 runs wait in" in done.stderr
    assert "grace_kp: 1 run waits in" in done.stderr
    assert 2 == len(rescue_files(path))
    store = SqliteStore(path)
    assert 1 + 1 + 20 + 1 == store.count()
    assert 2 == sum(json.loads(data)["lost"] for data in store.reports())
    assert 0 == store.count(status="interrupted")
    store.close()
