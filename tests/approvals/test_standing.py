"""Standing approvals: their constraints, what they cover, how they are used, and how they end."""

from __future__ import annotations

import decimal
import functools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import Standing, encode, verify
from grace_kp.errors import AlreadyDecided, ApprovalError
from tests.approvals.shops import ANA, BO, Shop, asked, claim


def nested(depth):
    return functools.reduce(lambda inner, _: [inner], range(depth), [])


UNREADABLE = [
    None, [], "any", {}, {"in": []}, {"in": "ab"}, {"is": float("nan")}, {"is": nested(500)}, {"in": [nested(50_000)]}, {"from": 10**400}, {"to": float("inf")}, {"from": "1"}, {"from": True}, {"from": 3, "to": 2}, {"is": 1, "any": True},
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": "refund*"}, "is a pattern"),
        ({"action": ""}, "needs the action"),
        ({"domain": None}, "needs the domain"),
        ({"uses": 0}, "uses must be"),
        ({"uses": True}, "uses must be"),
        ({"until": 999.0}, "until must be"),
        ({"until": 1e12}, "until must be"),
        ({"until": float("nan")}, "until must be"),
        ({"parameters": {"euros": {"glob": "*"}}}, "unknown fields: 'glob'"),
        *(({"parameters": {"euros": each}}, r"the constraint of 'euros' .*; allowed are") for each in UNREADABLE),
    ],
)
def test_what_cannot_be_granted_is_refused(fields, message):
    shop = Shop()
    with pytest.raises(ApprovalError, match=message):
        granted(shop, **{"until": 2_000.0, **fields})
    assert [] == shop.entries()


def covers(constraint, value):
    encoded, _ = encode({"x": value})
    return Standing(action="a", domain="d", parameters={"x": constraint}, until=1.0, uses=1).covers(encoded)


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        ({"is": 5}, [5], [5.0, "5", True, None, 6]),
        ({"is": True}, [True], [1, "true"]),
        ({"is": {"a": [1]}}, [{"a": [1]}], [{"a": [2]}, {"a": (1,)}]),
        ({"in": ["a", "b"]}, ["a", "b"], ["c", "A", ["a"], "a "]),
        ({"from": 1, "to": 20}, [1, 20, 1.5, decimal.Decimal("19.99")], [0, 21, 20.000001, True, "5", None, [5], float("nan")]),
        ({"from": 2**60}, [2**60, 2**61], [2**60 - 1, float("inf")]),
        ({"to": {"$decimal": "0.3"}}, [decimal.Decimal("0.3"), 0, -5], [decimal.Decimal("0.30001"), 0.31]),
        ({"any": True}, [None, "x", 2**70, [1]], []),
    ],
)  # fmt: skip
def test_a_constraint_holds_values_of_its_kind(constraint, inside, outside):
    assert [] == [value for value in inside if not covers(constraint, value)]
    assert [] == [value for value in outside if covers(constraint, value)]


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(), st.integers())
def test_a_range_is_exact(value, low, high):
    bounds = {name: encode({"x": bound})[0]["x"] for name, bound in (("from", low), ("to", high))}
    assert (low <= value <= high) == covers(bounds, value)


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"]})


ANY = {"any": True}


def granted(shop, *, actor=ANA, **fields):
    usual = {"invoice": {"any": True}, "euros": {"from": 1, "to": 500}}
    settings = {"action": "refund", "domain": "shop", "parameters": usual, "until": 50_000.0, "uses": 2}
    return shop.requests.grant(Standing(**{**settings, **fields}), by=actor)


def test_a_covered_request_is_approved_at_once(shop):
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
    stated = {"verb": "approve", "votes": 1, "quorum": 1, "standing": standing.id}
    assert stated.items() <= shop.entries(approval.id)[1]["facts"].items()
    assert [1] == [each.used for each in shop.requests.standing()]


@pytest.mark.parametrize(
    "fields",
    [
        {"quorum": 2, "identity": "stated"},
        {"level": "escalate"},
        {"facts": {"alarms": [{"name": "nowhere", "parameter": "invoice"}]}},
        {"unencoded": ("session",)},
        {"sealed": ("euros",)},
        {"not_covered": ("euros",)},
        {"groups": ("board",)},
        {"groups": ("finance",), "user": "ana"},
        {"domain": "other"},
        {"action": "refund2"},
        {"version": "2"},
        {"arguments": {"invoice": "R-1", "euros": 501}},
        {"arguments": {"invoice": "R-1", "euros": "500"}},
        {"arguments": {"invoice": "R-1"}},
        {"arguments": {"invoice": "R-1", "euros": 5, "currency": "EUR"}},
    ],
)
def test_what_it_does_not_cover_asks(shop, fields):
    granted(shop, version="1")
    assert "pending" == shop.requests.file(asked(**fields), {}).state
    for hidden in ("sealed", "not_covered"):  # these are covered by `any` only
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
    shop.requests.end_standing(first.id, by=ANA)
    assert 6 == len({first.id, granted(shop).id, *(each.id for each in others)})


def test_uses_are_reserved_and_counted(shop):
    granted(shop)
    first, second, third = (shop.requests.file(asked()) for _ in range(3))
    assert ["approved", "approved", "pending"] == [first.state, second.state, third.state]
    shop.requests.withdraw(first.id, by=BO)
    assert "approved" == shop.requests.file(asked()).state
    claim(shop.requests, second)
    assert "pending" == shop.requests.file(asked()).state


def test_a_released_claim_gives_its_use_back(shop):
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
    granted(shop)
    approval = shop.requests.file(asked(groups=("finance",)))
    assert "approved" == approval.state
    with pytest.raises(AlreadyDecided, match="may no longer decide") as caught:
        claim(shop.another("p2", groups={}), approval)
    assert ("cancelled", [0]) == (caught.value.state, [each.used for each in shop.requests.standing()])


def test_its_time_is_checked_by_the_claim(shop):
    granted(shop, until=1_100.0)
    approval = shop.requests.file(asked())
    shop.clock.now = 1_100.0
    assert [] == shop.requests.standing()
    with pytest.raises(AlreadyDecided, match="was valid until"):
        claim(shop.requests, approval)
    assert "cancelled" == shop.requests.get(approval.id).state


def test_a_grant_says_what_it_covers(shop):
    standing = granted(shop, note="small refunds")
    new = Standing(action="refund", domain="shop", parameters=standing.parameters, until=1.0, uses=1)
    assert ("", None, 0.0, 0, (), "") == (new.id, new.granted_by, new.granted_at, new.used, new.open, new.ended)
    assert ("ana", 1_000.0) == (standing.granted_by.name, standing.granted_at)
    (entry,) = shop.tables.links(limit=9)
    assert {"parameters": standing.parameters, "note": "small refunds"} == json.loads(entry.contents)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"used": 2}, "has been used 2 times, which is all it allows"),
        ({"ended": "too many"}, "has ended: too many"),
        ({"until": 1_000.0}, "was valid until an earlier time"),
    ],
)
def test_one_that_was_changed_in_the_store_is_not_used(shop, changes, words):
    standing = granted(shop)
    approval = shop.requests.file(asked())
    with shop.tables.transaction() as writes:
        document = json.loads(writes.document("standing", standing.id))
        writes.put_document("standing", standing.id, json.dumps({**document, **changes}).encode())
    with pytest.raises(AlreadyDecided, match=f"{standing.id} {words}; ask again"):
        claim(shop.requests, approval)
    assert "cancelled" == shop.requests.get(approval.id).state
    assert ("withdrawn", "claim") == (shop.kinds()[-1], shop.entries()[-1]["facts"]["verb"])


def test_a_later_rejection_ends_it(shop):
    standing = granted(shop, uses=3)
    waiting, running = shop.requests.file(asked()), shop.requests.file(asked())
    token = claim(shop.requests, running).token
    shop.requests.reject(shop.requests.file(asked({"invoice": "R-1", "euros": 900})).id, by=BO)
    assert 1 == len(shop.requests.standing())  # it does not cover what was rejected
    asks = shop.requests.file(asked(level="escalate"))
    shop.requests.reject(asks.id, by=BO, reason="fraud")
    assert [] == shop.requests.standing()
    assert ["cancelled", "claimed"] == [shop.requests.get(each.id).state for each in (waiting, running)]
    assert "pending" == shop.requests.file(asked()).state
    assert "done" == shop.requests.settle(running.id, token, state="done").state
    (ended,) = shop.requests.standing(ended=True)
    assert f"{asks.id}, which it covers, was rejected" == ended.ended
    before = len(shop.entries())
    assert ended == shop.requests.end_standing(standing.id, by=ANA)
    assert before == len(shop.entries())


def test_a_person_ends_it(shop):
    standing = granted(shop)
    approval = shop.requests.file(asked())
    assert "too many" == shop.requests.end_standing(standing.id, by=BO, reason="too many").ended
    assert "cancelled" == shop.requests.get(approval.id).state
    notes = [json.loads(link.contents)["note"] for link in shop.tables.links(limit=99) if link.contents]
    assert ["withdrawn", "standing_ended"] == shop.kinds()[-2:]
    assert standing.id == shop.entries()[-1]["facts"]["standing"]
    assert [f"its standing approval {standing.id} has ended: too many", "too many"] == notes[-2:]
    with pytest.raises(ApprovalError, match="no standing approval has the id"):
        shop.requests.end_standing("st-\x1b", by=BO)


def test_a_constraint_holds_no_secret(shop):
    """It is kept in the clear: what redaction recognises, and parameters that requests of this action seal."""
    with pytest.raises(ApprovalError, match="'invoice' is encrypted"):
        granted(
            shop, parameters={"invoice": {"in": ["sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"]}, "euros": ANY}
        )
    shop.requests.file(asked(sealed=("invoice",)), {})
    with pytest.raises(ApprovalError, match="'invoice' is encrypted"):
        granted(shop, parameters={"invoice": {"is": "R-1"}, "euros": ANY})
    granted(shop, parameters={"invoice": ANY, "euros": {"is": 500}})


def test_a_clock_that_is_set_back_does_not_revive_it(shop):
    granted(shop, until=2_000.0)
    shop.clock.now = 2_000.0
    assert "pending" == shop.requests.file(asked()).state
    shop.clock.now = 1_500.0
    assert "pending" == shop.requests.file(asked()).state
    assert ["its time is over"] == [each.ended for each in shop.requests.standing(ended=True)]
    assert verify(shop.tables, at=0.0).ok
