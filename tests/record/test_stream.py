"""A streaming function: its items are its result, its protocol is untouched, and its run ends with it."""

from __future__ import annotations

import asyncio
import gc

import pytest

import grace_kp as gk


def searched(grace, search):
    with grace.run("look it up"):
        search()
    (trace,) = grace.store.query()
    return trace.grace["calls"][0]["search"]


@pytest.mark.parametrize("capture_output", [True, False])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_streaming_retriever_keeps_its_evidence(capture_output, is_async):
    """Results that are yielded one by one are read, also where they are not captured or too many to be kept."""
    results = [{"score": 0.4 if number else None, "source": str(number), "text": "x" * 500} for number in range(300)]
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None, capture_output=capture_output)
    if is_async:

        @grace.retriever(name="search")
        async def search():
            for result in results:
                yield result

        async def main():
            return [result async for result in search()]

        found = searched(grace, lambda: asyncio.run(main()))
    else:
        found = searched(grace, lambda: list(grace.retriever(lambda: (yield from results), name="search")()))
    assert (300, 299, 1) == (found["count"], len(found["scores"]), found["unusable_scores"])
    grace.close()


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
