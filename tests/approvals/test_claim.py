"""Claims: the one right to run, what they check, and how they are given back."""

from __future__ import annotations

import pytest

from grace_kp.approvals import PolicyNow
from grace_kp.errors import AlreadyDecided, ChangedSinceShown, NotEntitled
from tests.approvals.desks import ANA, BO, Bureau, asked, claim, logged_in


@pytest.fixture
def bureau():
    return Bureau(groups={"ana": ["finance"], "bo": ["finance"]})


def approved(bureau, **fields):
    return bureau.desk.approve(bureau.desk.request(asked(**fields)).id, actor=ANA)


def test_an_approval_is_claimed_once(bureau):
    """The second claimant learns who has it; a token is not printed or stored."""
    approval = approved(bureau)
    first = claim(bureau.desk, approval)
    with pytest.raises(AlreadyDecided, match="is being carried out, claimed by gate") as caught:
        claim(bureau.another("p2"), approval)
    assert ("claimed", "p1") == (caught.value.state, first.approval.claim.process)
    assert first.token not in repr(first)
    assert first.token.encode() not in bureau.tables.row(approval.id).data


@pytest.mark.parametrize("verb", ["reject", "respond", "skip", "retry", "withdraw"])
def test_nothing_but_consent_entitles(bureau, verb):
    """Neither does a pending request."""
    approval = bureau.desk.request(asked())
    with pytest.raises(AlreadyDecided, match="pending"):
        claim(bureau.desk, approval)
    bureau.desk.decide_all([approval.id], verb, actor=ANA, note="x")
    with pytest.raises(AlreadyDecided):
        claim(bureau.desk, approval)
    assert "claimed" not in bureau.kinds()


@pytest.mark.parametrize("changes", [{"digest": "sha256:00"}, {"version": "2"}])
def test_a_claim_is_for_what_was_decided(bureau, changes):
    """Other arguments and another version of the action are not; the approval stays usable."""
    approval = approved(bureau)
    with pytest.raises(ChangedSinceShown, match=next(iter(changes))):
        claim(bureau.desk, approval, **changes)
    assert "claimed" == claim(bureau.desk, approval).approval.state


def test_an_approval_is_used_in_time(bureau):
    """From the use-by time on it has expired, for good."""
    approval = approved(bureau)
    bureau.clock.now = approval.use_by
    with pytest.raises(AlreadyDecided, match="expired"):
        claim(bureau.desk, approval)
    bureau.clock.now = 1_000.0
    with pytest.raises(AlreadyDecided, match="expired"):
        claim(bureau.desk, approval)


@pytest.mark.parametrize(
    "policy",
    [PolicyNow(denies=True), PolicyNow(floor="escalate"), PolicyNow(quorum=2), PolicyNow(groups=("finance",))],
)
def test_a_stricter_policy_cancels(bureau, policy):
    """The error says in what it is stricter, and the cancellation is written."""
    approval = approved(bureau)
    with pytest.raises(AlreadyDecided, match=r"was cancelled by gate .*: the policy .* now.*; ask again") as caught:
        claim(bureau.desk, approval, policy=policy)
    assert ("cancelled", "cancelled") == (caught.value.state, bureau.desk.get(approval.id).state)
    assert ["requested", "decided", "withdrawn"] == bureau.kinds()


def test_a_policy_that_asks_for_no_more_does_not_cancel(bureau):
    """A milder one, or more groups that may decide."""
    approval = approved(bureau, groups=("finance",), level="escalate")
    policy = PolicyNow(floor="silent", groups=("board", "finance"), version="2")
    assert "claimed" == claim(bureau.desk, approval, policy=policy).approval.state


def test_the_policy_is_compared_with_what_was_asked_not_with_the_escalation(bureau):
    """Whoever a request was escalated to has decided under the same policy."""
    approval = bureau.desk.request(asked(groups=("legal",), on_deadline="escalate:finance"))
    bureau.clock.now += 3_600
    approval = bureau.desk.approve(approval.id, actor=ANA)
    assert "claimed" == claim(bureau.desk, approval, policy=PolicyNow(groups=("legal",))).approval.state


def test_a_claim_that_was_released_can_be_taken_again(bureau):
    """By a new token only, and until the use-by time."""
    approval = approved(bureau)
    first = claim(bureau.desk, approval)
    assert "approved" == bureau.desk.release(approval.id, first.token).state
    with pytest.raises(NotEntitled, match="this token does not belong"):
        bureau.desk.settle(approval.id, first.token, state="done")
    second = claim(bureau.desk, approval)
    with pytest.raises(NotEntitled):
        bureau.desk.release(approval.id, first.token)
    bureau.desk.release(approval.id, second.token)
    bureau.clock.now = approval.use_by
    assert "expired" == bureau.desk.get(approval.id).state
    assert ["requested", "decided", "claimed", "released", "claimed", "released", "expired"] == bureau.kinds()


def test_an_edited_claim_keeps_its_arguments_when_it_is_released(bureau):
    """It shows that it is an edit, and only its digest can be claimed."""
    edited = bureau.desk.edit(bureau.desk.request(asked()).id, {"euros": 20}, actor=ANA)
    released = bureau.desk.release(edited.id, claim(bureau.desk, edited).token)
    assert ("approved", 20, 500) == (released.state, released.arguments["euros"], released.asked["euros"])
    with pytest.raises(ChangedSinceShown):
        claim(bureau.desk, released, digest=released.asked_digest)
    assert "claimed" == claim(bureau.desk, released).approval.state


def test_withdrawing_what_runs_is_refused(bureau):
    """It is too late; what runs is not undone."""
    approval = approved(bureau)
    claim(bureau.desk, approval)
    with pytest.raises(AlreadyDecided, match="is being carried out"):
        bureau.desk.withdraw(approval.id, actor=BO)


def test_a_quorum_is_recounted_with_the_rights_of_today():
    """A vote of somebody who has left the group does not count for the next one."""
    bureau = Bureau(groups={"ana": ["finance"], "bo": ["finance"], "cy": ["finance"]})
    approval = bureau.desk.request(asked(quorum=2, groups=("finance",)))
    bureau.desk.approve(approval.id, actor=logged_in("ana"))
    later = bureau.another("p2", groups={"bo": ["finance"], "cy": ["finance"]})
    assert "pending" == later.approve(approval.id, actor=logged_in("bo")).state
    assert "approved" == later.approve(approval.id, actor=logged_in("cy")).state


def test_what_only_one_process_holds_is_claimed_by_that_process(bureau):
    """The digest does not cover values without an encoding."""
    approval = approved(bureau, unencoded=("session",))
    with pytest.raises(NotEntitled, match="only the process that asked holds session"):
        claim(bureau.another("p2"), approval)
    assert "claimed" == claim(bureau.desk, approval).approval.state


def test_a_program_that_pauses_makes_its_objects_anew(bureau):
    """Their lasting digest is a part of the digest, so that any process that runs the program may claim."""
    approval = approved(bureau, unencoded=("session",), waits="interrupt")
    assert "claimed" == claim(bureau.another("p2"), approval).approval.state
