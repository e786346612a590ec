"""From a call to a consent: the level decides who is asked, and only a consent lets the action run. Also decisions outside of a gate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.gating import _engine, attempt, drive, drive_async, resumable
from grace_kp.gating._drivers import Ask, EngineStep, Failed, NoAnswer, Work
from grace_kp.record import HOST, Framework
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.gating.inboxes import request_for

R = gk.InterventionResponse


def gated(grace, **options):
    """An action, and the list of the arguments that it ran with."""
    ran = []

    @grace.gate(**options)
    def act(to, euros=5):
        ran.append((to, euros))
        return f"{to} {euros}"

    return act, ran


def test_the_decision_is_frozen_with_the_arguments_digest():
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
    def engine():
        return (yield Work(threading.current_thread, blocks))

    here = threading.current_thread()
    assert here is drive(engine())
    assert blocks == (here is not asyncio.run(drive_async(engine())))


@pytest.mark.parametrize("blocks", [False, True])
def test_work_that_fails_comes_back_as_a_value(blocks):
    error = OSError("disk full")

    def work():
        raise error

    def engine():
        return (yield Work(work, blocks))

    assert Failed(error) == drive(engine()) == asyncio.run(drive_async(engine()))


def run(world, engine):
    return drive(engine) if world == "sync" else asyncio.run(drive_async(engine))


def asked(world, reviewer, timeout=None):
    step = Ask(request_for({}, timeout=timeout), reviewer)
    return step.perform() if world == "sync" else asyncio.run(step.perform_async())


worlds = pytest.mark.parametrize("world", ["sync", "async"])


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
    go_on = threading.Event()
    assert NoAnswer() == asked(world, lambda _request: go_on.wait(30) and R("proceed"), timeout=0.01)
    go_on.set()


@worlds
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no turn"), gk.ActionCancelled("too long")])
def test_what_a_step_raises_is_raised_in_the_engine(world, error):
    stated = []

    class Failing(EngineStep):
        def perform(self):
            raise error

    def engine():
        try:
            yield Failing()
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


VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "intervention.jsonl"
both = pytest.mark.parametrize("is_async", [False, True])


def decide(level):
    return gk.ActionDecision(gk.InterventionLevel(level), 0.5, "because", "proceed")


def test_golden_vectors():
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        callback = None if row["handler_action"] is None else (lambda request, row=row: R(row["handler_action"]))
        handler = gk.InterventionHandler(
            on_notify=lambda request: None, on_confirm=callback, on_escalate=callback,
            auto_proceed_on_timeout=row["auto_proceed_on_timeout"],
        )  # fmt: skip
        response = handler.handle(decide(row["level"]))
        got = {
            "action": response.action,
            "should_continue": response.should_continue,
            "timeout_reached": response.timeout_reached,
        }
        assert row["expected"] == got, row
        assert row["expected"]["action"] == asyncio.run(handler.ahandle(decide(row["level"]))).action


def handled(handler, decision, is_async):
    return asyncio.run(handler.ahandle(decision)) if is_async else handler.handle(decision)


def outcome(response):
    return str(response.action), response.timeout_reached


@both
def test_a_callback_may_be_async(is_async):

    async def confirm(request):
        await asyncio.sleep(0)
        return R("proceed", user_input=request.reason)

    response = handled(gk.InterventionHandler(on_confirm=confirm), decide("confirm"), is_async)
    assert ("proceed", "because") == (str(response.action), response.user_input)


def fails(request):
    raise ConnectionError("no network")


def waits(request):
    threading.Event().wait()


@both
@pytest.mark.parametrize("callback", [None, fails, waits, lambda request: True])
@pytest.mark.parametrize(("proceeds", "action"), [(False, "cancel"), (True, "proceed")])
def test_without_an_answer(callback, proceeds, action, is_async):
    handler = gk.InterventionHandler(
        on_confirm=callback, timeout=0.01 if callback is waits else 30.0, auto_proceed_on_timeout=proceeds
    )
    assert (action, True) == outcome(handled(handler, decide("confirm"), is_async))


@both
def test_a_notice_that_fails_changes_nothing(is_async):
    assert ("proceed", False) == outcome(handled(gk.InterventionHandler(on_notify=fails), decide("notify"), is_async))


def test_callbacks_get_a_request():
    requests = []
    handler = gk.InterventionHandler(on_confirm=lambda request: requests.append(request) or "cancel", timeout=7.5)
    decision = decide("confirm")
    handler.handle(decision)
    handler.handle(decision)
    first, second = requests
    assert (decision, decision.level, "because", 7.5) == (first.decision, first.level, first.reason, first.timeout)
    assert ("", {}, 64) == (first.action, dict(first.arguments), len(first.digest))
    assert first.id != second.id


def test_a_request_is_passed_on_unchanged():
    requests = []
    request = request_for({"to": "ana"}, "escalate", timeout=30)
    handler = gk.InterventionHandler(on_escalate=lambda request: requests.append(request) or "proceed", timeout=0)
    assert "proceed" == handler.handle(request).action
    assert requests[0] is request


@pytest.fixture
def register():
    """Register a framework for the time of a test."""
    names = []

    def add(name, package, program):
        names.append(name)
        adapter = SimpleNamespace(resumable=lambda: program)
        HOST.register(Framework(name, package=package, load=lambda: adapter, signals={}))

    yield add
    for name in names:
        del HOST.frameworks[name]


def test_a_framework_that_is_not_loaded_is_not_asked(register):
    register("fake", "a_package_that_nobody_has_imported", object())
    assert resumable() is None


def test_outside_of_a_program_there_is_none(register):
    register("first", "sys", None)
    assert resumable() is None
    program = object()
    register("second", "sys", program)
    assert program is resumable()
