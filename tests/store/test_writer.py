"""The writer: order, bounds, failing stores, and what closing and exits leave behind. The pipeline is scripted."""

from __future__ import annotations

import logging
import threading

import grace_kp as gk
from grace_kp.store import Writer, WriterLimits
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
    """Neither the agent nor other runs suffer."""
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        writer.submit("broken")
        writer.submit(1)
        assert not writer.flush()
    message = "a run could not be finished: ValueError: no"
    assert [message, f"1 run is not in the store: {message}"] == caplog.messages
    assert ([1], 1) == (ids(store.query()), writer.stats().lost)


def test_a_store_that_cannot_write_loses_nothing(pipeline, store, caplog):
    """Records wait in memory; the failure is logged once, and so is its end."""
    failing = Failing(store)
    writer = Writer(lambda: failing, pipeline)
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        writer.submit(1)
        assert not writer.flush(0.0)
        assert not writer.flush(0.0)
        assert "the store cannot write: the disk is full" == writer.stats().last_error
        failing.broken = False
        assert writer.flush()
    assert ["the store cannot write: the disk is full", "the store writes again"] == caplog.messages
    assert (1, 1) == (store.count(), writer.stats().written)
    writer.close()


def filled(pipeline, store, **limits):
    """A writer whose store cannot write, with as many runs as memory may hold, and the store."""
    failing = Failing(store)
    failing.report = lambda process, data: None
    writer = Writer(lambda: failing, pipeline, WriterLimits(max_pending_bytes=1, **limits))
    with writer._settling:  # nothing is settled meanwhile
        for number in range(writer._backlog.most):
            writer.submit(number)
    return writer, failing


def test_what_memory_cannot_hold_is_counted_and_reported_at_once(pipeline, store, capfd):
    """The thread that ends the run goes on, flush says no from then on, and the store gets the count when it can."""
    writer, failing = filled(pipeline, store)
    with writer._settling:
        writer.submit(100)
        assert "grace_kp: a run was dropped, and more may follow" in capfd.readouterr().err
        writer.submit(100)
        assert "" == capfd.readouterr().err
    failing.broken = False
    assert not writer.flush()
    assert (2, 0, 16) == (writer.stats().dropped, writer.stats().pending, store.count())
    assert (2, 0) == pipeline.reports[-1]
    assert not writer.flush()
    writer.at_exit()
    assert "grace_kp: runs of this process that are not in the store: 2 dropped\n" == capfd.readouterr().err


def test_a_thread_waits_for_room_where_it_may(pipeline, store):
    """With the overflow "wait" nothing is dropped."""
    writer, failing = filled(pipeline, store, overflow="wait")
    failing.broken = False
    writer.submit(100)
    assert writer.flush()
    assert [100] == pipeline.settled[-1:]
    writer.close()


async def test_an_event_loop_never_waits_for_room(pipeline, store):
    """Its run is dropped and counted."""
    writer, failing = filled(pipeline, store, overflow="wait")
    with writer._settling:
        writer.submit(100)
    assert 1 == writer.stats().dropped
    failing.broken = False
    writer.close()


def test_every_run_is_stored_when_the_call_returns(pipeline, store):
    """With the durability "every_run" the thread that ends a run waits for it."""
    writer = Writer(lambda: store, pipeline, WriterLimits(durability="every_run"))
    for number in range(5):
        writer.submit(number)
        assert number + 1 == store.count()
    writer.close()


async def test_a_coroutine_awaits_until_its_run_is_stored(pipeline, store):
    """The event loop is not blocked meanwhile."""
    writer = Writer(lambda: store, pipeline, WriterLimits(durability="every_run"))
    for number in range(5):
        stored = writer.submit(number, can_await=True)
        await stored
        assert number + 1 == store.count()
    writer.close()


def test_a_store_that_fails_does_not_hold_up_agents(pipeline, store):
    """What cannot be stored now is stored later; nobody waits for a store that is known to fail."""
    failing = Failing(store)
    writer = Writer(lambda: failing, pipeline, WriterLimits(durability="every_run"))
    for number in range(20):
        writer.submit(number)
    failing.broken = False
    assert writer.flush()
    assert 20 == store.count()
    writer.close()


def test_only_a_writer_that_lags_behind_is_waited_for(pipeline, store):
    """With the durability "bounded" a thread waits only where the oldest run has waited for half of the bound."""
    writer = Writer(lambda: store, pipeline, WriterLimits(durability="bounded"))
    with writer._settling:
        writer.submit(1)
        assert 0 == store.count()
        writer._backlog._marks[0].at -= 1.0
        answers = []
        thread = threading.Thread(target=lambda: answers.append((writer.submit(2), store.count())))
        thread.start()
    thread.join(60)
    assert [(None, 2)] == answers
    writer.close()


def test_records_are_stored_before_a_caller_goes_on(writer, store):
    """A question to a person is stored before the person is asked."""
    assert writer.put_now(lambda: [record(5)])
    assert [5] == ids(store.query())


def test_storing_at_once_does_not_wait_for_others_for_ever(writer):
    """Where another thread is settling, the caller goes on without."""
    with writer._settling:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(writer.put_now(lambda: [record(5)], timeout=0.01)))
        thread.start()
        thread.join(60)
    assert [False] == answers


def test_flushing_inside_a_settling_does_not_hang(pipeline, store):
    """A hook that flushes would wait for itself."""
    writer = Writer(lambda: store, pipeline)
    answers = []
    pipeline.settle = lambda item: (answers.append(writer.flush()), (record(item), None))[1]
    writer.submit(1)
    assert writer.flush()
    assert [False] == answers
    writer.close()


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


def test_what_ends_while_a_runtime_closes_is_stored(pipeline, store):
    """A run that ends after the last flush is written before the store is closed."""
    writer = Writer(lambda: store, pipeline)
    give_up = pipeline.give_up

    def ends_a_run():
        give_up()
        writer.submit(2)

    pipeline.give_up = ends_a_run
    writer.submit(1)
    writer.close()
    assert [2, 1] == ids(store.query())


def test_a_flush_whose_time_is_over_leaves_the_rest_to_the_worker(pipeline, store):
    """However much waits, flush(0) settles a bounded part of it."""
    writer = Writer(lambda: store, pipeline)
    with writer._settling:
        for number in range(1_000):
            writer.submit(number)
        with writer._writing:  # the worker waits
            writer._worker.stop(0)
    assert not writer.flush(0)
    assert 0 < store.count() < 1_000
    writer.close()
    assert 1_000 == store.count()
