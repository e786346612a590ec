"""Records that are about to be written."""

from __future__ import annotations

from grace_kp.store._backlog import Mark
from grace_kp.store._pending import MAX_BATCH, Pending
from tests.store.samples import record


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


def test_a_batch_is_bounded():
    """A fork never waits for more than one batch."""
    pending = Pending()
    for number in range(MAX_BATCH + 1):
        pending.add(record(number), None)
    assert MAX_BATCH == len(pending.batch()[0])
    pending.written(pending.batch()[1])
    assert 1 == pending.count()


def test_a_later_version_takes_the_place_of_the_one_that_waits():
    """It is written as what the first version was: a run that the store does not have yet."""
    pending = Pending()
    pending.add(record(1, awaits=("scores",)), "after 1")
    assert not pending.replace(record(2, completes=True))
    assert pending.replace(record(1, score=0.9, completes=True))
    assert [record(1, score=0.9)] == pending.batch()[0]


def test_a_version_that_is_being_written_is_not_replaced():
    """The later version is written after it."""
    pending = Pending()
    pending.add(record(1), None)
    pending.batch()
    assert not pending.replace(record(1, score=0.9))
    pending.failed()
    assert pending.replace(record(1, score=0.9))


def test_what_follows_can_go_ahead_of_the_store():
    """It happens once, and the records stay."""
    pending = Pending()
    pending.add(record(1), "after 1")
    assert (["after 1"], []) == (pending.detach(), pending.detach())
    assert ([], []) == pending.written(pending.batch()[1])


def test_the_newest_run_is_known():
    """A run that is interrupted right after its record was added is not settled again."""
    pending, run = Pending(), object()
    pending.add(record(1), None, run)
    assert pending.newest is run
