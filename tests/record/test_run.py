"""A live run takes thoughts, an outcome and attributes, and ends once."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp.record import Listener, Recorder, Run
from grace_kp.settings import Settings


def test_thoughts_and_the_own_outcome(grace):
    """`thought` is a step; the run's own confidence and success win."""

    @grace.agent
    def root():
        grace.thought("hm")
        grace.outcome(confidence=0.25, success=False)
        return "x"

    with grace.collect() as traces:
        root()
    assert traces[0].steps[0].content == "hm"
    assert traces[0].outcome.confidence == 0.25
    assert traces[0].metadata.success is False


@pytest.mark.parametrize("confidence", [float("nan"), 1.5, -1, "high", True])
def test_an_unusable_own_confidence_is_not_taken_and_breaks_nothing(grace, confidence, monkeypatch):
    """A model's slip must not break the agent; the computed confidence stays."""
    monkeypatch.delenv("GRACE_KP_STRICT_RECORDING", raising=False)

    @grace.agent
    def root():
        grace.outcome(confidence=confidence)
        return "x"

    with grace.collect() as traces:
        assert root() == "x"
    assert traces[0].outcome.confidence == traces[0].grace["confidence"]["score"]


ROOT = Path(__file__).resolve().parents[2]


ALL = 100_000


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """An error inside recording fails the test instead of being survived."""
    monkeypatch.setenv("GRACE_KP_STRICT_RECORDING", "1")


def python(code, *args, flags=("-W", "error")):
    """A fresh interpreter that runs `code`, a text or a file."""
    what = [str(code)] if isinstance(code, Path) else ["-c", textwrap.dedent(code)]
    return subprocess.run(
        [sys.executable, *flags, *what, *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def stored_in(url):
    with gk.Grace(store=url, embedder=None, reviewer=None) as reader:
        return reader.store.query(limit=ALL)


async def test_a_cancelled_task_closes_its_run_as_cancelled(grace):
    """The run, and the tool it was waiting in, say so; the others go on."""

    @grace.tool
    async def wait(seconds):
        await asyncio.sleep(seconds)
        return "done"

    @grace.agent
    async def agent(marker, seconds):
        return await wait(seconds)

    with grace.collect() as traces:
        slow = asyncio.create_task(agent("slow", 60))
        fast = asyncio.create_task(agent("fast", 0.001))
        assert "done" == await fast
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
    statuses = {trace.task.objective: (trace.grace["status"], trace.grace["calls"][0]["status"]) for trace in traces}
    assert {"fast": ("completed", "ok"), "slow": ("cancelled", "cancelled")} == statuses
    assert {"fast": True, "slow": False} == {trace.task.objective: trace.metadata.success for trace in traces}


async def test_a_failing_task_group_tells_the_failed_from_the_cancelled(grace):
    """The group's error ends the run; the sibling that was cancelled for it is not called a failure."""

    @grace.tool
    async def fail():
        await asyncio.sleep(0.001)
        raise ValueError("no")

    @grace.tool
    async def wait():
        await asyncio.sleep(60)

    @grace.agent
    async def agent(marker):
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(fail())

    with grace.collect() as traces, pytest.raises(ExceptionGroup):
        await agent("x")
    (trace,) = traces
    assert "failed" == trace.grace["status"]
    assert {"wait": "cancelled", "fail": "error"} == {c["name"]: c["status"] for c in trace.grace["calls"]}


async def test_a_timeout_around_an_agent_cancels_its_run(grace):
    """`asyncio.timeout` works as without recording."""

    @grace.agent
    async def agent(marker):
        await asyncio.sleep(60)

    with grace.collect() as traces, pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await agent("x")
    assert "cancelled" == traces[0].grace["status"]


def test_a_call_that_is_unfinished_at_the_end_is_marked_so(grace):
    """A tool still running in another thread has its call, no observation, and no time."""
    started, release = threading.Event(), threading.Event()

    @grace.tool
    def slow():
        started.set()
        release.wait(60)
        return "too late"

    with grace.collect() as traces:
        with grace.run("root"):
            thread = threading.Thread(target=gk.propagate(slow))
            thread.start()
            assert started.wait(60)
        release.set()
        thread.join()
    (trace,) = traces
    (call,) = trace.grace["calls"]
    assert "unfinished" == call["status"]
    assert "observation" not in call
    assert "latency_ms" not in call
    assert ["tool_call"] == [step.type for step in trace.steps]


@pytest.mark.parametrize(
    ("leave", "status", "code"),
    [
        ("signal.raise_signal(signal.SIGINT)\n    await asyncio.sleep(10)", "cancelled", -2),
        ("raise KeyboardInterrupt", "cancelled", -2),
        ("raise SystemExit(3)", "exited", 3),
        ("sys.exit('bye')", "exited", 1),
    ],
)
def test_leaving_asyncio_run_closes_the_run_and_says_how(tmp_path, leave, status, code):
    """Ctrl-C and SystemExit in a coroutine: the process ends as without recording, and the trace is stored.

    A run before it has loaded what finishing takes: Python forgets that it was ended by Ctrl-C when modules are loaded at its exit,
    and then exits with 1 instead.
    """
    body = f"""
import asyncio, signal, sys
import grace_kp as gk
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background may have inherited "ignored"
grace = gk.Grace(store=sys.argv[1], reviewer=None, embedder=None)
record = sys.argv[2] == "recorded"
async def work(n):
    await asyncio.sleep(0)
    {leave}
async def agent(text):
    await work(1)
if record:
    with grace.run("before"):
        grace.thought("ready")
    grace.flush()
    work, agent = grace.tool(work), grace.agent(agent)
asyncio.run(agent("leave"))
"""
    url = f"sqlite:///{tmp_path / 't.db'}"
    plain, recorded = python(body, url, "plain"), python(body, url, "recorded")
    assert (code, plain.stdout) == (plain.returncode, recorded.stdout)
    assert plain.returncode == recorded.returncode
    assert plain.stderr.splitlines()[-1:] == recorded.stderr.splitlines()[-1:]
    (trace,) = (trace for trace in stored_in(url) if trace.task.objective == "leave")
    assert (status, False) == (trace.grace["status"], trace.metadata.success)
    assert [status] == [call["status"] for call in trace.grace["calls"]]


@pytest.mark.parametrize("closes", [False, True])
def test_a_run_left_open_at_exit_is_found_with_what_it_had_done(tmp_path, closes):
    """The interpreter exits in the middle, before the journal is due: the process does not hang, and the steps so far are not lost."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    ran = python(
        """
        import sys, threading, time
        import grace_kp as gk
        from grace_kp.runtime import _writer
        _writer.STOP_SECONDS = 60.0  # one is too few where a machine is busy
        grace = gk.Grace(store=sys.argv[1], reviewer=None, embedder=None, journal_ms=60_000)
        @grace.tool
        def work(n): return n
        @grace.agent
        def forever(text):
            work(1)
            begun.set()
            go.wait(60)
            work(2)
            done.set()
            time.sleep(600)
        begun, go, done = (threading.Event() for _ in range(3))
        with grace.run("finished"): work(0)
        threading.Thread(target=forever, args=("open",), daemon=True).start()
        begun.wait(60)
        grace.flush()
        time.sleep(0.1)  # until the writer has nothing to do
        go.set()
        done.wait(60)
        if sys.argv[2] == "True": grace.close()
        """,
        url,
        str(closes),
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    traces = {trace.task.objective: trace for trace in stored_in(url)}
    assert {"finished", "open"} == set(traces)
    assert "completed" == traces["finished"].grace["status"]
    assert "interrupted" == traces["open"].grace["status"]
    assert [{"n": 1}, {"n": 2}] == [step.input for step in traces["open"].steps if step.type == "tool_call"]


def test_a_run_of_another_runtime_that_outlives_its_parent_is_stored(grace):
    """The parent has been stored, and released what it recorded, when the number of its call is asked for."""
    begun, go = threading.Event(), threading.Event()

    def work():
        with other.run("inner"):
            begun.set()
            go.wait(60)

    @grace.tool
    def start():
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(work))
        thread.start()
        assert begun.wait(60)
        return thread

    with gk.Grace(store="memory:", reviewer=None, embedder=None, evaluator=None) as other:
        with grace.run("outer"):
            thread = start()
        assert grace.flush()
        go.set()
        thread.join(60)
        assert other.flush()
        (inner,) = other.store.query()
    (outer,) = grace.store.query()
    (call,) = (call for call in outer.grace["calls"] if call.get("child") == inner.id)
    assert {"trace_id": outer.id, "call_id": call["call_id"]} == inner.grace["parent"]


def in_another_thread(function):
    """Run a function to its end in another thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_the_writer_and_the_user_who_ask_at_the_same_time_get_the_same_id(tmp_path):
    """The journal that is written while the user's thread creates the id belongs to the run, and is deleted when it has ended."""
    asked = []

    def new_id():
        number = len(asked)
        asked.append(number)
        if number == 0:
            in_another_thread(grace._writer._write_journal)
        return f"kp:trace:{number}"

    url = f"sqlite:///{tmp_path / 't.db'}"
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None, new_id=new_id) as grace:
        grace.recorder.opened = lambda _run: None  # the writer's own thread stays out of it until the run has ended
        with grace.run("x") as run:
            first = run.id
        assert grace.flush()
        assert [first] == [trace.id for trace in grace.store.query()]
        assert [] == grace.store._connection.execute("SELECT run_id FROM journal").fetchall()
    assert ([0, 1], first) == (asked, run.id)


def test_a_resumed_run_that_two_threads_ask_for_its_id_continues_the_earlier_run():
    """The second thread waits until the first has found the earlier part; neither of them starts a new trace."""
    looked, ids, threads = threading.Event(), [], []
    lock = threading.Lock()

    class Earlier(dict):
        def __getitem__(self, name):
            if name == "id" and not threads:
                threads.append(threading.Thread(target=lambda: (ids.append(run.id), looked.set())))
                threads[0].start()
                looked.wait()
            return super().__getitem__(name)

    def recall(run):
        if threads:
            looked.set()
        with lock:
            if run.resumes is not None:
                run.resume(Earlier({"id": "kp:trace:earlier"}))

    owner = Recorder(Settings(), Listener(recall=recall), new_id=lambda: "kp:trace:new")
    run = Run(owner, None, name="x", objective="x", domain="default")
    run.resumes = object()
    ids.append(run.id)
    threads[0].join()
    assert ["kp:trace:earlier"] * 2 == ids
    assert ({"id": "kp:trace:earlier"}, ()) == (run.earlier, run.missing)
