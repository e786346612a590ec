"""A recorded function is of the same kind as the function, and looks like it."""

from __future__ import annotations

import asyncio
import functools
import inspect
from concurrent.futures import Future


def test_introspection_is_as_without_the_decorator(grace):
    """Signature, documentation, name and kind survive."""

    def plain(a: int, *, b: str = "x") -> str:
        """Doc."""
        return b

    async def coroutine(a: int) -> int:
        return a

    def generator(a: int):
        yield a

    async def async_generator(a: int):
        yield a

    for function in (plain, coroutine, generator, async_generator):
        for decorator in (grace.tool, grace.agent, grace.retriever, grace.agent(domain="code")):
            recorded = decorator(function)
            assert inspect.signature(recorded) == inspect.signature(function)
            assert recorded.__doc__ == function.__doc__
            assert recorded.__name__ == function.__name__
            assert recorded.__qualname__ == function.__qualname__
            assert recorded.__module__ == function.__module__
            for question in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
                assert question(recorded) is question(function)


async def test_partials_and_callable_objects_are_seen_for_what_they_are(grace):
    """Is it async? is asked through partials and `__call__`."""

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
