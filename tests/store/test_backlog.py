"""How many runs may wait, who waits for room, what a mark is, and how losses are reported."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.store._backlog import LIVE_FACTOR, MIN_WAITING, Backlog, Mark, runs_event_loop


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


def test_room_is_waited_for_until_there_is_some():
    """The writer is woken meanwhile."""
    backlog = Backlog(1)
    backlog.queue.extend(range(MIN_WAITING))
    assert backlog.wait_for_room(backlog.queue.clear)


async def test_no_room_is_waited_for_in_an_event_loop():
    """It would stop every task."""
    assert runs_event_loop()
    backlog = Backlog(1)
    backlog.queue.extend(range(MIN_WAITING))
    assert not backlog.wait_for_room(backlog.queue.clear)


async def test_a_mark_can_be_awaited_before_and_after_it_is_passed():
    """It is passed in another thread."""
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
    """Nobody waits for it any more."""
    mark = Mark()

    async def leaves():
        task = asyncio.ensure_future(mark_passed(mark))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leaves())
    mark.let_go()
    assert mark.is_passed


def test_the_lag_is_that_of_the_oldest_mark_that_is_not_passed():
    """Marks that are passed are forgotten."""
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


def test_nothing_is_reported_where_nothing_is_lost(capfd):
    """A process without losses ends silently."""
    Backlog(1).report_total(0, "an error of the past")
    assert "" == capfd.readouterr().err


def test_marks_are_not_counted_as_runs():
    """They stand in the same queue."""
    backlog = Backlog(1)
    backlog.queue.extend([1, Mark(), 2])
    assert 2 == backlog.count()


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
    monkeypatch.setattr("grace_kp.store._backlog.PATIENCE_SECONDS", -1.0)
    backlog, wakes = Backlog(1), []
    backlog.queue.extend(range(MIN_WAITING))
    assert not backlog.wait_for_room(lambda: None)
    monkeypatch.undo()
    assert not backlog.wait_for_room(lambda: wakes.append(1))
    backlog.take_up(0)
    assert backlog.wait_for_room(backlog.queue.clear)
    assert [] == wakes
