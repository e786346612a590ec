"""Requests that an earlier version wrote: they verify, are shown as they were, and are decided and claimed by their stored digests.

The store was written at 2753eab, with a key that seals `iban`: a pending request, one that waits for a second vote, and an approved, an edited, a
claimed, a done and a rejected one, beside a standing approval. `approvals.json` is what that version showed of them, without `is_awaited`.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest

from grace_kp.approvals import Actor, PolicyNow, RequestStore, Secret, encode, has_digest, verify
from grace_kp.store import open_store

EARLIER = Path(__file__).resolve().parents[1] / "vectors" / "earlier" / "2753eab"
KEY = Secret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
SHOWN = json.loads((EARLIER / "approvals.json").read_text(encoding="utf-8"))
ANA, GATE = Actor(name="ana"), Actor(name="gate", channel="gate")


@pytest.fixture
def tables(tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(gzip.decompress((EARLIER / "approvals.sqlite3.gz").read_bytes()))
    with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
        yield store.approvals


@pytest.fixture
def requests(tables):
    return RequestStore(tables, groups={"ana": ["finance"]}, secret=KEY, clock=lambda: 1_000.0)


def sealed_left_out(value):
    """The JSON of an approval without its ciphertexts."""
    if isinstance(value, dict):
        return {name: "" if name == "$sealed" else sealed_left_out(part) for name, part in value.items()}
    return [sealed_left_out(part) for part in value] if isinstance(value, list) else value


def test_the_chain_verifies(tables):
    """Rows, entries and their contents are as they were hashed."""
    found = verify(tables, at=1_000.0)
    assert (True, 17, ()) == (found.ok, found.entries, found.problems)


@pytest.mark.parametrize("name", SHOWN)
def test_an_approval_is_shown_as_it_was(requests, name):
    """Field by field; the claimant is another process now, which may be known to be gone."""
    approval = requests.get(name)
    before, after = sealed_left_out(SHOWN[name]), sealed_left_out(json.loads(json.dumps(approval.to_dict())))
    del after["is_awaited"]
    if before["state"] == "claimed":
        assert after["state"] in {"claimed", "unknown"}
        for field in ("state", "outcome", "revision"):
            before[field] = after[field]
    if before["claim"]:
        del after["claim"]["process"]
    assert before == after
    encoded, _ = encode(approval.arguments)
    assert has_digest(approval.digest, "refund", "1", encoded, secret=KEY)
    assert "DE89370400440532013000" == approval.arguments["iban"]


@pytest.mark.parametrize("state", ["pending", "approved", "edited"])
def test_a_request_goes_on_by_its_stored_digest(tables, requests, state):
    """From where the earlier version left it to its outcome."""
    name = next(name for name, shown in SHOWN.items() if (shown["state"], shown["quorum"]) == (state, 1))
    if state == "pending":
        requests.approve(name, actor=ANA, digest=SHOWN[name]["digest"])
    claimed = requests.claim(name, digest=SHOWN[name]["digest"], version="1", policy=PolicyNow(), actor=GATE)
    assert "done" == requests.settle(name, claimed.token, state="done").state
    assert verify(tables, at=1_000.0).ok
