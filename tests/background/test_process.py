"""Forks and exits: which locks are held, who is told, and in which order."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path

import pytest

from grace_kp.background import Resident, Worker
from grace_kp.background._process import Haste, Process


class Probe(Resident):
    """Notes what it is told."""

    def __init__(self, name, told, locks=()):
        self.name, self.told, self.locks = name, told, locks

    def fork_locks(self):
        return self.locks

    def after_fork(self):
        self.told.append(f"{self.name} after fork")

    def at_exit(self):
        self.told.append(f"{self.name} at exit")


class Broken(Probe):
    def at_exit(self):
        raise ValueError("no")


@pytest.fixture
def process():
    return Process()


def test_the_newest_leave_first_and_some_at_the_end(process):
    """Whoever may still be handed work leaves last."""
    told = []
    probes = [Probe(name, told) for name in "abc"]
    process.watch(probes[0])
    process.watch(probes[1], last=True)
    process.watch(probes[2])
    process.exit()
    assert ["c at exit", "a at exit", "b at exit"] == told


def test_one_that_fails_at_exit_does_not_keep_the_others(process, caplog):
    """The failure is logged, and the rest finish."""
    told = []
    probes = [Probe("a", told), Broken("b", told)]
    for probe in probes:
        process.watch(probe)
    with caplog.at_level(logging.WARNING, "grace_kp.background"):
        process.exit()
    assert ["a at exit"] == told
    assert ["Broken failed at exit: ValueError: no"] == caplog.messages


def test_residents_are_not_kept_alive(process):
    """One that is gone is told nothing."""
    told = []
    probe = Probe("a", told)
    process.watch(probe)
    del probe
    gc.collect()
    process.exit()
    assert [] == told


def test_locks_are_held_during_a_fork_and_released_in_the_parent(process):
    """In the order in which they are taken; released again, so that the parent goes on."""
    locks = [threading.Lock(), threading.RLock()]
    probe = Probe("a", [], locks)
    process.watch(probe)
    process.before_fork()
    assert locks[0].locked()
    process.after_fork_in_parent()
    assert not locks[0].locked()
    assert locks[1].acquire(blocking=False)


def test_a_resident_that_appears_while_locks_are_taken_is_locked_too(process):
    """Another thread may just have created it, and be using it."""
    late = threading.Lock()
    probes = []

    class Creating(Probe):
        def fork_locks(self):
            if not probes:
                probes.append(Probe("late", [], [late]))
                process.watch(probes[0])
            return self.locks

    first = threading.Lock()
    creating = Creating("a", [], [first])
    process.watch(creating)
    process.before_fork()
    assert (True, True) == (first.locked(), late.locked())
    process.after_fork_in_parent()
    assert (False, False) == (first.locked(), late.locked())


def test_a_lock_that_stays_busy_does_not_hold_the_fork_up(process, monkeypatch):
    """It is not released by the fork, either."""
    monkeypatch.setattr("grace_kp.background._process.LOCK_SECONDS", 0.01)
    lock = threading.Lock()
    lock.acquire()
    probe = Probe("a", [], [lock])
    process.watch(probe)
    process.before_fork()
    process.after_fork_in_parent()
    assert lock.locked()


class BusyLock:
    """Is busy at first, and notes the interval in which threads take turns while somebody waits for it."""

    def __init__(self, error=None):
        self.intervals, self._error = [], error

    def acquire(self, blocking=True, timeout=-1):
        if not blocking:
            return False
        self.intervals.append(sys.getswitchinterval())
        if self._error is not None:
            raise self._error
        return True

    def release(self):
        pass


@pytest.fixture
def usual():
    """The usual interval, set to a value that can be told from the default; restored after the test."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.004)
    yield sys.getswitchinterval()
    sys.setswitchinterval(before)


def test_threads_take_shorter_turns_while_a_fork_waits(process, usual):
    """The holder of a lock gets the interpreter sooner; afterwards everything is as before."""
    locks = [BusyLock(), BusyLock()]
    probe = Probe("a", [], locks)
    process.watch(probe)
    process.before_fork()
    assert usual == sys.getswitchinterval()
    process.after_fork_in_parent()
    assert [[pytest.approx(1e-4)], [pytest.approx(1e-4)]] == [lock.intervals for lock in locks]


def test_a_shorter_turn_of_the_user_is_kept(process):
    """A program may have chosen a shorter interval itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        lock = BusyLock()
        probe = Probe("a", [], [lock])
        process.watch(probe)
        process.before_fork()
        process.after_fork_in_parent()
        assert [pytest.approx(1e-5)] == lock.intervals
    finally:
        sys.setswitchinterval(before)


def test_turns_are_restored_when_waiting_fails(process, usual):
    """An interrupt may come at any time; the locks taken until then are released, too."""
    lock = threading.Lock()
    probe = Probe("a", [], [lock, BusyLock(KeyboardInterrupt())])
    process.watch(probe)
    with pytest.raises(KeyboardInterrupt):
        process.before_fork()
    assert (usual, True) == (sys.getswitchinterval(), lock.locked())
    process.after_fork_in_parent()
    assert not lock.locked()


def test_turns_are_restored_when_the_last_of_several_forks_need_not_wait_any_more(process, usual):
    """The first to be done leaves them short for the other, and a child where another fork waited restores them."""
    haste = Haste()
    with haste:
        with haste:
            pass
        assert pytest.approx(1e-4) == sys.getswitchinterval()
    assert usual == sys.getswitchinterval()
    haste.__enter__()
    haste.after_fork()
    assert usual == sys.getswitchinterval()
    with haste:
        assert pytest.approx(1e-4) == sys.getswitchinterval()
    assert usual == sys.getswitchinterval()


class CountingLock:
    """Calls a function before each attempt to take it with a time limit."""

    def __init__(self, attempt):
        self.attempts, self._attempt, self._lock = 0, attempt, threading.Lock()
        self.acquire_now, self.release = self._lock.acquire, self._lock.release

    def acquire(self, blocking=True, timeout=-1):
        if not blocking:
            return self._lock.acquire(blocking=False)
        self.attempts += 1
        self._attempt(self.attempts)
        return self._lock.acquire(blocking, timeout)


@pytest.fixture
def slow_import(tmp_path, monkeypatch):
    """A worker that holds a lock while it imports a module that takes until `finish` is set."""
    monkeypatch.setattr("grace_kp.background._process.LOCK_SECONDS", 0.01)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_module.py").write_text(
        "import builtins\nbuiltins.slow_began.set()\nassert builtins.slow_finish.wait(60)\nis_complete = True\n"
    )
    began, finish, done = threading.Event(), threading.Event(), threading.Event()
    monkeypatch.setattr("builtins.slow_began", began, raising=False)
    monkeypatch.setattr("builtins.slow_finish", finish, raising=False)

    class Owner:
        def __init__(self):
            self.lock = CountingLock(lambda number: finish.set() if number == 5 else None)
            self.worker = Worker(self.work, name="probe")

        def work(self):
            self.lock.acquire_now()
            try:
                importlib.import_module("slow_module")
            finally:
                self.lock.release()
                done.set()

    owner = Owner()
    owner.worker.wake()
    assert began.wait(60)
    yield owner.lock
    finish.set()
    assert done.wait(60)
    owner.worker.stop(60)
    sys.modules.pop("slow_module", None)


def test_a_fork_waits_for_an_import_for_longer_than_for_a_lock(process, slow_import):
    """In the child, nobody would finish the import, and whoever needs the module would wait for ever."""
    probe = Probe("a", [], [slow_import])
    process.watch(probe)
    process.before_fork()
    assert (True, True) == (slow_import.attempts >= 5, sys.modules["slow_module"].is_complete)
    process.after_fork_in_parent()


def test_a_fork_waits_for_an_import_for_a_bounded_time(process, slow_import, monkeypatch):
    """An import that never ends does not stop the program."""
    monkeypatch.setattr("grace_kp.background._process.IMPORT_SECONDS", 0.0)
    probe = Probe("a", [], [slow_import])
    process.watch(probe)
    process.before_fork()
    process.after_fork_in_parent()
    assert 1 == slow_import.attempts


def test_a_fork_inside_an_import_does_not_wait_for_another(process, slow_import, tmp_path, monkeypatch):
    """The other thread may wait for the module that this thread imports."""
    probe = Probe("a", [], [slow_import])
    process.watch(probe)
    monkeypatch.setattr("builtins.fork_probe", process, raising=False)
    (tmp_path / "forking_module.py").write_text("import builtins\nbuiltins.fork_probe.before_fork()\n")
    importlib.import_module("forking_module")
    monkeypatch.delitem(sys.modules, "forking_module")
    process.after_fork_in_parent()
    assert 1 == slow_import.attempts


def test_a_child_forgets_the_work_of_its_parent(process):
    """Every resident is told once."""
    told = []
    probe = Probe("a", told)
    process.watch(probe)
    process.before_fork()
    process.after_fork()
    assert ["a after fork"] == told


def environment():
    """The environment of a program that imports the library from here."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


def run(code, **options):
    """Run a program and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        **options,
    )
    assert "" == done.stderr
    return done.stdout.split()


def test_a_resident_finishes_as_the_interpreter_exits():
    """`at_exit` runs without being asked for."""
    assert ["finished"] == run("""
        from grace_kp.background import Resident, watch
        class Probe(Resident):
            def at_exit(self): print("finished")
        probe = Probe()
        watch(probe)
        """)


def test_children_of_multiprocessing_finish_too():
    """They end without the handlers of `atexit`, also when they were forked from a forked child."""
    assert ["inner", "outer", "parent"] == run("""
        import multiprocessing, sys
        from grace_kp.background import Resident, watch
        class Probe(Resident):
            name = "parent"
            def at_exit(self): print(self.name, flush=True)
        probe = Probe()
        watch(probe)
        fork = multiprocessing.get_context("fork")
        def inner():
            probe.name = "inner"
        def outer():
            probe.name = "outer"
            child = fork.Process(target=inner)
            child.start()
            child.join()
        child = fork.Process(target=outer)
        child.start()
        child.join()
        """)


LATE = """
        import multiprocessing, sys
        def load():
            from grace_kp.background import Resident, Worker, watch
            class Probe(Resident):
                def __init__(self):
                    self.worker = Worker(self.work, name="probe")
                    watch(self)
                def work(self): pass
                def at_exit(self): print("finished", flush=True)
            probe = Probe()
            probe.worker.wake()
            return probe
        def job():
            kept.append(load())
        kept = []
        """


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_child_of_multiprocessing_that_imports_the_library_itself_finishes(tmp_path, method):
    """No hook saw the fork, and a child that starts forgets the finalizers that exist."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(LATE).replace('print("finished"', 'print(__import__("os").getpid()')
        + "if __name__ == '__main__':\n"
        + f"    child = multiprocessing.get_context({method!r}).Process(target=job)\n"
        + "    child.start()\n    child.join()\n"
        + "else:\n    kept.append(load())\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, env=environment())
    # The server of forks may have imported the program, too, and then finishes as well.
    in_child = max(Counter(done.stdout.split()).values())
    assert (1 if method == "fork" else 2, "") == (in_child, done.stderr)


def test_the_finalizers_of_multiprocessing_do_nothing_where_the_handlers_of_atexit_run():
    """In the first process, handlers registered later still run before ours."""
    assert ["handler", "finished"] == run(
        LATE + "import multiprocessing.util, atexit; job(); atexit.register(print, 'handler')"
    )


def test_a_resident_that_appears_after_the_exit_leaves_at_once(process):
    """Nobody would come back to it."""
    told = []
    process.exit()
    process.watch(Probe("late", told))
    assert ["late at exit"] == told


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_worker_begins_anew_in_a_child():
    """The parent's thread is not there; a wake starts one."""
    release, inside, done = threading.Event(), threading.Event(), threading.Event()

    class Owner:
        def __init__(self):
            self.steps = [inside.set, lambda: release.wait(60)]
            self.worker = Worker(self.work, name="probe")

        def work(self):
            while self.steps:
                self.steps.pop(0)()

    owner = Owner()
    owner.worker.wake()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:
        owner.steps = [done.set]
        owner.worker.wake()
        os._exit(0 if done.wait(60) else 1)
    release.set()
    _, status = os.waitpid(child, 0)
    assert 0 == os.waitstatus_to_exitcode(status)
