"""Entries and rows that one transaction writes agree."""

from __future__ import annotations

from grace_kp.approvals import Actor, verify
from tests.approvals.shops import ANA, BO, Shop, claim, keyed


def test_every_entry_states_the_row_that_was_written_with_it():
    """Verification accounts for each row, views and waiting included."""
    shop = Shop()
    requests = shop.requests
    approval = requests.file(keyed())
    requests.get(approval.id, viewer=ANA)
    requests.leave(approval.id)
    shop.another("p2").file(keyed())
    approval = requests.edit(approval.id, {"euros": 20}, actor=BO, digest=approval.digest)
    token = claim(requests, approval).token
    requests.settle(approval.id, token, state="failed", error="OSError")
    requests.reject(requests.file(keyed()).id, actor=Actor(name="\ud800\u202e\x1b"), reason="\x00")
    found = verify(shop.tables, at=shop.clock.now)
    assert (True, [], 7) == (found.ok, list(found.problems), found.entries)


def test_waiting_is_no_revision():
    """Whoever waits comes and goes without an entry."""
    shop = Shop()
    approval = shop.requests.file(keyed())
    shop.requests.leave(approval.id)
    assert (False, 1) == (shop.requests.get(approval.id).is_awaited, shop.requests.get(approval.id).revision)
    assert shop.another("p2").file(keyed()).is_awaited is True
    shop.requests.leave(approval.id)
    assert (True, 1) == (shop.requests.get(approval.id).is_awaited, shop.requests.get(approval.id).revision)
    shop.requests.withdraw(approval.id, actor=ANA)
    assert {} == shop.tables.documents("waiter")
    assert shop.requests.get(approval.id).is_awaited is False
