"""Standing approvals at work: what they approve, how uses are counted, and what ends them."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Standing, verify
from grace_kp.errors import AlreadyDecided, ApprovalError
from tests.approvals.desks import ANA, BO, Bureau, asked, claim


@pytest.fixture
def bureau():
    return Bureau(groups={"ana": ["finance"]})


ANY = {"any": True}


def granted(bureau, *, actor=ANA, **fields):
    usual = {"invoice": {"any": True}, "euros": {"from": 1, "to": 500}}
    settings = {"action": "refund", "domain": "shop", "parameters": usual, "until": 50_000.0, "uses": 2}
    return bureau.desk.grant(Standing(**{**settings, **fields}), actor=actor)


def test_a_covered_request_is_approved_at_once(bureau):
    """In the name of whoever granted it, with an entry for its use."""
    standing = granted(bureau, note="small refunds")
    approval = bureau.desk.request(asked())
    assert ("approved", standing.id, "ana", "standing") == (
        approval.state,
        approval.standing,
        approval.decision.actor.name,
        approval.decision.actor.channel,
    )
    claim(bureau.desk, approval)
    assert ["requested", "decided", "claimed", "standing_used"] == bureau.kinds(approval.id)
    assert [1] == [each.used for each in bureau.desk.standing()]


@pytest.mark.parametrize(
    "fields",
    [
        {"quorum": 2, "identity": "stated"},
        {"level": "escalate"},
        {"unencoded": ("session",)},
        {"sealed": ("euros",)},
        {"not_covered": ("euros",)},
        {"groups": ("board",)},
        {"groups": ("finance",), "user": "ana"},
        {"domain": "other"},
        {"action": "refund2"},
        {"arguments": {"invoice": "R-1", "euros": 501}},
        {"arguments": {"invoice": "R-1", "euros": "500"}},
        {"arguments": {"invoice": "R-1"}},
        {"arguments": {"invoice": "R-1", "euros": 5, "currency": "EUR"}},
    ],
)
def test_what_it_does_not_cover_asks(bureau, fields):
    """A quorum, an escalation, hidden values, other people's groups, other arguments."""
    granted(bureau)
    assert "pending" == bureau.desk.request(asked(**fields)).state


@pytest.mark.parametrize("hidden", ["sealed", "not_covered"])
def test_hidden_values_are_covered_by_any_only(bureau, hidden):
    """Explicitly."""
    granted(bureau)
    assert "approved" == bureau.desk.request(asked(**{hidden: ("invoice",)})).state


def test_a_repeated_grant_changes_nothing(bureau):
    """A form that is sent twice does not double the uses. Other terms, another person, or the end of the first make another one."""
    first = granted(bureau)
    claim(bureau.desk, bureau.desk.request(asked()))
    assert first.id == granted(bureau).id
    assert [(2, 1)] == [(each.uses, each.used) for each in bureau.desk.standing()]
    others = [
        granted(bureau, uses=3),
        granted(bureau, parameters={"invoice": {"is": 1}, "euros": ANY}),
        granted(bureau, parameters={"invoice": {"is": True}, "euros": ANY}),
        granted(bureau, actor=BO),
    ]
    bureau.desk.end_standing(first.id, actor=ANA)
    assert 6 == len({first.id, granted(bureau).id, *(each.id for each in others)})


def test_a_version_can_be_required(bureau):
    """Then another version asks."""
    granted(bureau, version="1")
    assert ["approved", "pending"] == [bureau.desk.request(asked(version=version)).state for version in "12"]


def test_uses_are_reserved_and_counted(bureau):
    """What waits for its claim takes a place; what is withdrawn gives it back."""
    granted(bureau)
    first, second, third = (bureau.desk.request(asked()) for _ in range(3))
    assert ["approved", "approved", "pending"] == [first.state, second.state, third.state]
    bureau.desk.withdraw(first.id, actor=BO)
    assert "approved" == bureau.desk.request(asked()).state
    claim(bureau.desk, second)
    assert "pending" == bureau.desk.request(asked()).state


def test_a_released_claim_gives_its_use_back(bureau):
    """It has done nothing."""
    granted(bureau, uses=1)
    approval = bureau.desk.request(asked())
    bureau.desk.release(approval.id, claim(bureau.desk, approval).token)
    assert [0] == [each.used for each in bureau.desk.standing()]
    assert verify(bureau.tables, at=bureau.clock.now).ok
    claim(bureau.desk, approval)
    assert verify(bureau.tables, at=bureau.clock.now).ok
    assert [] == bureau.desk.standing()
    assert [1] == [each.used for each in bureau.desk.standing(ended=True)]


def test_the_rights_of_its_author_are_checked_by_the_claim(bureau):
    """Who has left the group consents to nothing any more."""
    granted(bureau)
    approval = bureau.desk.request(asked(groups=("finance",)))
    assert "approved" == approval.state
    with pytest.raises(AlreadyDecided, match="may no longer decide") as caught:
        claim(bureau.another("p2", groups={}), approval)
    assert ("cancelled", [0]) == (caught.value.state, [each.used for each in bureau.desk.standing()])


def test_its_time_is_checked_by_the_claim(bureau):
    """Although the approval itself could be used longer."""
    granted(bureau, until=1_100.0)
    approval = bureau.desk.request(asked())
    bureau.clock.now = 1_100.0
    assert [] == bureau.desk.standing()
    with pytest.raises(AlreadyDecided, match="held until"):
        claim(bureau.desk, approval)
    assert "cancelled" == bureau.desk.get(approval.id).state


def test_a_later_rejection_ends_it(bureau):
    """It cancels what it approved and nobody claimed; what runs goes on."""
    standing = granted(bureau, uses=3)
    waiting, running = bureau.desk.request(asked()), bureau.desk.request(asked())
    token = claim(bureau.desk, running).token
    asks = bureau.desk.request(asked(level="escalate"))
    bureau.desk.reject(asks.id, actor=BO, reason="fraud")
    assert [] == bureau.desk.standing()
    assert ["cancelled", "claimed"] == [bureau.desk.get(each.id).state for each in (waiting, running)]
    assert "pending" == bureau.desk.request(asked()).state
    assert "done" == bureau.desk.settle(running.id, token, state="done").state
    (ended,) = bureau.desk.standing(ended=True)
    assert f"{asks.id}, which it covers, was rejected" == ended.ended
    assert standing == granted_again(bureau, standing)


def granted_again(bureau, standing):
    """Ending it once more changes nothing."""
    before = len(bureau.entries())
    bureau.desk.end_standing(standing.id, actor=ANA)
    assert before == len(bureau.entries())
    return standing


def test_a_rejection_of_something_else_leaves_it(bureau):
    """Other arguments are none of its business."""
    granted(bureau)
    other = bureau.desk.request(asked({"invoice": "R-1", "euros": 900}))
    bureau.desk.reject(other.id, actor=BO)
    assert 1 == len(bureau.desk.standing())


def test_a_person_ends_it(bureau):
    """With a reason, and an entry."""
    standing = granted(bureau)
    approval = bureau.desk.request(asked())
    assert "too many" == bureau.desk.end_standing(standing.id, actor=BO, reason="too many").ended
    assert "cancelled" == bureau.desk.get(approval.id).state
    assert "standing_ended" in bureau.kinds()
    with pytest.raises(ApprovalError, match="no standing approval has the id"):
        bureau.desk.end_standing("st-\x1b", actor=BO)


def test_a_restored_store_has_none(bureau):
    """Uses since the backup are not known."""
    granted(bureau)
    bureau.desk.restored(actor=BO)
    assert [] == bureau.desk.standing()


def test_a_constraint_holds_no_secret(bureau):
    """It is kept in the clear: what redaction recognises, and parameters that requests of this action seal."""
    with pytest.raises(ApprovalError, match="'invoice' is kept encrypted"):
        granted(
            bureau, parameters={"invoice": {"in": ["sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"]}, "euros": ANY}
        )
    bureau.desk.request(asked(sealed=("invoice",)))
    with pytest.raises(ApprovalError, match="'invoice' is kept encrypted"):
        granted(bureau, parameters={"invoice": {"is": "R-1"}, "euros": ANY})
    granted(bureau, parameters={"invoice": ANY, "euros": {"is": 500}})


def test_a_clock_that_is_set_back_does_not_revive_it(bureau):
    """The first request after its time ends it."""
    granted(bureau, until=2_000.0)
    bureau.clock.now = 2_000.0
    assert "pending" == bureau.desk.request(asked()).state
    bureau.clock.now = 1_500.0
    assert "pending" == bureau.desk.request(asked()).state
    assert ["its time is over"] == [each.ended for each in bureau.desk.standing(ended=True)]
    assert verify(bureau.tables, at=0.0).ok
