"""Arguments that do not fit fail when the function is called, as they do without recording."""

from __future__ import annotations

import functools
import gc
import inspect
import warnings

import pytest


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


def test_a_plain_gate_refuses_arguments_with_the_error_of_the_action(grace):
    """A gated plain function raises the same TypeError as the function."""

    def act(a):
        return a

    assert error_of(act, (1, 2), {}) == error_of(grace.gate(unmeasured="silent")(act), (1, 2), {})


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
        return [str(item.message) for item in caught]

    assert warned(make(forgotten)) == warned(grace.tool(make(forgotten)))
