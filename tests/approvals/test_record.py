"""A request as it is kept, as people see it, as JSON, in lists and in figures of a period."""

from __future__ import annotations

import dataclasses
import json

import pytest

from grace_kp.approvals import (
    Actor,
    Secret,
    Standing,
    _record,
    approval_figures,
    forget,
    new_key,
)
from grace_kp.errors import StoreError
from tests.approvals.shops import ANA, BO, Shop, asked, claim, keyed, sealing, written


def test_a_request_shows_what_it_was_asked_with():
    fields = {
        "schema": {"properties": {"euros": {"type": "integer"}}},
        "not_covered": ("session",),
        "score": 0.4,
        "breakdown": {"sources": 0.1, "quality": None},
        "penalties": ("loop",),
        "reason": "The score is low.",
        "gaps": ("no judge",),
        "facts": {"profile": "p"},
        "policy": {"floor": "confirm", "version": "abc"},
        "objective": "Refund",
        "user": "dee",
        "run": {"steps": [1]},
        "groups": ("finance",),
        "note": {"thread": "t1"},
        "waits": "hand_over",
        "origin": "graph",
    }
    approval = Shop().requests.file(keyed(**fields))
    assert fields == {name: getattr(approval, name) for name in fields}
    assert ("refund:R-1", ("invoice",)) == (approval.key, approval.key_fields)


def test_retention_deletes_contents_and_leaves_the_facts():
    shop = Shop()
    approval = shop.requests.approve(shop.requests.file(asked()).id, by=ANA, note="checked")
    token = claim(shop.requests, approval).token
    shop.requests.settle(approval.id, token, state="done", result="paid", has_result=True)
    forget(shop.tables, before=2_000.0, at=2_000.0)
    left = shop.requests.get(approval.id)
    assert (True, {}, "", False) == (left.deleted, left.arguments, left.decision.note, left.outcome.has_result)
    assert ("done", "ana") == (left.state, left.decision.actor.name)
    assert [approval.id] == [each.id for each in shop.requests.history(by="ana")]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"null"])
def test_a_damaged_row_is_a_clear_error(data):
    shop = Shop()
    approval = shop.requests.file(asked())
    with shop.tables.transaction() as writes:
        writes.put(dataclasses.replace(writes.row(approval.id), data=data, revision=2))
    with pytest.raises(StoreError, match=f"{approval.id}' cannot be read"):
        shop.requests.get(approval.id)


def test_a_value_that_cannot_be_read_stays_encoded():
    approval = Shop().requests.file(
        asked(encoded={"euros": {"$model": "shop.Order", "fields": {}}, "n": {"$int": "x"}})
    )
    assert {"euros": {"$model": "shop.Order", "fields": {}}, "n": {"$int": "x"}} == approval.arguments


def test_no_text_beside_the_arguments_repeats_a_sealed_one():
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    old, new = "DE89370400440532013000", "FR7630006000011234567890189"
    pin = "471108151623"  # four digits would occur in an id or a digest by chance
    words = f"from {old}, PIN {pin}, password=hunter22hunter"
    asks = (
        sealing(
            secret, {"iban": old, "pin": int(pin), "euros": 5}, ("iban", "pin"), quorum=2, identity="stated", objective=words, reason=words,
            penalties=(words,), policy={"why": words}, facts={"a": words}, run={"steps": [{"content": words, "pin": int(pin)}]}, note={"a": words},
        )
    )  # fmt: skip
    with pytest.raises(ValueError, match="`unsealed` is needed"):
        shop.requests.file(asks[0])
    approval = shop.requests.file(*asks)
    edited = shop.requests.edit(approval.id, {"iban": new}, by=ANA, note=f"{words} to {new}", digest=approval.digest)
    shop.requests.approve(approval.id, by=BO, note=f"{words} to {new}", digest=edited.digest)
    claimed = claim(shop.requests, edited)
    error = f"Error {words} {new}"
    ended = shop.requests.settle(
        approval.id, claimed.token, state="done", error=error, result={"to": new}, has_result=True
    )
    assert not ended.outcome.has_result
    found = written(shop.tables)
    assert [] == [text for text in (old, new, pin, "hunter22") if text in found]


def test_the_json_of_an_edited_approval_keeps_secrets_sealed():
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    approval = shop.requests.file(*sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ("iban",)))
    edited = shop.requests.edit(approval.id, {"euros": 6}, by=ANA)
    document = json.loads(json.dumps(edited.to_dict()))
    assert ("ana", "edited") == (document["votes"][0]["actor"]["name"], document["decision"]["state"])
    assert "asked" not in approval.to_dict()
    assert "DE89370400440532013000" == edited.asked["iban"]
    assert (5, 6) == (document["asked"]["euros"], document["arguments"]["euros"])
    assert "DE89370400440532013000" not in json.dumps(document)


@pytest.fixture
def shop():
    return Shop()


def test_requests_with_one_digest_are_counted(shop):
    for _ in range(3):
        shop.requests.file(asked())
    shop.requests.file(asked({"invoice": "R-2", "euros": 1}))
    assert [3, 3, 3, 1] == sorted((each.same for each in shop.requests.pending()), reverse=True)
    first = shop.requests.pending()[0]
    assert 1 == shop.requests.approve(first.id, by=ANA).same


@pytest.mark.parametrize("many", [0, 10_000])
def test_what_a_person_decided_is_found_whether_it_is_rare_or_not(shop, monkeypatch, many):
    """By an index, or among the newest rows: votes for arguments before an edit are none any more, and a claim is nobody's decision."""
    monkeypatch.setattr(_record, "AT_MOST_LOOKED_UP", many)
    begin, ids = shop.clock.now, []
    for verb, actor in (("approve", ANA), ("reject", BO), ("approve", Actor(name="ANA", channel="web"))):
        shop.clock.now += 1
        ids.append(shop.requests.file(asked()).id)
        getattr(shop.requests, verb)(ids[-1], by=actor)
    shop.requests.file(asked())
    claim(shop.requests, shop.requests.get(ids[0]))
    shop.clock.now += 5_000
    assert [ids[2], ids[0]] == [each.id for each in shop.requests.history(by=" Ana ")]
    assert [ids[2]] == [each.id for each in shop.requests.history(by="ana", since=begin + 4)]
    assert [ids[2], ids[0], ids[1]] == [each.id for each in shop.requests.history() if each.id in ids]
    assert [ids[1]] == [each.id for each in shop.requests.history(by="Bo", action="ref*")]
    assert [] == shop.requests.history(by="bo", action="delete") == shop.requests.history(by="gate")
    assert [ids[2]] == [each.id for each in shop.requests.history(by="ana", limit=1)]


BEGIN = 1_000.0


def figures(shop, since=0.0, until=10**9, **options):
    return approval_figures(shop.tables, since, until, **options)


def test_decisions_are_counted_by_their_kind(shop):
    """What came of the action afterwards does not change how the request was decided."""
    requests = [shop.requests.file(asked(deadline_seconds=60.0)) for _ in range(5)]
    shop.clock.now += 5
    claim(shop.requests, shop.requests.approve(requests[0].id, by=ANA))
    shop.clock.now += 5
    shop.requests.approve(requests[1].id, by=ANA)
    shop.requests.reject(requests[2].id, by=ANA, reason="no")
    shop.requests.withdraw(requests[3].id, by=ANA, reason="not needed")
    found = figures(shop)
    assert {"approved": 2, "rejected": 1, "cancelled": 1} == dict(found.outcomes)
    assert 1 == found.pending
    shop.clock.now += 1_000
    shop.requests.sweep()
    assert 0 == figures(shop).pending
    assert 2 == figures(shop).outcomes["expired"]  # the pending one, and the approved one that nobody used


def test_only_people_take_their_time(shop):
    first = shop.requests.file(asked(deadline_seconds=60.0))
    shop.requests.file(asked(deadline_seconds=30.0))
    shop.clock.now += 20
    shop.requests.approve(first.id, by=ANA)
    shop.requests.grant(
        Standing(
            action="refund",
            domain="shop",
            parameters={"euros": {"to": 20}, "invoice": {"any": True}},
            until=9_000.0,
            uses=3,
        ),
        by=ANA,
    )
    shop.requests.file(asked({"invoice": "R-2", "euros": 1}))
    shop.clock.now += 100
    shop.requests.sweep()
    found = figures(shop)
    assert (20.0,) == found.waits
    assert {"approved": 1, "expired": 1, "standing": 1} == dict(found.outcomes)


def test_a_period_begins_and_ends(shop):
    """The time of the decision counts, not that of the request or of the action; the end does not belong to it."""
    request = shop.requests.file(asked())
    shop.clock.now = 2_000.0
    approval = shop.requests.approve(request.id, by=ANA)
    shop.clock.now = 2_500.0
    claim(shop.requests, approval)
    assert {"approved": 1} == dict(figures(shop, 2_000.0, 2_001.0).outcomes)
    assert {} == dict(figures(shop, 1_000.0, 2_000.0).outcomes)
    assert {} == dict(figures(shop, 2_001.0, 3_000.0).outcomes)


def test_what_is_read_is_bounded(shop):
    for seconds in range(4):
        request = shop.requests.file(asked({"invoice": f"R-{seconds}", "euros": 1}))
        shop.clock.now += seconds
        shop.requests.reject(request.id, by=ANA, reason="no")
    found = figures(shop, limit=2)
    assert (2.0, 3.0) == found.waits
    assert found.is_cut
    assert not figures(shop, limit=5).is_cut
