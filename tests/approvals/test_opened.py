"""Arguments as people see them."""

from __future__ import annotations

import datetime as dt
import decimal
import json

from grace_kp.approvals import Secret, new_key
from tests.approvals.shops import ANA, BO, Shop, asked, claim, sealing, written


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
    edited = shop.requests.edit(approval.id, {"iban": new}, actor=ANA, note=f"{words} to {new}", digest=approval.digest)
    shop.requests.approve(approval.id, actor=BO, note=f"{words} to {new}", digest=edited.digest)
    claimed = claim(shop.requests, edited)
    shop.requests.settle(approval.id, claimed.token, state="failed", error=f"Error {words} {new}")
    found = written(shop.tables)
    assert [] == [text for text in (old, new, pin) if text in found]


def test_the_json_of_an_edited_approval_keeps_secrets_sealed():
    """Those that were asked about, too; the key is there, so that they are open in `asked`."""
    secret = Secret(new_key())
    shop = Shop(secret=secret)
    approval = shop.requests.file(*sealing(secret, {"iban": "DE89370400440532013000", "euros": 5}, ("iban",)))
    edited = shop.requests.edit(approval.id, {"euros": 6}, actor=ANA)
    document = edited.to_dict()
    assert "DE89370400440532013000" == edited.asked["iban"]
    assert (5, 6) == (document["asked"]["euros"], document["arguments"]["euros"])
    assert "DE89370400440532013000" not in json.dumps(document)
