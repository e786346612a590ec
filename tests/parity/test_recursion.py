"""Recursion near the limit gives the result of the function without recording, at every depth that leaves room for the wrapper."""

from __future__ import annotations

import gc
import sys

import pytest

import grace_kp as gk
from grace_kp.record import CURRENT
from tests import warm

LAST = 60


@pytest.fixture
def grace(monkeypatch):
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING")
    gc.collect()  # what earlier tests left: no finalizer has room near the limit
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


def plain(decorate):
    @decorate
    def leaf(value):
        return {"seen": [value, {"deep": (value,)}]}

    return lambda: leaf("x")


def failing(decorate):
    @decorate
    def leaf(value):
        raise LookupError(value)

    return lambda: leaf("x")


def coroutine(decorate):
    @decorate
    async def leaf(value):
        return value

    return lambda: outcome_of_send(leaf("x"))


def outcome_of_send(made):
    try:
        made.send(None)
    except StopIteration as stop:
        return stop.value
    finally:
        made.close()


def promise(decorate):
    async def work(value):
        return value

    leaf = decorate(lambda value: work(value))
    return lambda: outcome_of_send(leaf("x"))


def generator(decorate):
    @decorate
    def leaf(value):
        yield value
        return value

    return lambda: list(leaf("x"))


def async_generator(decorate):
    @decorate
    async def leaf(value):
        yield value

    def call():
        made = leaf("x")
        try:
            made.asend(None).send(None)
        except StopIteration as stop:
            return stop.value

    return call


LEAVES = (plain, failing, coroutine, promise, generator, async_generator)
# How many levels less than the bare function a recorded function may leave: its wrapper, and the C calls that Python 3.11 counts.
WRAPPER = 4


def below(levels, call):
    if levels == 0:
        try:
            return ("returned", call())
        except LookupError as error:
            return ("raised", str(error))
    return below(levels - 1, call)


def outcomes(make, decorate):
    """The outcome at each of the last levels; None where the stack was full."""
    call = make(decorate)
    below(1, call)
    found = []
    for levels in range(room() - LAST, room()):
        try:
            found.append(below(levels, call))
        except RecursionError:
            found.append(None)
    return found


def room():
    def deeper(levels):
        try:
            return deeper(levels + 1)
        except RecursionError:
            return levels

    return deeper(0)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # where there is no room to start it
@pytest.mark.parametrize("make", LEAVES)
@pytest.mark.parametrize("kind", ["tool", "agent", "retriever"])
def test_every_depth_near_the_limit_gives_the_result_of_the_function(grace, make, kind):
    """Where recording has no room, the function has; its result and its error are its own, and nothing stays open."""
    decorate = getattr(grace, kind)
    bare = outcomes(make, lambda function: function)
    with grace.run("deep"):
        recorded = outcomes(make, decorate)
    outside = outcomes(make, decorate)
    fits = sum(1 for outcome in bare if outcome is not None)
    for found in (recorded, outside):
        assert bare[: fits - WRAPPER] == found[: fits - WRAPPER]
        assert {None} | set(map(repr, bare)) >= {None} | set(map(repr, filter(None, found)))
    assert grace.flush()
    assert not grace.recorder.open_runs
    assert CURRENT.get() is None


def test_the_trace_counts_what_had_no_room_on_the_stack(grace):
    """Calls that could not be recorded near the limit are a loss in their run."""
    with grace.collect() as traces:
        with grace.run("deep"):
            outcomes(plain, grace.tool)
        with grace.run("shallow"):
            below(1, plain(grace.tool))
    counted = [trace.to_dict()["grace"].get("dropped_steps", 0) for trace in traces]
    assert counted[0] > 0
    assert counted[1] == 0


def test_a_raised_limit_does_not_overflow_the_stack_of_the_process():
    """A recorded function that calls itself 50,000 times deep returns, as the bare function does."""
    program = """
import sys
import grace_kp as gk

sys.setrecursionlimit(1_000_000)
grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None)

@grace.tool
def down(levels):
    return 0 if levels == 0 else 1 + down(levels - 1)

with grace.run("deep"):
    print(down(50_000))
"""
    done = warm.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (0, "50000\n") == (done.returncode, done.stdout), done.stderr
