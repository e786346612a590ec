"""Forks and exits: which locks are held, who is told, and in which order."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from grace_kp.background import Resident, Worker
from grace_kp.background._process import Process


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


def test_a_child_forgets_the_work_of_its_parent(process):
    """Every resident is told once."""
    told = []
    probe = Probe("a", told)
    process.watch(probe)
    process.before_fork()
    process.after_fork()
    assert ["a after fork"] == told


def run(code, **options):
    """Run a program and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
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
