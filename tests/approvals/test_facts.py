"""The facts of an approval as JSON."""

from __future__ import annotations

import datetime
import json

from grace_kp.approvals import Actor, Approval, ApprovalRequest, ApprovalState, Decided, Vote

ANA = Actor(name="ana")


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
