"""What waits for the writer, settling one run after the other through interrupts, and what the writer does for its store."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.runtime._backlog import (
    LIVE_FACTOR,
    MAX_BATCH,
    MIN_WAITING,
    Backlog,
    Mark,
    Pending,
    WriterLimits,
)
from grace_kp.runtime._upkeep import Outage, Upkeep
from grace_kp.runtime._writer import MAX_INTERRUPTS, Writer
from tests.runtime.scripted import Pipeline
from tests.store.samples import record


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


def test_the_lag_is_that_of_the_oldest_mark_that_is_not_passed():
    backlog, first, second = Backlog(1), Mark(), Mark()
    first.at, second.at = 1.0, 4.0
    assert [0.0, 3.0] == [backlog.add_mark(first), backlog.add_mark(second)]
    first.let_go()
    third = Mark()
    third.at = 5.0
    assert 1.0 == backlog.add_mark(third)
    for mark in (second, third):
        mark.let_go()


def test_losses_are_reported_as_they_happen_and_in_total(capfd):
    """The first drop, each other loss, and the sum."""
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
    """An agent of many runs would wait for each of them."""
    monkeypatch.setattr("grace_kp.runtime._backlog.PATIENCE_SECONDS", -1.0)
    backlog, wakes = Backlog(1), []
    backlog.queue.extend(range(MIN_WAITING))
    assert not backlog.wait_for_room(lambda: None)
    monkeypatch.undo()
    assert not backlog.wait_for_room(lambda: wakes.append(1))
    backlog.take_up(0)
    assert backlog.wait_for_room(backlog.queue.clear)
    assert [] == wakes


def test_batches_are_taken_in_order_and_removed_when_they_are_written():
    """Their bytes are counted, and marks are returned with what follows."""
    pending, mark = Pending(), Mark()
    pending.add(record(1), "after 1")
    pending.add_mark(mark)
    pending.add(record(2), None)
    assert 2 * len(record(1).data) == pending.bytes
    records, entries = pending.batch()
    assert [record(1), record(2)] == records
    assert not mark.is_passed
    assert (["after 1"], [mark]) == pending.written(entries)
    assert (0, False) == (pending.bytes, bool(pending))


def test_a_version_that_is_being_written_is_not_replaced():
    pending = Pending()
    pending.add(record(1), None)
    pending.batch()
    assert not pending.replace(record(1, score=0.9))
    pending.failed()
    assert pending.replace(record(1, score=0.9))


MB = 1 << 20


@pytest.fixture
def settler(pipeline, store):
    """A writer with a bound of a megabyte, which is not woken."""
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


def test_runs_are_settled_in_order_up_to_a_mark(settler, backlog, pending):
    mark = Mark()
    backlog.queue.extend([1, 2, mark, 3])
    settler.settle(until=mark)
    assert ([1, 2], 3, [3]) == (settled(pending), pending.batch()[1], list(backlog.queue))


def test_an_interrupted_run_is_settled_again(settler, backlog, pending, pipeline):
    """Ctrl-C in a thread that flushes costs no run."""
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
    """It leaves the queue a moment after its record was added."""
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
    """A finalizer may end a run while its thread settles another."""
    backlog.queue.extend([1, 2])
    with settler._settling:
        settler.settle()
    assert 2 == len(backlog.queue)
    settler._limits = replace(settler._limits, max_pending_bytes=1)
    settler.settle()
    assert ([1], [2], True) == (settled(pending), list(backlog.queue), settler._is_full)


def test_settling_stops_at_a_deadline(settler, backlog):
    """A flush with a timeout returns in time, whatever the backlog."""
    backlog.queue.extend(range(1_000, 1_002 + MAX_BATCH))
    settler.settle(deadline=0.0)
    assert 2 == len(backlog.queue)


class Store:
    """A store that notes what is asked of it."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name not in {"recover", "incomplete", "renew_lease", "retain", "report"}:
            raise AttributeError(name)
        return lambda *values: self.calls.append((name, *values)) or []


@pytest.fixture
def lost():
    return []


def upkeep_of(store, pipeline, lost, **options):
    return Upkeep(
        store,
        pipeline,
        options.get("retention_days", 0),
        lambda: None,
        lambda: SimpleNamespace(lose=lambda *loss: lost.append(loss)),
    )


def test_everything_is_done_when_it_is_due(lost):
    """The lease only while something is open, the rest at first and then from time to time."""
    store, pipeline = Store(), Pipeline()
    upkeep = upkeep_of(store, pipeline, lost, retention_days=3)
    upkeep.do_what_is_due()
    assert [("recover",), ("retain", 3)] == store.calls
    pipeline.is_busy, pipeline.parts = True, frozenset({"scores"})
    upkeep.do_what_is_due()
    assert [("renew_lease",), ("recover",), ("incomplete", {"scores"})] == store.calls[
        2:
    ]  # models were chosen meanwhile
    upkeep.do_what_is_due()
    assert ("renew_lease",) == store.calls[-1]


def test_a_report_is_stored_when_there_is_one(lost):
    store = Store()
    upkeep = upkeep_of(store, Pipeline(), lost)
    backlog = Backlog(1)
    upkeep.report(backlog)
    backlog.lose(2, "the file is gone")
    upkeep.report(backlog)
    assert [("report", "process", b"{}")] == store.calls


def test_a_plain_store_is_left_alone(lost):
    """Three methods are all that a store must have."""
    upkeep = upkeep_of(object(), Pipeline(), lost, retention_days=3)
    upkeep.recover()
    upkeep.do_what_is_due()
    backlog = Backlog(1)
    backlog.lose(1, "the file is gone")
    upkeep.report(backlog)


def test_a_report_that_could_not_be_stored_is_stored_later(lost):
    store, pipeline, backlog = Store(), Pipeline(), Backlog(1)
    upkeep = upkeep_of(store, pipeline, lost)
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
    """It ends by itself, so it is worth waiting for."""
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
