"""A refusal holds for the same call in the same run until anything else is recorded, so that a retry library asks nobody again."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from grace_kp.gating import _drivers
from grace_kp.record import ModelCall, current_run
from tests.gating.inboxes import deciding, runtime


def refusing(first="cancel", then="proceed", **settings):
    """A runtime, what its reviewer was asked, and a gated payment. The reviewer refuses at first; its later answers would let the action run."""
    requests = []

    def reviewer(request):
        requests.append(request)
        return first if len(requests) == 1 else then

    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=reviewer, **settings)
    return grace, requests, grace.gate(floor="confirm", name="pay")(lambda euros, to="ana", **_: "paid")


def again(call, *args, times=3):
    """What a retry library does: the errors of each attempt, and the result if one of them succeeds."""
    errors = []
    for _ in range(times):
        try:
            return errors, call(*args)
        except gk.ActionNotApproved as error:
            errors.append(error)
    return errors, None


WORDS = gk.InterventionResponse("input", user_input="ask the bank first")


@pytest.mark.parametrize(("first", "outcome"), [("cancel", "cancelled"), (WORDS, "redirected")])
def test_a_refusal_holds_for_the_same_call(first, outcome):
    grace, requests, pay = refusing(first)
    with grace.run("q") as run:
        errors, result = again(pay, 5)
    assert (1, 3, None) == (len(requests), len(errors), result)
    assert 1 == len({(type(error), str(error), error.request.id, error.response.action) for error in errors})
    assert 3 == len({*map(id, errors)})
    first, second, third = run.trace.decisions
    assert [outcome] * 3 == [first.outcome, second.outcome, third.outcome]
    assert (first.level, first.digest, first.score) == (third.level, third.digest, third.score)
    assert (None, None) == (second.response, third.response)
    assert [True, True] == ["an earlier refusal holds" in decision.problem for decision in (second, third)]


def test_a_refusal_holds_in_a_coroutine():
    grace, requests, _ = refusing()

    @grace.gate(floor="confirm")
    async def pay(euros): ...

    async def attempts():
        with grace.run("q"):
            for _ in range(2):
                with pytest.raises(gk.ActionCancelled):
                    await pay(5)
            with ThreadPoolExecutor(1) as pool, pytest.raises(gk.ActionCancelled):
                pool.submit(gk.propagate(lambda: asyncio.run(pay(5)))).result()

    asyncio.run(attempts())
    assert 1 == len(requests)


def test_a_refusal_holds_where_the_tool_around_the_gate_is_called_again():
    """A repeated call of the tool is the same call; another tool, or other arguments of it, is something else."""
    for other, args, expected in (("send", (5,), 1), ("transfer", (5,), 2), ("send", (6,), 2)):
        grace, requests, _ = refusing()
        pay = grace.gate(floor="confirm")(lambda: "paid")
        tools = {name: grace.tool(name=name)(lambda euros, pay=pay: pay()) for name in ("send", "transfer")}
        with grace.run("q"):
            again(tools["send"], 5, times=1)
            again(tools[other], *args, times=1)
        assert expected == len(requests)


def test_a_held_refusal_states_the_decision_that_it_rests_on():
    grace, _, pay = refusing()
    with grace.run("q") as run:
        grace.retriever(lambda: [{"text": "t", "source": "s", "score": "high"}])()
        again(pay, 5, times=2)
    first, second = (decision.data for decision in run.trace.decisions)
    assert ["1 scores of search results cannot be used"] == second.pop("evidence_gaps")
    assert first.keys() - second.keys() == {"evidence_gaps", "waited_ms", "response"}
    times = {"asked_at", "decided_at"}
    assert {"id", "problem"} == {name for name in second if second[name] != first.get(name)} - times


ELSE = {
    "a tool": lambda grace: grace.tool(lambda: "found")(),
    "a tool that fails": lambda grace: grace.tool(lambda: {"isError": True})(),
    "a thought": lambda grace: grace.thought("she asked for it"),
    "a nested run": lambda grace: grace.agent(lambda: "x")(),
    "another gate": lambda grace: grace.gate(unmeasured="silent", name="other")(lambda: "ran")(),
    "a model": lambda grace: current_run().model_called(ModelCall("m", start=0, end=1, text="again")),
}


@pytest.mark.parametrize("what", ELSE)
def test_a_refusal_ends_when_anything_else_is_recorded(what):
    grace, requests, pay = refusing()
    with grace.run("q"):
        again(pay, 5)
        ELSE[what](grace)
        assert ([], "paid") == again(pay, 5)
    assert 2 == len(requests)


@pytest.mark.parametrize("other", [6, 5.0])
def test_a_refusal_is_one_of_its_arguments(other):
    """Other arguments are another call, after which the first call is asked about again, too."""
    grace, requests, pay = refusing(then="cancel")
    with grace.run("q"):
        for euros in (5, other, 5):
            again(pay, euros)
    assert [5, other, 5] == [request.arguments["euros"] for request in requests]


@pytest.mark.parametrize("order", [1, -1])
def test_a_refusal_holds_however_its_arguments_are_passed(order):
    """By position, by name, or as a default that is passed or left out."""
    grace, requests, pay = refusing()
    calls = [lambda: pay(5), lambda: pay(5, "ana"), lambda: pay(to="ana", euros=5), lambda: pay(euros=5)]
    with grace.run("q"):
        for call in calls[::order]:
            again(call, times=1)
        assert 1 == len(requests)
        again(lambda: pay(5, "bo"), times=1)
    assert 2 == len(requests)


def test_a_refusal_does_not_hold_for_arguments_that_changed_while_it_was_asked_about():
    order = {"euros": 5}

    def changes(request):
        answer = "cancel" if order["euros"] == 5 else "proceed"
        order["euros"] = 50
        return answer

    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=changes)
    pay = grace.gate(floor="confirm")(lambda order: order["euros"])
    with grace.run("q"):
        assert 1 == len(again(pay, order, times=1)[0])
        assert ([], 50) == again(pay, order)


def test_a_refusal_is_one_of_its_action_and_object():
    grace, requests, pay = refusing(then="cancel")

    class Account:
        @grace.gate(floor="confirm", name="lend")
        def lend(self, euros): ...

    with grace.run("q"):
        for call in (pay, Account().lend, Account().lend):
            again(call, 5)
    assert 3 == len(requests)


@pytest.mark.parametrize("first", ["skip", "retry", gk.InterventionResponse("cancel", timeout_reached=True), None])
def test_what_is_no_refusal_does_not_hold(first):
    grace, requests, pay = refusing(first)
    with grace.run("q"):
        again(pay, 5, times=1)
        assert "paid" == pay(5)
    assert len(requests) >= 2


def test_a_refusal_holds_in_its_run_only():
    grace, requests, pay = refusing(then="cancel")
    again(pay, 5)
    with grace.run("one"):
        again(pay, 5)
    with grace.run("two"):
        again(pay, 5)
    assert 5 == len(requests)


def test_a_refusal_holds_beyond_the_bound_of_steps():
    grace, requests, pay = refusing(max_steps=1)
    with grace.run("q"):
        grace.thought("first")
        again(pay, 5)
        assert 1 == len(requests)
        grace.thought("dropped")
        assert ([], "paid") == again(pay, 5)


def test_a_refusal_in_the_inbox_holds():
    grace = runtime(reviewer=gk.InboxReviewer())
    pay = grace.gate(floor="confirm")(lambda euros: "paid")
    person = deciding(grace, lambda approvals, name: approvals.reject(name, by="ana", reason="no"))
    with grace.run("q"):
        errors, _ = again(pay, 5)
    assert (3, 1) == (len(errors), len(person.leaves()))
    assert (1, []) == (len(grace.approvals.history()), grace.approvals.pending())


INBOX = gk.InboxReviewer()


async def in_thread(call):
    """Wait for a blocking call without a thread of the loop."""
    with ThreadPoolExecutor(1) as pool:
        return await asyncio.wrap_future(pool.submit(call))


async def next_request(grace):
    return (await in_thread(lambda: next(iter(grace.approvals.watch(0))))).approval


async def cancel(task):
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)


def gated(grace, ran):
    @grace.gate(floor="confirm", reviewer=INBOX)
    async def act(n: int) -> int:
        ran.append(n)
        return n

    return act


@pytest.mark.parametrize(
    ("verb", "decided", "state", "count"),
    [("file", False, "cancelled", 0), ("claim", True, "approved", 0), ("settle", True, "done", 1)],
)
@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancellation_while_the_store_is_written(verb, decided, state, count, times, monkeypatch):
    grace, ran = runtime(), []
    requests = type(grace.approvals._inbox().requests)
    begun, may_end, act = threading.Event(), threading.Event(), getattr(requests, verb)

    def slow(*args, **kwargs):
        done = act(*args, **kwargs)
        begun.set()
        assert may_end.wait(20)
        return done

    monkeypatch.setattr(requests, verb, slow)
    task = asyncio.create_task(gated(grace, ran)(1))
    if decided:
        await grace.approvals.aapprove(await next_request(grace), by="ana")
    assert await in_thread(lambda: begun.wait(20))
    for _ in range(times):
        await cancel(task)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    (approval,) = [*grace.approvals.history(), *grace.approvals.pending()]
    assert (state, count) == (str(approval.state), len(ran))


async def test_cancelled_again_and_again_while_the_outcome_waits_for_a_thread():
    """All threads of the loop are busy. The outcome is written once one is free."""
    grace, began, free = runtime(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))

    @grace.gate(floor="confirm", reviewer=INBOX)
    async def act(n: int) -> None:
        loop.run_in_executor(None, free.wait)
        began.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(act(1))
    grace.approvals.approve(name := await next_request(grace), by="ana")
    await asyncio.wait_for(began.wait(), 20)
    for _ in range(3):
        await cancel(task)
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "unknown" == grace.approvals.get(name).state


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_right_after_the_claim(error):
    grace, ran = runtime(reviewer=gk.InboxReviewer(wait="raise")), []

    @grace.gate(floor="confirm", key="x:{n}")
    def act(n: int) -> int:
        ran.append(n)
        return n

    with pytest.raises(gk.ActionPending) as pending:
        act(1)
    grace.approvals.approve(name := pending.value.approval.id, by="ana")
    perform = _drivers.Work.perform

    def interrupted(step):
        done = perform(step)
        if str(grace.approvals.get(name).state) == "claimed":
            patched.undo()
            raise error
        return done

    patched = pytest.MonkeyPatch()
    patched.setattr(_drivers.Work, "perform", interrupted)
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
    grace = runtime()
    coroutine = gated(grace, [])(1)
    waited_for = coroutine.send(None)
    watcher = grace.approvals._inbox().watcher
    while not any(watcher.count_waiting(each.id) for each in grace.approvals.pending()):
        await asyncio.wait([waited_for])
        waited_for = coroutine.send(None)
    coroutine.close()
    assert "cancelled" == grace.approvals.history()[0].state
