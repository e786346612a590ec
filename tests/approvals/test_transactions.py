"""Transactions: nothing is half-written, and whoever listens cannot break a verb."""

from __future__ import annotations

import pytest

from grace_kp.approvals import RequestStore
from grace_kp.errors import AlreadyDecided, StoreError
from tests.approvals.shops import ANA, ProcessTables, Shop, asked, claim


class Failing(ProcessTables):
    """Tables that fail at the n-th write of a transaction."""

    fails_at = 0

    def transaction(self):
        return _Failing(self)


class _Failing:
    def __init__(self, tables):
        self._tables = tables
        self._block = tables._tables.transaction()

    def __enter__(self):
        self._writes, self._count = self._block.__enter__(), 0
        return self

    def __exit__(self, *error):
        return self._block.__exit__(*error)

    def __getattr__(self, name):
        call = getattr(self._writes, name)
        if name not in {"put", "append", "put_document"}:
            return call

        def write(*arguments):
            self._count += 1
            if self._count == self._tables.fails_at:
                raise StoreError("the disk is full")
            return call(*arguments)

        return write


@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize("verb", ["approve", "edit", "reject", "withdraw", "claim"])
def test_a_write_that_fails_leaves_nothing(verb, fails_at):
    """Neither the row without its entry nor the entry without its row; afterwards the verb succeeds."""
    shop = Shop()
    tables = Failing(shop.tables, "p1", shop.alive)
    requests = RequestStore(tables, clock=shop.clock)
    approval = requests.file(asked())
    if verb == "claim":
        approval = requests.approve(approval.id, actor=ANA)
    calls = {
        "approve": lambda: requests.approve(approval.id, actor=ANA),
        "edit": lambda: requests.edit(approval.id, {"euros": 1}, actor=ANA),
        "reject": lambda: requests.reject(approval.id, actor=ANA),
        "withdraw": lambda: requests.withdraw(approval.id, actor=ANA),
        "claim": lambda: claim(requests, approval),
    }
    before = shop.tables.row(approval.id), shop.tables.head()
    tables.fails_at = fails_at
    with pytest.raises(StoreError, match="the disk is full"):
        calls[verb]()
    assert before == (shop.tables.row(approval.id), shop.tables.head())
    tables.fails_at = 0
    calls[verb]()


def test_events_follow_the_commit_with_the_approval_and_its_entry():
    """Each change is one event; what is only read is none."""
    events, shop = [], Shop()
    requests = shop.another("p1", on_event=lambda approval, link: events.append((approval.state, link.seq)))
    approval = requests.file(asked())
    requests.get(approval.id)
    requests.approve(approval.id, actor=ANA)
    shop.clock.now += 10_000
    requests.sweep()
    assert [("pending", 1), ("approved", 2), ("expired", 3)] == events


def test_what_is_due_is_an_event_although_the_verb_fails():
    """A receiver learns of the expiry."""
    events, shop = [], Shop()
    requests = shop.another("p1", on_event=lambda approval, link: events.append(approval.state))
    approval = requests.file(asked())
    shop.clock.now += 10_000
    with pytest.raises(AlreadyDecided):
        requests.approve(approval.id, actor=ANA)
    assert ["pending", "expired"] == events


def test_a_listener_that_fails_breaks_nothing(caplog):
    """The log says so."""

    def fail(approval, link):
        raise RuntimeError("down")

    shop = Shop()
    requests = shop.another("p1", on_event=fail)
    assert "approved" == requests.approve(requests.file(asked()).id, actor=ANA).state
    assert "on_event failed" in caplog.text


def test_a_listener_may_use_the_desk():
    """It is called outside of the transaction."""
    shop = Shop()
    requests = shop.another("p1", on_event=lambda approval, link: shop.requests.get(approval.id))
    assert "approved" == requests.approve(requests.file(asked()).id, actor=ANA).state
