"""What the writer asks of its pipeline, and in which order. The pipeline is scripted."""

from __future__ import annotations

from grace_kp.store import JournalEntry, Writer, open_store
from tests.store.samples import ids


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


def test_a_run_that_is_sampled_out_is_settled_and_not_stored(writer, store):
    """It counts as settled."""
    writer.submit("sampled out")
    assert writer.flush()
    assert (1, 0, 0) == (writer.stats().settled, writer.stats().written, store.count())


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
