"""An exception, a cancellation or an exit at any point of a gate: the action runs with a consent, as it was shown, and once at most."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.record import HOST, SUSPENDED, Framework, Signal
from grace_kp.testing import capture, make_grace
from tests.exhaustive import product

R = gk.InterventionResponse


class ProgramPaused(Exception):
    """The signal of a framework whose programs are run again after a person has answered."""


class Interruption(BaseException):
    """Stands for the end of the process."""


ERRORS = [RuntimeError, KeyboardInterrupt, asyncio.CancelledError, Interruption]


class World:
    """A program with one gated call, and a countdown to an error that any part of it may raise."""

    def __init__(self, *, floor, answer, resumable):
        self.left, self.error, self.raised = None, None, False
        self.shown, self.answered, self.effects = [], 0, []
        self.given = answer
        self.is_answered = not resumable
        self.calls = 0
        self.grace = make_grace(on_notify=self.notified, reviewer=self)
        store = self.grace.store
        for name in ("action", "put_action"):
            setattr(store, name, self.touched(getattr(store, name)))
        self.act = self.grace.gate(floor=floor)(self.body)
        self.act_async = self.grace.gate(floor=floor, name="body")(self.body_async)

    def touch(self):
        """Count down; raise when the count ends."""
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.raised = True
                raise self.error

    def touched(self, function):
        def call(*args, **kwargs):
            self.touch()
            result = function(*args, **kwargs)
            self.touch()
            return result

        return call

    def notified(self, request):
        self.touch()
        self.shown.append(dict(request.arguments))

    def review(self, request):
        self.touch()
        self.shown.append(dict(request.arguments))
        if not self.is_answered:
            raise ProgramPaused
        self.answered += 1
        self.touch()
        return self.given

    pauses = True  # asked in the calling thread, so that the error is raised there

    def body(self, to, euros):
        self.touch()
        self.effects.append({"to": to, "euros": euros})
        self.touch()
        return "paid"

    async def body_async(self, to, euros):
        return self.body(to, euros)

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
        """Run the program once; whatever it raises is its end."""
        with contextlib.suppress(BaseException):
            if world == "sync":
                self.act("bob", 5)
            else:
                asyncio.run(self.act_async("bob", 5))


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
    "modified": R("modify", modified={"euros": 1}),
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
        it.left, it.error = point, error("now")
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
            expected = {"to": "bob", "euros": 1} if answer == "modified" else {"to": "bob", "euros": 5}
            assert expected == effect
        if answer in {"refused", "skipped"}:
            assert [] == it.effects
        if floor == "confirm":
            assert len(it.effects) <= it.answered
        for trace in captured:
            for entry in trace.grace.get("decisions", ()):
                assert entry["outcome"] in SETTLED
                assert (entry["outcome"] in {"executed", "executed_modified", "failed"}) <= (attempts == 1 or it.raised)
        it.grace.close()
        if not it.raised:
            break
    assert point > 2


@pytest.mark.parametrize("world", ["sync", "async"])
@pytest.mark.parametrize("resumable", [False, True])
def test_arguments_that_change_at_any_point_are_not_run(framework, world, resumable):
    """Whoever changes them, and when: what runs is what was shown, or nothing."""
    point = 0
    while True:
        point += 1
        grace = make_grace()
        order, ran, shown, left = {"euros": 5}, [], [], [point]

        def touch(order=order, left=left):
            left[0] -= 1
            if left[0] == 0:
                order["euros"] = 1_000

        def reviewer(request, touch=touch, shown=shown):
            touch()
            shown.append(dict(request.arguments["order"]))
            return R("proceed")

        reviewer.pauses = True
        store = grace.store
        for name in ("action", "put_action"):
            function = getattr(store, name)
            setattr(store, name, lambda *a, f=function, touch=touch, **k: (touch(), f(*a, **k), touch())[1])

        def pay(order, ran=ran):
            ran.append(dict(order))

        async def pay_async(order, ran=ran):
            ran.append(dict(order))

        program = SimpleNamespace(
            reviewer=SimpleNamespace(review=reviewer, pauses=True, name="r"),
            begin=lambda: None,
            wait=touch,
            end=lambda: None,
            may_have_forgotten=lambda ledger: False,
            ledger_key=lambda action: "program|pay",
        )

        async def wait_async(touch=touch):
            touch()

        program.wait_async = wait_async
        framework.program = program if resumable else None
        gate = grace.gate(floor="confirm", reviewer=program.reviewer, name="pay")
        with contextlib.suppress(gk.ActionNotApproved):
            if world == "sync":
                gate(pay)(order)
            else:
                asyncio.run(gate(pay_async)(order))
        assert ran == [] or ran == shown[-1:]
        grace.close()
        if left[0] > 0:
            break
    assert [{"euros": 5}] == ran
