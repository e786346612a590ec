"""`grace.approvals`: the verbs, their async twins, and waiting for changes that other threads and processes make."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import threading
from queue import Queue

import pytest

import grace_kp as gk
from grace_kp.approvals import Approvals, Resumed
from grace_kp.approvals._watch import Watcher
from grace_kp.errors import StoreError
from tests.approvals.shops import ANA, Shop, asked
from tests.gating.inboxes import runtime


@pytest.fixture(name="grace")
def grace_fixture():
    return runtime()


@pytest.fixture(name="ask")
def ask_fixture(grace):
    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def pay(n: int, to: str = "ana") -> int:
        return n

    return lambda n=1: pay(n).approval.id


VERBS = {
    "approve": (lambda a, name: a.approve(name, by="ana"), "approved"),
    "edit": (lambda a, name: a.edit(name, {"n": 2}, by="ana"), "edited"),
    "reject": (lambda a, name: a.reject(name, by="ana", reason="no"), "rejected"),
    "respond": (lambda a, name: a.respond(name, "words", by="ana"), "responded"),
    "skip": (lambda a, name: a.skip(name, by="ana"), "skipped"),
    "retry": (lambda a, name: a.retry(name, by="ana"), "retried"),
    "withdraw": (lambda a, name: a.withdraw(name, by="ana"), "cancelled"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_its_state(grace, ask, verb):
    decide, state = VERBS[verb]
    name = ask()
    assert state == decide(grace.approvals, name).state
    assert state == decide(grace.approvals, name).state
    assert 2 == grace.approvals.checkpoint().seq  # repeating the decision writes nothing
    assert [name] == [approval.id for approval in grace.approvals.history(by="ana")]
    assert [] == grace.approvals.pending()


def test_standing_approvals(grace):

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def pay(n: int, to: str = "ana") -> int:
        return n

    grace.approvals.grant("pay", {"n": {"from": 1, "to": 5}, "to": {"is": "ana"}}, until="1h", uses=1, by="ana")
    assert pay(3) == 3
    assert grace.approvals.history()[0].decision.actor.channel == "standing"
    assert isinstance(pay(3), gk.PendingAnswer)
    assert [] == grace.approvals.standing()


def test_each_verb_has_a_twin():
    verbs = [
        name for name, member in inspect.getmembers(Approvals)
        if not name.startswith("_") and callable(member) and not inspect.iscoroutinefunction(member)
    ]  # fmt: skip
    without = {"watch", "export"}  # iterators; `watch` is async as well
    for name in verbs:
        if name not in without:
            twin = getattr(Approvals, f"a{name}")
            assert inspect.iscoroutinefunction(twin)
            assert inspect.signature(getattr(Approvals, name)) == inspect.signature(twin)


async def test_twins_do_the_same(grace, ask):
    name = ask()
    assert [name] == [approval.id for approval in await grace.approvals.apending()]
    await grace.approvals.aapprove(name, by="ana")
    assert await grace.approvals.aexecute(name) == 1


HANGING = """
import sys, time
import grace_kp as gk
grace = gk.Grace(store=sys.argv[1], evaluator=None, embedder=None, reviewer=gk.InboxReviewer())
@grace.gate(floor="confirm", key="pay:{n}")
def pay(n):
    print("inside", flush=True)
    while True:
        time.sleep(60)
pay(5)
"""


@pytest.mark.parametrize("look", ["get", "history"])
def test_a_killed_process_that_nobody_has_reaped_leaves_an_unknown_outcome(tmp_path, look):
    """Seen by whoever looks next, also at a list, who can reconcile it at once, although its lease has not ended."""
    url = f"sqlite:///{tmp_path}/approvals.db"
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None) as grace:
        command = [sys.executable, "-c", HANGING, url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                change = next(iter(grace.approvals.watch(0)))
                grace.approvals.approve(change.approval, by="ana")
                assert "inside\n" == process.stdout.readline()
                assert "claimed" == grace.approvals.get(change.approval).state
                process.kill()
                assert "" == process.stdout.readline()  # its end closes the pipe; nobody has waited for it
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # waits for its end without reaping it
                found = [grace.approvals.get(change.approval)] if look == "get" else grace.approvals.history()
                assert ["unknown"] == [approval.state for approval in found]
                assert "not_done" == grace.approvals.reconcile(change.approval, happened=False, by="ana").state
                assert process.returncode is None
            finally:
                process.kill()


def test_it_does_not_print_what_the_graph_returned():
    assert "secret" not in repr(Resumed(thread="1", output={"messages": ["secret"]}))


def waits(watcher, approval, woken, due=None):
    with watcher.waiting(approval) as waiter, waiter.in_thread() as sleep:
        waiter.due = due
        sleep()  # the first look wakes everybody, because something may have changed before it
        woken.put("looked")
        waiter.due = due
        sleep()
        woken.put("changed")


def begun(watcher, approval, **settings):
    woken = Queue()
    thread = threading.Thread(target=waits, args=(watcher, approval, woken), kwargs=settings, daemon=True)
    thread.start()
    assert woken.get(timeout=30) == "looked"

    def is_woken():
        changed = woken.get(timeout=30) == "changed"
        thread.join(30)
        return changed

    return is_woken


def test_a_decision_wakes(tmp_path):
    shop = Shop(f"sqlite:///{tmp_path}/a.db")
    approval = shop.requests.file(asked())
    is_woken = begun(Watcher(shop.tables), approval.id)
    Shop(f"sqlite:///{tmp_path}/a.db").requests.approve(approval.id, by=ANA)
    assert is_woken()


def test_the_deadline_wakes():
    shop = Shop()
    approval = shop.requests.file(asked())
    is_woken = begun(Watcher(shop.tables, clock=lambda: 50.0), approval.id, due=49.0)
    assert is_woken()


def test_a_failure_wakes():

    class Broken:
        def hold(self):
            raise StoreError("gone")

    is_woken = begun(Watcher(Broken()), "x")
    assert is_woken()


def test_a_look_finds_what_changed_since_the_one_before():
    """So that a change wakes the waiters for its request, and not every waiter of the process."""
    shop = Shop()
    first, second = shop.requests.file(asked()), shop.requests.file(asked())
    watcher = Watcher(shop.tables)
    found = [watcher._find_changed(), watcher._find_changed()]
    for request in (first, second):
        shop.requests.approve(request.id, by=ANA)
        found.append(watcher._find_changed())
    assert [None, set(), {first.id}, {second.id}] == found


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
