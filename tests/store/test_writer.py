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
        assert writer.flush()
    assert ["a run could not be finished: ValueError: no"] == caplog.messages
    assert [1] == ids(store.query())


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


def test_what_memory_cannot_hold_is_counted(pipeline, store):
    """Beyond the bound records are dropped, and the store is told how many."""
    failing = Failing(store)
    size = len(record(1).data)
    writer = Writer(lambda: failing, pipeline, WriterLimits(max_pending_bytes=2 * size))
    for number in (1, 2, 3):
        writer.submit(number)
    assert not writer.flush(0.0)
    assert (1, 2) == (writer.stats().dropped, writer.stats().pending)
    failing.broken = False
    writer.submit(4)
    writer.flush()
    assert 1 <= writer.stats().dropped <= 2
    writer.close()


def test_beyond_the_backlog_the_thread_that_submits_helps(pipeline, store):
    """The backlog stays bounded without the background thread; with models it only starts judgements."""
    writer = Writer(lambda: store, pipeline, WriterLimits(max_backlog=2))
    with writer._settling:  # the background thread waits
        for number in range(4):
            writer.submit(number)
        assert writer.stats().helped >= 1
        assert [0, 1, 2] == pipeline.settled[:3]
        pipeline.uses_models = True
        settled = len(pipeline.settled)
        for number in range(4, 8):
            writer.submit(number)
        assert settled == len(pipeline.settled)
    assert writer.flush()
    assert list(range(8)) == pipeline.settled
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
    pipeline.settle = lambda item: answers.append(writer.flush()) or record(item)
    writer.submit(1)
    assert writer.flush()
    assert [False] == answers
    writer.close()
