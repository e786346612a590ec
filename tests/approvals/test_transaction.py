"""Transactions: nothing is half-written, time and dead processes are noticed, and listeners cannot break a verb."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Actor, RequestStore, verify
from grace_kp.errors import AlreadyDecided, NotEntitled, StoreError
from tests.approvals.shops import ANA, BO, ProcessTables, Shop, asked, claim, keyed


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
        approval = requests.approve(approval.id, by=ANA)
    calls = {
        "approve": lambda: requests.approve(approval.id, by=ANA),
        "edit": lambda: requests.edit(approval.id, {"euros": 1}, by=ANA),
        "reject": lambda: requests.reject(approval.id, by=ANA),
        "withdraw": lambda: requests.withdraw(approval.id, by=ANA),
        "claim": lambda: claim(requests, approval),
    }
    before = shop.tables.row(approval.id), shop.tables.head()
    tables.fails_at = fails_at
    with pytest.raises(StoreError, match="the disk is full"):
        calls[verb]()
    assert before == (shop.tables.row(approval.id), shop.tables.head())
    tables.fails_at = 0
    calls[verb]()


def test_each_commit_of_a_change_is_reported_also_where_the_verb_fails():
    heads, shop = [], Shop()
    requests = shop.another("p1", on_change=lambda: heads.append(shop.tables.head()[0]))
    approval = requests.file(asked())
    requests.get(approval.id)
    shop.clock.now += 10_000
    with pytest.raises(AlreadyDecided):
        requests.approve(approval.id, by=ANA)
    assert [1, 2] == heads


DAY = 86_400.0


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["board"]})


@pytest.mark.parametrize("read", ["get", "pending", "history", "sweep"])
def test_every_read_writes_what_is_due(shop, read):
    approval = shop.requests.file(asked())
    shop.clock.now = approval.deadline
    {
        "get": lambda: shop.requests.get(approval.id),
        "pending": shop.requests.pending,
        "history": shop.requests.history,
        "sweep": shop.requests.sweep,
    }[read]()
    assert ["requested", "expired"] == shop.kinds(approval.id)
    assert [] == shop.requests.pending()
    ended = shop.requests.get(approval.id)
    assert ("expired", "deadline") == (ended.state, ended.decision.actor.name)


def test_a_clock_one_day_ahead_and_back_revives_nothing(shop):
    pending, approved = shop.requests.file(asked()), shop.requests.file(asked())
    approved = shop.requests.approve(approved.id, by=ANA)
    shop.clock.now += DAY
    assert 2 == shop.requests.sweep()
    shop.clock.now -= DAY
    for call in (lambda: shop.requests.approve(pending.id, by=BO), lambda: claim(shop.requests, approved)):
        with pytest.raises(AlreadyDecided, match="expired"):
            call()


def test_changes_of_a_request_are_in_the_order_of_their_times(shop):
    approval = shop.requests.file(asked(deadline_seconds=None, use_within_seconds=None))
    shop.clock.now -= DAY
    decided = shop.requests.approve(approval.id, by=ANA)
    assert approval.created_at == decided.decision.at


def test_on_deadline_skip_lets_the_agent_go_on(shop):
    approval = shop.requests.file(asked(on_deadline="skip"))
    shop.clock.now += DAY
    ended = shop.requests.get(approval.id)
    assert ("skipped", "no decision in time") == (ended.state, ended.decision.note)
    with pytest.raises(AlreadyDecided) as caught:
        shop.requests.skip(approval.id, by=ANA)
    assert "" == caught.value.by


def test_a_request_is_escalated_once(shop):
    """The group changes, the votes restart, the time is as long as the first; then it expires."""
    approval = shop.requests.file(asked(groups=("finance",), on_deadline="escalate:board", quorum=2, identity="stated"))
    shop.requests.approve(approval.id, by=ANA)
    shop.clock.now += 2 * 3_600
    now = shop.requests.get(approval.id)
    assert ("pending", ("board",), (), shop.clock.now + 3_600) == (now.state, now.groups, now.votes, now.deadline)
    with pytest.raises(NotEntitled):
        shop.requests.approve(approval.id, by=ANA)
    assert "pending" == shop.requests.approve(approval.id, by=BO).state
    shop.clock.now += 3_600
    assert "expired" == shop.requests.get(approval.id).state
    assert ["requested", "voted", "escalated", "voted", "expired"] == shop.kinds()


def test_many_due_requests_are_swept(shop):
    for _ in range(230):
        shop.requests.file(asked())
    shop.clock.now += DAY
    assert 230 == shop.requests.sweep()
    assert 0 == shop.requests.sweep()


def test_requests_without_a_deadline_wait(shop):
    approval = shop.requests.file(asked(deadline_seconds=None, use_within_seconds=None))
    shop.clock.now += 1_000 * DAY
    assert "claimed" == claim(shop.requests, shop.requests.approve(approval.id, by=ANA)).approval.state


def test_every_entry_states_the_row_that_was_written_with_it():
    shop = Shop()
    requests = shop.requests
    approval = requests.file(keyed())
    requests.get(approval.id, by=ANA)
    requests.leave(approval.id)
    shop.another("p2").file(keyed())
    approval = requests.edit(approval.id, {"euros": 20}, by=BO, digest=approval.digest)
    token = claim(requests, approval).token
    requests.settle(approval.id, token, state="failed", error="OSError")
    requests.reject(requests.file(keyed()).id, by=Actor(name="\ud800\u202e\x1b"), reason="\x00")
    found = verify(shop.tables, at=shop.clock.now)
    assert (True, [], 7) == (found.ok, list(found.problems), found.entries)


def test_waiting_is_no_revision():
    shop = Shop()
    approval = shop.requests.file(keyed())
    shop.requests.leave(approval.id)
    assert (False, 1) == (shop.requests.get(approval.id).is_awaited, shop.requests.get(approval.id).revision)
    assert shop.another("p2").file(keyed()).is_awaited is True
    shop.requests.leave(approval.id)
    assert (True, 1) == (shop.requests.get(approval.id).is_awaited, shop.requests.get(approval.id).revision)
    shop.requests.withdraw(approval.id, by=ANA)
    assert {} == shop.tables.documents("waiter")
    assert shop.requests.get(approval.id).is_awaited is False
