"""Tasks that are cancelled at every moment of a gated call with an inbox: nothing stays claimed, and no request stays open for nobody."""

from __future__ import annotations

import asyncio
import threading

import pytest

import grace_kp as gk
from grace_kp.gating import _drivers
from tests.gating.inboxes import runtime

INBOX = gk.InboxReviewer()


class Slow:
    """Stops the desk's verbs of one name until it may go on."""

    def __init__(self, grace, verb, monkeypatch):
        desk = grace.approvals._inbox().requests
        self.begun, self.may_end, act = threading.Event(), threading.Event(), getattr(desk, verb)

        def slow(*args, **kwargs):
            done = act(*args, **kwargs)
            self.begun.set()
            assert self.may_end.wait(20)
            return done

        monkeypatch.setattr(type(desk), verb, lambda _desk, *args, **kwargs: slow(*args, **kwargs))


async def until(condition):
    for _ in range(12_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError


async def cancelled(grace, verb, monkeypatch, action, *, decided=True, times=2):
    """Cancel the task while it is at this verb, more than once; return the approval at the end."""
    slow = Slow(grace, verb, monkeypatch)
    task = asyncio.create_task(action(1))
    if decided:
        await until(grace.approvals.pending)
        await grace.approvals.aapprove(grace.approvals.pending()[0].id, by="ana")
    await until(slow.begun.is_set)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.02)
    slow.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    return [*grace.approvals.history(), *grace.approvals.pending()][0]


def gated(grace, ran):
    @grace.gate(floor="confirm", reviewer=INBOX)
    async def act(n: int) -> int:
        ran.append(n)
        return n

    return act


@pytest.mark.parametrize(
    ("verb", "decided", "state", "count"),
    [("request", False, "cancelled", 0), ("claim", True, "approved", 0), ("settle", True, "done", 1)],
)
@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancellation_while_the_store_is_written(verb, decided, state, count, times, monkeypatch):
    """What was begun in the store comes to its end, and what was taken and not used is given back."""
    grace, ran = runtime(), []
    approval = await cancelled(grace, verb, monkeypatch, gated(grace, ran), decided=decided, times=times)
    assert (state, count) == (str(approval.state), len(ran))


async def test_cancelled_again_and_again_while_the_outcome_waits_for_a_thread():
    """All threads of the loop are busy. The outcome is written once one is free."""
    from concurrent.futures import ThreadPoolExecutor

    grace, began, free = runtime(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))

    @grace.gate(floor="confirm", reviewer=INBOX)
    async def act(n: int) -> None:
        loop.run_in_executor(None, free.wait)
        began.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(act(1))
    await until(grace.approvals.pending)
    grace.approvals.approve(name := grace.approvals.pending()[0].id, by="ana")
    await asyncio.wait_for(began.wait(), 20)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.02)
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "unknown" == grace.approvals.get(name).state


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_right_after_the_claim(error):
    """The action did not begin, and the approval can be used again."""
    grace, ran = runtime(reviewer=gk.InboxReviewer(wait="raise")), []

    @grace.gate(floor="confirm", key="x:{n}")
    def act(n: int) -> int:
        ran.append(n)
        return n

    with pytest.raises(gk.ActionPending) as pending:
        act(1)
    grace.approvals.approve(name := pending.value.approval.id, by="ana")
    perform = _drivers._perform

    def interrupted(step):
        done = perform(step)
        if str(grace.approvals.get(name).state) == "claimed":
            patched.undo()
            raise error
        return done

    patched = pytest.MonkeyPatch()
    patched.setattr(_drivers, "_perform", interrupted)
    with pytest.raises(error):
        act(1)
    assert ("approved", []) == (str(grace.approvals.get(name).state), ran)
    assert act(1) == 1


async def test_a_coroutine_that_is_closed_while_its_action_runs():
    """Nobody can wait for a thread then; the outcome is written all the same."""
    grace = runtime(reviewer=gk.InboxReviewer(wait="raise"))

    @grace.gate(floor="confirm", key="x:{n}")
    async def act(n: int) -> None:
        began.set_result(None)
        await began_waiting

    loop = asyncio.get_running_loop()
    began, began_waiting = loop.create_future(), loop.create_future()
    with pytest.raises(gk.ActionPending) as pending:
        await act(1)
    grace.approvals.approve(name := pending.value.approval.id, by="ana")
    coroutine = act(1)
    waited_for = coroutine.send(None)
    while not began.done():
        await asyncio.wait([waited_for])
        waited_for = coroutine.send(None)
    coroutine.close()
    assert "unknown" == grace.approvals.get(name).state


async def test_a_coroutine_that_is_closed_while_it_waits_withdraws_its_request():
    """Nobody waits any more."""
    grace = runtime()
    coroutine = gated(grace, [])(1)
    waited_for = coroutine.send(None)
    while not grace.approvals.pending() or waited_for is None:
        await asyncio.wait([waited_for])
        waited_for = coroutine.send(None)
    coroutine.close()
    assert "cancelled" == grace.approvals.history()[0].state
