"""What time does: expiry by the first observer, escalation once, and clocks that are set back."""

from __future__ import annotations

import pytest

from grace_kp.errors import AlreadyDecided, NotEntitled
from tests.approvals.shops import ANA, BO, Shop, asked, claim

DAY = 86_400.0


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["board"]})


@pytest.mark.parametrize("read", ["get", "pending", "history", "sweep"])
def test_every_read_writes_what_is_due(shop, read):
    """What has expired is listed nowhere as pending."""
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


def test_a_moment_before_its_deadline_a_request_can_be_decided(shop):
    """At the deadline it cannot."""
    approval = shop.requests.file(asked())
    shop.clock.now = approval.deadline - 0.001
    assert "approved" == shop.requests.approve(approval.id, actor=ANA).state


def test_a_clock_one_day_ahead_and_back_revives_nothing(shop):
    """What was seen as expired is final; what was decided is used by then."""
    pending, approved = shop.requests.file(asked()), shop.requests.file(asked())
    approved = shop.requests.approve(approved.id, actor=ANA)
    shop.clock.now += DAY
    assert 2 == shop.requests.sweep()
    shop.clock.now -= DAY
    for call in (lambda: shop.requests.approve(pending.id, actor=BO), lambda: claim(shop.requests, approved)):
        with pytest.raises(AlreadyDecided, match="expired"):
            call()


def test_changes_of_a_request_are_in_the_order_of_their_times(shop):
    """Whatever the clock does."""
    approval = shop.requests.file(asked(deadline_seconds=None, use_within_seconds=None))
    shop.clock.now -= DAY
    decided = shop.requests.approve(approval.id, actor=ANA)
    assert approval.created_at == decided.decision.at


def test_on_deadline_skip_lets_the_agent_go_on(shop):
    """The state is that of a skip, and nobody is named."""
    approval = shop.requests.file(asked(on_deadline="skip"))
    shop.clock.now += DAY
    ended = shop.requests.get(approval.id)
    assert ("skipped", "nobody decided in time") == (ended.state, ended.decision.note)
    with pytest.raises(AlreadyDecided) as caught:
        shop.requests.skip(approval.id, actor=ANA)
    assert "" == caught.value.by


def test_a_request_is_escalated_once(shop):
    """The group changes, the votes restart, the time is as long as the first; then it expires."""
    approval = shop.requests.file(asked(groups=("finance",), on_deadline="escalate:board", quorum=2, identity="stated"))
    shop.requests.approve(approval.id, actor=ANA)
    shop.clock.now += 2 * 3_600
    now = shop.requests.get(approval.id)
    assert ("pending", ("board",), (), shop.clock.now + 3_600) == (now.state, now.groups, now.votes, now.deadline)
    with pytest.raises(NotEntitled):
        shop.requests.approve(approval.id, actor=ANA)
    assert "pending" == shop.requests.approve(approval.id, actor=BO).state
    shop.clock.now += 3_600
    assert "expired" == shop.requests.get(approval.id).state
    assert ["requested", "voted", "escalated", "voted", "expired"] == shop.kinds()


def test_a_dead_claimant_leaves_an_unknown_outcome(shop):
    """Any observer writes it."""
    approval = shop.requests.approve(shop.requests.file(asked()).id, actor=ANA)
    claim(shop.requests, approval)
    shop.alive["p1"] = False
    assert "unknown" == shop.another("p2").get(approval.id).state


def test_many_due_requests_are_swept(shop):
    """In batches."""
    for _ in range(230):
        shop.requests.file(asked())
    shop.clock.now += DAY
    assert 230 == shop.requests.sweep()
    assert 0 == shop.requests.sweep()


def test_what_was_due_stays_written_although_the_verb_fails(shop):
    """With its entry."""
    approval = shop.requests.file(asked())
    shop.clock.now += DAY
    with pytest.raises(AlreadyDecided):
        shop.requests.reject(approval.id, actor=ANA)
    assert ("expired", 2) == (shop.tables.row(approval.id).state, len(shop.entries()))


def test_requests_without_a_deadline_wait(shop):
    """For as long as it takes."""
    approval = shop.requests.file(asked(deadline_seconds=None, use_within_seconds=None))
    shop.clock.now += 1_000 * DAY
    assert "claimed" == claim(shop.requests, shop.requests.approve(approval.id, actor=ANA)).approval.state
