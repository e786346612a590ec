"""Settling one run after the other, through interrupts."""

from __future__ import annotations

import pytest

from grace_kp.store._backlog import Backlog, Mark
from grace_kp.store._outage import Outage
from grace_kp.store._pending import MAX_BATCH, Pending
from grace_kp.store._settler import MAX_INTERRUPTS, Settler
from tests.store.samples import record

MB = 1 << 20


@pytest.fixture
def backlog():
    return Backlog(MB)


@pytest.fixture
def pending():
    return Pending()


@pytest.fixture
def settler(pipeline, backlog, pending):
    return Settler(pipeline, backlog, pending, Outage(), MB)


def settled(pending):
    return [int(item.id.rpartition(":")[2]) for item in pending.batch()[0]]


def test_runs_are_settled_in_order_up_to_a_mark(settler, backlog, pending):
    """What comes behind the mark stays."""
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
    assert ([1, 2], 0, 2) == (settled(pending), backlog.lost, settler.settled)


def test_a_run_that_was_interrupted_when_it_was_settled_is_stored_once(settler, backlog, pending, monkeypatch):
    """It leaves the queue a moment after its record was added."""
    run = object()
    monkeypatch.setattr(settler._pipeline, "settle", lambda item: (record(1), None))
    take_up = backlog.take_up
    monkeypatch.setattr(backlog, "take_up", lambda *sizes: (_ for _ in ()).throw(KeyboardInterrupt))
    backlog.queue.append(run)
    with pytest.raises(KeyboardInterrupt):
        settler.settle()
    monkeypatch.setattr(backlog, "take_up", take_up)
    settler.settle()
    assert ([1], 0) == (settled(pending), len(backlog.queue))


def test_a_run_whose_settling_never_gets_through_holds_up_no_other(settler, backlog, pending, pipeline, capfd):
    """It is counted as lost and reported."""
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
    with settler.lock:
        settler.settle()
    assert 2 == len(backlog.queue)
    settler._max_bytes = 1
    settler.settle()
    assert ([1], [2], True) == (settled(pending), list(backlog.queue), settler.is_full)


def test_settling_stops_at_a_deadline(settler, backlog):
    """A flush with a timeout returns in time, whatever the backlog."""
    backlog.queue.extend(range(1_000, 1_002 + MAX_BATCH))
    settler.settle(deadline=0.0)
    assert 2 == len(backlog.queue)
