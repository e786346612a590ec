"""A gate does the same for a plain action and for an async one, whatever its reviewer answers and whatever interrupts it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.record import HOST, SUSPENDED, Framework, Signal
from grace_kp.testing import ScriptedReviewer, capture, make_grace
from tests.exhaustive import product

R = gk.InterventionResponse


def gated(grace, *, is_async, **options):
    """An action that counts how often it ran, sync or async, and a way to call it."""
    ran = []

    if is_async:

        @grace.gate(**options)
        async def act(to, euros=5):
            ran.append((to, euros))
            return f"{to} {euros}"

        return (lambda *a, **k: asyncio.run(act(*a, **k))), ran

    @grace.gate(**options)
    def act(to, euros=5):
        ran.append((to, euros))
        return f"{to} {euros}"

    return act, ran


NO_FIT = R("modify", modified={"dollars": 1})
# What a reviewer answers, the floor, the result or the error with a part of its message, and what ran.
ANSWERED = {
    "proceed": (["proceed"], "confirm", "ana 7", [("ana", 7)]),
    "modify": ([R("modify", modified={"euros": 1})], "confirm", "ana 1", [("ana", 1)]),
    "modify without a fit": ([NO_FIT] * 3, "confirm", (gk.ActionCancelled, "dollars"), []),
    "skip": (["skip"], "confirm", None, []),
    "input": ([R("input", user_input="ask Bob")], "confirm", (gk.ActionRedirected, "ask Bob"), []),
    "cancel": (["cancel"], "confirm", (gk.ActionCancelled, "act"), []),
    "retry": (["retry"] * 4, "confirm", (gk.ActionCancelled, "again"), []),
    "deny": ([], "deny", (gk.ActionDenied, "act"), []),
}


@pytest.mark.parametrize("is_async", [False, True])
class TestAnswers:
    """Each answer, on a plain and on an async action."""

    @pytest.mark.parametrize("answer", ANSWERED)
    def test_each_answer_is_followed(self, is_async, answer):
        script, floor, expected, arguments = ANSWERED[answer]
        reviewer = ScriptedReviewer(*script)
        act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor=floor)
        if isinstance(expected, tuple):
            with pytest.raises(expected[0], match=expected[1]) as refused:
                act("ana", euros=7)
            assert not isinstance(refused.value, gk.ActionTimedOut)
        else:
            assert expected == act("ana", euros=7)
        assert (len(script), arguments) == (reviewer.asked, ran)

    @pytest.mark.parametrize("answer", [None, True, "yes please", 7, object(), RuntimeError("crash")])
    def test_whatever_is_no_answer_is_no_approval(self, is_async, answer):
        def reviewer(request):
            if isinstance(answer, Exception):
                raise answer
            return answer

        act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled):
            act("ana")
        assert ran == []

    def test_nobody_to_ask(self, is_async):
        act, ran = gated(make_grace(), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled, match="no reviewer is available"):
            act("ana")
        assert ran == []

    @pytest.mark.parametrize("async_reviewer", [False, True])
    def test_a_timeout_is_a_timeout_and_late_answers_are_not_heard(self, is_async, async_reviewer):
        is_over, answered = threading.Event(), threading.Event()

        def late(request):
            is_over.wait(60)
            answered.set()
            return R("proceed")

        async def never(request):
            await asyncio.sleep(30)

        grace = make_grace(reviewer=never if async_reviewer else late)
        act, ran = gated(grace, is_async=is_async, floor="confirm", timeout=0.05)
        with capture() as captured, pytest.raises(gk.ActionTimedOut, match="no answer arrived") as error:
            act("ana")
        assert "refused" not in str(error.value)
        is_over.set()
        assert async_reviewer or answered.wait(60)
        assert ran == []
        assert captured.only.grace["decisions"][0]["outcome"] == "timed_out"

    def test_proceeding_unasked_has_to_be_said(self, is_async):
        policy = gk.Policy(floor="confirm", timeout=0.05, auto_proceed_on_timeout=True)
        is_over = threading.Event()
        act, ran = gated(make_grace(reviewer=lambda request: is_over.wait(60)), is_async=is_async, policy=policy)
        assert act("ana") == "ana 5"
        is_over.set()
        assert ran == [("ana", 5)]

    def test_arguments_that_change_meanwhile_are_not_run(self, is_async):
        basket = ["apple"]

        def sly(request):
            basket.append("car")
            return R("proceed")

        act, ran = gated(make_grace(reviewer=sly), is_async=is_async, floor="confirm")
        with pytest.raises(gk.ActionCancelled, match="changed"):
            act(basket)
        assert ran == []

    def test_the_actions_own_error_passes_and_is_recorded(self, is_async):
        grace = make_grace(reviewer=ScriptedReviewer("proceed"))

        def body(to):
            raise LookupError(to)

        async def abody(to):
            raise LookupError(to)

        act = grace.gate(floor="confirm")(abody if is_async else body)
        with capture() as captured, pytest.raises(LookupError, match="ana"):
            asyncio.run(act("ana")) if is_async else act("ana")
        assert captured.only.grace["decisions"][0]["outcome"] == "failed"


BEHAVIOURS = st.sampled_from(
    ["proceed", "modify", "modify badly", "skip", "retry", "input", "cancel", "crash", "garbage", "true", "late"]
)


@given(st.lists(BEHAVIOURS, max_size=6), st.sampled_from(["confirm", "escalate"]), st.booleans())
def test_no_sequence_of_failures_lets_an_action_run_unasked(behaviours, floor, is_async):
    """Whatever a reviewer does, the action runs only after PROCEED or a fitting MODIFY, and at most once a call."""
    consents, script = [], iter(behaviours)

    def reviewer(request):
        what = next(script, "crash")
        if what == "crash":
            raise RuntimeError
        if what in {"garbage", "true"}:
            return True if what == "true" else "yes"
        if what == "late":
            return R("cancel", timeout_reached=True)
        if what == "modify badly":
            return R("modify", modified={"nonsense": 1})
        if what in {"proceed", "modify"}:
            consents.append(what)
        return R(what, modified={"euros": 1} if what == "modify" else None)

    act, ran = gated(make_grace(reviewer=reviewer), is_async=is_async, floor=floor, timeout=None)
    with contextlib.suppress(gk.ActionNotApproved):
        act("ana")
    assert len(ran) == len(consents) <= 1


class ProgramPaused(Exception):
    """The signal of a framework whose programs are run again after a person has answered."""


class Interruption(BaseException):
    """Stands for the end of the process."""


ERRORS = [RuntimeError, KeyboardInterrupt, asyncio.CancelledError, Interruption]


class World:
    """A program with one gated call, and a countdown to an event in any part of it: an error, or a change of the arguments."""

    interrupts = True

    def __init__(self, *, floor, answer, resumable):
        self.left, self.happen, self.happened = None, None, False
        self.order = {"euros": 5}
        self.shown, self.answered, self.effects = [], 0, []
        self.given = answer
        self.is_answered = not resumable
        self.grace = make_grace(on_notify=self.notified, reviewer=self)
        store = self.grace.store
        for name in ("action", "put_action"):
            setattr(store, name, self.touched(getattr(store, name)))
        self.act = self.grace.gate(floor=floor)(self.body)
        self.act_async = self.grace.gate(floor=floor, name="body")(self.body_async)

    def touch(self):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.happened = True
                self.happen()

    def touched(self, function):
        def call(*args, **kwargs):
            self.touch()
            result = function(*args, **kwargs)
            self.touch()
            return result

        return call

    def notified(self, request):
        self.touch()
        self.shown.append(dict(request.arguments["order"]))

    def review(self, request):
        self.touch()
        self.shown.append(dict(request.arguments["order"]))
        if not self.is_answered:
            raise ProgramPaused
        self.answered += 1
        self.touch()
        return self.given

    pauses = True  # asked in the calling thread, so that the error is raised there

    def body(self, order):
        effect = dict(order)
        self.touch()
        self.effects.append(effect)
        self.touch()
        return "paid"

    async def body_async(self, order):
        return self.body(order)

    # What a framework offers a gate

    reviewer = property(lambda self: self)

    def begin(self):
        pass

    def wait(self):
        self.touch()

    async def wait_async(self):
        self.touch()

    def end(self):
        pass

    def may_have_forgotten(self, ledger):
        self.touch()
        return False

    def ledger_key(self, action):
        return f"program|{action}"

    def run(self, world):
        with contextlib.suppress(BaseException):
            if world == "sync":
                self.act(self.order)
            else:
                asyncio.run(self.act_async(self.order))


def fail(error):
    raise error


@pytest.fixture
def framework():
    """A framework that is in use, with the world of the test as its program."""
    adapter = SimpleNamespace(resumable=lambda: adapter.program, program=None)
    signals = {"ProgramPaused": Signal(SUSPENDED, pauses=True)}
    HOST.register(Framework("fake", package="sys", load=lambda: adapter, signals=signals))
    yield adapter
    del HOST.frameworks["fake"]
    del HOST.signals["ProgramPaused"]


ANSWERS = {
    "approved": R("proceed"),
    "modified": R("modify", modified={"order": {"euros": 1}}),
    "refused": R("cancel"),
    "skipped": R("skip"),
}
SETTLED = {"executed", "executed_modified", "failed", "cancelled", "skipped", "waiting", "running", "undecided"}


@pytest.mark.parametrize("world", ["sync", "async"])
@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize(
    ("gate", "error"),
    product([("silent", "approved"), ("notify", "approved"), *(("confirm", name) for name in ANSWERS)], ERRORS),
)
def test_no_interruption_runs_an_action_twice_or_unasked(framework, world, resumable, gate, error):
    """The program is run three times more after the interruption, as after a crash or a second answer."""
    floor, answer = gate
    point = 0
    while True:
        point += 1
        it = World(floor=floor, answer=ANSWERS[answer], resumable=resumable)
        framework.program = it if resumable else None
        if resumable and floor == "confirm":
            it.run(world)
            it.is_answered = True
        effects_before = len(it.effects)
        it.left, it.happen = point, functools.partial(fail, error("now"))
        with capture() as captured:
            it.run(world)
        it.left = None
        attempts = len(it.effects) - effects_before
        if resumable:
            for _ in range(3):
                it.run(world)
            # Where nobody is asked, a failed action may be tried again.
            assert len(it.effects) <= (1 if floor == "confirm" or not issubclass(error, Exception) else 2)
        assert attempts <= 1
        for effect in it.effects:
            assert {"euros": 1 if answer == "modified" else 5} == effect
        if answer in {"refused", "skipped"}:
            assert [] == it.effects
        if floor == "confirm":
            assert len(it.effects) <= it.answered
        for trace in captured:
            for entry in trace.grace.get("decisions", ()):
                assert entry["outcome"] in SETTLED
                assert (entry["outcome"] in {"executed", "executed_modified", "failed"}) <= (
                    attempts == 1 or it.happened
                )
        it.grace.close()
        if not it.happened:
            break
    assert point > 2


@pytest.mark.parametrize("world", ["sync", "async"])
@pytest.mark.parametrize("resumable", [False, True])
def test_arguments_that_change_at_any_point_are_not_run(framework, world, resumable):
    """Whoever changes them, and when: what runs is what was shown, or nothing."""
    point = 0
    while True:
        point += 1
        it = World(floor="confirm", answer=R("proceed"), resumable=resumable)
        framework.program = it if resumable else None
        it.is_answered = True
        it.left, it.happen = point, lambda order=it.order: order.update(euros=1_000)
        it.run(world)
        assert it.effects == [] or it.effects == it.shown[-1:]
        it.grace.close()
        if not it.happened:
            break
    assert [{"euros": 5}] == it.effects
