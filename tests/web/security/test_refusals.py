"""Refused decisions in the audit trail, and failed attempts that are counted and slowed down."""

from __future__ import annotations

import time

import pytest

from grace_kp.approvals import verify
from grace_kp.web import Person, Role
from grace_kp.web.security._refusals import (
    AT_MOST_ADDRESSES,
    EACH_DAY,
    EACH_DAY_PER_PERSON,
    EVERYWHERE,
    FREE,
    LONGEST_WAIT,
    Attempts,
    Refusals,
)
from tests.web.security.conftest import entries

ANA, BEN = Person(name="ana", role=Role.VIEWER), Person(name="ben", role=Role.ADMIN)


@pytest.fixture
def refusals(tables, clock):
    return Refusals(tables, clock)


def test_an_attempt_is_recorded(refusals, tables):
    assert refusals.record(ANA, path="/approvals/x\n/approve", reason="right", approval="x")
    (entry,) = entries(tables, "refused")
    assert "ana" == entry["actor"]["name"]
    assert "web" == entry["actor"]["channel"]
    assert {"path": "/approvals/x /approve", "reason": "right", "role": "viewer"} == entry["facts"]
    assert verify(tables, at=time.time()).ok


def test_all_people_together_are_bounded(refusals, tables, clock):
    for number in range(EACH_DAY + 5):
        refusals.record(Person(name=f"person {number}", role=Role.VIEWER), path="/", reason="csrf")
    assert EACH_DAY == len(entries(tables, "refused"))
    clock.advance(86_400)
    assert refusals.record(ANA, path="/", reason="csrf")


def test_nobody_uses_up_the_entries_of_others(refusals, tables, clock):
    """A share in a day for each person; the next entry states how many were left out."""
    for _ in range(EACH_DAY_PER_PERSON + 5):
        refusals.record(ANA, path="/", reason="csrf")
    assert EACH_DAY_PER_PERSON == len(entries(tables, "refused"))
    assert refusals.record(BEN, path="/", reason="csrf")
    clock.advance(86_400)
    assert refusals.record(ANA, path="/", reason="csrf")
    assert 5 == entries(tables, "refused")[-1]["facts"]["not_recorded"]
    assert {"ana": EACH_DAY_PER_PERSON + 6, "ben": 1} == refusals.counts()


def test_a_store_that_cannot_be_written_refuses_all_the_same(clock, caplog):
    from grace_kp.errors import StoreError

    def transaction():
        raise StoreError("locked\nby others")

    refusals = Refusals(type("Tables", (), {"transaction": staticmethod(transaction)})(), clock)
    assert not refusals.record(ANA, path="/", reason="csrf")
    assert ["a refused attempt of ana could not be recorded: locked by others"] == caplog.messages


@pytest.fixture
def attempts(clock):
    return Attempts(clock)


def test_kinds_are_counted(attempts):
    attempts.count("no_login")
    attempts.count("foreign_host")
    attempts.record_failure("no_login", "192.0.2.1")
    assert {"foreign_host": 1, "no_login": 2} == attempts.counts()
    attempts.count("sent_to_login")
    assert {"foreign_host": 1, "no_login": 2, "sent_to_login": 1} == attempts.counts()
    assert {"foreign_host": 1, "no_login": 2} == attempts.refusals()


def test_waits_grow_with_each_failure(attempts):
    """The first five cost nothing; then they double up to five minutes. Another address does not wait."""
    waits = [attempts.record_failure("x", "192.0.2.1") for _ in range(20)]
    assert [0.0] * FREE == waits[:FREE]
    assert [1.0, 2.0, 4.0, 8.0] == waits[FREE : FREE + 4]
    assert LONGEST_WAIT == waits[-1]
    assert 0.0 == attempts.record_failure("x", "192.0.2.2")


def test_a_success_and_an_hour_forget(attempts, clock):
    for _ in range(FREE):
        attempts.record_failure("x", "192.0.2.1")
        attempts.record_failure("x", "192.0.2.2")
    attempts.forget_failures("192.0.2.1")
    assert 0.0 == attempts.record_failure("x", "192.0.2.1")
    clock.advance(3_601)
    assert 0.0 == attempts.record_failure("x", "192.0.2.2")


def test_many_addresses_together_are_slowed_down(attempts, clock):
    """Beyond a number in a minute every further failure waits, from whichever address; the next minute is a new one."""
    waits = [attempts.record_failure("x", f"10.0.{number // 256}.{number % 256}") for number in range(EVERYWHERE + 1)]
    assert [0.0] * EVERYWHERE == waits[:-1]
    assert 60.0 == waits[-1]
    clock.advance(60)
    assert 0.0 == attempts.record_failure("x", "192.0.2.1")


def test_memory_is_bounded(attempts):
    for number in range(AT_MOST_ADDRESSES + 10):
        attempts.record_failure("x", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert AT_MOST_ADDRESSES == len(attempts._failures)
