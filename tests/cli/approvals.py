"""Requests for approval for the tests of the command line."""

from __future__ import annotations

import time

from grace_kp.approvals import Actor, Approval, ApprovalRequest, ApprovalState, RequestStore, digest, encode
from grace_kp.store import open_store

HOSTILE = "x\x1b[2J\x1b]0;title\x07\x9b31m\x08\x7f\u202e\u2066\u200b\u061c\r\n\t[red]y\\"
ANA = Actor(name="ana", channel="cli", os_user="ana", host="web-1")


def pending(**fields):
    """A request that waits for a decision."""
    now = time.time()
    known = {
        "id": "ap-7f3a2c91b4d5e6f7", "state": ApprovalState.PENDING, "revision": 1, "action": "refund", "version": "sig:1a2b", "domain": "shop",
        "digest": "sha256:" + "ab" * 32, "asked_digest": "sha256:" + "ab" * 32, "arguments": {"invoice": "A-17", "euros": 40},
        "key_fields": ("invoice",), "score": 0.61, "breakdown": {"search_quality": 0.5, "source_agreement": None}, "penalties": ("no_sources",),
        "reason": "The policy asks for at least CONFIRM.", "created_at": now - 700, "deadline": now + 12_000, "is_awaited": True,
    }  # fmt: skip
    return Approval(**{**known, **fields})


def filed(url, *names, **fields):
    """File a request for each invoice in the store of this URL; return the approvals."""
    store = open_store(url)
    desk = RequestStore(store.approvals)
    found = []
    for name in names:
        encoded, _ = encode({"invoice": name, "euros": 40, "memo": "why"})
        known = {
            "action": "refund", "version": "sig:1", "domain": "default", "digest": digest("refund", "sig:1", encoded, secret=None), "encoded": encoded,
            "key": f"refund:{name}", "key_fields": ("invoice",), "score": 0.6, "reason": "The policy asks for at least CONFIRM.",
            "schema": SCHEMA, "deadline_seconds": 3_600.0, "waits": "hand_over", "run_id": "kp:trace:1",
        }  # fmt: skip
        found.append(desk.file(ApprovalRequest(**{**known, **fields})))
    store.close()
    return found


SCHEMA = {
    "type": "object",
    "properties": {"invoice": {"type": "string"}, "euros": {"type": "integer"}, "memo": {"type": "string"}},
}


def state_of(url, approval):
    """The approval as it is now."""
    store = open_store(url)
    try:
        return RequestStore(store.approvals).get(approval.id)
    finally:
        store.close()
