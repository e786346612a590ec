"""A streaming function: its items are its result, its protocol is untouched, and its run ends with it."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import gc
import inspect
from types import SimpleNamespace

import pydantic
import pytest

import grace_kp as gk
from tests.record.conftest import searched


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
    @grace.agent
    def root():
        yield 1

    with grace.collect() as traces:
        root()
        gc.collect()
    assert traces == []


class Slotted:
    __slots__ = ("body", "unset")


@dataclasses.dataclass(frozen=True)
class Frozen:
    body: object
    status: int = 200


class Model(pydantic.BaseModel, arbitrary_types_allowed=True, frozen=True):
    body: object


def slotted(stream):
    made = Slotted()
    made.body = stream
    return made


def body_of(made):
    return made.body


Pair = collections.namedtuple("Pair", "status body")
# A result that holds a stream, and the place of the stream in it.
HOLDERS = {
    "attribute": (lambda stream: SimpleNamespace(body=stream), body_of),
    "slot": (slotted, body_of),
    "frozen dataclass": (Frozen, body_of),
    "pydantic model": (lambda stream: Model(body=stream), body_of),
    "dict": (lambda stream: {"status": 200, "body": stream}, lambda made: made["body"]),
    "list": (lambda stream: [1, stream], lambda made: made[1]),
    "tuple": (lambda stream: (stream, 200), lambda made: made[0]),
    "named tuple": (lambda stream: Pair(200, stream), body_of),
    "response in a tuple": (lambda stream: (SimpleNamespace(body=stream), 200), lambda made: made[0].body),
    "alone": (lambda stream: stream, lambda made: made),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("stream_is_async", [False, True])
@pytest.mark.parametrize("agent_is_async", [False, True])
def test_a_stream_in_a_result_belongs_to_its_run(grace, holder, stream_is_async, agent_is_async):
    """The run ends with the stream, the tools of which are its steps; the result keeps its type, and no item is lost."""
    step = grace.tool(lambda number: number, name="step")
    results = []

    def body():
        for number in range(3):
            yield f"{step(number)};"

    async def abody():
        for number in range(3):
            yield f"{step(number)};"

    def work():
        results.append(HOLDERS[holder][0](abody() if stream_is_async else body()))
        return results[0]

    async def awork():
        return work()

    async def main():
        made = await grace.agent(awork, name="agent")() if agent_is_async else grace.agent(work, name="agent")()
        if holder not in {"tuple", "named tuple", "alone"}:
            assert made is results[0]
        assert type(made) is type(results[0])
        assert [] == traces
        stream = HOLDERS[holder][1](made)
        assert inspect.isasyncgen(stream) if stream_is_async else inspect.isgenerator(stream)
        assert ["0;", "1;", "2;"] == ([item async for item in stream] if stream_is_async else list(stream))

    with grace.collect() as traces:
        asyncio.run(main())
    (trace,) = traces
    assert ("agent", "completed", "0;1;2;") == (trace.name, trace.status, trace.outcome.result_summary)
    assert ["step"] * 3 == [call.name for call in trace.calls]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_that_is_never_read_ends_its_run(grace, is_async):
    """The run is closed when the stream is dropped, as for HEAD requests."""

    def body():
        yield 1

    async def abody():
        yield 1

    def work(wrap):
        return wrap(abody() if is_async else body())

    with grace.collect() as traces:
        for wrap in (lambda it: it, lambda it: {"body": it}, lambda it: (it, 200)):
            made = grace.agent(work)(wrap)
            assert [] == traces
            del made
            gc.collect()
            assert ["closed"] == [trace.status for trace in traces]
            traces.clear()
    assert not grace.recorder.open_runs


def test_several_streams_keep_a_run_open(grace):
    """It ends with the last of them, whichever that is, and fails if one of them has failed."""
    step = grace.tool(lambda name: name, name="step")

    def body(name, error=None):
        yield step(name)
        if error is not None:
            raise error

    @grace.agent
    def work(error=None):
        return {"out": body("out", error), "err": body("err")}

    with grace.collect() as traces:
        made = work()
        assert ["err"] == list(made["err"])
        assert [] == traces
        assert ["out"] == list(made["out"])
        made = work(KeyError("x"))
        with pytest.raises(KeyError):
            list(made["out"])
        assert ["err"] == list(made["err"])
    first, second = traces
    assert ("completed", '["err", "out"]') == (first.status, first.outcome.result_summary)
    assert ["step", "step"] == [call.name for call in first.calls]
    assert "failed" == second.status


def test_streams_in_streams_belong_to_the_run(grace):
    """Generators that a stream yields, read at once or after it has ended, and agents that stream in agents."""
    step = grace.tool(lambda number: number, name="step")

    @grace.agent
    def inner(number):
        yield step(number)

    def plain(number):
        yield step(number)

    @grace.agent
    def outer(make):
        for number in range(2):
            yield make(number)

    for make, names in ((plain, ["outer"]), (inner, ["inner", "inner", "outer"])):
        for read in (lambda it: [list(stream) for stream in it], lambda it: [list(stream) for stream in list(it)]):
            with grace.collect() as traces:
                assert [[0], [1]] == read(outer(make))
            assert names == sorted(trace.name for trace in traces)
            assert 1 == sum(trace.parent_id is None for trace in traces)


def test_what_belongs_to_others_stays_as_it_is(grace):
    """A generator that has been started, one deeper in the result, and the attributes of classes and modules."""

    def body():
        yield 1
        yield 2

    started = body()
    next(started)
    deep = body()
    held = type("Held", (), {"stream": body()})
    for result in ({"stream": started}, {"a": [{"b": deep}]}, held):
        with grace.collect() as traces:
            assert result is grace.agent(lambda it: it, name="agent")(result)
        assert ["completed"] == [trace.status for trace in traces]
    assert ([2], [1, 2], [1, 2]) == (list(started), list(deep), list(held.stream))


def test_a_result_that_several_runs_return_is_followed_once(grace):
    """Else each run would wrap the stream once more, until the stack is full."""

    def body():
        yield 1

    shared = {"stream": body()}
    work = grace.agent(lambda: shared, name="agent")
    with grace.collect() as traces:
        work()
        stream = shared["stream"]
        for _ in range(20):
            assert work()["stream"] is stream
        assert 20 == len(traces)
        assert [1] == list(stream)
    assert 21 == len(traces)


def test_the_result_of_a_tool_is_left_alone(grace):
    """Its call ends when it returns; only the streams that it returns itself keep it open."""

    def body():
        yield 1

    stream = body()
    with grace.run("q") as run:
        assert stream is grace.tool(lambda: {"body": stream})()["body"]
    assert ["ok"] == [call.status for call in run.trace.calls]
    stream.close()


def test_the_search_for_streams_in_a_result_is_bounded(grace):
    """A large result must not hold up the agent: a stream behind many values is not followed, and the run ends at once."""
    rows = [dict.fromkeys(map(str, range(100)), 0) for _ in range(90)]
    agent = grace.agent(lambda result: result, name="agent")
    for result in ([*rows, {"body": iter_of("x")}], (*range(1_000), iter_of("x"))):
        with grace.collect() as traces:
            assert agent(result) is result
            assert ["completed"] == [trace.status for trace in traces]
    with grace.collect() as traces:
        found = agent([{"body": iter_of("x")}, *rows])
        assert [] == traces
        assert ["x"] == list(found[0]["body"])
        assert ["completed"] == [trace.status for trace in traces]


def iter_of(item):
    yield item
