"""The writer: order, bounds, failing stores, and what closing and exits leave behind. Mostly with a scripted pipeline."""

from __future__ import annotations

import contextlib
import logging
import threading

import pytest

import grace_kp as gk
from grace_kp.runtime._backlog import Mark, WriterLimits
from grace_kp.runtime._writer import Writer
from grace_kp.store import JournalEntry
from tests.store.samples import ids, record


class Failing:
    """A store in memory that cannot write while it is broken."""

    def __init__(self, store):
        self.store, self.broken = store, True

    def put(self, records, *, ended=()):
        if self.broken:
            raise gk.StoreError("the disk is full")
        self.store.put(records, ended=ended)

    def __getattr__(self, name):
        return getattr(self.store, name)


def test_a_run_that_cannot_be_finished_is_reported_and_the_next_is_stored(writer, pipeline, store, caplog):
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        writer.submit("broken")
        writer.submit(1)
        assert not writer.flush()
    message = "a run could not be finished: ValueError: no"
    assert [message, f"1 run is not in the store: {message}"] == caplog.messages
    assert ([1], 1) == (ids(store.query()), writer.stats()["lost"])


def test_a_store_that_cannot_write_loses_nothing(pipeline, store, caplog):
    failing = Failing(store)
    writer = Writer(lambda: failing, pipeline)
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        writer.submit(1)
        writer.write_now()  # waits where the worker is just writing
        assert not writer.flush(0.0)
        assert ["after 1"] == pipeline.followed  # whoever waits for the run goes on
        assert "the store cannot write: the disk is full" == writer.stats()["last_error"]
        failing.broken = False
        assert writer.flush()
    assert ["the store cannot write: the disk is full", "the store writes again"] == caplog.messages
    assert (1, 1, ["after 1"]) == (store.count(), writer.stats()["written"], pipeline.followed)
    writer.close()


def filled(pipeline, store, *more, **limits):
    """A writer whose store cannot write, with as many runs as memory may hold and then some more, and the store."""
    failing = Failing(store)
    failing.report = lambda process, data: None
    writer = Writer(lambda: failing, pipeline, WriterLimits(max_pending_bytes=1, **limits))
    with writer._settling:  # nothing is settled meanwhile
        for number in (*range(writer._backlog.most), *more):
            writer.submit(number)
    return writer, failing


def test_what_memory_cannot_hold_is_counted_and_reported_at_once(pipeline, store, capfd):
    """The thread that ends the run goes on, flush says no from then on, and the store gets the count when it can."""
    writer, failing = filled(pipeline, store, 100, 100)
    assert 1 == capfd.readouterr().err.count("grace_kp: a run was dropped, and more may follow")
    failing.broken = False
    assert not writer.flush()
    assert (2, 0, 16) == (writer.stats()["dropped"], writer.stats()["pending"], store.count())
    assert (2, 0) == pipeline.reports[-1]
    assert not writer.flush()
    writer.at_exit()
    assert "grace_kp: runs of this process that are not in the store: 2 dropped\n" == capfd.readouterr().err


def test_a_thread_waits_for_room_where_it_may(pipeline, store):
    writer, failing = filled(pipeline, store, overflow="wait")
    failing.broken = False
    writer.submit(100)
    assert writer.flush()
    assert [100] == pipeline.settled[-1:]
    writer.close()


async def test_an_event_loop_never_waits_for_room(pipeline, store):
    writer, failing = filled(pipeline, store, 100, overflow="wait")
    assert 1 == writer.stats()["dropped"]
    failing.broken = False
    writer.close()


def test_a_store_that_fails_does_not_hold_up_agents(pipeline, store):
    failing = Failing(store)
    writer = Writer(lambda: failing, pipeline, WriterLimits(durability="every_run"))
    for number in range(20):
        writer.submit(number)
    failing.broken = False
    assert writer.flush()
    assert 20 == store.count()
    writer.close()


def test_only_a_writer_that_lags_behind_is_waited_for(pipeline, store, monkeypatch):
    """With the durability "bounded" a thread waits only where the oldest run has waited for half of the bound."""
    writer = Writer(lambda: store, pipeline, WriterLimits(durability="bounded"))
    waits, may_wait = threading.Event(), writer._may_wait
    # It is asked when the lag is known. Before that, the writer must not catch up.
    monkeypatch.setattr(writer, "_may_wait", lambda: waits.set() or may_wait())
    with writer._settling:
        writer.submit(1)
        assert 0 == store.count()
        writer._backlog._marks[0].at -= 1.0
        answers = []
        thread = threading.Thread(target=lambda: answers.append((writer.submit(2), store.count())))
        thread.start()
        assert waits.wait(60)
    thread.join(60)
    assert [(None, 2)] == answers
    writer.close()


def test_records_are_stored_before_a_caller_goes_on(writer, store):
    assert writer.put_now(lambda: [record(5)])
    assert [5] == ids(store.query())


def test_flushing_inside_a_settling_does_not_hang(writer, pipeline):
    answers = []
    pipeline.settle = lambda item: (answers.append(writer.flush()), (record(item), None))[1]
    writer.submit(1)
    assert writer.flush()
    assert [False] == answers


def test_a_full_stack_while_the_worker_is_woken_submits_the_run_once(writer, store, monkeypatch):
    """The caller hears nothing of it, and the run is stored with the next flush."""

    def full():
        raise RecursionError

    with monkeypatch.context() as patch:
        patch.setattr(writer._worker, "wake", full)
        writer.submit(1)
    assert writer._idle
    assert writer.flush()
    assert [1] == ids(store.query())


def test_a_flush_whose_time_is_over_leaves_the_rest_to_the_worker(writer, store):
    writer._worker.stop(0)
    for number in range(1_000):
        writer.submit(number)
    assert not writer.flush(0)
    assert 0 < store.count() < 1_000
    writer.close()
    assert 1_000 == store.count()


@pytest.mark.parametrize("lock", ["_settling", "_writing"])
def test_an_interrupt_leaves_no_lock_behind(writer, pipeline, store, lock):
    """It may come right after a lock was taken. Later flushes would wait for it, or take themselves for nested ones."""

    def interrupted(deadline):
        getattr(writer, lock).acquire()
        raise KeyboardInterrupt

    pipeline.complete = interrupted
    with pytest.raises(KeyboardInterrupt):
        writer.flush()
    pipeline.complete = lambda deadline: True
    writer.submit(1)
    assert writer.flush()
    assert [1] == ids(store.query())


def test_a_thread_that_writes_and_is_interrupted_by_a_flush_writes_everything_once(writer, pipeline, store):
    """A signal handler that flushes cannot wait for the write below it, and says so."""
    answers, puts, put = [], [], store.put

    def interrupted(records, *, ended=()):
        puts.append([item.id for item in records])
        put(records, ended=ended)
        answers.append(writer.flush())
        writer.write_now()
        writer.write_pending(force=True)

    store.put = interrupted
    with writer._settling, writer._writing:
        for number in range(3):
            writer._pending.add(record(number), f"after {number}")
        writer._settling.release()
        writer.write_pending(force=True)
        writer._settling.acquire()
    assert ([False], 1, 3, 0) == (answers, len(puts), len(pipeline.followed), writer.waiting)


def test_a_mark_is_passed_when_what_follows_is_under_way(writer, pipeline):
    seen = []
    mark = Mark()
    pipeline.add = lambda stored: seen.append(mark.is_passed)
    writer._queue.append(1)
    writer._queue.append(mark)
    assert writer.flush()
    assert ([False], True) == (seen, mark.is_passed)


def test_the_thread_survives_whatever_the_store_raises(writer, store):
    errors = [SystemExit(), MemoryError()]
    put = store.put

    def raising(records, *, ended=()):
        if errors:
            raise errors.pop()
        put(records, ended=ended)

    store.put = raising
    mark = Mark()
    writer._queue.extend([1, mark])
    writer._wake()
    assert mark.wait(60)
    assert ([1], []) == (ids(store.query()), errors)


def test_a_journal_that_cannot_be_written_at_the_end_is_reported(pipeline, store, caplog, monkeypatch):
    """Runs that are open then are not found as interrupted, and closing does not fail."""
    monkeypatch.setattr("grace_kp.runtime._writer.STOP_SECONDS", 60.0)

    def fail(rows):
        raise OSError("the disk of password=hunter2secret is gone")

    store.journal = fail
    pipeline.has_open_runs = True
    pipeline.journal = lambda: iter([[JournalEntry("kp:trace:1", 0, b"{}")]])
    Writer(lambda: store, pipeline).close()
    assert "the store cannot write: OSError: the disk of" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_run_that_ends_while_the_writer_closes_is_stored(writer, pipeline, store):
    """After the last flush, or when its thread has ended already."""
    stop = writer._worker.stop
    pipeline.give_up = lambda: writer.submit(1)
    writer._worker.stop = lambda seconds: (stop(seconds), writer._queue.append(2))
    writer.close()
    assert ([2, 1], 0) == (ids(store.query()), writer.waiting)


def test_what_waits_at_exit_is_written_though_the_writer_was_closed(pipeline, store, capfd):
    failing = Failing(store)
    writer = Writer(lambda: failing, pipeline)
    writer.submit(1)
    writer.close(0.0)
    assert 0 == store.count()
    failing.broken = False
    writer.at_exit()
    assert (1, "") == (store.count(), capfd.readouterr().err)


def test_an_interrupted_exit_reports_what_is_not_stored(writer, capfd, monkeypatch):
    with writer._settling:
        writer.submit(1)
        monkeypatch.setattr(writer, "flush", lambda timeout: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.at_exit()
    monkeypatch.undo()
    assert "runs of this process that are not in the store: 1 never written" in capfd.readouterr().err


def test_a_store_that_hangs_does_not_hold_up_closing(writer, store, monkeypatch):
    monkeypatch.setattr("grace_kp.runtime._writer.STOP_SECONDS", 0.01)
    closed = []
    writer.store()
    store.close = lambda: closed.append(True)
    with writer._writing:
        thread = threading.Thread(target=writer.close, args=(0.01,))
        thread.start()
        thread.join(60)
        assert (False, []) == (thread.is_alive(), closed)


def test_the_journal_does_not_grow_while_the_store_fails(pipeline, store):
    """What is news then is collected when the store writes again."""
    failing, collected = Failing(store), []
    failing.journal = lambda rows: failing.put(())
    writer = Writer(lambda: failing, pipeline)
    pipeline.has_open_runs = True
    pipeline.journal = lambda: (collected.append(1), iter([[JournalEntry("kp:trace:1", 0, b"{}")]]))[1]
    for _ in range(3):
        writer._outage._retry_at = 0.0
        writer._write_journal()
    assert [1] == collected
    failing.broken = pipeline.has_open_runs = False
    writer.close()


def test_marks_do_not_count_as_runs(pipeline, store):
    """Waiting until a run is stored takes no room from other runs."""
    writer = Writer(lambda: store, pipeline, WriterLimits(max_pending_bytes=1, durability="every_run"))
    with writer._settling:  # the background thread waits
        for number in range(16):
            writer.submit(number, can_await=True)
        assert 0 == writer.stats()["dropped"]
    assert writer.flush()
    assert 16 == store.count()
    writer.close()


@pytest.mark.parametrize("limits", [{"durability": "every_run"}, {"overflow": "wait", "max_pending_bytes": 1}])
@pytest.mark.parametrize("lock", ["store", "pending", "worker", "pipeline"])
def test_a_thread_that_holds_what_the_writer_needs_does_not_wait_for_it(pipeline, store, limits, lock, monkeypatch):
    writer = Writer(lambda: store, pipeline, WriterLimits(**limits))
    writer.store()
    waits = []
    monkeypatch.setattr(Mark, "wait", lambda mark, seconds: waits.append(seconds))
    monkeypatch.setattr(writer._backlog, "wait_for_room", lambda wake: waits.append(wake))
    held = {"store": store.lock, "pending": writer._pending.lock, "worker": writer._worker._changed}
    pipeline.is_mine = lock == "pipeline"
    with held.get(lock, contextlib.nullcontext()):
        for number in range(20):
            writer.submit(number)
    assert [] == waits
    monkeypatch.undo()
    pipeline.is_mine = False
    writer.close()


def test_runs_are_stored_in_the_order_in_which_they_ended(writer, pipeline, store):
    for number in (1, 2, 3):
        writer.submit(number)
    assert writer.flush()
    assert ([1, 2, 3], [3, 2, 1]) == (pipeline.settled, ids(store.query()))
    assert ["after 1", "after 2", "after 3"] == pipeline.followed


def test_the_complete_version_of_a_run_replaces_the_one_that_waits(pipeline, store):
    """A store that fails for long does not make memory hold each run twice."""
    failing = Failing(store)
    writer = Writer(lambda: failing, pipeline)
    writer.submit(1)
    assert not writer.flush(0.0)
    writer.put_later(record(1, score=0.9))
    assert 1 == writer.stats()["pending"]
    failing.broken = False
    assert writer.flush()
    assert [0.9] == [trace.metadata.quality_score for trace in store.query()]
    writer.close()


def test_flush_is_false_while_runs_are_not_complete(writer, pipeline, store):
    pipeline.completes = False
    writer.submit(1)
    assert (False, [1]) == (writer.flush(), ids(store.query()))
    pipeline.completes = True
    assert writer.flush()


def test_closing_gives_up_waiting_and_later_runs_are_stored_at_once(writer, pipeline, store):
    writer.submit(1)
    writer.close(timeout=0.0)
    assert (True, [1]) == (pipeline.given_up, ids(store.query()))
    writer.submit(2)
    assert [2, 1] == ids(store.query())


def test_runs_of_dead_processes_are_settled_first(writer, pipeline, store):
    store.recover = lambda: [[JournalEntry("kp:trace:91", 0, b"{}")]]
    writer.submit(1)
    assert writer.flush()
    assert writer.flush()
    assert {1, 91} == set(pipeline.settled)


def test_rows_of_the_journal_survive_a_failed_write(tmp_path):
    """What could not be journaled is written with the next attempt, and an ended run leaves no rows."""
    with gk.Grace(store=f"sqlite:///{tmp_path}/t.db", evaluator=None, embedder=None, reviewer=None) as grace:
        writer = grace._writer
        with writer._settling, grace.run("x") as run:
            store = writer.store()
            real, store.journal = store.journal, fails
            writer._write_journal()
            store.journal = real
            writer._outage._retry_at = 0.0
            writer._write_journal()
            rows = store._connection.execute("SELECT run_id, seq FROM journal ORDER BY seq").fetchall()
            assert (run.id, 0) == rows[0]
        assert grace.flush()
        assert [] == store._connection.execute("SELECT * FROM journal").fetchall()


def fails(entries):
    raise gk.StoreError("the disk is full")
