"""A process that is killed is found by whoever opens its store next, with the number of its ended runs that are not there."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import itertools
import json
import logging
import os
import random
import shutil
import stat
import sys
import textwrap
import threading
import weakref
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.store import Tallies, open_store
from grace_kp.store._tally import BOOT, BYTES, ENDED, Tally
from tests import warm
from tests.store.samples import record

PROGRAM = """
import os, signal, sys, threading, time, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # from Python 3.12
import grace_kp as gk
from grace_kp.store._settler import Settler
from grace_kp.store._sqlite import SqliteStore

NOTES = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
grace = gk.Grace(store=sys.argv[1], reviewer=None, embedder=None, evaluator=None)

@grace.agent
def agent(objective):
    return objective

def record(runs=5):
    for n in range(runs):
        agent(f"{os.getpid()} {n}")
        os.write(NOTES, b".")

def hold():
    "Let the worker lose whatever ends from now on."
    Settler._settle_one = lambda self, item: None

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()

put = SqliteStore.put
"""


class Reports:
    """A store that holds reports, and the runs with these ids."""

    def __init__(self, *ids, status="completed"):
        self.found, self._ids, self._status = {}, ids, status

    def report(self, name, data):
        self.found[name] = json.loads(data)

    def get(self, name):
        return SimpleNamespace(status=self._status) if name in self._ids else None

    @property
    def killed(self):
        return [report["killed"] for report in self.found.values()]


@pytest.fixture
def database(tmp_path):
    return tmp_path / "t.db"


def play(database, code):
    """Run a program; return its exit code, what it printed to stderr, and how many of its runs returned."""
    notes = database.with_name("notes")
    command = [sys.executable, "-c", PROGRAM + textwrap.dedent(code), f"sqlite:///{database}", str(notes)]
    done = warm.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr, notes.stat().st_size if notes.exists() else 0


def tallies_of(database):
    return sorted(database.parent.glob("*.tally-*"))


def found(database):
    """Open the store as the next process does; return how many runs it has, without interrupted ones, and how many are reported lost."""
    with gk.Grace(store=f"sqlite:///{database}", reviewer=None, embedder=None, evaluator=None) as grace:
        stored = grace.store.query(limit=None)
        lost = [json.loads(data).get("killed", 0) for data in grace.store.reports()]
    return sum(trace.status != "interrupted" for trace in stored), sum(lost)


def ended(tally, runs):
    """Count runs as a thread does that ends them."""
    for _ in range(runs):
        tally.cells[ENDED] = next(tally.numbers)


def killed(database, runs=3):
    """Leave the tally of a process that was killed; return its path."""
    tally = Tally(database)
    ended(tally, runs)
    path = tally._path
    del tally
    return path


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("kill()", -9),
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -15),
        ("os._exit(0)", 0),
        ("os.execv(sys.executable, [sys.executable, '-c', 'pass'])", 0),
    ],
)
def test_runs_that_an_end_without_python_loses_are_reported_by_the_next_process(database, capfd, end, code):
    """The number is that of the runs that had ended and are not in the store, on stderr and in the store."""
    assert (code, "", 12) == play(database, f"record(7); assert grace.flush(); hold(); record(5); {end}")
    assert (7, 5) == found(database)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("grace_kp: process ")
    assert line.endswith(": 5 runs that had ended there are not in the store, or there as interrupted")
    assert [] == tallies_of(database)
    assert (7, 5) == found(database)
    assert "" == capfd.readouterr().err


@pytest.mark.parametrize(
    "code",
    [
        "record()",
        "record(); sys.exit(0)",
        "record(); grace.close()",
        "record(); pid = os.fork(); record(); pid and os.waitpid(pid, 0)",
        "grace.run('never entered')",
    ],
)
def test_a_process_that_ends_by_itself_leaves_no_file(database, code):
    """Everything is stored, so there is nothing to say."""
    assert (0, "") == play(database, code)[:2]
    assert [] == tallies_of(database)


def test_a_process_without_runs_has_no_tally(database):
    """Whoever only reads leaves nothing, also if it is killed."""
    play(database, "grace.store.count(); kill()")
    assert [] == tallies_of(database)


@pytest.mark.parametrize("moment", ["kill()", "put(self, records, **ended); kill()"])
def test_a_kill_at_a_transaction_is_counted_exactly(database, moment):
    """The batch that was being written counts as stored if it is there, although nothing was written to the tally any more."""
    code = f"""
        record(3)
        assert grace.flush()
        have_ended = threading.Event()
        def at_second_batch(self, records, **ended):
            have_ended.wait()
            {moment}
        SqliteStore.put = at_second_batch
        record(4)
        have_ended.set()
        signal.pause()
    """
    assert (-9, "", 7) == play(database, code)
    stored, lost = found(database)
    assert 7 == stored + lost


def test_kills_at_random_moments_are_counted_exactly(database):
    """What is stored and what is reported add up to what has ended; the last run may have ended without being noted."""
    moments = random.Random(4)
    for round_ in range(8):
        at = moments.randrange(1, 60)
        code = f"record(1); assert grace.flush(); threading.Timer({at / 1_000}, kill).start(); record(100_000)"
        _, _, now = play(database, code)
        stored, lost = found(database)
        assert now <= stored + lost <= now + round_ + 1, (round_, at)
        assert now > round_


def test_a_run_that_is_found_as_interrupted_counts_as_lost(database):
    """Its end is not in the store."""
    code = """
        with grace.run("long") as run:
            grace.thought("on the way")
            while not SqliteStore.query(grace._writer.store(), limit=1) and not journaled(): time.sleep(0.01)
            hold()
        kill()
    """
    journaled = """
def journaled():
    with grace._writer.store()._use() as connection:
        return connection.execute("SELECT COUNT(*) FROM journal").fetchone()[0]
"""
    assert -9 == play(database, journaled + textwrap.dedent(code))[0]
    assert (0, 1) == found(database)


def test_a_forked_child_has_a_tally_of_its_own(database):
    """A killed child does not stop its parent from counting, nor does its parent's end keep the child's from being found."""
    code = """
        record(2)
        assert grace.flush()
        hold()
        pid = os.fork()
        if not pid:
            record(3)
            kill()
        os.waitpid(pid, 0)
        record(4)
        kill()
    """
    assert (-9, "", 9) == play(database, code)
    assert 2 == len(tallies_of(database))
    assert (2, 7) == found(database)


def test_the_tally_of_a_killed_parent_is_free_while_its_child_lives(database):
    """The child does not inherit the lock."""
    code = """
        import fcntl
        hold()
        record(2)
        fcntl.flock(NOTES, fcntl.LOCK_EX)  # until both processes have ended
        reader, writer = os.pipe()
        ended, end = os.pipe()
        if not os.fork():
            os.write(writer, b"runs"), os.close(end)
            os.read(ended, 1)
            gk.Grace(store=sys.argv[1], reviewer=None, embedder=None, evaluator=None).store.count()
            os._exit(0)
        os.read(reader, 1)  # until then the child is as the fork has left it, with the parent's lock
        kill()
    """
    play(database, code)
    with database.with_name("notes").open() as notes:
        fcntl.flock(notes, fcntl.LOCK_EX)  # the child may still be about to report what it has found
    assert (0, 2) == found(database)


def test_a_parent_reports_the_children_that_it_killed(database):
    """At its own end, so that a pool whose processes are terminated is not silent."""
    code = """
        agent("parent")
        assert grace.flush()
        pid = os.fork()
        if not pid:
            hold()
            record(3)
            kill()
        os.waitpid(pid, 0)
    """
    code, errors, recorded = play(database, code)
    assert (0, 3) == (code, recorded)
    assert ": 3 runs that had ended there are not in the store" in errors
    assert [] == tallies_of(database)
    assert (1, 3) == found(database)


def test_runs_that_are_not_to_be_stored_are_no_loss(database):
    """Sampled out, or broken and reported when they ended."""
    code = """
        grace = gk.Grace(store=sys.argv[1], sample_rate=0.0, reviewer=None, embedder=None, evaluator=None)
        agent = grace.agent(lambda objective: objective)
        record()
        assert grace.flush()
        kill()
    """
    assert (-9, "", 5) == play(database, code)
    assert (0, 0) == found(database)
    assert [] == tallies_of(database)


def test_dropped_runs_are_reported_by_the_next_process_if_the_store_does_not_know_of_them(database):
    """The first was reported at once, the others would have been at the exit."""
    code = """
        hold()
        agent("opens the backlog")
        with grace._writer._settling:  # else the writer stores how many were dropped
            grace._writer._backlog.most, grace._writer._backlog._max_bytes = 1, 0
            record(4)
            kill()
    """
    assert "a run was dropped, and more may follow" in play(database, code)[1]
    assert (0, 5) == found(database)


def test_one_of_two_successors_takes_a_tally(database):
    """Whoever comes second finds it locked, or gone."""
    for _ in range(20):
        killed(database)
    stores, barrier = [Reports() for _ in range(4)], threading.Barrier(4)

    def take(store):
        barrier.wait()
        Tallies(database).take(store)

    threads = [threading.Thread(target=take, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [3] * 20 == [number for store in stores for number in store.killed]
    assert [] == tallies_of(database)


@pytest.mark.parametrize("content", [b"mine", b"x" * BYTES, bytes(7), b"\1" * (BYTES + 1)])
def test_a_file_that_is_no_tally_is_left_alone_and_reported_once(database, caplog, content):
    """Whatever has such a name may be somebody's."""
    path = database.with_name("t.db.tally-0123456789abcdef")
    path.write_bytes(content)
    tallies = Tallies(database)
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        tallies.take(Reports())
        tallies.take(Reports())
    assert content == path.read_bytes()
    assert [f"the tally {path} is left alone: its content is not that of a tally of this version"] == caplog.messages


def test_other_names_links_and_folders_are_left_alone(database):
    """Only regular files that are named like tallies are opened."""
    target = database.with_name("target")
    target.write_bytes(b"")
    database.with_name("t.db.tally-0000000000000000").symlink_to(target)
    database.with_name("t.db.tally-0000000000000001").mkdir()
    for name in ("t.db.tally-notes", "t.db.tally-0123456789abcdef.txt", "other.db.tally-0123456789abcdef"):
        database.with_name(name).write_bytes(b"")
    before = sorted(path.name for path in database.parent.iterdir())
    Tallies(database).take(Reports())
    assert before == sorted(path.name for path in database.parent.iterdir())


def test_a_file_whose_process_died_while_it_created_it_is_removed(database):
    """It is empty, or holds no numbers yet."""
    for number, content in enumerate((b"", bytes(BYTES))):
        database.with_name(f"t.db.tally-000000000000000{number}").write_bytes(content)
    store = Reports()
    Tallies(database).take(store)
    assert [] == tallies_of(database)
    assert {} == store.found


def test_a_live_tally_is_not_taken_by_its_own_process(database):
    """Two runtimes of a process may use the same file."""
    tally = Tally(database)
    ended(tally, 2)
    store = Reports()
    Tallies(database).take(store)
    assert ({}, 1) == (store.found, len(tallies_of(database)))
    assert (1, []) == Tallies(database).look(store)
    del tally
    Tallies(database).take(store)
    assert [2] == store.killed


def test_after_a_restart_of_the_machine_the_number_is_an_upper_bound(database, capfd):
    """The file may be older than the database, so nothing is counted."""
    path = killed(database)
    content = bytearray(path.read_bytes())
    content[BOOT * 8] ^= 1
    path.write_bytes(content)
    store = Reports()
    Tallies(database).take(store)
    assert {} == store.found
    assert "up to 3 runs that had ended may be missing" in capfd.readouterr().err
    assert [] == tallies_of(database)


@pytest.mark.parametrize(
    ("ids", "status", "lost"), [(("kp:trace:1",), "completed", 1), (("kp:trace:1",), "interrupted", 3), ((), "", 3)]
)
def test_the_batch_that_was_being_written_is_looked_up_by_one_of_its_runs(database, ids, status, lost):
    """A run that was recovered from its journal does not count."""
    tally = Tally(database)
    ended(tally, 3)
    tally.begin_batch([record(0, status="interrupted"), record(1), record(2)])
    del tally
    store = Reports(*ids, status=status)
    Tallies(database).take(store)
    assert [lost] == store.killed


def test_a_run_that_is_stored_before_it_ends_is_no_loss(database):
    """Its question is in the store as soon as anybody can see it; its end is counted once."""
    tally = Tally(database)
    tally.begin()
    tally.stored_early(["kp:trace:1"])
    ended(tally, 1)
    tally.begin_batch([record(1)])
    tally.end_batch()
    ended(tally, 2)
    tally.begin_batch([record(1)])
    tally.end_batch()
    del tally
    store = Reports()
    Tallies(database).take(store)
    assert [1] == store.killed


def test_a_process_that_could_not_store_its_runs_leaves_the_number(database, capfd):
    """It ended by itself, and says so."""
    tally = Tally(database)
    ended(tally, 1)
    assert not tally.close()
    tally.at_exit()
    del tally
    store = Reports()
    Tallies(database).take(store)
    assert [1] == store.killed
    assert f"process {os.getpid()} ended after" in capfd.readouterr().err


def test_a_tally_whose_folder_was_moved_goes_on_in_a_new_file(tmp_path):
    """The old one counts nothing any more, so that whoever opens the moved database reports nothing."""
    database, moved = tmp_path / "a" / "t.db", tmp_path / "b" / "t.db"
    tally = Tally(database)
    ended(tally, 2)
    shutil.move(database.parent, moved.parent)
    tally.renew()
    ended(tally, 1)
    del tally
    store = Reports()
    Tallies(moved).take(store)
    assert [] == store.killed
    Tallies(database).take(store)
    assert [3] == store.killed


def test_a_tally_is_as_private_as_its_database(database):
    """Nobody but the owner, unless the setting `file_mode` allows more."""
    modes = []
    for mode in (None, 0o660):
        tally = Tally(database, mode)
        tally.begin()
        (path,) = tallies_of(database)
        modes.append(stat.S_IMODE(path.stat().st_mode))
        assert tally.close()
    assert [0o600, 0o660] == modes


def test_where_no_file_can_be_created_there_is_no_tally(tmp_path, caplog):
    """The agent goes on, with one line in the log."""
    (tmp_path / "file").write_bytes(b"")
    tally = Tally(tmp_path / "file" / "t.db")
    with caplog.at_level(logging.WARNING, "grace_kp.store"):
        ended(tally, 3)
        tally.begin()
        tally.renew()
    assert 1 == len(caplog.messages)
    assert tally.close()


def test_a_tally_that_is_closed_counts_no_more(database):
    """What ends later is stored at once."""
    tally = Tally(database)
    tally.begin()
    assert 1 == len(tallies_of(database))
    assert tally.close()
    ended(tally, 2)
    tally.begin()
    assert [] == tallies_of(database)


def test_a_store_of_ones_own_has_no_tally(tmp_path):
    """Only a file that the settings name has one."""
    store = open_store(f"sqlite:///{tmp_path / 't.db'}")
    with gk.Grace(store=store, reviewer=None, embedder=None, evaluator=None) as grace:
        with grace.run("x"):
            assert [] == tallies_of(tmp_path / "t.db")
        assert grace.flush()


KNOWN = weakref.WeakValueDictionary()


class Finalized:
    """Has a finalizer that does nothing, and is found by a weak reference, as everything with background work is."""

    def __init__(self):
        KNOWN[id(self)] = self

    def __del__(self):
        pass


def failures(monkeypatch, make):
    """How often Python reports an error in the finalizer of an object that is dropped at each of the last levels of the stack."""
    gc.collect()  # what earlier tests left
    counter = itertools.count()
    # A hook without a frame of its own, because there is no room for one.
    monkeypatch.setattr(sys, "unraisablehook", functools.partial(next, counter))

    def drop_below(levels, held):
        if levels:
            drop_below(levels - 1, held)
        else:
            held.clear()

    for levels in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        held = [make()]
        with contextlib.suppress(RecursionError):
            drop_below(levels, held)
    return next(counter)


@pytest.mark.parametrize("runs", [0, 1])
def test_a_tally_is_collected_quietly_where_the_stack_is_full(database, monkeypatch, runs):
    """Python runs a finalizer where memory happens to be collected. This one fails no more often than an empty one."""

    def make():
        tally = Tally(database)
        for _ in range(runs):
            tally.cells[ENDED] = next(tally.numbers)
            tally.skip()
        return tally

    assert failures(monkeypatch, make) <= failures(monkeypatch, Finalized)
    assert Tallies(database).look(None) == (0, [])
