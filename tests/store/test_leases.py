"""Leases: which owners of unfinished runs are dead, whether a process of approvals runs, and who finishes their runs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from grace_kp.store import JournalEntry
from grace_kp.store import _leases as owners_module
from grace_kp.store._leases import (
    BUSY_SECONDS,
    FORGET_SECONDS,
    LEASE_SECONDS,
    RENEW_SECONDS,
    Leases,
    Owners,
    place,
    program,
    start_of,
)
from grace_kp.store._schema import MIGRATIONS
from grace_kp.store._sqlite import SqliteStore
from tests.store.samples import Clock, ids, record


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def wall():
    return Clock(1_000_000.0)


@pytest.fixture
def table():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statements in MIGRATIONS:
        for statement in statements:
            connection.execute(statement)
    yield connection
    connection.close()


@pytest.fixture
def owners(clock, wall):
    return Owners(clock, wall)


def lease(table, wall, *, pid=None, where=None, start=None, ago=0.0, name="other", into="owners"):
    """Enter the lease of another owner: by default, of another store in this process."""
    pid = os.getpid() if pid is None else pid
    start = f"{start_of(pid)} {program()}" if start is None else start
    table.execute(
        f"INSERT OR REPLACE INTO {into} VALUES (?,?,?,?,?)",
        (name, pid, place() if where is None else where, start, wall() - ago),
    )


def test_an_owner_in_this_process_is_alive(owners, table, clock, wall):
    """Even if its store was closed with open runs and renews nothing any more."""
    lease(table, wall, ago=10 * BUSY_SECONDS)
    assert set() == owners.dead(table)
    clock.now += 10 * BUSY_SECONDS
    assert set() == owners.dead(table)


def test_a_killed_process_that_was_not_reaped_is_dead_at_once(owners, table, wall, child):
    lease(table, wall, pid=child.pid)
    assert set() == owners.dead(table)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert {"other"} == owners.dead(table)
    assert start_of(child.pid)  # it has not been reaped


# Its first thread ends for good, without the process; the other waits for a line and then ends it.
HEADLESS = """
import ctypes, os, sys, threading
def last():
    print("ready", flush=True)
    sys.stdin.readline()
    os._exit(0)
threading.Thread(target=last).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_alive(owners, table, wall):
    with subprocess.Popen(
        [sys.executable, "-c", HEADLESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert "ready\n" == process.stdout.readline()
        lease(table, wall, pid=process.pid, start=start_of(process.pid))
        while state_of(process.pid) != "Z":
            time.sleep(0.001)
        assert set() == owners.dead(table)
        process.stdin.write("\n")
        process.stdin.flush()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert {"other"} == owners.dead(table)


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("pid_of", [os.getppid, os.getpid])
def test_a_number_that_was_used_again_is_another_process(owners, table, wall, pid_of):
    lease(table, wall, pid=pid_of(), start="1 x")
    assert {"other"} == owners.dead(table)


def test_a_program_that_was_replaced_by_exec_is_dead(owners, table, wall):
    lease(table, wall, start=f"{start_of(os.getpid())} another program")
    assert {"other"} == owners.dead(table)


@pytest.mark.parametrize("where", ["elsewhere", ""])
def test_elsewhere_only_the_lease_counts(owners, table, clock, wall, where):
    """The number of this process means another process there. A lease that was seen once is timed by the own clock."""
    lease(table, wall, where=where, start="1")
    assert set() == owners.dead(table)
    clock.now += LEASE_SECONDS
    assert set() == owners.dead(table)
    clock.now += 1
    assert {"other"} == owners.dead(table) == owners.dead(table)
    lease(table, wall, where=where, start="1")
    assert {"other"} == owners.dead(table)  # the same wall time: it was not renewed
    wall.now += 1
    lease(table, wall, where=where, start="1")
    assert set() == owners.dead(table)


def test_an_expired_lease_elsewhere_is_dead_at_first_sight(owners, table, wall):
    """A process that starts later than the lease ends finds the runs at once, and finds them again if it fails to take them."""
    lease(table, wall, where="elsewhere", ago=LEASE_SECONDS + 1)
    assert {"other"} == owners.dead(table) == owners.dead(table)


def test_a_clock_that_is_set_forward_kills_nobody_that_was_seen(owners, table, clock, wall):
    """After a sleep of the machine every lease is old; its owners have time to renew it."""
    lease(table, wall, where="elsewhere")
    assert set() == owners.dead(table)
    wall.now += 8 * 3_600
    clock.now += LEASE_SECONDS / 2
    assert set() == owners.dead(table)


def test_a_clock_that_is_set_back_keeps_nobody_alive(owners, table, clock, wall):
    lease(table, wall, where="elsewhere", ago=-8 * 3_600)
    assert set() == owners.dead(table)
    clock.now += LEASE_SECONDS + 1
    assert {"other"} == owners.dead(table)


def test_a_running_process_that_does_not_renew_has_more_time(owners, table, clock, wall):
    """It may be stopped, or in a call that lets no other thread run. Its expired lease does not count at first sight."""
    lease(table, wall, pid=os.getppid(), start=start_of(os.getppid()), ago=10 * BUSY_SECONDS)
    assert set() == owners.dead(table)
    clock.now += BUSY_SECONDS
    assert set() == owners.dead(table)
    clock.now += 1
    assert {"other"} == owners.dead(table)


def test_what_belongs_to_an_owner_without_a_lease_belongs_to_the_dead(owners, table):
    table.execute("INSERT INTO journal VALUES ('run', 7, 'a', x'')")
    table.execute("INSERT INTO completions VALUES ('run', 'b', 'judgement')")
    assert {"a", "b"} == owners.dead(table)


def test_when_a_renewal_is_due(owners, table, clock, wall):
    """Some seconds after the last, or when the wall clock was set, which makes the lease look old or new to others."""
    assert not owners.is_due
    owners.hold(table)
    assert not owners.is_due
    for clocks in ((clock, wall), (wall,)):
        for step in (RENEW_SECONDS, -RENEW_SECONDS if clocks == (wall,) else RENEW_SECONDS):
            for each in clocks:
                each.now += step
            assert owners.is_due
            owners.hold(table)
            assert not owners.is_due
    assert [(owners.id, wall())] == table.execute("SELECT id, seen FROM owners").fetchall()


def test_a_place_that_the_system_hides_is_unknown(monkeypatch):
    """Where `/proc` shows the processes of another namespace, a number there is not the number here."""
    assert place().count("pid:[") == 1
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert "" == place()


def test_systems_without_namespaces_have_the_name_of_the_machine(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert os.uname().nodename == place()


@pytest.fixture
def leases(clock, wall):
    return Leases(clock, wall)


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.stdin.close()
    process.kill()
    process.wait()


def test_a_process_that_has_ended_is_gone(leases, table, wall, child):
    lease(table, wall, into="approval_processes", pid=child.pid)
    assert True is leases.is_alive(table, "other")
    child.kill()
    child.wait()
    assert False is leases.is_alive(table, "other")


def test_a_process_that_was_stopped_is_not_gone(leases, table, wall, clock, child):
    """It may go on at any time. While its lease lasts, it counts as running."""
    lease(table, wall, into="approval_processes", pid=child.pid)
    assert True is leases.is_alive(table, "other")
    clock.now += LEASE_SECONDS + 1
    assert None is leases.is_alive(table, "other")
    lease(table, wall, into="approval_processes", pid=child.pid, ago=-1.0)
    assert True is leases.is_alive(table, "other")


@pytest.mark.parametrize("ago", [LEASE_SECONDS + 1, -LEASE_SECONDS - 1])
def test_a_strange_time_at_first_sight_says_nothing(leases, table, wall, ago):
    """The lease may have expired, or one of the clocks is wrong; the next renewal tells."""
    lease(table, wall, into="approval_processes", where="elsewhere", ago=ago)
    assert None is leases.is_alive(table, "other")
    lease(table, wall, into="approval_processes", where="elsewhere", ago=ago - 5.0)
    assert True is leases.is_alive(table, "other")


def test_a_lease_is_renewed_after_a_transaction_that_was_not_committed(leases, table):
    process = leases.hold(table)
    leases.lapse()
    assert leases.is_due
    assert (process, False) == (leases.hold(table), leases.is_due)


def test_old_leases_that_nothing_refers_to_are_forgotten(leases, table, wall):
    for name, state in (("waits", "pending"), ("acted", "unknown"), ("ended", "done")):
        lease(table, wall, into="approval_processes", where="elsewhere", ago=FORGET_SECONDS + 1, name=name)
        table.execute(
            "INSERT INTO approvals VALUES (NULL,?,?,'a','d',NULL,'x',NULL,0,0,0,0,1,?,x'')",
            (name, state, name),
        )
    leases.hold(table)
    found = [name for (name,) in table.execute("SELECT id FROM approval_processes WHERE host = 'elsewhere'")]
    assert ["acted", "waits"] == sorted(found)


RUN = "kp:trace:1"
JUDGEMENT = frozenset({"judgement"})


@pytest.fixture
def process(tmp_path, clock, monkeypatch):
    stores = []

    def open_store():
        store = SqliteStore(tmp_path / "t.db", owners=Owners(clock, clock))
        name, used = f"container {len(stores)}", store.use

        def use(**options):
            monkeypatch.setattr(owners_module, "place", lambda: name)
            return used(**options)

        store.use = use
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        store.close()


def head(run=RUN, seq=0):
    return JournalEntry(run, seq, b"{}")


def rows(store, table):
    return store._connection.execute(f"SELECT * FROM {table}").fetchall()


def score(store, run=RUN):
    return store.get(run).metadata.quality_score


def given_up(clock, first, second):
    """Let the lease of one store expire while another watches it; return what the other then takes over."""
    assert [] == second.recover()
    clock.now += LEASE_SECONDS + 1
    return second.recover()


def test_a_lease_that_is_renewed_keeps_a_silent_run(process, clock):
    """A run without any event for an hour belongs to its process, if the process renews its lease."""
    first, second = process(), process()
    first.journal([head()])
    for _ in range(60):
        clock.now += LEASE_SECONDS
        first.renew_lease()
        assert [] == second.recover()
    clock.now += LEASE_SECONDS + 1
    assert [[head()]] == second.recover()
    assert [] == process().recover()


def test_a_process_that_was_given_up_and_lives_has_the_last_word(process, clock):
    """Its finished trace replaces the interrupted one, whichever of them is stored first."""
    first, second = process(), process()
    first.journal([head(), head("kp:trace:2")])
    assert 2 == len(given_up(clock, first, second))
    first.put([record(1, score=0.9)], ended=[RUN])
    second.put([record(1, status="interrupted"), record(2, status="interrupted")], ended=[RUN, "kp:trace:2"])
    first.put([record(2, score=0.9)], ended=["kp:trace:2"])
    assert ([0.9, 0.9], []) == ([score(first), score(first, "kp:trace:2")], rows(first, "journal"))


def test_a_run_that_was_suspended_meanwhile_stays_suspended(process, clock):
    """The interrupted trace of an earlier part does not replace the question that waits for an answer."""
    first, second = process(), process()
    first.put([record(1, status="suspended", score=0.1)])
    first.journal([head()])
    assert [[head()]] == given_up(clock, first, second)
    first.put([record(1, status="suspended", score=0.2)], ended=[RUN])
    first.journal([head()])
    second.put([record(1, status="interrupted")], ended=[RUN])
    assert ("suspended", 0.2) == first._connection.execute("SELECT status, score FROM traces").fetchone()
    assert 1 == len(rows(first, "journal"))  # it has continued since, and its journal stays


def test_late_rows_of_a_journal_bring_no_run_back(process, clock):
    """A process that others gave up goes on with its journal, and dies later."""
    first, second, third = process(), process(), process()
    first.journal([head()])
    assert [[head()]] == given_up(clock, first, second)
    first.journal([head(seq=1)])
    second.put([record(1, status="interrupted")], ended=[RUN])
    first.journal([head(seq=2)])
    assert [] == given_up(clock, first, third)
    assert (0, [1]) == (len(rows(third, "journal")), ids(third.query(status="interrupted")))


def test_rows_without_a_first_row_are_deleted(process, clock):
    first, second = process(), process()
    first.journal([head(seq=3)])
    assert ([], []) == (given_up(clock, first, second), rows(second, "journal"))


def test_rows_of_several_owners_are_joined_in_order(process, clock):
    """A process that was given up went on; both it and its successor died."""
    first, second, third = process(), process(), process()
    first.journal([head(), head(seq=2)])
    assert [[head(), head(seq=2)]] == given_up(clock, first, second)
    first.journal([head(seq=1), head(seq=3)])
    assert [[head(seq=number) for number in range(4)]] == given_up(clock, second, third)


def test_the_documents_that_a_dead_process_did_not_complete_go_to_one_other(process, clock):
    """Those that await a part which the other can add; the rest wait for somebody who can."""
    first, second, third = process(), process(), process()
    first.put([
        record(1, awaits=("judgement", "scores")), record(2, awaits=("value",)), record(3, awaits=("judgement",)), record(4),
        record(5, awaits=("judgement",)),
    ])  # fmt: skip
    first._connection.execute("DELETE FROM traces WHERE id = 'kp:trace:5'")
    assert ([], []) == (second.incomplete(JUDGEMENT), second.recover())
    clock.now += LEASE_SECONDS + 1
    found = second.incomplete(JUDGEMENT, limit=1)
    assert 1 == len(found)
    found += second.incomplete(JUDGEMENT)
    assert ["kp:trace:1", "kp:trace:3"] == [json.loads(data)["id"] for data in found]
    assert [] == second.incomplete(JUDGEMENT) == third.incomplete(JUDGEMENT)
    assert [("kp:trace:1",), ("kp:trace:2",), ("kp:trace:3",)] == second._connection.execute(
        "SELECT run_id FROM completions ORDER BY run_id"
    ).fetchall()
    assert ["kp:trace:2"] == [json.loads(data)["id"] for data in third.incomplete(frozenset({"value", "x"}))]
    clock.now += LEASE_SECONDS + 1
    assert 2 == len(third.incomplete(JUDGEMENT))


def completed(number, **fields):
    return replace(record(number, **fields), completes=True)


def test_a_run_is_completed_once(process, clock):
    first, second = process(), process()
    first.put([record(1, awaits=("judgement",)), record(2, awaits=("judgement",))])
    clock.now += LEASE_SECONDS + 1
    assert 2 == len(second.incomplete(JUDGEMENT))
    second.put([completed(1, score=0.2)])
    first.put([completed(1, score=0.1), completed(2, score=0.1)])
    second.put([completed(2, score=0.2)])
    assert (0.2, 0.1, []) == (score(first), score(first, "kp:trace:2"), rows(first, "completions"))


def test_what_the_successor_cannot_add_the_living_process_adds(process, clock):
    """A part that was completed elsewhere does not keep its own process from completing the whole."""
    first, second = process(), process()
    first.put([record(1, awaits=("judgement", "scores"))])
    clock.now += LEASE_SECONDS + 1
    assert 1 == len(second.incomplete(JUDGEMENT))
    second.put([completed(1, score=0.2, awaits=("scores",))])
    first.put([completed(1, score=0.1, awaits=("scores",))])
    second.put([completed(1, score=0.3)])
    first.put([completed(1, score=0.4)])
    assert (0.4, []) == (score(first), rows(first, "completions"))


def test_what_the_successor_cannot_add_another_process_takes(process, clock):
    first, second, third = process(), process(), process()
    first.put([record(1, awaits=("judgement", "scores"))])
    clock.now += LEASE_SECONDS + 1
    assert 1 == len(second.incomplete(JUDGEMENT))
    assert [] == third.incomplete(frozenset({"scores"}))
    second.put([completed(1, score=0.2, awaits=("scores",))])
    assert ([], 1) == (second.incomplete(JUDGEMENT), len(third.incomplete(frozenset({"scores"}))))
    third.put([completed(1, score=0.3)])
    assert (0.3, []) == (score(third), rows(third, "completions"))


def test_an_interrupted_run_that_lives_is_not_completed_as_interrupted(process, clock):
    """The judgement of the interrupted trace comes after the finished trace, and is left out."""
    first, second = process(), process()
    first.journal([head()])
    assert [[head()]] == given_up(clock, first, second)
    second.put([record(1, status="interrupted", awaits=("judgement",))], ended=[RUN])
    first.put([record(1, score=0.1, awaits=("judgement",))], ended=[RUN])
    second.put([completed(1, status="interrupted", score=0.2)])
    assert (0.1, 1) == (score(first), len(rows(first, "completions")))
    first.put([completed(1, score=0.3)])
    assert (0.3, []) == (score(first), rows(first, "completions"))


def test_a_closed_store_keeps_its_lease_for_open_runs_only(process):
    """They go on. What it could not complete is free for the next process at once."""
    first, second = process(), process()
    first.journal([head()])
    first.close()
    assert 1 == len(rows(second, "owners"))
    first.put([record(1, awaits=("scores",))], ended=[RUN])
    first.close()
    assert [] == rows(second, "owners")
    assert 1 == len(second.incomplete(frozenset({"scores"})))
