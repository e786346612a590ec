"""A recorded function looks and behaves like the function; what cannot be recorded, and arguments that do not fit, are refused."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import warnings
from concurrent.futures import Future

import pytest


def test_methods_static_and_class_methods(grace):
    """The instance is no input, and the kinds of methods stay what they are."""

    class Desk:
        @grace.tool
        def plain(self, x):
            return x

        @grace.tool
        @staticmethod
        def static(x):
            return x

        @grace.tool
        @classmethod
        def of_class(cls, x):
            return (cls.__name__, x)

        @staticmethod
        @grace.tool
        def inside(x):
            return x

    desk = Desk()
    with grace.collect() as traces, grace.run("work"):
        assert desk.plain(1) == 1
        assert Desk.static(2) == 2
        assert desk.of_class(3) == ("Desk", 3)
        assert desk.inside(4) == 4
        assert Desk.plain(desk, 5) == 5
    assert [s.input for s in traces[0].steps if s.type == "tool_call"] == [{"x": n} for n in (1, 2, 3, 4, 5)]


def test_what_cannot_be_decorated_is_refused_with_a_reason(grace):
    with pytest.raises(TypeError, match="class"):
        grace.agent(type("A", (), {}))
    with pytest.raises(TypeError, match="function"):
        grace.tool(3)
    with pytest.raises(ValueError, match="kind"):
        grace.tool(kind="serach")
    with pytest.raises(ValueError, match="objective"):
        grace.run("")


async def test_partials_and_callable_objects_are_seen_for_what_they_are(grace):
    async def work(a, b):
        await asyncio.sleep(0)
        return a + b

    class Worker:
        async def __call__(self, a):
            await asyncio.sleep(0)
            return a

    partial = grace.tool(functools.partial(work, 1))
    worker = grace.tool(Worker())
    assert inspect.iscoroutinefunction(partial)
    with grace.collect() as traces:
        async with grace.run("x"):
            assert await partial(2) == 3
            assert await worker(5) == 5
    names = [step.tool.name for step in traces[0].steps if step.tool]
    assert names == ["work", "Worker"]
    assert [s.content for s in traces[0].steps if s.type == "observation"] == ["3", "5"]


async def test_a_plain_function_that_gives_back_a_promise(grace):
    """A coroutine, generator or future given back by a plain function keeps the call open until it is done."""

    async def work():
        await asyncio.sleep(0.01)
        return "later"

    def pieces():
        yield "a"
        yield "b"

    @grace.tool
    def promise():
        return work()

    @grace.tool
    def stream():
        return pieces()

    pending = Future()

    @grace.tool
    def future():
        return pending

    with grace.collect() as traces:
        async with grace.run("x"):
            assert await promise() == "later"
            assert list(stream()) == ["a", "b"]
            assert future() is pending
            pending.set_result("done")
    assert [s.content for s in traces[0].steps if s.type == "observation"] == ["later", "ab", "done"]


async def coroutine(a, /, b, c=3, *, d=4):
    return a, b, c, d


def generator(a, /, b, c=3, *, d=4):
    yield a, b, c, d


async def async_generator(a, /, b, c=3, *, d=4):
    yield a, b, c, d


async def required(a, *, b):
    return a, b


async def anything(*args, **kwargs):
    return args, kwargs


class Owner:
    async def method(self, a):
        return a

    async def __call__(self, a):
        return a


FUNCTIONS = {
    "coroutine": coroutine,
    "generator": generator,
    "async_generator": async_generator,
    "required": required,
    "anything": anything,
    "method": Owner().method,
    "object": Owner(),
    "partial": functools.partial(coroutine, 1),
    "partial_by_name": functools.partial(coroutine, 1, d=2),
    "partial_of_object": functools.partial(Owner(), 1),
}
CALLS = {
    "nothing": ((), {}),
    "one": ((1,), {}),
    "two": ((1, 2), {}),
    "four": ((1, 2, 3, 4), {}),
    "keyword": ((1, 2), {"d": 5}),
    "unexpected": ((1, 2), {"x": 5}),
    "twice": ((1, 2), {"b": 5}),
    "position_only": ((), {"a": 1, "b": 2}),
}


def error_of(function, args, kwargs):
    try:
        made = function(*args, **kwargs)
    except TypeError as error:
        return str(error)
    if inspect.iscoroutine(made):
        made.close()
    return None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", ["tool", "agent", "tool_of_tool", "gate", "gate_of_tool"])
def test_arguments_fail_at_the_call_with_the_error_of_the_function(grace, kind, name, call):
    """The call raises the TypeError that the function itself raises, and no run is recorded."""
    function, (args, kwargs) = FUNCTIONS[name], CALLS[call]
    if kind.startswith("gate") and "generator" in name:
        return
    decorators = {
        "tool": grace.tool,
        "agent": grace.agent,
        "tool_of_tool": lambda function: grace.tool(grace.tool(function)),
        "gate": grace.gate(unmeasured="silent"),
        "gate_of_tool": lambda function: grace.gate(unmeasured="silent")(grace.tool(function)),
    }
    with grace.collect() as traces:
        expected = error_of(function, args, kwargs)
        assert expected == error_of(decorators[kind](function), args, kwargs)
    if expected is not None and not (kind == "gate" and "object" in name):  # a gate calls it as a plain function
        assert [] == traces


async def test_a_call_that_does_not_fit_is_a_failed_call_of_the_run_around_it(grace):
    """Inside a run the call is recorded with its TypeError, as a call of a plain function is."""
    tool = grace.tool(coroutine)
    with grace.collect() as traces, grace.run("x"):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
            tool(1)
        assert (1, 2, 3, 4) == await tool(1, 2)
    assert [
        "TypeError: coroutine() missing 1 required positional argument: 'b'",
        "[1, 2, 3, 4]",
    ] == [step.content for step in traces[0].steps if step.type == "observation"]


@pytest.mark.parametrize("make", [lambda f: f, lambda f: functools.partial(f), lambda f: lambda *args: f(*args)])
def test_a_coroutine_that_is_not_awaited_warns_once_by_its_name(grace, make):
    """The warning is that of the bare function, for functions that return coroutines, too; nothing is recorded."""

    async def forgotten(a):
        return a

    def warned(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(1)
            gc.collect()
        return [str(item.message) for item in caught if item.category is RuntimeWarning]

    assert warned(make(forgotten)) == warned(grace.tool(make(forgotten)))


def analyst(ticker, days=3): ...


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("Analyse {ticker} for {days} days", "Analyse TSM for 5 days"),
        (lambda ticker, days: f"{ticker}/{days}", "TSM/5"),
        (lambda arguments: f"got {sorted(arguments)}", "got ['days', 'ticker']"),
        (None, "TSM"),
        ("{broken", "TSM"),
    ],
)
def test_the_objective_is_given_or_found(grace, stated, expected):
    """A template or callable on the bound arguments wins; then the first text; then the call itself."""
    with grace.collect() as traces:
        grace.agent(objective=stated)(analyst)("TSM", days=5)
        grace.agent(analyst)(7)
    assert [expected, "analyst(7)"] == [trace.task.objective for trace in traces]
