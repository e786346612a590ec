"""Runs are kept apart in threads, tasks and loops; they reach other threads by a propagated function, or in every thread once instrumented."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from tests.record.conftest import calls_of

pytestmark = pytest.mark.usefixtures("strict")

THREADS = 64

ALL = 100_000


@pytest.fixture
def instrumented():
    """Every thread and executor carries the run while the test lasts."""
    undo = gk.instrument_threads()
    yield
    undo()


def in_threads(number, work):
    """`work(0)` … `work(number - 1)`, each in its own thread, all released at once; errors come back."""
    barrier = threading.Barrier(number)
    with ThreadPoolExecutor(number) as pool:
        list(pool.map(lambda index: (barrier.wait(), work(index)), range(number)))


def in_thread(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    thread.join()


async def by_to_thread(work):
    await asyncio.to_thread(work)


async def by_run_in_executor(work):
    await asyncio.get_running_loop().run_in_executor(None, work)


async def by_submit(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


async def by_thread(work):
    in_thread(work)


async def by_copied_context(work):
    in_thread(contextvars.copy_context().run, work)


async def by_propagate(work):
    in_thread(gk.propagate(work))


ALWAYS = [by_to_thread, by_copied_context, by_propagate]
ONLY_INSTRUMENTED = [by_run_in_executor, by_submit, by_thread]


async def names_of_traces_when(grace, way):
    """Run a tool in another thread by `way`, inside a run: which traces come of it, and what the run has in it."""

    @grace.tool
    def look():
        return threading.get_ident()

    here = threading.get_ident()
    with grace.collect() as traces:
        async with grace.run("root", name="root"):
            await way(look)
    names = sorted(trace.grace["name"] for trace in traces)
    calls = [call for trace in traces for call in trace.grace["calls"]]
    assert ["look"] == [call["name"] for call in calls]
    (content,) = [step.content for trace in traces for step in trace.steps if step.type == "observation"]
    assert str(here) != content
    return names


@pytest.mark.parametrize("way", [*ALWAYS, *ONLY_INSTRUMENTED])
async def test_threads_keep_the_run_by_a_copied_context_or_once_instrumented(grace, way):
    """Elsewhere the tool is a run of its own, as any call outside of a run."""
    assert (["root"] if way in ALWAYS else ["look", "root"]) == await names_of_traces_when(grace, way)
    undo = gk.instrument_threads()
    try:
        assert ["root"] == await names_of_traces_when(grace, way)
    finally:
        undo()


@pytest.mark.usefixtures("instrumented")
def test_a_pool_shared_by_many_runs_keeps_them_apart(grace):
    """Each task belongs to the run that submitted it, not to the one that started the worker."""

    @grace.tool
    def work(marker, n):
        return f"{marker}/{n}"

    with ThreadPoolExecutor(4) as pool:

        @grace.agent
        def agent(marker):
            return [task.result() for task in [pool.submit(work, marker, n) for n in range(5)]]

        in_threads(THREADS, lambda index: agent(f"run {index}"))
    traces = grace.store.query(limit=ALL)
    assert THREADS == len(traces)
    for trace in traces:
        marker = trace.task.objective
        assert sorted(f"{marker}/{n}" for n in range(5)) == sorted(content for _, content in calls_of(trace))


@pytest.mark.usefixtures("instrumented")
def test_a_worker_is_outside_of_the_run_between_tasks(grace):
    """A task submitted outside of any run is outside of it, although a run started the worker."""

    @grace.tool
    def work(marker):
        return marker

    with ThreadPoolExecutor(1) as pool, grace.collect() as traces:
        with grace.run("root", name="root"):
            pool.submit(work, "inside").result()
        pool.submit(work, "outside").result()
    assert {"root": ["inside"], "work": ["outside"]} == {
        trace.grace["name"]: [content for _, content in calls_of(trace)] for trace in traces
    }


@pytest.mark.usefixtures("instrumented")
def test_results_errors_and_arguments_of_tasks_are_untouched(grace):
    unique, error = object(), LookupError("mine")

    def give(*args, **kwargs):
        return args, kwargs

    def fail():
        raise error

    with ThreadPoolExecutor(1) as pool, grace.run("x"):
        assert ((unique, 1), {"fn": 2, "self": 3}) == pool.submit(give, unique, 1, fn=2, self=3).result()
        assert error is pool.submit(fail).exception()
        assert [unique] == list(pool.map(lambda one: one, [unique]))


def test_undoing_restores_the_originals():
    """Every asking needs its own undoing, in any order; undoing twice does nothing."""
    submit, start = ThreadPoolExecutor.submit, threading.Thread.start
    first = gk.instrument_threads()
    second = gk.instrument_threads()
    assert ThreadPoolExecutor.submit is not submit
    assert threading.Thread.start is not start
    first()
    first()
    assert ThreadPoolExecutor.submit is not submit
    second()
    assert ThreadPoolExecutor.submit is submit
    assert threading.Thread.start is start
    second()
    assert ThreadPoolExecutor.submit is submit


async def test_a_coroutine_function_is_propagated_too(grace):
    """In a loop of another thread, the tools it awaits belong to the run."""

    @grace.tool
    async def look(n):
        await asyncio.sleep(0)
        return n

    async def work():
        return [await look(n) for n in range(3)]

    with grace.collect() as traces:
        async with grace.run("root"):
            carried = gk.propagate(work)
            assert inspect.iscoroutinefunction(carried)
            with ThreadPoolExecutor(1) as pool:
                assert [0, 1, 2] == pool.submit(lambda: asyncio.run(carried())).result()
    (trace,) = traces
    assert ["0", "1", "2"] == [content for _, content in calls_of(trace)]


RUNS = 1_000


def assert_whole(trace):
    """Numbered without gaps, every call has its own observation, and none is shared."""
    assert list(range(len(trace.steps))) == [step.step_id for step in trace.steps]
    calls = trace.grace["calls"]
    assert [f"c{n}" for n in range(len(calls))] == [call["call_id"] for call in calls]
    places = [call[key] for call in calls for key in ("tool_call", "observation") if key in call]
    assert len(places) == len(set(places))
    for call in calls:
        assert "tool_call" == trace.steps[call["tool_call"]].type
        if "observation" in call:
            assert "observation" == trace.steps[call["observation"]].type


def test_one_run_shared_by_64_threads_has_every_call_once(grace):
    """Through `gk.propagate` all threads record into one run; each observation stands with its own call."""

    @grace.tool
    def work(thread, n):
        return f"{thread}/{n}"

    with grace.run("shared"):
        carried = gk.propagate(lambda index: [work(index, n) for n in range(20)])
        in_threads(THREADS, carried)
    (trace,) = grace.store.query(limit=ALL)
    assert_whole(trace)
    seen = calls_of(trace)
    assert all(content == f"{given['thread']}/{given['n']}" for given, content in seen)
    assert sorted((t, n) for t in range(THREADS) for n in range(20)) == sorted(
        (given["thread"], given["n"]) for given, _ in seen
    )


async def test_1000_concurrent_runs_are_kept_apart(grace):
    """One task per run, all at once, with tools in sequence and in parallel."""

    @grace.tool
    async def work(marker, n):
        for _ in range((marker * 7 + n) % 5):
            await asyncio.sleep(0)
        return f"{marker}/{n}"

    @grace.agent(objective="{marker}")
    async def agent(marker):
        await work(marker, 0)
        await asyncio.gather(*(work(marker, n) for n in (1, 2, 3)))
        return marker

    assert list(range(RUNS)) == await asyncio.gather(*(agent(marker) for marker in range(RUNS)))
    traces = grace.store.query(limit=ALL)
    assert list(range(RUNS)) == sorted(int(trace.task.objective) for trace in traces)
    for trace in traces:
        marker = int(trace.task.objective)
        assert_whole(trace)
        assert [({"marker": marker, "n": n}, f"{marker}/{n}") for n in range(4)] == sorted(
            calls_of(trace), key=lambda call: call[0]["n"]
        )


async def test_nested_agents_in_gather_are_each_a_trace_linked_to_their_own_call(grace):
    """Siblings that run at the same time do not become each other's children."""

    @grace.tool
    async def work(marker):
        await asyncio.sleep(0)
        return marker

    @grace.agent
    async def child(marker):
        return await work(marker)

    @grace.agent
    async def parent(marker):
        return await asyncio.gather(*(child(f"{marker} child {n}") for n in range(5)))

    with grace.collect() as traces:
        await asyncio.gather(*(parent(f"parent {n}") for n in range(20)))
    by_id = {trace.id: trace for trace in traces}
    parents = [trace for trace in traces if trace.grace["name"] == "parent"]
    assert (20, 100) == (len(parents), len(traces) - len(parents))
    for trace in parents:
        assert [f"{trace.task.objective} child {n}" for n in range(5)] == [
            by_id[one].task.objective for one in trace.grace["children"]
        ]
        for call in trace.grace["calls"]:
            inner = by_id[call["child"]]
            assert {"trace_id": trace.id, "call_id": call["call_id"]} == inner.grace["parent"]
            assert [({"marker": inner.task.objective}, inner.task.objective)] == calls_of(inner)


@pytest.mark.parametrize("instrument", [False, True])
def test_the_users_context_variables_are_untouched(grace, instrument):
    """Threads see of the user's variables exactly what they see without the library: nothing is copied, nothing leaks."""
    mine = contextvars.ContextVar("mine", default="default")
    mine.set("main")
    undo = gk.instrument_threads() if instrument else lambda: None
    seen = []

    def work(value):
        seen.append(mine.get())
        mine.set(value)

    try:
        with grace.run("x"), ThreadPoolExecutor(1) as pool:
            carry = (lambda function: function) if instrument else gk.propagate
            pool.submit(carry(work), "first").result()
            pool.submit(carry(work), "second").result()
            in_thread(carry(work), "third")
            assert "main" == mine.get()
    finally:
        undo()
    assert ["default", "first", "default"] == seen


def test_a_thread_that_outlives_the_run_records_a_trace_of_its_own(grace):
    """A tool called after the root has returned is not lost: its own trace names the run it came from."""
    ended, result = threading.Event(), []

    @grace.tool
    def late(text):
        return text.upper()

    def work():
        ended.wait(60)
        result.append(late("after the end"))

    @grace.agent
    def root(text):
        thread = threading.Thread(target=gk.propagate(work))
        thread.start()
        return thread

    thread = root("root")
    ended.set()
    thread.join(60)
    assert ["AFTER THE END"] == result
    traces = {trace.grace["name"]: trace for trace in grace.store.query(limit=ALL)}
    assert {"root", "late"} == set(traces)
    assert {"trace_id": traces["root"].id, "late": True} == traces["late"].grace["parent"]
    assert [({"text": "after the end"}, "AFTER THE END")] == calls_of(traces["late"])
