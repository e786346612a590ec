"""Runs are kept apart in threads, tasks and loops; they reach other threads by a propagated function, or in every thread once instrumented."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk

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
    barrier, errors = threading.Barrier(number), []

    def one(index):
        try:
            barrier.wait()
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == errors


def calls_of(trace):
    """(input, observation's content) of every call, each observation found by its call id."""
    steps = trace.steps
    return [(steps[call["tool_call"]].input, steps[call["observation"]].content) for call in trace.grace["calls"]]


async def by_to_thread(work):
    await asyncio.to_thread(work)


async def by_run_in_executor(work):
    await asyncio.get_running_loop().run_in_executor(None, work)


async def by_own_executor(work):
    with ThreadPoolExecutor(1) as pool:
        await asyncio.get_running_loop().run_in_executor(pool, work)


async def by_submit(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


async def by_map(work):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: work(), range(1)))


async def by_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def by_thread_subclass(work):
    class Own(threading.Thread):
        def run(self):
            work()

    thread = Own()
    thread.start()
    thread.join()


async def by_timer(work):
    timer = threading.Timer(0, work)
    timer.start()
    timer.join()


async def by_copied_context(work):
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join()


async def by_propagate(work):
    thread = threading.Thread(target=gk.propagate(work))
    thread.start()
    thread.join()


ALWAYS = [by_to_thread, by_copied_context, by_propagate]


ONLY_INSTRUMENTED = [
    by_run_in_executor,
    by_own_executor,
    by_submit,
    by_map,
    by_thread,
    by_thread_subclass,
    by_timer,
]


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


@pytest.mark.parametrize("way", ALWAYS)
async def test_what_copies_the_context_keeps_the_run_always(grace, way):
    """`asyncio.to_thread`, a copied context and `gk.propagate` need nothing else."""
    assert ["root"] == await names_of_traces_when(grace, way)


@pytest.mark.parametrize("way", ONLY_INSTRUMENTED)
async def test_bare_threads_do_not_keep_the_run_before_they_are_instrumented(grace, way):
    """The tool is then a run of its own, as any call outside of a run."""
    assert ["look", "root"] == await names_of_traces_when(grace, way)


@pytest.mark.parametrize("way", [*ALWAYS, *ONLY_INSTRUMENTED])
@pytest.mark.usefixtures("instrumented")
async def test_every_thread_keeps_the_run_once_instrumented(grace, way):
    """After `gk.instrument_threads()` all of them do."""
    assert ["root"] == await names_of_traces_when(grace, way)


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
def test_a_pool_does_not_hold_on_to_a_finished_run(grace):
    """Neither the worker that a run happened to start nor its queue keeps the run alive."""

    @grace.tool
    def work():
        return "done"

    def live():
        gc.collect()
        return [one for one in gc.get_objects() if type(one) is gk.Run and one.name == "starter of the pool"]

    with ThreadPoolExecutor(2) as pool:

        @grace.agent(name="starter of the pool")
        def agent(text):
            tasks = [pool.submit(work) for _ in range(8)]
            assert 1 == len(live())
            return {task.result() for task in tasks}

        agent("x")
        grace.flush()
        assert "other" == pool.submit(lambda: "other").result()
        assert [] == live()


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
    """An instrumented executor hands on exactly what it would have."""
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


def test_asking_from_many_threads_at_once_restores_the_originals():
    """Instrumenting is guarded: the originals are never lost."""
    submit, start = ThreadPoolExecutor.submit, threading.Thread.start
    undoings = []

    def ask(_):
        for _ in range(20):
            undoings.append(gk.instrument_threads())

    in_threads(16, ask)
    for undo in undoings:
        undo()
    assert (submit, start) == (ThreadPoolExecutor.submit, threading.Thread.start)


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


def test_propagate_outside_of_any_run_changes_nothing():
    """The function itself comes back."""

    def work(): ...

    assert gk.propagate(work) is work


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


def test_64_threads_with_runs_of_their_own_are_kept_apart(grace):
    """Every run has exactly its own calls, in its own order, and none is missing."""

    @grace.tool
    def work(marker, n):
        return f"{marker}/{n}"

    @grace.agent
    def agent(marker):
        for n in range(6):
            work(marker, n)
        return marker

    in_threads(THREADS, lambda index: [agent(f"thread {index} run {run}") for run in range(5)])
    traces = grace.store.query(limit=ALL)
    assert sorted(f"thread {t} run {r}" for t in range(THREADS) for r in range(5)) == sorted(
        trace.task.objective for trace in traces
    )
    for trace in traces:
        marker = trace.task.objective
        assert_whole(trace)
        assert [({"marker": marker, "n": n}, f"{marker}/{n}") for n in range(6)] == calls_of(trace)
        assert marker == trace.outcome.result_summary
    assert 0 == grace.status()["open_runs"]


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


def test_threads_of_one_run_keep_their_own_order(grace):
    """What one thread does in order stands in that order, whatever the other threads do in between."""

    @grace.tool
    def work(thread, n):
        return n

    with grace.run("shared"):
        in_threads(8, gk.propagate(lambda index: [work(index, n) for n in range(50)]))
    (trace,) = grace.store.query(limit=ALL)
    for thread in range(8):
        assert list(range(50)) == [given["n"] for given, _ in calls_of(trace) if given["thread"] == thread]


def test_failures_in_threads_stay_with_the_run_they_happened_in(grace):
    """An error in one run makes no other run fail or recover."""

    @grace.tool
    def work(marker):
        if marker % 2:
            raise ValueError(f"error of {marker}")
        return marker

    @grace.agent(objective="{marker}")
    def agent(marker):
        try:
            return work(marker)
        except ValueError:
            if marker % 4 == 1:
                raise
            return "recovered"

    def one(index):
        with contextlib.nullcontext() if index % 4 != 1 else pytest.raises(ValueError, match=f"^error of {index}$"):
            agent(index)

    in_threads(THREADS, one)
    for trace in grace.store.query(limit=ALL):
        marker = int(trace.task.objective)
        kinds = [step.type for step in trace.steps]
        assert (marker % 4 != 1) is trace.metadata.success
        assert (1 if marker % 4 == 3 else 0) == kinds.count("error_recovery")
        if marker % 2:
            assert f"ValueError: error of {marker}" == trace.steps[1].content


async def test_1000_concurrent_runs_are_kept_apart(grace):
    """One task per run, all at once, with tools in sequence and in parallel."""

    @grace.tool
    async def work(marker, n):
        await asyncio.sleep((marker * 7 + n) % 5 / 1_000)
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


async def test_1000_concurrent_streams_are_kept_apart(grace):
    """Async generators that take turns do not mix what they call and yield."""

    @grace.tool
    async def work(marker, n):
        await asyncio.sleep(0)
        return f"{marker}/{n}"

    @grace.agent(objective="{marker}")
    async def agent(marker):
        for n in range(3):
            yield await work(marker, n)

    async def consume(marker):
        return [item async for item in agent(marker)]

    await asyncio.gather(*(consume(marker) for marker in range(RUNS)))
    traces = grace.store.query(limit=ALL)
    assert RUNS == len(traces)
    for trace in traces:
        marker = int(trace.task.objective)
        assert [({"marker": marker, "n": n}, f"{marker}/{n}") for n in range(3)] == calls_of(trace)
        assert "".join(f"{marker}/{n}" for n in range(3)) == trace.outcome.result_summary


def test_loops_in_threads_are_kept_apart(grace):
    """Several event loops, each in its own thread."""

    @grace.tool
    async def work(marker):
        await asyncio.sleep(0.001)
        return marker

    @grace.agent
    async def agent(marker):
        return await work(marker)

    async def many(index):
        await asyncio.gather(*(agent(f"loop {index} run {n}") for n in range(25)))

    in_threads(8, lambda index: asyncio.run(many(index)))
    traces = grace.store.query(limit=ALL)
    assert 200 == len({trace.task.objective for trace in traces}) == len(traces)
    assert all([({"marker": t.task.objective}, t.task.objective)] == calls_of(t) for t in traces)


async def test_nested_agents_in_gather_are_each_a_trace_linked_to_their_own_call(grace):
    """Siblings that run at the same time do not become each other's children."""

    @grace.tool
    async def work(marker):
        await asyncio.sleep(0.001)
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
            thread = threading.Thread(target=carry(work), args=("third",))
            thread.start()
            thread.join()
            assert "main" == mine.get()
    finally:
        undo()
    assert ["default", "first", "default"] == seen


async def test_what_an_agent_sets_is_as_visible_as_without_recording(grace):
    """A variable set inside an awaited agent is seen by its caller, as for any awaited coroutine."""
    mine = contextvars.ContextVar("mine", default="default")

    @grace.agent
    async def agent(text):
        mine.set(text)

    await agent("set inside")
    assert "set inside" == mine.get()


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


async def test_a_task_that_outlives_the_run_records_a_trace_of_its_own(grace):
    """The same for a background task."""

    @grace.tool
    async def late(text):
        await asyncio.sleep(0)
        return text

    release = asyncio.Event()

    async def background():
        await release.wait()
        return await late("after")

    @grace.agent
    async def root(text):
        return asyncio.create_task(background())

    with grace.collect() as traces:
        task = await root("root")
        release.set()
        assert "after" == await task
    assert ["root", "late"] == [trace.grace["name"] for trace in traces]
    assert {"trace_id": traces[0].id, "late": True} == traces[1].grace["parent"]
