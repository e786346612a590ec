"""Entries and rows that one transaction writes agree."""

from __future__ import annotations

from grace_kp.approvals import Actor, verify
from tests.approvals.desks import ANA, BO, Bureau, asked, claim, keyed


def test_every_entry_states_the_row_that_was_written_with_it():
    """Verification accounts for each row, views and waiting included."""
    bureau = Bureau()
    desk = bureau.desk
    approval = desk.request(keyed())
    desk.get(approval.id, viewer=ANA)
    desk.leave(approval.id)
    desk.wait_for(approval.id)
    approval = desk.edit(approval.id, {"euros": 20}, actor=BO, digest=approval.digest)
    token = claim(desk, approval).token
    desk.settle(approval.id, token, state="failed", error="OSError")
    desk.reject(desk.request(keyed()).id, actor=Actor(name="\ud800\u202e\x1b"), reason="\x00")
    found = verify(bureau.tables, at=bureau.clock.now)
    assert (True, [], 7) == (found.ok, list(found.problems), found.entries)


def test_waiting_is_no_revision():
    """Whoever waits comes and goes without an entry."""
    bureau = Bureau()
    approval = bureau.desk.request(asked())
    bureau.desk.leave(approval.id)
    assert (False, 1) == (bureau.desk.get(approval.id).is_awaited, bureau.desk.get(approval.id).revision)
    assert bureau.another("p2").wait_for(approval.id).is_awaited is True
    bureau.desk.leave(approval.id)
    assert bureau.desk.get(approval.id).is_awaited is True
    bureau.desk.withdraw(approval.id, actor=ANA)
    assert {} == bureau.tables.documents("waiter")
    assert bureau.desk.wait_for(approval.id).is_awaited is False
