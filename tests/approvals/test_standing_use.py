"""Standing approvals at work: what they approve, how uses are counted, and what ends them."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Standing, verify
from grace_kp.errors import AlreadyDecided, ApprovalError
from tests.approvals.shops import ANA, BO, Shop, asked, claim


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"]})


ANY = {"any": True}


def granted(shop, *, actor=ANA, **fields):
    usual = {"invoice": {"any": True}, "euros": {"from": 1, "to": 500}}
    settings = {"action": "refund", "domain": "shop", "parameters": usual, "until": 50_000.0, "uses": 2}
    return shop.requests.grant(Standing(**{**settings, **fields}), actor=actor)


def test_a_covered_request_is_approved_at_once(shop):
    """In the name of whoever granted it, with an entry for its use."""
    standing = granted(shop, note="small refunds")
    approval = shop.requests.file(asked())
    assert ("approved", standing.id, "ana", "standing") == (
        approval.state,
        approval.standing,
        approval.decision.actor.name,
        approval.decision.actor.channel,
    )
    claim(shop.requests, approval)
    assert ["requested", "decided", "claimed", "standing_used"] == shop.kinds(approval.id)
    assert [1] == [each.used for each in shop.requests.standing()]


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
def test_what_it_does_not_cover_asks(shop, fields):
    """A quorum, an escalation, hidden values, other people's groups, other arguments."""
    granted(shop)
    assert "pending" == shop.requests.file(asked(**fields), {}).state


@pytest.mark.parametrize("hidden", ["sealed", "not_covered"])
def test_hidden_values_are_covered_by_any_only(shop, hidden):
    """Explicitly."""
    granted(shop)
    assert "approved" == shop.requests.file(asked(**{hidden: ("invoice",)}), {}).state


def test_a_repeated_grant_changes_nothing(shop):
    """A form that is sent twice does not double the uses. Other terms, another person, or the end of the first make another one."""
    first = granted(shop)
    claim(shop.requests, shop.requests.file(asked()))
    assert first.id == granted(shop).id
    assert [(2, 1)] == [(each.uses, each.used) for each in shop.requests.standing()]
    others = [
        granted(shop, uses=3),
        granted(shop, parameters={"invoice": {"is": 1}, "euros": ANY}),
        granted(shop, parameters={"invoice": {"is": True}, "euros": ANY}),
        granted(shop, actor=BO),
    ]
    shop.requests.end_standing(first.id, actor=ANA)
    assert 6 == len({first.id, granted(shop).id, *(each.id for each in others)})


def test_a_version_can_be_required(shop):
    """Then another version asks."""
    granted(shop, version="1")
    assert ["approved", "pending"] == [shop.requests.file(asked(version=version)).state for version in "12"]


def test_uses_are_reserved_and_counted(shop):
    """What waits for its claim takes a place; what is withdrawn gives it back."""
    granted(shop)
    first, second, third = (shop.requests.file(asked()) for _ in range(3))
    assert ["approved", "approved", "pending"] == [first.state, second.state, third.state]
    shop.requests.withdraw(first.id, actor=BO)
    assert "approved" == shop.requests.file(asked()).state
    claim(shop.requests, second)
    assert "pending" == shop.requests.file(asked()).state


def test_a_released_claim_gives_its_use_back(shop):
    """It has done nothing."""
    granted(shop, uses=1)
    approval = shop.requests.file(asked())
    shop.requests.release(approval.id, claim(shop.requests, approval).token)
    assert [0] == [each.used for each in shop.requests.standing()]
    assert verify(shop.tables, at=shop.clock.now).ok
    claim(shop.requests, approval)
    assert verify(shop.tables, at=shop.clock.now).ok
    assert [] == shop.requests.standing()
    assert [1] == [each.used for each in shop.requests.standing(ended=True)]


def test_the_rights_of_its_author_are_checked_by_the_claim(shop):
    """Who has left the group consents to nothing any more."""
    granted(shop)
    approval = shop.requests.file(asked(groups=("finance",)))
    assert "approved" == approval.state
    with pytest.raises(AlreadyDecided, match="may no longer decide") as caught:
        claim(shop.another("p2", groups={}), approval)
    assert ("cancelled", [0]) == (caught.value.state, [each.used for each in shop.requests.standing()])


def test_its_time_is_checked_by_the_claim(shop):
    """Although the approval itself could be used longer."""
    granted(shop, until=1_100.0)
    approval = shop.requests.file(asked())
    shop.clock.now = 1_100.0
    assert [] == shop.requests.standing()
    with pytest.raises(AlreadyDecided, match="held until"):
        claim(shop.requests, approval)
    assert "cancelled" == shop.requests.get(approval.id).state


def test_a_later_rejection_ends_it(shop):
    """It cancels what it approved and nobody claimed; what runs goes on."""
    standing = granted(shop, uses=3)
    waiting, running = shop.requests.file(asked()), shop.requests.file(asked())
    token = claim(shop.requests, running).token
    asks = shop.requests.file(asked(level="escalate"))
    shop.requests.reject(asks.id, actor=BO, reason="fraud")
    assert [] == shop.requests.standing()
    assert ["cancelled", "claimed"] == [shop.requests.get(each.id).state for each in (waiting, running)]
    assert "pending" == shop.requests.file(asked()).state
    assert "done" == shop.requests.settle(running.id, token, state="done").state
    (ended,) = shop.requests.standing(ended=True)
    assert f"{asks.id}, which it covers, was rejected" == ended.ended
    assert standing == granted_again(shop, standing)


def granted_again(shop, standing):
    """Ending it once more changes nothing."""
    before = len(shop.entries())
    shop.requests.end_standing(standing.id, actor=ANA)
    assert before == len(shop.entries())
    return standing


def test_a_rejection_of_something_else_leaves_it(shop):
    """Other arguments are none of its business."""
    granted(shop)
    other = shop.requests.file(asked({"invoice": "R-1", "euros": 900}))
    shop.requests.reject(other.id, actor=BO)
    assert 1 == len(shop.requests.standing())


def test_a_person_ends_it(shop):
    """With a reason, and an entry."""
    standing = granted(shop)
    approval = shop.requests.file(asked())
    assert "too many" == shop.requests.end_standing(standing.id, actor=BO, reason="too many").ended
    assert "cancelled" == shop.requests.get(approval.id).state
    assert "standing_ended" in shop.kinds()
    with pytest.raises(ApprovalError, match="no standing approval has the id"):
        shop.requests.end_standing("st-\x1b", actor=BO)


def test_a_restored_store_has_none(shop):
    """Uses since the backup are not known."""
    granted(shop)
    shop.requests.restored(actor=BO)
    assert [] == shop.requests.standing()


def test_a_constraint_holds_no_secret(shop):
    """It is kept in the clear: what redaction recognises, and parameters that requests of this action seal."""
    with pytest.raises(ApprovalError, match="'invoice' is kept encrypted"):
        granted(
            shop, parameters={"invoice": {"in": ["sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"]}, "euros": ANY}
        )
    shop.requests.file(asked(sealed=("invoice",)), {})
    with pytest.raises(ApprovalError, match="'invoice' is kept encrypted"):
        granted(shop, parameters={"invoice": {"is": "R-1"}, "euros": ANY})
    granted(shop, parameters={"invoice": ANY, "euros": {"is": 500}})


def test_a_clock_that_is_set_back_does_not_revive_it(shop):
    """The first request after its time ends it."""
    granted(shop, until=2_000.0)
    shop.clock.now = 2_000.0
    assert "pending" == shop.requests.file(asked()).state
    shop.clock.now = 1_500.0
    assert "pending" == shop.requests.file(asked()).state
    assert ["its time is over"] == [each.ended for each in shop.requests.standing(ended=True)]
    assert verify(shop.tables, at=0.0).ok
