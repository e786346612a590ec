"""A recorded or gated function answers what the standard library, frameworks and drivers of generators ask as the bare function does."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import pickle
import sys
import typing
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import validate_call

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


def plain(a: int, b: str = "x", *, c: float = 1.0) -> list[str]:
    """Do the work of a test."""
    return [b] * a


async def coroutine(a: int, b: str = "x", *, c: float = 1.0) -> list[str]:
    """Do the work of a test."""
    return [b] * a


def generator(a: int, b: str = "x", *, c: float = 1.0) -> typing.Iterator[str]:
    """Do the work of a test."""
    yield from [b] * a


async def async_generator(a: int, b: str = "x", *, c: float = 1.0) -> typing.AsyncIterator[str]:
    """Do the work of a test."""
    for _ in range(a):
        yield b


FUNCTIONS = {"plain": plain, "coroutine": coroutine, "generator": generator, "async_generator": async_generator}


async def value_of(made):
    if inspect.isawaitable(made):
        return await made
    if inspect.isasyncgen(made):
        return [item async for item in made]
    return list(made)


def kinds(function):
    questions = [
        inspect.isfunction, inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction,
    ]  # fmt: skip
    if sys.version_info < (3, 14):  # deprecated from then on
        questions.append(asyncio.iscoroutinefunction)
    return [question(function) for question in questions]


def names_of_object(function):
    made = function(1)
    names = [type(made).__name__, getattr(made, "__name__", None), getattr(made, "__qualname__", None)]
    if inspect.iscoroutine(made):
        names += [repr(made).partition(" at ")[0], inspect.getcoroutinestate(made)]
        made.close()
        names.append(inspect.getcoroutinestate(made))
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            made.send(None)
    elif inspect.isgenerator(made):
        names.append(inspect.getgeneratorstate(made))
        made.close()
        names.append(inspect.getgeneratorstate(made))
    return names


def thrown_before_the_start(function):
    made = function(1)
    if not hasattr(made, "throw"):
        return None
    with pytest.raises(KeyError, match="mine"):
        made.throw(KeyError("mine"))
    return type(made).__name__


def pickled(function):
    again = pickle.loads(pickle.dumps(function))
    return again is function


async def in_a_task(function):
    if not inspect.iscoroutinefunction(function):
        return None
    task = asyncio.create_task(function(2))
    assert f"coro=<{function.__qualname__}()" in repr(task)
    return await task


async def bound(function):
    owner = type("Owner", (), {"method": lambda self: None})
    owner.method = functools.partialmethod(function, 2)

    class Owner:
        static = staticmethod(function)

    with pytest.raises(TypeError):
        owner().method(1, 2, 3)
    return await value_of(Owner.static(2, b="y"))


ANSWERS = {
    "kinds": kinds,
    "signature": inspect.signature,
    "hints": typing.get_type_hints,
    "names": lambda f: [f.__name__, f.__qualname__, f.__module__, f.__doc__],
    "unwrapped": lambda f: inspect.unwrap(f).__code__,
    "source": inspect.getsource,
    "objects": names_of_object,
    "thrown": thrown_before_the_start,
    "pickle": pickled,
    "copy": lambda f: [copy.copy(f) is f, copy.deepcopy(f) is f],
    "weakref": lambda f: weakref.ref(f)() is f,
    "hash": lambda f: len({f, f}),
    "value": lambda f: value_of(f(2, b="y")),
    "task": in_a_task,
    "bound": bound,
    "validated": lambda f: value_of(validate_call(f)("2")),
}


@pytest.mark.parametrize("question", ANSWERS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", ["tool", "agent", "gate", "gate_of_tool"])
async def test_a_decorated_function_answers_as_the_bare_one(grace, monkeypatch, kind, name, question):
    """Differential: the same question to the bare and to the decorated function has the same answer."""
    function, ask = FUNCTIONS[name], ANSWERS[question]
    if kind.startswith("gate") and "generator" in name:
        return
    gate = grace.gate(unmeasured="silent")
    decorators = {"tool": grace.tool, "agent": grace.agent, "gate": gate, "gate_of_tool": lambda f: gate(grace.tool(f))}
    decorated = decorators[kind](function)

    async def answer(asked):
        monkeypatch.setattr(sys.modules[__name__], name, asked)
        found = ask(asked)
        return await found if inspect.isawaitable(found) else found

    assert await answer(function) == await answer(decorated)


@pytest.mark.parametrize("name", ["plain", "coroutine"])
async def test_a_tool_of_langchain_on_a_recorded_function(grace, name):
    """`@tool` reads the same schema and description, and calls the function."""
    langchain_tool = pytest.importorskip("langchain_core.tools").tool
    bare, recorded = (langchain_tool(made) for made in (FUNCTIONS[name], grace.tool(FUNCTIONS[name])))
    assert bare.args_schema.model_json_schema() == recorded.args_schema.model_json_schema()
    assert (bare.name, bare.description) == (recorded.name, recorded.description)
    assert await bare.ainvoke({"a": 2}) == await recorded.ainvoke({"a": 2})


# A small language of generator bodies and of drivers, run with and without the decorator.
BODIES = st.lists(st.sampled_from(["yield", "catch", "raise", "return", "ignore_exit"]), max_size=6)


DRIVES = st.lists(st.sampled_from(["next", "send", "throw", "exit", "close"]), max_size=8)


def sync_body_of(program):
    def body():
        got = None
        for word in program:
            if word == "yield":
                got = yield ("y", got)
            elif word == "catch":
                try:
                    got = yield ("c", got)
                except KeyError as error:
                    got = yield ("k", str(error))
            elif word == "ignore_exit":
                try:
                    got = yield ("i", got)
                except GeneratorExit:
                    got = yield ("ignored", None)
            elif word == "raise":
                raise LookupError("mine")
            else:
                return ("r", got)
        return ("end", got)

    return body


def async_body_of(program):
    async def body():
        got = None
        for word in program:
            await asyncio.sleep(0)
            if word == "yield":
                got = yield ("y", got)
            elif word == "catch":
                try:
                    got = yield ("c", got)
                except KeyError as error:
                    got = yield ("k", str(error))
            elif word == "ignore_exit":
                try:
                    got = yield ("i", got)
                except GeneratorExit:
                    got = yield ("ignored", None)
            elif word == "raise":
                raise LookupError("mine")
            else:
                return

    return body


VERBS = {False: ("__next__", "send", "throw", "close"), True: ("__anext__", "asend", "athrow", "aclose")}


async def drive(generator, drives):
    advance, send, throw, close = (getattr(generator, verb) for verb in VERBS[inspect.isasyncgen(generator)])
    out = []
    for number, word in enumerate([*drives, "close"]):
        steps = {
            "next": advance,
            "send": functools.partial(send, number),
            "throw": functools.partial(throw, KeyError(str(number))),
            "exit": functools.partial(throw, GeneratorExit()),
            "close": close,
        }
        try:
            made = steps[word]()
            out.append(await made if inspect.isawaitable(made) else made)
        except BaseException as error:
            texts = [str(text) for text in error.args if not isinstance(text, tuple)]
            out.append((type(error).__name__, getattr(error, "value", None), texts))
    return out


@pytest.mark.parametrize("body_of", [sync_body_of, async_body_of])
@given(BODIES, DRIVES)
def test_generators_answer_every_driver_as_without_the_decorator(body_of, program, drives):
    """Differential: any body under any sequence of next, send, throw and close, and of their async twins."""
    grace = gk.Grace(store="memory:")
    plain = body_of(program)
    recorded = grace.agent(plain)
    assert asyncio.run(drive(recorded(), drives)) == asyncio.run(drive(plain(), drives))
    assert not grace.recorder.open_runs
