"""The writer: order, bounds, failing stores, and what closing and exits leave behind. The pipeline is scripted."""

from __future__ import annotations

import logging
import threading

import pytest

import grace_kp as gk
from grace_kp.store import JournalEntry, Writer, WriterLimits, open_store
from tests.store.samples import ids, record


class Pipeline:
    """Settles numbers as records; holds back those that are not ready or not scored."""

    has_open_runs = False
    uses_models = False

    def __init__(self):
        self.held, self.unscored, self.settled, self.warmed = set(), set(), [], []
        self.given_up = False
        self.reports = []

    def is_ready(self, item):
        return item not in self.held

    def is_scored(self, item):
        return item not in self.unscored

    def warm(self, items):
        self.warmed.append(list(items))

    def settle(self, item):
        if item == "broken":
            raise ValueError("no")
        self.settled.append(item)
        return None if item == "sampled out" else record(item)

    def give_up(self):
        self.given_up = True
        self.held.clear()
        self.unscored.clear()

    def lost(self, rows):
        return 90 + len(rows)

    def journal(self):
        return []

    def report(self, dropped):
        self.reports.append(dropped)
        return ("process", b"{}") if dropped else None


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


@pytest.fixture
def pipeline():
    return Pipeline()


@pytest.fixture
def store():
    return open_store("memory:")


@pytest.fixture
def writer(pipeline, store):
    opened = Writer(lambda: store, pipeline)
    yield opened
    opened.close()


def test_runs_are_stored_in_the_order_in_which_they_ended(writer, pipeline, store):
    """A run that is not ready holds back those after it."""
    pipeline.held = {2}
    for number in (1, 2, 3):
        writer.submit(number)
    assert not writer.flush(0.0)
    assert [1] == pipeline.settled
    pipeline.held = set()
    writer.landed()
    assert writer.flush()
    assert ([1, 2, 3], [3, 2, 1]) == (pipeline.settled, ids(store.query()))


def test_a_run_waits_for_its_scores_too(writer, pipeline):
    """It is ready first, and settled when it is scored."""
    pipeline.unscored = {1}
    writer.submit(1)
    assert not writer.flush(0.0)
    pipeline.unscored = set()
    assert writer.flush()
    assert [1] == pipeline.settled


def test_runs_that_are_settled_together_are_warmed_once(writer, pipeline):
    """A batch is prepared in one go; a single run is not worth it."""
    pipeline.held = {1}
    for number in (1, 2, 3):
        writer.submit(number)
    writer.flush(0.0)
    pipeline.held = set()
    assert writer.flush()
    assert [[1, 2, 3]] == pipeline.warmed


def test_a_run_that_cannot_be_finished_is_reported_and_the_next_is_stored(writer, pipeline, store, caplog):
    """Neither the agent nor other runs suffer."""
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        writer.submit("broken")
        writer.submit(1)
        assert writer.flush()
    assert ["a run could not be finished: ValueError: no"] == caplog.messages
    assert [1] == ids(store.query())


def test_a_run_that_is_sampled_out_is_settled_and_not_stored(writer, store):
    """It counts as settled."""
    writer.submit("sampled out")
    assert writer.flush()
    assert (1, 0, 0) == (writer.stats().settled, writer.stats().written, store.count())


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


def test_closing_gives_up_waiting_and_later_runs_are_stored_at_once(pipeline, store):
    """After closing nobody is left to wait for a judgement."""
    writer = Writer(lambda: store, pipeline)
    pipeline.held = {1}
    writer.submit(1)
    writer.close(timeout=0.0)
    assert (True, [1]) == (pipeline.given_up, ids(store.query()))
    writer.submit(2)
    assert [2, 1] == ids(store.query())


def test_runs_of_dead_processes_are_settled_first(pipeline, tmp_path):
    """What the store recovers goes through the pipeline like a run that has ended."""
    store = open_store("memory:")
    store.recover = lambda: [[JournalEntry("kp:trace:91", 0, b"{}")]]
    writer = Writer(lambda: store, pipeline)
    writer.submit(1)
    assert writer.flush()
    assert writer.flush()
    assert {1, 91} == set(pipeline.settled)
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
