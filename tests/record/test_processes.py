"""A process that forks, exits or is started by another records its own runs, and nothing is written twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import grace_kp as gk
from tests import warm
from tests.exhaustive import exhaustive, product
from tests.record.conftest import calls_of

pytestmark = pytest.mark.usefixtures("strict")

ROOT = Path(__file__).resolve().parents[2]

ALL = 100_000


def python(code, *args, flags=("-W", "error")):
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


def traces_of(tmp_path, code, *args, flags=("-W", "ignore::DeprecationWarning")):
    """Run a program that ends well; return what it has stored."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    ran = python(code, url, *args, flags=flags)
    assert (0, "") == (ran.returncode, ran.stderr)
    return stored_in(url)


def ended(tmp_path, start, use, end, run=subprocess.run, **settings):
    """Run the program `endings.py`; return its exit code, its stderr, and how many runs were recorded and stored."""
    counts, url = tmp_path / "counts", f"sqlite:///{tmp_path / 't.db'}"
    command = [sys.executable, *WARNINGS[run], str(ENDINGS), url, str(counts), start, use, end, "5"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    done = run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr, counts.stat().st_size, len(stored_in(url))


ENDINGS = Path(__file__).parent / "endings.py"
# The interpreters from which `warm` forks have warnings as errors, and a fork beside a thread is a warning from Python 3.12 on.
WARNINGS = {warm.run: (), subprocess.run: ("-W", "ignore")}


@pytest.mark.parametrize(
    ("end", "code", "recorded"),
    [
        ("return_", 0, 5),
        ("sys_exit", 3, 5),
        ("exception", 1, 5),
        ("sigterm_handler", 0, 5),
        ("sigint", 1, 5),
        ("thread", 0, 10),
        ("executor", 0, 25),
        ("atexit", 0, 10),
        ("weakref_finalize", 0, 10),
        ("asyncio_cancelled", 1, 10),
        ("flush_os_exit", 0, 5),
        ("flush_sigterm", -15, 5),
        ("flush_sigkill", -9, 5),
        ("flush_execv", 0, 5),
    ],
)
def test_a_process_that_ends_loses_no_run(tmp_path, end, code, recorded):
    """Everything that runs Python code at the end stores all runs, and after a flush nothing has to run."""
    ran, _, *counts = ended(tmp_path, "plain", "module", end, warm.run)
    # The interpreter reports an interrupt as 1 or -2, depending on its version and on what it ran since.
    assert (code, [recorded, recorded]) == (1 if ran == -signal.SIGINT else ran, counts)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        *product(["fork", "process:fork"], ["return_", "sys_exit", "exception", "sigterm_handler"]),
        ("fork", "thread"),
        ("fork", "executor"),
    ],
)
def test_a_forked_process_that_ends_loses_no_run(tmp_path, start, end):
    _, _, recorded, stored = ended(tmp_path, start, "before", end, warm.run)
    assert recorded == stored > 5


@pytest.mark.parametrize(
    ("start", "use"),
    [
        ("process:fork", "child"),
        ("pool:fork", "child"),
        ("process:forkserver", "module"),
        ("executor:forkserver", "child"),
        pytest.param("double_fork", "module", marks=exhaustive),
        pytest.param("process:spawn", "before", marks=exhaustive),
    ],
)
def test_a_child_loses_no_run_wherever_its_runtime_begins(tmp_path, start, use):
    """At module level, in the parent before, or in the child on first use."""
    code, errors, recorded, stored = ended(tmp_path, start, use, "return_")
    assert (0, "", recorded) == (code, errors, stored)
    assert recorded >= 5


@pytest.mark.parametrize(
    ("start", "use", "end"),
    [
        *(("plain", "module", end) for end in ("os_exit", "sigterm", "sigkill", "execv")),
        ("fork", "before", "os_exit"),
        ("process:fork", "child", "sigkill"),
        ("terminated:fork", "child", "return_"),
        ("pool_block:fork", "child", "return_"),
    ],
)
def test_an_end_without_python_code_loses_no_run_with_the_durability_every_run(tmp_path, start, use, end):
    """Every run that had returned, which the program itself counts, is found complete, and once, by the next process."""
    _, _, recorded, stored = ended(tmp_path, start, use, end, GRACE_KP_DURABILITY="every_run")
    traces = stored_in(f"sqlite:///{tmp_path / 't.db'}")
    assert {"completed"} == {trace.status for trace in traces}
    assert recorded == stored == len(traces) >= 5


PROCESS = """
import multiprocessing, os, sys
import grace_kp as gk

grace = gk.Grace(store=sys.argv[1], reviewer=None, embedder=None)

@grace.tool
def work(marker, n):
    return f"{marker}/{n}"

@grace.agent
def agent(marker):
    for n in range(3):
        work(marker, n)
    return marker
"""


def test_a_fork_in_the_middle_of_a_run_writes_nothing_twice(tmp_path):
    """The parent's run is stored once, by the parent; the child stores its own new runs, once each."""
    code = PROCESS + textwrap.dedent("""
        agent("before")
        with grace.run("parent", name="parent"):
            work("parent", 0)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                work("child, in the parent's run", 1)
                for n in range(5):
                    agent(f"child {n}")
                stored = grace.flush(60)
                os.write(write, b"stored" if stored else b"not stored")
                os._exit(0)
            os.close(write)
            assert os.read(read, 100) == b"stored"
            assert os.waitpid(child, 0)[1] == 0
            work("parent", 2)
        agent("after")
    """)
    traces = traces_of(tmp_path, code)
    assert sorted(["before", "parent", "after", *(f"child {n}" for n in range(5))]) == sorted(
        trace.task.objective for trace in traces
    )
    assert len(traces) == len({trace.id for trace in traces})
    (parent,) = [trace for trace in traces if trace.task.objective == "parent"]
    assert "completed" == parent.grace["status"]
    assert ["parent/0", "parent/2"] == [content for _, content in calls_of(parent)]


def test_a_forked_child_that_leaves_the_block_does_not_end_the_parents_run(tmp_path):
    """A child that runs on to its normal exit ends its own runs only."""
    code = PROCESS + textwrap.dedent("""
        with grace.run("parent", name="parent"):
            work("parent", 0)
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                work("parent", 1)
        agent("of the child" if child == 0 else "of the parent")
    """)
    traces = traces_of(tmp_path, code)
    assert ["of the child", "of the parent", "parent"] == sorted(trace.task.objective for trace in traces)
    (parent,) = [trace for trace in traces if trace.task.objective == "parent"]
    assert ["parent/0", "parent/1"] == [content for _, content in calls_of(parent)]


def test_a_fork_while_other_threads_record_does_not_hang(tmp_path):
    """No lock that another thread held at that moment stops the child."""
    code = PROCESS.replace("embedder=None", "embedder=None, overflow='wait'") + textwrap.dedent("""
        import signal, threading
        from grace_kp.background import _process
        _process.LOCK_SECONDS = 60.0  # a fork stops waiting after five seconds, which a busy machine may need
        stop = threading.Event()
        def busy(index):
            n = 0
            while not stop.is_set():
                agent(f"thread {index} {n}")
                n += 1
        threads = [threading.Thread(target=busy, args=(index,), daemon=True) for index in range(4)]
        for thread in threads: thread.start()
        for round in range(4):
            child = os.fork()
            if child == 0:
                signal.alarm(120)
                agent(f"child {round}")
                os._exit(0 if grace.flush(60) else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads: thread.join()
    """)
    objectives = [trace.task.objective for trace in traces_of(tmp_path, code)]
    assert len(objectives) == len(set(objectives))
    assert {f"child {n}" for n in range(4)} == {one for one in objectives if one.startswith("child")}


@pytest.mark.parametrize("module", ["grace_kp.store", "grace_kp.runtime._writer", "grace_kp.store._sqlite", "sqlite3"])
def test_a_fork_waits_for_a_thread_that_imports_and_then_asks_for_a_logger(tmp_path, module):
    """Logging holds its own lock during a fork; who waits for the importing thread must not hold that one meanwhile."""
    code = PROCESS + textwrap.dedent("""
        import importlib.abc, logging, signal, threading, time

        importing = threading.Event()

        class Slow(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == sys.argv[2] and not importing.is_set():
                    importing.set()
                    time.sleep(0.3)
                    logging.getLogger(f"slow.{name}")

        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=agent, args=("thread",))
        thread.start()
        assert importing.wait(60)
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            agent("child")
            os._exit(0 if grace.flush(60) else 1)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
    """)
    assert ["child", "thread"] == sorted(trace.task.objective for trace in traces_of(tmp_path, code, module))


def test_a_journal_that_is_written_in_the_moment_a_call_begins_loses_nothing(tmp_path):
    """The background thread meets calls that are only just being made."""
    code = PROCESS.replace("grace = gk.Grace(", "grace = gk.Grace(journal_ms=5, ") + textwrap.dedent("""
        sys.setswitchinterval(1e-6)
        for n in range(40):
            with grace.run(f"run {n}", name="run"):
                for k in range(200):
                    work("x", k)
        assert grace.flush(60)
        status = grace.status()
        assert not status["writer"]["errors"] and not status["writer"]["last_error"], status
    """)
    assert [400] * 40 == [len(trace.steps) for trace in traces_of(tmp_path, code, flags=("-W", "error"))]


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
    traces = traces_of(
        tmp_path,
        """
        import sys, threading
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
            threading.Event().wait()
        begun, go, done = (threading.Event() for _ in range(3))
        with grace.run("finished"): work(0)
        threading.Thread(target=forever, args=("open",), daemon=True).start()
        begun.wait(60)
        grace.flush()
        go.set()
        done.wait(60)
        if sys.argv[2] == "True": grace.close()
        """,
        closes,
        flags=("-W", "error"),
    )
    traces = {trace.task.objective: trace for trace in traces}
    assert {"finished", "open"} == set(traces)
    assert "completed" == traces["finished"].grace["status"]
    assert "interrupted" == traces["open"].grace["status"]
    assert [{"n": 1}, {"n": 2}] == [step.input for step in traces["open"].steps if step.type == "tool_call"]
