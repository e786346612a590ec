"""The current run is carried into other threads, one function at a time or everywhere."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk

THREADS = 64


ALL = 100_000


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """An error inside recording fails the test instead of being survived."""
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "1")


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
