"""Refused attempts in the audit trail."""

from __future__ import annotations

import time

import pytest

from grace_kp.approvals import verify
from grace_kp.web import Person, Role
from grace_kp.web.security._refusals import EACH_DAY, EACH_DAY_PER_PERSON, EACH_MINUTE, Refusals
from tests.web.security.conftest import entries

ANA, BEN = Person(name="ana", role=Role.VIEWER), Person(name="ben", role=Role.ADMIN)


@pytest.fixture
def refusals(tables, clock):
    return Refusals(tables, clock)


def test_an_attempt_is_recorded(refusals, tables):
    """Who, what and why; the chain still holds."""
    assert refusals.record(ANA, path="/approvals/x\n/approve", reason="right", approval="x")
    (entry,) = entries(tables, "refused")
    assert "ana" == entry["actor"]["name"]
    assert "web" == entry["actor"]["channel"]
    assert {"path": "/approvals/x /approve", "reason": "right", "role": "viewer"} == entry["facts"]
    assert verify(tables, at=time.time()).ok


def test_nobody_can_fill_the_disk(refusals, tables, clock):
    """Beyond a number in a minute attempts of a person are counted, and the next entry states how many."""
    for _ in range(EACH_MINUTE + 7):
        refusals.record(ANA, path="/", reason="csrf")
    assert EACH_MINUTE == len(entries(tables, "refused"))
    refusals.record(BEN, path="/", reason="csrf")
    clock.advance(60)
    refusals.record(ANA, path="/", reason="csrf")
    found = entries(tables, "refused")
    assert EACH_MINUTE + 2 == len(found)
    assert [None, 7] == [entry["facts"].get("not_recorded") for entry in found[-2:]]
    assert {"ana": EACH_MINUTE + 8, "ben": 1} == refusals.counts()


def test_all_people_together_are_bounded(refusals, tables, clock):
    """In a day; the next day is a new one."""
    for number in range(EACH_DAY + 5):
        refusals.record(Person(name=f"person {number}", role=Role.VIEWER), path="/", reason="csrf")
    assert EACH_DAY == len(entries(tables, "refused"))
    clock.advance(86_400)
    assert refusals.record(ANA, path="/", reason="csrf")


def test_nobody_uses_up_the_entries_of_others(refusals, tables, clock):
    """A share in a day for each person; the next day is a new one."""
    for _ in range(EACH_DAY_PER_PERSON + 5):
        refusals.record(ANA, path="/", reason="csrf")
        clock.advance(60)
    assert EACH_DAY_PER_PERSON == len(entries(tables, "refused"))
    assert refusals.record(BEN, path="/", reason="csrf")
    clock.advance(86_400)
    assert refusals.record(ANA, path="/", reason="csrf")
    assert 5 == entries(tables, "refused")[-1]["facts"]["not_recorded"]


def test_a_store_that_cannot_be_written_refuses_all_the_same(clock, caplog):
    """The attempt is in the log."""
    from grace_kp.errors import StoreError

    def transaction():
        raise StoreError("locked\nby others")

    refusals = Refusals(type("Tables", (), {"transaction": staticmethod(transaction)})(), clock)
    assert not refusals.record(ANA, path="/", reason="csrf")
    assert ["a refused attempt of ana could not be recorded: locked by others"] == caplog.messages
