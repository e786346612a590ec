"""The drivers do what the engine asks for; whatever goes wrong in it comes back to the engine."""

from __future__ import annotations

import asyncio
import threading

import pytest

import grace_kp as gk
from grace_kp.gating import attempt, drive, drive_async
from grace_kp.gating._drivers import ask, ask_async
from grace_kp.gating._steps import Ask, Failed, NoAnswer, WaitTurn

R = gk.InterventionResponse
DECISION = gk.ActionDecision(gk.InterventionLevel("confirm"), 0.5, "because")


def request(timeout=None):
    return gk.InterventionRequest(
        id="1", action="act", arguments={}, digest="d", level=DECISION.level, decision=DECISION, timeout=timeout
    )


def run(world, engine):
    return drive(engine) if world == "sync" else asyncio.run(drive_async(engine))


def asked(world, reviewer, timeout=None):
    call = ask if world == "sync" else ask_async
    found = call(reviewer, request(timeout))
    return found if world == "sync" else asyncio.run(found)


worlds = pytest.mark.parametrize("world", ["sync", "async"])


@worlds
def test_a_reviewer_s_answer_comes_back_with_its_time(world):
    def engine():
        return (yield Ask(request(), lambda _request: "proceed"))

    response = run(world, engine())
    assert "proceed" == response.action
    assert response.response_time_ms >= 0


@worlds
def test_a_reviewer_s_own_time_stays(world):
    assert 7.0 == asked(world, lambda _request: R("proceed", response_time_ms=7.0)).response_time_ms


@worlds
@pytest.mark.parametrize("timeout", [None, 30.0])
def test_a_reviewer_that_fails_is_no_answer(world, timeout):
    error = RuntimeError("crash")

    def reviewer(_request):
        raise error

    assert Failed(error) == asked(world, reviewer, timeout)


@worlds
def test_a_plain_reviewer_that_returns_a_coroutine_is_awaited(world):
    async def later():
        return R("skip")

    assert "skip" == asked(world, lambda _request: later()).action


@worlds
def test_a_late_answer_is_none(world):
    """The reviewer is left to itself."""
    go_on = threading.Event()
    assert NoAnswer() == asked(world, lambda _request: go_on.wait(30) and R("proceed"), timeout=0.01)
    go_on.set()


@worlds
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no turn"), gk.ActionCancelled("too long")])
def test_what_a_step_raises_is_raised_in_the_engine(world, error):
    """The engine states it and ends."""
    stated = []

    class Program:
        def wait(self):
            raise error

        async def wait_async(self):
            raise error

    def engine():
        try:
            yield WaitTurn(Program())
        except BaseException as found:
            stated.append(found)
            raise

    with pytest.raises(type(error)) as raised:
        run(world, engine())
    assert [error] == stated
    assert error is raised.value


@worlds
def test_an_attempt_gives_the_error_instead_of_raising_it(world):
    error = gk.ActionDenied("no")

    def engine():
        raise error
        yield

    assert error is run(world, attempt(engine()))


def test_an_async_reviewer_is_cancelled_when_time_is_up():
    left = []

    async def reviewer(_request):
        try:
            await asyncio.Event().wait()
        finally:
            left.append("cancelled")

    assert NoAnswer() == asked("async", reviewer, timeout=0.01)
    assert ["cancelled"] == left
