"""A program that records runs in a process started in some manner, and ends this process in some manner.

    python endings.py STORE COUNTS START USE END [RUNS]

It appends a byte to the file COUNTS for each run that has returned, so that whoever starts it can compare with the store. USE says where
the runtime begins: `module` (at module level, used in the child only), `before` (used in the parent before) or `child` (imported in the
child on first use). An END that begins with `flush_` flushes before it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

STORE, COUNTS, START, USE, END = sys.argv[1:6]
RUNS = int(sys.argv[6]) if len(sys.argv) > 6 else 20
FILE = os.open(COUNTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
RUNTIME = {}
EARLIEST = []
atexit.register(
    lambda: [handler() for handler in EARLIEST]
)  # registered before the library, so this runs after its handler


def load():
    """Return the decorated agent and its runtime, created on first use."""
    if not RUNTIME:
        import grace_kp as gk

        grace = RUNTIME["grace"] = gk.Grace(store=STORE, reviewer=None, embedder=None, evaluator=None)

        @grace.tool
        def work(n):
            return n

        @grace.agent
        def agent(objective):
            return work(len(objective))

        RUNTIME["agent"] = agent
    return RUNTIME


if USE != "child":
    load()


def record(name="child", runs=RUNS):
    agent = load()["agent"]
    for n in range(runs):
        agent(f"{name} {os.getpid()} {n}")
        os.write(FILE, b".")


def sleep_and_record(*_):
    time.sleep(0.1)
    record("late")


class Recorder:
    """Records when it is collected."""

    def __del__(self):
        record("late")


class Ends:
    """Ways to end the current process, after it has recorded."""

    def return_(self):
        pass

    def sys_exit(self):
        sys.exit(3)

    def exception(self):
        raise LookupError("as intended")

    def os_exit(self):
        os._exit(0)

    def sigterm(self):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    def sigterm_handler(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    def sigint(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()

    def sigkill(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def abort(self):
        os.abort()

    def execv(self):
        os.execv(sys.executable, [sys.executable, "-c", "pass"])

    def thread(self):
        threading.Thread(target=sleep_and_record).start()

    def daemon_thread(self):
        def run():
            with contextlib.suppress(RuntimeError):
                while True:
                    record("daemon", 1)

        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.05)

    def executor(self):
        pool = ThreadPoolExecutor(2)
        for _ in range(4):
            pool.submit(sleep_and_record)

    def sys_exit_in_thread(self):
        def run():
            record("thread")
            sys.exit(4)

        threading.Thread(target=run).start()

    def atexit(self):
        EARLIEST.append(lambda: record("late"))

    def atexit_first(self):
        EARLIEST.append(lambda: (RUNTIME.clear(), record("late")))

    def weakref_finalize(self):
        weakref.finalize(load, record, "late")

    def del_(self):
        load()["recorder"] = Recorder()

    def asyncio_cancelled(self):
        async def main():
            try:
                await asyncio.sleep(60)
            finally:
                record("cancelled")

        async def both():
            task = asyncio.create_task(main())
            await asyncio.sleep(0)
            task.cancel()
            await task

        asyncio.run(both())

    def mp_finalize(self):
        from multiprocessing.util import Finalize

        Finalize(None, record, ("late",), exitpriority=0)


def end():
    if END.startswith("flush_"):
        assert load()["grace"].flush()
    getattr(Ends(), END.removeprefix("flush_"))()


def job(*_):
    record()
    end()


def task(*_):
    record()


def fork_and(child):
    """Fork, run `child` in the child as the rest of the program, and wait in the parent, which then ends."""
    pid = os.fork()
    if pid == 0:
        child()
        return
    os.waitpid(pid, 0)


class Starts:
    """Ways to start the process that records."""

    def plain(self):
        job()

    def thread(self):
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()

    def fork(self):
        fork_and(job)

    def double_fork(self):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() != 0:
                os._exit(0)
            os.close(reader)
            job()
            return  # the pipe closes when this process has ended
        os.close(writer)
        os.wait()
        os.read(reader, 1)

    def subprocess(self):
        self._again(lambda command: subprocess.run(command, check=False))

    def posix_spawn(self):
        self._again(lambda command: os.waitpid(os.posix_spawn(command[0], command, os.environ), 0))

    def _again(self, run):
        run([sys.executable, __file__, STORE, COUNTS, "plain", USE, END, str(RUNS)])

    def process(self, method):
        import multiprocessing

        child = multiprocessing.get_context(method).Process(target=job)
        child.start()
        child.join()

    def terminated(self, method, signal_name="terminate"):
        import multiprocessing

        context = multiprocessing.get_context(method)
        recorded = context.Event()
        child = context.Process(target=record_and_wait, args=(recorded,))
        child.start()
        recorded.wait()
        getattr(child, signal_name)()
        child.join()

    def killed(self, method):
        self.terminated(method, "kill")

    def pool(self, method):
        import multiprocessing

        pool = multiprocessing.get_context(method).Pool(2)
        pool.map(task, range(4))
        pool.close()
        pool.join()

    def pool_block(self, method):
        import multiprocessing

        with multiprocessing.get_context(method).Pool(2) as pool:
            pool.map(task, range(4))

    def pool_maxtasks(self, method):
        import multiprocessing

        pool = multiprocessing.get_context(method).Pool(2, maxtasksperchild=1)
        pool.map(task, range(4), chunksize=1)
        pool.close()
        pool.join()

    def executor(self, method):
        import multiprocessing

        with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
            list(pool.map(task, range(4)))

    def preloaded(self, method):
        import multiprocessing

        multiprocessing.get_context(method).set_forkserver_preload(["__main__", "grace_kp", "endings"])
        self.process(method)


def record_and_wait(recorded):
    record()
    recorded.set()
    time.sleep(60)


if __name__ == "__main__":
    if USE == "before":
        record("parent")
    name, _, method = START.partition(":")
    getattr(Starts(), name)(*([method] if method else []))
