"""Rows as approvals: what they show, and what remains of them after retention or damage."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.approvals import forget
from grace_kp.errors import StoreError
from tests.approvals.shops import ANA, Shop, asked, claim, keyed


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
    approval = shop.requests.approve(shop.requests.file(asked()).id, actor=ANA, note="checked")
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
