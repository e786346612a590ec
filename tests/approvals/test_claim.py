"""Claims: the one right to run, what they check, and how they are given back."""

from __future__ import annotations

import pytest

from grace_kp.approvals import PolicyNow
from grace_kp.errors import AlreadyDecided, ChangedSinceShown, NotEntitled
from tests.approvals.shops import ANA, BO, Shop, asked, claim, logged_in


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["finance"]})


def approved(shop, **fields):
    return shop.requests.approve(shop.requests.file(asked(**fields)).id, actor=ANA)


def test_an_approval_is_claimed_once(shop):
    """The second claimant learns who has it; a token is not printed or stored."""
    approval = approved(shop)
    first = claim(shop.requests, approval)
    with pytest.raises(AlreadyDecided, match="is being carried out, claimed by gate") as caught:
        claim(shop.another("p2"), approval)
    assert ("claimed", "p1") == (caught.value.state, first.approval.claim.process)
    assert first.token not in repr(first)
    assert first.token.encode() not in shop.tables.row(approval.id).data


@pytest.mark.parametrize("verb", ["reject", "respond", "skip", "retry", "withdraw"])
def test_nothing_but_consent_entitles(shop, verb):
    """Neither does a pending request."""
    approval = shop.requests.file(asked())
    with pytest.raises(AlreadyDecided, match="pending"):
        claim(shop.requests, approval)
    shop.requests.decide_all([approval.id], verb, actor=ANA, note="x")
    with pytest.raises(AlreadyDecided):
        claim(shop.requests, approval)
    assert "claimed" not in shop.kinds()


@pytest.mark.parametrize("changes", [{"digest": "sha256:00"}, {"version": "2"}])
def test_a_claim_is_for_what_was_decided(shop, changes):
    """Other arguments and another version of the action are not; the approval stays usable."""
    approval = approved(shop)
    with pytest.raises(ChangedSinceShown, match=next(iter(changes))):
        claim(shop.requests, approval, **changes)
    assert "claimed" == claim(shop.requests, approval).approval.state


def test_an_approval_is_used_in_time(shop):
    """From the use-by time on it has expired, for good."""
    approval = approved(shop)
    shop.clock.now = approval.use_by
    with pytest.raises(AlreadyDecided, match="expired"):
        claim(shop.requests, approval)
    shop.clock.now = 1_000.0
    with pytest.raises(AlreadyDecided, match="expired"):
        claim(shop.requests, approval)


@pytest.mark.parametrize(
    "policy",
    [PolicyNow(denies=True), PolicyNow(floor="escalate"), PolicyNow(quorum=2), PolicyNow(groups=("finance",))],
)
def test_a_stricter_policy_cancels(shop, policy):
    """The error says in what it is stricter, and the cancellation is written."""
    approval = approved(shop)
    with pytest.raises(AlreadyDecided, match=r"was cancelled by gate .*: the policy .* now.*; ask again") as caught:
        claim(shop.requests, approval, policy=policy)
    assert ("cancelled", "cancelled") == (caught.value.state, shop.requests.get(approval.id).state)
    assert ["requested", "decided", "withdrawn"] == shop.kinds()


def test_a_policy_that_asks_for_no_more_does_not_cancel(shop):
    """A milder one, or more groups that may decide."""
    approval = approved(shop, groups=("finance",), level="escalate")
    policy = PolicyNow(floor="silent", groups=("board", "finance"), version="2")
    assert "claimed" == claim(shop.requests, approval, policy=policy).approval.state


def test_the_policy_is_compared_with_what_was_asked_not_with_the_escalation(shop):
    """Whoever a request was escalated to has decided under the same policy."""
    approval = shop.requests.file(asked(groups=("legal",), on_deadline="escalate:finance"))
    shop.clock.now += 3_600
    approval = shop.requests.approve(approval.id, actor=ANA)
    assert "claimed" == claim(shop.requests, approval, policy=PolicyNow(groups=("legal",))).approval.state


def test_a_claim_that_was_released_can_be_taken_again(shop):
    """By a new token only, and until the use-by time."""
    approval = approved(shop)
    first = claim(shop.requests, approval)
    assert "approved" == shop.requests.release(approval.id, first.token).state
    with pytest.raises(NotEntitled, match="this token does not belong"):
        shop.requests.settle(approval.id, first.token, state="done")
    second = claim(shop.requests, approval)
    with pytest.raises(NotEntitled):
        shop.requests.release(approval.id, first.token)
    shop.requests.release(approval.id, second.token)
    shop.clock.now = approval.use_by
    assert "expired" == shop.requests.get(approval.id).state
    assert ["requested", "decided", "claimed", "released", "claimed", "released", "expired"] == shop.kinds()


def test_an_edited_claim_keeps_its_arguments_when_it_is_released(shop):
    """It shows that it is an edit, and only its digest can be claimed."""
    edited = shop.requests.edit(shop.requests.file(asked()).id, {"euros": 20}, actor=ANA)
    released = shop.requests.release(edited.id, claim(shop.requests, edited).token)
    assert ("approved", 20, 500) == (released.state, released.arguments["euros"], released.asked["euros"])
    with pytest.raises(ChangedSinceShown):
        claim(shop.requests, released, digest=released.asked_digest)
    assert "claimed" == claim(shop.requests, released).approval.state


def test_withdrawing_what_runs_is_refused(shop):
    """It is too late; what runs is not undone."""
    approval = approved(shop)
    claim(shop.requests, approval)
    with pytest.raises(AlreadyDecided, match="is being carried out"):
        shop.requests.withdraw(approval.id, actor=BO)


def test_a_quorum_is_recounted_with_the_rights_of_today():
    """A vote of somebody who has left the group does not count for the next one."""
    shop = Shop(groups={"ana": ["finance"], "bo": ["finance"], "cy": ["finance"]})
    approval = shop.requests.file(asked(quorum=2, groups=("finance",)))
    shop.requests.approve(approval.id, actor=logged_in("ana"))
    later = shop.another("p2", groups={"bo": ["finance"], "cy": ["finance"]})
    assert "pending" == later.approve(approval.id, actor=logged_in("bo")).state
    assert "approved" == later.approve(approval.id, actor=logged_in("cy")).state


def test_what_only_one_process_holds_is_claimed_by_that_process(shop):
    """The digest does not cover values without an encoding."""
    approval = approved(shop, unencoded=("session",))
    with pytest.raises(NotEntitled, match="only the process that asked holds session"):
        claim(shop.another("p2"), approval)
    assert "claimed" == claim(shop.requests, approval).approval.state


def test_a_program_that_pauses_makes_its_objects_anew(shop):
    """Their lasting digest is a part of the digest, so that any process that runs the program may claim."""
    approval = approved(shop, unencoded=("session",), waits="interrupt")
    assert "claimed" == claim(shop.another("p2"), approval).approval.state
