"""Ends of a process, with and without warning, and forks beside busy threads. `processes.py` has all ways to start and end one."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from fault_suite.scenarios import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from fault_suite.stage import Stage


def returns(stage: Stage) -> None:
    stage.runs()


def calls_sys_exit(stage: Stage) -> None:
    stage.runs()
    sys.exit(3)


def raises(stage: Stage) -> None:
    stage.runs()
    raise RuntimeError("the program fails")


def records_in_an_exit_handler(stage: Stage) -> None:
    atexit.register(stage.runs)
    stage.runs()


def records_after_close(stage: Stage) -> None:
    stage.runs()
    stage.agents.grace.close()
    stage.runs()


def leaves_a_daemon_thread(stage: Stage) -> None:
    stage.runs(5)
    threading.Thread(target=functools.partial(stage.runs, 100_000, steady=True), daemon=True).start()
    time.sleep(0.3)


def leaves_a_thread(stage: Stage) -> None:
    threading.Thread(target=functools.partial(stage.runs, 100, steady=True)).start()


def ends_its_event_loop(stage: Stage) -> None:
    async def main() -> None:
        for _ in range(50):
            await stage.agents.run_async()

    asyncio.run(main())


def is_interrupted(stage: Stage) -> None:
    stage.runs(steady=True)
    signal.raise_signal(signal.SIGINT)


def has_a_handler_for_sigterm(stage: Stage) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    stage.runs()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1)


def calls_os_exit(stage: Stage) -> None:
    stage.runs(steady=True)
    os._exit(0)


def is_terminated(stage: Stage) -> None:
    stage.runs(steady=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def is_killed(stage: Stage) -> None:
    stage.runs(steady=True)
    os.kill(os.getpid(), signal.SIGKILL)


def aborts(stage: Stage) -> None:
    stage.runs(steady=True)
    os.abort()


def crashes(stage: Stage) -> None:
    stage.runs(steady=True)
    ctypes.string_at(0)


def replaces_itself(stage: Stage) -> None:
    stage.runs(steady=True)
    os.execv(sys.executable, [sys.executable, "-c", ""])


def forks(stage: Stage, *, ends: Callable[[int], Any]) -> None:
    """Fork beside eight busy threads; parent and child record."""
    stage.runs(10)
    threads = [threading.Thread(target=functools.partial(stage.runs, 100, steady=True)) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        child = stage.more_agents(10_000)
        for _ in range(25):
            child.run()
        # The runtime of the parent, in the child.
        stage.agents.renumber(20_000)
        stage.runs(25)
        if ends is os._exit:
            child.grace.flush()
            stage.agents.grace.flush()
        ends(0)
    for thread in threads:
        thread.join()
    os.waitpid(pid, 0)


def spin(seconds: float) -> None:
    """Keep the interpreter busy."""
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        sum(range(100))


def fork_times(beside: Callable[[], Any], in_child: Callable[[int], Any]) -> list[float]:
    """The milliseconds that each of ten forks took beside eight threads that do `beside` all the time."""
    done, took = threading.Event(), []

    def work() -> None:
        while not done.is_set():
            beside()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for index in range(10):
        time.sleep(0.05)
        begin = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            in_child(index)
        took.append((time.perf_counter() - begin) * 1e3)
        os.waitpid(pid, 0)
    done.set()
    for thread in threads:
        thread.join()
    return took


def forks_again_and_again(stage: Stage) -> None:
    """Fork beside eight threads that compute, and beside eight that compute and record; each child records and leaves."""
    stage.runs(10)

    def compute_and_record() -> None:
        spin(0.002)
        stage.agents.run()

    def record_and_exit(index: int) -> None:
        stage.agents.renumber(1_000_000 * (index + 1))
        stage.runs(5)
        sys.exit(0)

    bare = fork_times(functools.partial(spin, 0.002), os._exit)
    stage.state(fork_ms=fork_times(compute_and_record, record_and_exit), bare_ms=bare)


SCENARIOS = {
    "the program returns": Scenario(returns),
    "`sys.exit(3)`": Scenario(calls_sys_exit),
    "an exception that nobody catches": Scenario(raises),
    "runs in a handler of `atexit`": Scenario(records_in_an_exit_handler),
    "runs after `close()`": Scenario(records_after_close),
    "a daemon thread still records": Scenario(leaves_a_daemon_thread),
    "a thread records after the main thread": Scenario(leaves_a_thread),
    "`asyncio.run` ends": Scenario(ends_its_event_loop),
    "SIGINT": Scenario(is_interrupted),
    "SIGTERM with a handler that exits": Scenario(has_a_handler_for_sigterm),
    "SIGTERM": Scenario(is_terminated, abrupt=True),
    "SIGKILL": Scenario(is_killed, abrupt=True),
    "`os._exit(0)`": Scenario(calls_os_exit, abrupt=True),
    "`os.abort()`": Scenario(aborts, abrupt=True),
    "a segmentation fault": Scenario(crashes, abrupt=True),
    "`os.execv`": Scenario(replaces_itself, abrupt=True),
    "`os.fork` beside 8 threads, the child calls `sys.exit`": Scenario(functools.partial(forks, ends=sys.exit)),
    "`os.fork` beside 8 threads, the child flushes and calls `os._exit`": Scenario(
        functools.partial(forks, ends=os._exit)
    ),
    "`os.fork` ten times beside 8 busy threads": Scenario(forks_again_and_again),
}
