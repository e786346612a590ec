"""What time does: expiry by the first observer, escalation once, and clocks that are set back."""

from __future__ import annotations

import pytest

from grace_kp.errors import AlreadyDecided, NotEntitled
from tests.approvals.desks import ANA, BO, Bureau, asked, claim

DAY = 86_400.0


@pytest.fixture
def bureau():
    return Bureau(groups={"ana": ["finance"], "bo": ["board"]})


@pytest.mark.parametrize("read", ["get", "pending", "history", "sweep"])
def test_every_read_writes_what_is_due(bureau, read):
    """What has expired is listed nowhere as pending."""
    approval = bureau.desk.request(asked())
    bureau.clock.now = approval.deadline
    {
        "get": lambda: bureau.desk.get(approval.id),
        "pending": bureau.desk.pending,
        "history": bureau.desk.history,
        "sweep": bureau.desk.sweep,
    }[read]()
    assert ["requested", "expired"] == bureau.kinds(approval.id)
    assert [] == bureau.desk.pending()
    ended = bureau.desk.get(approval.id)
    assert ("expired", "deadline") == (ended.state, ended.decision.actor.name)


def test_a_moment_before_its_deadline_a_request_can_be_decided(bureau):
    """At the deadline it cannot."""
    approval = bureau.desk.request(asked())
    bureau.clock.now = approval.deadline - 0.001
    assert "approved" == bureau.desk.approve(approval.id, actor=ANA).state


def test_a_clock_one_day_ahead_and_back_revives_nothing(bureau):
    """What was seen as expired is final; what was decided is used by then."""
    pending, approved = bureau.desk.request(asked()), bureau.desk.request(asked())
    approved = bureau.desk.approve(approved.id, actor=ANA)
    bureau.clock.now += DAY
    assert 2 == bureau.desk.sweep()
    bureau.clock.now -= DAY
    for call in (lambda: bureau.desk.approve(pending.id, actor=BO), lambda: claim(bureau.desk, approved)):
        with pytest.raises(AlreadyDecided, match="expired"):
            call()


def test_changes_of_a_request_are_in_the_order_of_their_times(bureau):
    """Whatever the clock does."""
    approval = bureau.desk.request(asked(deadline_seconds=None, use_within_seconds=None))
    bureau.clock.now -= DAY
    decided = bureau.desk.approve(approval.id, actor=ANA)
    assert approval.created_at == decided.decision.at


def test_on_deadline_skip_lets_the_agent_go_on(bureau):
    """The state is that of a skip, and nobody is named."""
    approval = bureau.desk.request(asked(on_deadline="skip"))
    bureau.clock.now += DAY
    ended = bureau.desk.get(approval.id)
    assert ("skipped", "nobody decided in time") == (ended.state, ended.decision.note)
    with pytest.raises(AlreadyDecided) as caught:
        bureau.desk.skip(approval.id, actor=ANA)
    assert "" == caught.value.by


def test_a_request_is_escalated_once(bureau):
    """The group changes, the votes restart, the time is as long as the first; then it expires."""
    approval = bureau.desk.request(
        asked(groups=("finance",), on_deadline="escalate:board", quorum=2, identity="stated")
    )
    bureau.desk.approve(approval.id, actor=ANA)
    bureau.clock.now += 2 * 3_600
    now = bureau.desk.get(approval.id)
    assert ("pending", ("board",), (), bureau.clock.now + 3_600) == (now.state, now.groups, now.votes, now.deadline)
    with pytest.raises(NotEntitled):
        bureau.desk.approve(approval.id, actor=ANA)
    assert "pending" == bureau.desk.approve(approval.id, actor=BO).state
    bureau.clock.now += 3_600
    assert "expired" == bureau.desk.get(approval.id).state
    assert ["requested", "voted", "escalated", "voted", "expired"] == bureau.kinds()


def test_a_dead_claimant_leaves_an_unknown_outcome(bureau):
    """Any observer writes it."""
    approval = bureau.desk.approve(bureau.desk.request(asked()).id, actor=ANA)
    claim(bureau.desk, approval)
    bureau.alive["p1"] = False
    assert "unknown" == bureau.another("p2").get(approval.id).state


def test_many_due_requests_are_swept(bureau):
    """In batches."""
    for _ in range(230):
        bureau.desk.request(asked())
    bureau.clock.now += DAY
    assert 230 == bureau.desk.sweep()
    assert 0 == bureau.desk.sweep()


def test_what_was_due_stays_written_although_the_verb_fails(bureau):
    """With its entry."""
    approval = bureau.desk.request(asked())
    bureau.clock.now += DAY
    with pytest.raises(AlreadyDecided):
        bureau.desk.reject(approval.id, actor=ANA)
    assert ("expired", 2) == (bureau.tables.row(approval.id).state, len(bureau.entries()))


def test_requests_without_a_deadline_wait(bureau):
    """For as long as it takes."""
    approval = bureau.desk.request(asked(deadline_seconds=None, use_within_seconds=None))
    bureau.clock.now += 1_000 * DAY
    assert "claimed" == claim(bureau.desk, bureau.desk.approve(approval.id, actor=ANA)).approval.state
