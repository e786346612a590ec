"""What a lease says about its process: it runs, it is gone, or nobody here can know."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from grace_kp.store._leases import FORGET_SECONDS, Leases
from grace_kp.store._owners import LEASE_SECONDS, RENEW_SECONDS, place, program, started
from tests.store.test_owners import clock, table, wall

__all__ = ["clock", "table", "wall"]


@pytest.fixture
def leases(clock, wall):
    return Leases(clock, wall)


def lease(table, wall, *, pid=None, where=None, ago=0.0, name="other"):
    """Enter the lease of a process: by default, of another store in this one."""
    pid = os.getpid() if pid is None else pid
    start = f"{started(pid)} {program()}"
    values = (name, pid, place() if where is None else where, start, wall() - ago)
    table.execute("INSERT OR REPLACE INTO approval_processes VALUES (?,?,?,?,?)", values)


@pytest.fixture
def child():
    """A process that sleeps."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def test_this_process_is_alive_whatever_its_lease(leases, table, clock):
    """It answers, so it runs."""
    process = leases.hold(table)
    clock.now += 10 * LEASE_SECONDS
    assert True is leases.is_alive(table, process)


def test_another_store_in_this_process_is_alive(leases, table, wall):
    """Although it renews nothing any more."""
    lease(table, wall, ago=10 * LEASE_SECONDS)
    assert True is leases.is_alive(table, "other")


def test_a_process_that_has_ended_is_gone(leases, table, wall, child):
    """At once, although its lease has not expired."""
    lease(table, wall, pid=child.pid)
    assert True is leases.is_alive(table, "other")
    child.kill()
    child.wait()
    assert False is leases.is_alive(table, "other")


def test_a_process_that_was_stopped_is_not_gone(leases, table, wall, clock, child):
    """It may go on at any time. While its lease lasts, it counts as running."""
    lease(table, wall, pid=child.pid)
    assert True is leases.is_alive(table, "other")
    clock.now += LEASE_SECONDS + 1
    assert None is leases.is_alive(table, "other")
    lease(table, wall, pid=child.pid, ago=-1.0)
    assert True is leases.is_alive(table, "other")


@pytest.mark.parametrize("where", ["elsewhere", ""])
def test_a_process_elsewhere_is_judged_by_its_lease(leases, table, wall, clock, where):
    """Its number is another process here, or none."""
    lease(table, wall, where=where, pid=2**22 - 1)
    assert True is leases.is_alive(table, "other")
    clock.now += LEASE_SECONDS + 1
    assert None is leases.is_alive(table, "other")


def test_a_clock_that_was_set_kills_and_revives_nobody(leases, table, wall, clock):
    """Once a lease was seen, only the time since its last renewal counts."""
    lease(table, wall, where="elsewhere")
    assert True is leases.is_alive(table, "other")
    wall.now += 86_400
    assert True is leases.is_alive(table, "other")
    wall.now -= 2 * 86_400
    clock.now += LEASE_SECONDS + 1
    assert None is leases.is_alive(table, "other")


@pytest.mark.parametrize("ago", [LEASE_SECONDS + 1, -LEASE_SECONDS - 1])
def test_a_strange_time_at_first_sight_says_nothing(leases, table, wall, ago):
    """The lease may have expired, or one of the clocks is wrong; the next renewal tells."""
    lease(table, wall, where="elsewhere", ago=ago)
    assert None is leases.is_alive(table, "other")
    lease(table, wall, where="elsewhere", ago=ago - 5.0)
    assert True is leases.is_alive(table, "other")


def test_a_lease_is_renewed_when_it_is_due(leases, table, clock):
    """Every ten seconds, and after a transaction that was not committed."""
    process = leases.hold(table)
    assert not leases.is_due
    leases.lapse()
    assert leases.is_due
    assert process == leases.hold(table)
    assert not leases.is_due
    clock.now += RENEW_SECONDS
    assert leases.is_due


def test_old_leases_that_nothing_refers_to_are_forgotten(leases, table, wall):
    """Those of open requests stay."""
    for name, state in (("waits", "pending"), ("acted", "unknown"), ("ended", "done")):
        lease(table, wall, where="elsewhere", ago=FORGET_SECONDS + 1, name=name)
        table.execute(
            "INSERT INTO approvals VALUES (NULL,?,?,'a','d',NULL,'x',NULL,0,0,0,0,1,?,x'')",
            (name, state, name),
        )
    leases.hold(table)
    found = [name for (name,) in table.execute("SELECT id FROM approval_processes WHERE host = 'elsewhere'")]
    assert ["acted", "waits"] == sorted(found)
