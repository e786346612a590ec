"""From a call to a consent: the level decides who is asked, and only a consent lets the action run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.gating import _engine, attempt, drive, drive_async
from grace_kp.gating._drivers import Ask, Failed, NoAnswer, WaitTurn, Work
from grace_kp.testing import ScriptedReviewer, capture, make_grace

R = gk.InterventionResponse


def gated(grace, **options):
    """An action, and the list of the arguments that it ran with."""
    ran = []

    @grace.gate(**options)
    def act(to, euros=5):
        ran.append((to, euros))
        return f"{to} {euros}"

    return act, ran


def test_levels_follow_the_confidence_and_notices_are_told():
    """A search scored 0.7 is a notice in both profiles; one scored 0.3 is a question."""
    for profile in ("grace", "strict"):
        told = []
        grace = make_grace(on_notify=told.append, profile=profile)
        search = grace.retriever(lambda score: [{"text": "t", "source": "s", "score": score}])
        act, ran = gated(grace)
        with grace.run("act"):
            search(0.7)
            assert act("ana") == "ana 5"
        assert [request.level for request in told] == ["notify"]
        with grace.run("act"):
            search(0.3)
            with pytest.raises(gk.ActionCancelled):
                act("bob")
        assert len(ran) == 1


def test_policies_by_name_and_glob_stricter_wins():
    """An exact name over a glob, a longer glob over a shorter one, and the stricter of policy and decorator."""
    policies = {"send_*": "confirm", "send_money_*": "deny", "send_mail": "silent"}
    grace = make_grace(unmeasured="notify", policies=policies)

    def named(name, **options):
        return grace.gate(name=name, **options)(lambda: name)

    assert named("send_mail")() == "send_mail"
    with pytest.raises(gk.ActionCancelled):
        named("send_letter")()
    with pytest.raises(gk.ActionDenied):
        named("send_money_now")()
    with pytest.raises(gk.ActionCancelled):
        named("send_mail", floor="escalate")()
    with pytest.raises(ValueError, match="send_"):
        make_grace(policies={"send_": "maybe"})
    with pytest.raises(ValueError, match="floor"):
        grace.gate(floor="maybe")(lambda: None)


def test_the_decision_is_frozen_with_the_arguments_digest():
    """Request and record carry the same digest; the record names level, score, policy and who answered."""
    reviewer = ScriptedReviewer("proceed")
    act, _ = gated(make_grace(reviewer=reviewer), floor="confirm")
    with capture() as captured:
        act("ana")
    entry = captured.only.grace["decisions"][0]
    request = reviewer.requests[0]
    assert (request.digest, request.policy_version) == (entry["digest"], entry["policy_version"])
    assert (entry["level"], entry["score"], entry["floor"], entry["outcome"]) == ("confirm", 0.7, "confirm", "executed")
    assert entry["response"]["reviewer"] == "script"
    assert entry["arguments"] == {"to": "ana", "euros": 5}
    with pytest.raises(TypeError):
        request.arguments["to"] = "eve"


def test_ctrl_c_while_asking_passes_and_nothing_runs():
    """KeyboardInterrupt in a reviewer is the user's, not an answer."""

    def interrupted(request):
        raise KeyboardInterrupt

    act, ran = gated(make_grace(reviewer=interrupted), floor="confirm")
    with pytest.raises(KeyboardInterrupt):
        act("ana")
    assert ran == []


@pytest.mark.parametrize(
    ("options", "answer", "outcome"),
    [
        ({"floor": "deny"}, "proceed", "denied"),
        ({"floor": "confirm"}, "cancel", "cancelled"),
        ({"floor": "confirm"}, "skip", "skipped"),
        ({"floor": "confirm"}, R("input", user_input="later"), "redirected"),
        ({"floor": "confirm"}, R("cancel", timeout_reached=True), "timed_out"),
        ({"floor": "confirm"}, "proceed", "executed"),
        ({"floor": "confirm"}, R("modify", modified={"euros": 1}), "executed_modified"),
    ],
)
def test_the_record_states_the_outcome_of_each_answer(options, answer, outcome):
    """In the words that readers of traces know."""
    act, _ = gated(make_grace(reviewer=ScriptedReviewer(answer)), **options)
    with capture() as captured, contextlib.suppress(gk.ActionNotApproved):
        act("ana")
    assert outcome == captured.only.decisions[0].outcome


def test_the_wait_for_the_reviewer_is_recorded_in_milliseconds(monkeypatch):
    """A clock that a quarter of a second passes on between two looks."""
    looks = iter([5.0, 5.25])
    monkeypatch.setattr(_engine, "time", SimpleNamespace(time=lambda: 0.0, perf_counter=lambda: next(looks)))
    grace = make_grace(reviewer=ScriptedReviewer("proceed"))
    act, ran = gated(grace, floor="confirm")
    with grace.run("act") as run:
        act("ana")
    (entry,) = run.trace.grace["decisions"]
    assert ([("ana", 5)], 250.0) == (ran, entry["waited_ms"])


@pytest.mark.parametrize("blocks", [False, True])
def test_work_that_blocks_is_kept_off_the_event_loop(blocks):
    """A plain call does it in its own thread, a coroutine in another one."""

    def engine():
        return (yield Work(threading.current_thread, blocks))

    here = threading.current_thread()
    assert here is drive(engine())
    assert blocks == (here is not asyncio.run(drive_async(engine())))


@pytest.mark.parametrize("blocks", [False, True])
def test_work_that_fails_comes_back_as_a_value(blocks):
    """The engine decides what follows."""
    error = OSError("disk full")

    def work():
        raise error

    def engine():
        return (yield Work(work, blocks))

    assert Failed(error) == drive(engine()) == asyncio.run(drive_async(engine()))


DECISION = gk.ActionDecision(gk.InterventionLevel("confirm"), 0.5, "because")


def request(timeout=None):
    return gk.InterventionRequest(
        id="1", action="act", arguments={}, digest="d", level=DECISION.level, decision=DECISION, timeout=timeout
    )


def run(world, engine):
    return drive(engine) if world == "sync" else asyncio.run(drive_async(engine))


def asked(world, reviewer, timeout=None):
    step = Ask(request(timeout), reviewer)
    return step.perform() if world == "sync" else asyncio.run(step.perform_async())


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
