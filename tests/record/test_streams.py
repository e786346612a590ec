"""Generators and async generators keep their whole protocol, and how they end is how the run ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", embedder=None, reviewer=None) as made:
        yield made


def test_streamed_text_is_the_result(grace):
    """What was yielded is the result; the run ends when the generator is exhausted."""

    @grace.agent
    def root(question):
        yield "Hel"
        yield "lo"

    with grace.collect() as traces:
        assert list(root("greet")) == ["Hel", "lo"]
    assert traces[0].outcome.result_summary == "Hello"
    assert traces[0].grace["status"] == "completed"


def test_an_early_break_closes_the_run(grace):
    """A consumer that stops listening ends the run as closed, with what went by."""

    @grace.agent
    def root():
        yield 1
        yield 2

    with grace.collect() as traces:
        for _ in root():
            break
        gc.collect()
    assert traces[0].grace["status"] == "closed"
    assert traces[0].outcome.result_summary == "[1]"


def test_send_throw_and_return_value(grace):
    """Values sent and exceptions thrown reach the generator, and its answers come back."""

    @grace.agent
    def root():
        got = yield "first"
        try:
            got = yield f"got {got}"
        except KeyError as error:
            got = yield f"caught {error}"
        return f"end {got}"

    running = root()
    with grace.collect() as traces:
        assert next(running) == "first"
        assert running.send("a") == "got a"
        assert running.throw(KeyError("b")) == "caught 'b'"
        with pytest.raises(StopIteration) as stop:
            running.send("c")
    assert stop.value.value == "end c"
    assert "end c" in traces[0].outcome.result_summary


async def test_asend_athrow_aclose(grace):
    """The async protocol goes through as well."""
    closed = []

    @grace.agent
    async def root():
        try:
            got = yield "first"
            try:
                yield f"got {got}"
            except KeyError as error:
                yield f"caught {error}"
        finally:
            closed.append(True)

    with grace.collect() as traces:
        running = root()
        assert await running.asend(None) == "first"
        assert await running.asend("a") == "got a"
        assert await running.athrow(KeyError("b")) == "caught 'b'"
        await running.aclose()
    assert closed == [True]
    assert traces[0].grace["status"] == "closed"


@pytest.mark.parametrize("decorated", [False, True])
async def test_a_timeout_around_a_yield_fires(grace, decorated):
    """`asyncio.timeout` inside the generator cancels the task that consumes it, with and without the decorator."""
    seen = []

    async def source():
        try:
            async with asyncio.timeout(0.02):
                yield 1
                await asyncio.sleep(10)
                yield 2
        except TimeoutError:
            seen.append("timeout")
            yield "late"

    stream = grace.agent(source) if decorated else source
    items = [item async for item in stream()]
    assert (items, seen) == ([1, "late"], ["timeout"])


@pytest.mark.parametrize("decorated", [False, True])
async def test_a_timeout_while_the_consumer_is_slow_fires(grace, decorated):
    """The same when it is the consumer that takes too long."""

    async def source():
        async with asyncio.timeout(0.02):
            yield 1
            yield 2

    stream = grace.agent(source) if decorated else source
    with pytest.raises((asyncio.CancelledError, TimeoutError)):  # noqa: PT012
        async for _ in stream():
            await asyncio.sleep(10)


async def test_one_task_per_step_stays_one_run(grace):
    """Driven from a new task each time, it is one run, and the tools it calls belong to it."""

    @grace.tool
    async def look(n):
        return n

    @grace.agent
    async def root():
        for n in range(3):
            yield await look(n)

    with grace.collect() as traces:
        running = root()
        for n in range(3):
            assert await asyncio.create_task(running.__anext__()) == n
        with pytest.raises(StopAsyncIteration):
            await asyncio.create_task(running.__anext__())
    (trace,) = traces
    assert [step.type for step in trace.steps] == ["tool_call", "observation"] * 3


def test_the_run_is_not_current_between_the_steps(grace):
    """What the consumer does between two items does not belong to the generator's run."""

    @grace.tool
    def mine():
        return "mine"

    @grace.tool
    def theirs():
        return "theirs"

    @grace.agent
    def root():
        yield mine()
        yield mine()

    with grace.collect() as traces:
        for _ in root():
            theirs()
    inner = next(t for t in traces if t.grace["name"] == "root")
    assert {step.tool.name for step in inner.steps if step.tool} == {"mine"}


async def test_a_generator_that_is_dropped_is_closed(grace):
    """An async generator that nobody finishes ends its run when it is collected."""

    @grace.agent
    async def root():
        yield 1
        yield 2

    with grace.collect() as traces:
        async for _ in root():
            break
        gc.collect()
        await asyncio.sleep(0.01)
        assert traces[0].grace["status"] == "closed"


def test_the_loop_ends_cleanly_with_a_generator_still_open(grace, caplog):
    """Shutting down a loop closes an open generator once, without an error being reported."""

    @grace.agent
    async def root():
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)

    kept = []

    async def main():
        running = root()
        kept.append(running)
        assert await anext(running) == 1

    with grace.collect() as traces:
        asyncio.run(main())
    assert traces[0].grace["status"] == "closed"
    assert caplog.records == []


def test_a_generator_that_was_never_started_is_no_run(grace):
    """Nothing happened, so nothing is recorded."""

    @grace.agent
    def root():
        yield 1

    with grace.collect() as traces:
        root()
        gc.collect()
    assert traces == []


# A small language of generator bodies and of drivers, run with and without the decorator.
BODIES = st.lists(st.sampled_from(["yield", "catch", "raise", "return", "ignore_exit"]), max_size=6)
DRIVES = st.lists(st.sampled_from(["next", "send", "throw", "exit", "close"]), max_size=8)


def body_of(program):
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


def outcome_of(step):
    try:
        return ("value", step())
    except BaseException as error:
        return (
            type(error).__name__,
            getattr(error, "value", None),
            [str(a) for a in error.args if not isinstance(a, tuple)],
        )


def drive(generator, drives):
    out = []
    for number, word in enumerate(drives):
        out.append(
            outcome_of(
                {
                    "next": lambda: next(generator),
                    "send": lambda number=number: generator.send(number),
                    "throw": lambda number=number: generator.throw(KeyError(str(number))),
                    "exit": lambda: generator.throw(GeneratorExit()),
                    "close": generator.close,
                }[word]
            )
        )
    with contextlib.suppress(BaseException):
        generator.close()
    return out


@given(BODIES, DRIVES)
def test_generators_answer_every_driver_as_without_the_decorator(program, drives):
    """Differential: any body under any sequence of next, send, throw and close."""
    grace = gk.Grace(store="memory:")
    plain = body_of(program)
    recorded = grace.agent(plain)
    assert drive(recorded(), drives) == drive(plain(), drives)
    assert not grace.recorder.open_runs


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


async def adrive(generator, drives):
    out = []
    for number, word in enumerate(drives):
        try:
            if word == "next":
                out.append(await anext(generator))
            elif word == "send":
                out.append(await generator.asend(number))
            elif word == "throw":
                out.append(await generator.athrow(KeyError(str(number))))
            elif word == "exit":
                out.append(await generator.athrow(GeneratorExit()))
            else:
                out.append(await generator.aclose())
        except BaseException as error:
            out.append((type(error).__name__, [str(a) for a in error.args]))
    with contextlib.suppress(BaseException):
        await generator.aclose()
    return out


@given(BODIES, DRIVES)
def test_async_generators_answer_every_driver_as_without_the_decorator(program, drives):
    """The same for asend, athrow and aclose."""
    grace = gk.Grace(store="memory:")
    plain = async_body_of(program)
    recorded = grace.agent(plain)
    assert asyncio.run(adrive(recorded(), drives)) == asyncio.run(adrive(plain(), drives))
    assert not grace.recorder.open_runs
