"""A request as it is kept, as people see it, and as JSON."""

from __future__ import annotations

import dataclasses
import datetime
import datetime as dt
import decimal
import json

import pytest

from grace_kp.approvals import Approval, ApprovalRequest, ApprovalState, Decided, Secret, Vote, forget, new_key
from grace_kp.errors import StoreError
from tests.approvals.shops import ANA, BO, Shop, asked, claim, keyed, sealing, written


def test_a_request_shows_what_it_was_asked_with():
    """Everything a reviewer decides on comes back."""
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
    """Who decided what and when stays; arguments, notes and results go."""
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
    """It names the approval; nothing runs on it."""
    shop = Shop()
    approval = shop.requests.file(asked())
    with shop.tables.transaction() as writes:
        writes.put(dataclasses.replace(writes.row(approval.id), data=data, revision=2))
    with pytest.raises(StoreError, match=f"{approval.id}' cannot be read"):
        shop.requests.get(approval.id)


def approval(**more):
    fields = {
        "id": "ap-1",
        "state": ApprovalState.PENDING,
        "revision": 1,
        "action": "refund",
        "version": "1",
        "domain": "d",
        "digest": "sha256:0",
    }
    return Approval(**{**fields, "arguments": {"euros": 2**60}, "encoded": {"euros": {"$int": str(2**60)}}, **more})


def test_an_approval_is_json():
    """With the arguments as they are kept, so that nothing is lost."""
    decided = Decided(state=ApprovalState.APPROVED, actor=ANA, at=1.0)
    document = approval(votes=(Vote(actor=ANA, at=1.0, digest="sha256:0"),), decision=decided).to_dict()
    again = json.loads(json.dumps(document))
    assert {"euros": {"$int": str(2**60)}} == again["arguments"]
    assert ("ana", "approved") == (again["votes"][0]["actor"]["name"], again["decision"]["state"])
    assert "asked" not in again


def test_the_arguments_before_an_edit_are_json_too():
    """As they are kept, with sealed ones sealed."""
    kept = {"day": {"$date": "2026-01-31"}, "iban": {"$sealed": "AA==", "key": "k"}}
    asked = {"day": datetime.date(2026, 1, 31), "iban": "DE89370400440532013000"}
    document = approval(asked=asked, asked_encoded=kept).to_dict()
    assert kept == json.loads(json.dumps(document))["asked"]


def test_ids_are_distinct_and_exist_before_the_request():
    """Values are sealed for the id, so that it cannot wait for the store."""
    ids = {ApprovalRequest(action="a", version="1", domain="d", digest="sha256:0").id for _ in range(50)}
    assert 50 == len(ids)
    assert all(each.startswith("ap-") and each.isascii() and len(each) == 19 for each in ids)


def test_an_approval_does_not_change():
    """Whoever holds one sees one revision."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        approval().state = ApprovalState.APPROVED


def test_an_approval_shows_itself_in_a_notebook():
    """As HTML with a style of its own."""
    html = approval()._repr_html_()
    assert html.startswith('<div class="grace-kp"><style>')
    assert str(2**60) in html


def test_arguments_come_back_as_they_were():
    """With their types."""
    arguments = {
        "euros": decimal.Decimal("1.10"),
        "on": dt.date(2026, 1, 2),
        "many": 2**70,
        "raw": b"\0",
        "pair": (1, 2),
    }
    approval = Shop().requests.file(asked(arguments))
    assert arguments == approval.arguments
    assert [type(value) for value in arguments.values()] == [type(value) for value in approval.arguments.values()]


def test_a_value_that_cannot_be_read_stays_encoded():
    """The request can still be looked at, and rejected."""
    approval = Shop().requests.file(
        asked(encoded={"euros": {"$model": "shop.Order", "fields": {}}, "n": {"$int": "x"}})
    )
    assert {"euros": {"$model": "shop.Order", "fields": {}}, "n": {"$int": "x"}} == approval.arguments


def test_no_text_beside_the_arguments_repeats_a_sealed_one():
    """Neither reasons nor notes, policies, results or errors; neither the value that was asked about nor the one of an edit, nor a PIN."""
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    old, new = "DE89370400440532013000", "FR7630006000011234567890189"
    pin = "471108151623"  # four digits would occur in an id or a digest by chance
    words = f"from {old}, PIN {pin}"
    approval = shop.requests.file(
        *sealing(
            secret, {"iban": old, "pin": int(pin), "euros": 5}, ("iban", "pin"), quorum=2, identity="stated", objective=words, reason=words,
            penalties=(words,), policy={"why": words}, facts={"a": words}, run={"steps": [{"content": words, "pin": int(pin)}]}, note={"a": words},
        )
    )  # fmt: skip
    edited = shop.requests.edit(approval.id, {"iban": new}, by=ANA, note=f"{words} to {new}", digest=approval.digest)
    shop.requests.approve(approval.id, by=BO, note=f"{words} to {new}", digest=edited.digest)
    claimed = claim(shop.requests, edited)
    shop.requests.settle(approval.id, claimed.token, state="failed", error=f"Error {words} {new}")
    found = written(shop.tables)
    assert [] == [text for text in (old, new, pin) if text in found]


def test_the_json_of_an_edited_approval_keeps_secrets_sealed():
    """Those that were asked about, too; the key is there, so that they are open in `asked`."""
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    approval = shop.requests.file(*sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ("iban",)))
    edited = shop.requests.edit(approval.id, {"euros": 6}, by=ANA)
    document = edited.to_dict()
    assert "DE89370400440532013000" == edited.asked["iban"]
    assert (5, 6) == (document["asked"]["euros"], document["arguments"]["euros"])
    assert "DE89370400440532013000" not in json.dumps(document)
