"""Waiting for changes that other threads and processes make."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

import grace_kp as gk
from grace_kp.approvals._watch import Watcher
from grace_kp.errors import StoreError
from tests.approvals.shops import ANA, Shop, asked
from tests.gating.inboxes import runtime


def waits(watcher, approval, woken, due=None):
    with watcher.waiting(approval) as waiter, waiter.in_thread() as sleep:
        waiter.due = due
        sleep()  # the first look wakes everybody, because something may have changed before it
        woken.put("looked")
        waiter.due = due
        sleep()
        woken.put("changed")


def begun(watcher, approval, **settings):
    from queue import Queue

    woken = Queue()
    thread = threading.Thread(target=waits, args=(watcher, approval, woken), kwargs=settings, daemon=True)
    thread.start()
    assert woken.get(timeout=30) == "looked"
    return woken, thread


def test_a_decision_wakes(tmp_path):
    shop = Shop(f"sqlite:///{tmp_path}/a.db")
    approval = shop.requests.file(asked())
    woken, thread = begun(Watcher(shop.tables), approval.id)
    Shop(f"sqlite:///{tmp_path}/a.db").requests.approve(approval.id, by=ANA)
    assert woken.get(timeout=30) == "changed"
    thread.join(30)


def test_the_deadline_wakes():
    shop = Shop()
    approval = shop.requests.file(asked())
    woken, thread = begun(Watcher(shop.tables, clock=lambda: 50.0), approval.id, due=49.0)
    assert woken.get(timeout=30) == "changed"
    thread.join(30)


def test_a_failure_wakes():

    class Broken:
        def hold(self):
            raise StoreError("gone")

    woken, thread = begun(Watcher(Broken()), "x")
    assert woken.get(timeout=30) == "changed"
    thread.join(30)


async def test_a_coroutine_is_woken():
    shop = Shop()
    approval = shop.requests.file(asked())
    watcher = Watcher(shop.tables)
    with watcher.waiting(approval.id) as waiter, waiter.on_loop() as sleep:
        await asyncio.wait_for(sleep(), 30)
        shop.requests.approve(approval.id, by=ANA)
        await asyncio.wait_for(sleep(), 30)
        assert watcher.count_waiting(approval.id) == 1
    assert watcher.count_waiting(approval.id) == 0


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_that_meets_a_change_is_not_lost(turns):
    watcher = Watcher(Shop().tables)
    with watcher.waiting("ap-1") as waiter, waiter.on_loop() as sleep:

        async def waits_for_ever():
            while True:
                await sleep()

        task = asyncio.ensure_future(waits_for_ever())
        await asyncio.sleep(0)
        waiter.wake()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=30)
        was_cancelled = task.cancelled()
        task.cancel()
        await asyncio.wait({task})
    assert was_cancelled


class Counted:
    """Tables that count renewals of the lease."""

    def __init__(self):
        self.renewed = threading.Semaphore(0)

    def hold(self):
        self.renewed.release()


def test_the_lease_is_kept_while_an_action_runs(monkeypatch):
    """For however long, so that nobody takes its process for one that is gone; not after it."""
    monkeypatch.setattr("grace_kp.approvals._watch.HOLD_SECONDS", 0.001)
    tables, action = Counted(), threading.Event()
    watcher = Watcher(tables)
    watcher.hold(action)
    assert all(tables.renewed.acquire(timeout=30) for _ in range(3))
    watcher.let_go(action)
    assert watcher._renew_lease() is None


def test_the_lease_is_not_kept_for_an_action_that_is_gone():
    watcher = Watcher(Counted())
    watcher.hold(threading.Event())
    gc.collect()
    assert watcher._renew_lease() is None


def act(grace):
    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> int:
        return n

    return act


def test_a_loop_sees_each_change_in_order(tmp_path):
    grace, other = runtime(tmp_path), runtime(tmp_path)
    changes = grace.approvals.watch()
    seen = []

    def watch():
        for change in changes:
            seen.append((change.seq, change.kind, change.actor.name))
            if change.kind == "decided":
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    approval = act(other)(1).approval
    other.approvals.approve(approval.id, by="ana")
    thread.join(30)
    assert [(1, "requested", "gate"), (2, "decided", "ana")] == seen


async def test_a_coroutine_sees_them():
    grace = runtime()
    approval = act(grace)(1).approval
    await grace.approvals.areject(approval.id, by="ana", reason="no")
    seen = []
    async for change in grace.approvals.watch(after=1):
        seen.append((change.kind, change.approval))
        break
    assert [("decided", approval.id)] == seen
