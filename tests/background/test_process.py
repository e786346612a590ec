"""Forks and exits: which locks are held, who is told, in which order, and how losses are reported."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from grace_kp.background import Resident, Worker, report_loss
from grace_kp.background._process import IMPORT_SECONDS, LOCK_SECONDS, Process


class Probe(Resident):
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
    told = []
    probes = [Probe(name, told) for name in "abc"]
    process.watch(probes[0])
    process.watch(probes[1], last=True)
    process.watch(probes[2])
    process.exit()
    assert ["c at exit", "a at exit", "b at exit"] == told


def test_one_that_fails_at_exit_does_not_keep_the_others(process, caplog):
    told = []
    probes = [Probe("a", told), Broken("b", told)]
    for probe in probes:
        process.watch(probe)
    with caplog.at_level(logging.WARNING, "grace_kp.background"):
        process.exit()
    assert ["a at exit"] == told
    assert ["Broken failed at exit: ValueError: no"] == caplog.messages


def test_a_resident_that_appears_while_locks_are_taken_is_locked_too(process):
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
    monkeypatch.setattr("grace_kp.background._process.LOCK_SECONDS", 0.01)
    lock = threading.Lock()
    lock.acquire()
    probe = Probe("a", [], [lock])
    process.watch(probe)
    process.before_fork()
    process.after_fork_in_parent()
    assert lock.locked()


def test_an_interrupt_while_a_lock_is_waited_for_leaves_the_others_to_be_released(process):
    class Interrupted:
        def acquire(self, *, timeout):
            raise KeyboardInterrupt

    lock = threading.Lock()
    probe = Probe("a", [], [lock, Interrupted()])
    process.watch(probe)
    with pytest.raises(KeyboardInterrupt):
        process.before_fork()
    assert lock.locked()
    process.after_fork_in_parent()
    assert not lock.locked()


def test_a_fork_waits_for_an_import_for_longer_than_for_a_lock(process):
    """In the child, nobody would finish the import, and whoever needs the module would wait for ever."""
    waits = []

    class Noting:
        def acquire(self, *, timeout):
            waits.append(timeout)
            return True

        def release(self):
            pass

    class Importing(Probe):
        def import_locks(self):
            return (Noting(),)

    probe = Importing("a", [], [Noting()])
    process.watch(probe)
    process.before_fork()
    process.after_fork_in_parent()
    assert [IMPORT_SECONDS, LOCK_SECONDS] == waits


def test_threads_that_record_step_back_while_a_fork_waits_and_only_then(process, monkeypatch):
    """The holder of the lock gets the interpreter sooner, also after a wait that was interrupted, and in a child."""
    steps = []
    monkeypatch.setattr("grace_kp.background._process.time.sleep", steps.append)

    class Recording:
        def acquire(self, *, timeout):
            process.let_forks_go_first()
            raise KeyboardInterrupt

    probe = Probe("a", [], [Recording()])
    process.watch(probe)
    process.let_forks_go_first()
    assert [] == steps
    with pytest.raises(KeyboardInterrupt):
        process.before_fork()
    assert 1 == len(steps)
    process.let_forks_go_first()
    assert 1 == len(steps)


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, encoding="utf-8", env=environment
    )
    return done.returncode, done.stdout, done.stderr


def test_children_of_multiprocessing_finish_too():
    code = """
import multiprocessing
from grace_kp.background import Resident, watch
class Probe(Resident):
    name = "parent"
    def at_exit(self): print(self.name, flush=True)
probe = Probe()
watch(probe)
fork = multiprocessing.get_context("fork")
def start(name, *others):
    probe.name = name
    for other in others:
        child = fork.Process(target=start, args=other)
        child.start()
        child.join()
start("parent", ("outer", ("inner",)))
"""
    assert (0, "inner\nouter\nparent\n", "") == run("-c", code)


LATE = """
import multiprocessing, os
def load():
    from grace_kp.background import Resident, Worker, watch
    class Probe(Resident):
        def __init__(self):
            self.worker = Worker(self.work, name="probe")
            watch(self)
        def work(self): pass
        def at_exit(self): print(os.getpid(), flush=True)
    probe = Probe()
    probe.worker.wake()
    kept.append(probe)
kept = []
if __name__ == "__main__":
    child = multiprocessing.get_context({method!r}).Process(target=load)
    child.start()
    child.join()
else:
    load()
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_child_of_multiprocessing_that_imports_the_library_itself_finishes(tmp_path, method):
    """No hook saw the fork, and a child that starts forgets the finalizers that exist."""
    program = tmp_path / "program.py"
    program.write_text(LATE.format(method=method))
    _, out, err = run(program)
    # The server of forks may have imported the program, too, and then finishes as well.
    in_child = max(Counter(out.split()).values())
    assert (1 if method == "fork" else 2, "") == (in_child, err)


def test_a_resident_that_appears_after_the_exit_leaves_at_once(process):
    told = []
    process.exit()
    process.watch(Probe("late", told))
    assert ["late at exit"] == told


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_worker_begins_anew_in_a_child():
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


REPORT = "import sys\nfrom grace_kp.background import report_loss\n"


def test_a_loss_is_reported_while_the_interpreter_exits():
    code = "class Late:\n    def __del__(self): report_loss('late')\nlate = Late()\nlate.itself = late\n"
    assert (0, "", "grace_kp: late\n") == run("-c", REPORT + code)


def test_a_loss_reaches_the_handlers_of_logging(caplog):
    with caplog.at_level(logging.ERROR, "grace_kp"):
        report_loss("3 runs were dropped")
    assert [("grace_kp", logging.ERROR, "3 runs were dropped")] == caplog.record_tuples


def test_a_stderr_that_cannot_be_written_raises_nothing(monkeypatch):
    class Refusing(io.StringIO):
        def write(self, text):
            raise OSError("no space left on device")

    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, Refusing(), object()):
        monkeypatch.setattr(sys, "stderr", stream)
        report_loss("lost")


def test_a_closed_file_descriptor_raises_nothing():
    """Daemons close theirs; another file may have its number, and is not written to."""
    assert (0, "", "") == run("-c", REPORT + "sys.stderr.close()\nreport_loss('lost')")


def test_characters_that_stderr_cannot_encode_are_escaped():
    code = "sys.stderr.reconfigure(encoding='ascii', errors='strict')\nreport_loss('Größe')"
    assert (0, "", "grace_kp: Gr\\xf6\\xdfe\n") == run("-c", REPORT + code)
