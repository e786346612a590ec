"""What the writer asks of its pipeline, and in which order. The pipeline is scripted."""

from __future__ import annotations

import grace_kp as gk
from grace_kp.store import JournalEntry, Writer, open_store
from tests.store.samples import ids, record


def test_runs_are_stored_in_the_order_in_which_they_ended(writer, pipeline, store):
    """What follows comes after, in the same order."""
    for number in (1, 2, 3):
        writer.submit(number)
    assert writer.flush()
    assert ([1, 2, 3], [3, 2, 1]) == (pipeline.settled, ids(store.query()))
    assert ["after 1", "after 2", "after 3"] == pipeline.followed


def test_nothing_happens_to_a_run_before_it_is_stored(pipeline, store):
    """When the pipeline goes on with a run, the store has it."""
    writer = Writer(lambda: store, pipeline)
    seen = []
    pipeline.follow = lambda stored: seen.append((list(stored), ids(store.query())))
    writer.submit(1)
    assert writer.flush()
    assert [(["after 1"], [1])] == seen
    writer.close()


def test_a_store_that_cannot_write_holds_up_nobody_who_waits_for_the_run(pipeline, store):
    """The pipeline goes on once; the record is stored later."""
    writer, broken, put = Writer(lambda: store, pipeline), [True], store.put

    def fails(records, *, ended=()):
        if broken:
            raise gk.StoreError("no")
        put(records, ended=ended)

    store.put = fails
    writer.submit(1)
    assert not writer.flush(0.0)
    assert ["after 1"] == pipeline.followed
    broken.clear()
    assert writer.flush()
    assert (["after 1"], [1]) == (pipeline.followed, ids(store.query()))
    writer.close()


def test_the_complete_version_of_a_run_replaces_the_one_that_waits(pipeline, store):
    """A store that fails for long does not make memory hold each run twice."""
    writer, put = Writer(lambda: store, pipeline), store.put
    store.put = lambda records, *, ended=(): (_ for _ in ()).throw(gk.StoreError("no"))
    writer.submit(1)
    assert not writer.flush(0.0)
    writer.put_later(record(1, score=0.9))
    assert 1 == writer.stats().pending
    store.put = put
    assert writer.flush()
    assert [0.9] == [trace.metadata.quality_score for trace in store.query()]
    writer.close()


def test_flush_is_false_while_runs_are_not_complete(writer, pipeline, store):
    """They are stored nevertheless."""
    pipeline.completes = False
    writer.submit(1)
    assert (False, [1]) == (writer.flush(), ids(store.query()))
    pipeline.completes = True
    assert writer.flush()


def test_a_run_that_is_sampled_out_is_settled_and_not_stored(writer, store):
    """It counts as settled, and is no loss."""
    writer.submit("sampled out")
    assert writer.flush()
    assert (1, 0, 0) == (writer.stats().settled, writer.stats().written, store.count())


def test_closing_gives_up_waiting_and_later_runs_are_stored_at_once(pipeline, store):
    """After closing nobody is left to wait for a judgement."""
    writer = Writer(lambda: store, pipeline)
    writer.submit(1)
    writer.close(timeout=0.0)
    assert (True, [1]) == (pipeline.given_up, ids(store.query()))
    writer.submit(2)
    assert [2, 1] == ids(store.query())


def test_runs_of_dead_processes_are_settled_first(pipeline):
    """What the store recovers goes through the pipeline like a run that has ended."""
    store = open_store("memory:")
    store.recover = lambda: [[JournalEntry("kp:trace:91", 0, b"{}")]]
    writer = Writer(lambda: store, pipeline)
    writer.submit(1)
    assert writer.flush()
    assert writer.flush()
    assert {1, 91} == set(pipeline.settled)
    writer.close()


def test_stored_runs_of_dead_processes_are_completed(pipeline):
    """The pipeline gets those that await what it can add; without such parts the store is not asked."""
    store, asked = open_store("memory:"), []
    store.incomplete = lambda parts: asked.append(parts) or [b"{}"]
    Writer(lambda: store, pipeline).store()
    assert ([], []) == (asked, pipeline.adopted)
    pipeline.parts = frozenset({"judgement"})
    Writer(lambda: store, pipeline).store()
    assert ([{"judgement"}], [b"{}"]) == (asked, pipeline.adopted)
