"""Standing approvals that somebody widened, renewed or invented in the store."""

from __future__ import annotations

import json

import pytest

from grace_kp.approvals import Standing, forget, verify
from tests.approvals.chains import found
from tests.approvals.shops import ANA, Shop, asked, claim


@pytest.fixture
def shop():
    """A standing approval that was used once, and one that has ended."""
    shop = Shop()
    parameters = {"invoice": {"any": True}, "euros": {"from": 0, "to": 900}}
    for uses in (3, 5):
        granted = Standing(action="refund", domain="shop", parameters=parameters, until=9_000.0, uses=uses)
        standing = shop.requests.grant(granted, actor=ANA)
        if uses == 3:
            claim(shop.requests, shop.requests.file(asked()))
        else:
            shop.requests.end_standing(standing.id, actor=ANA, reason="enough")
    return shop


def documents(shop):
    """The names of the one that holds and of the one that has ended."""
    found = {name: json.loads(data) for name, data in shop.tables.documents("standing").items()}
    return sorted(found, key=lambda name: bool(found[name]["ended"]))


def change(shop, name, **changes):
    with shop.tables.transaction() as writes:
        document = json.loads(writes.document("standing", name))
        writes.put_document("standing", name, json.dumps({**document, **changes}).encode())


def test_what_the_chain_records_is_sound(shop):
    """Before and after retention has deleted what was granted."""
    assert verify(shop.tables, at=1.0).ok
    forget(shop.tables, before=2_000.0, at=2_000.0)
    verification = verify(shop.tables, at=1.0)
    assert (True, []) == (verification.ok, found(verification))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until": 90_000.0}, "is not as entry 1 has granted it"),
        ({"uses": 1_000}, "is not as entry 1 has granted it"),
        ({"action": "delete"}, "is not as entry 1 has granted it"),
        ({"parameters": {"invoice": {"any": True}, "euros": {"any": True}}}, "is not as entry 1 has granted it"),
        ({"used": 0}, "counts 0 uses, and the chain 1"),
        ({"ended": "x"}, "was ended without an entry"),
        ({"used": None}, "counts None uses"),
    ],
)
def test_a_change_without_an_entry_is_located(shop, changes, message):
    """The entry that granted it is named."""
    name, _ = documents(shop)
    change(shop, name, **changes)
    verification = verify(shop.tables, at=1.0)
    assert [(1, "standing")] == found(verification)
    assert f"the standing approval {name} {message}" in verification.problems[0].message


def test_one_that_was_renewed_or_invented_is_found(shop):
    """One that has ended holds again; another was never granted; a third cannot be read."""
    first, ended = documents(shop)
    change(shop, ended, ended="")
    with shop.tables.transaction() as writes:
        writes.put_document("standing", "st-new", writes.document("standing", first))
        writes.put_document("standing", first, b"[")
    messages = [problem.message for problem in verify(shop.tables, at=1.0).problems]
    assert 3 == len(messages)
    assert {"holds, and an entry has ended it", "was not granted by any entry", "cannot be read"} == {
        message.split(" ", 4)[4] for message in messages
    }
