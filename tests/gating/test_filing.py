"""What is kept of a call: arguments with their digest, the policy, the run; and what is sealed."""

from __future__ import annotations

import json

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime

KEY = "0123456789abcdef" * 4
IBAN = "DE89 3704 0044 0532 0130 00"


def gate(grace, **settings):
    @grace.gate(**{"floor": "confirm", "reviewer": gk.InboxReviewer(wait="hand_over"), **settings})
    def pay(iban: str, euros: int = 5) -> str:
        return iban

    return pay


def test_a_request_states_what_it_rests_on():
    """Arguments with defaults, level, policy, deadline, run and user."""
    grace = runtime()
    policy = gk.Policy(floor="escalate", group="finance", quorum=2)
    pay = gate(
        grace,
        policy=policy,
        floor=None,
        reviewer=gk.InboxReviewer("1h", wait="hand_over", group="legal", identity="stated"),
    )
    with grace.run("Pay the bill", user="uma") as run:
        approval = pay("x").approval
    assert {"iban": "x", "euros": 5} == dict(approval.arguments)
    assert ("escalate", ("finance",), 2, run.id, "Pay the bill", "uma") == (
        approval.level, approval.groups, approval.quorum, approval.run_id, approval.objective, approval.user,
    )  # fmt: skip
    assert policy.version == approval.policy["version"]
    assert approval.run["task"]["objective"] == "Pay the bill"
    assert 3_600 == pytest.approx(approval.deadline - approval.created_at)


def test_secrets_are_sealed_with_a_key(tmp_path, monkeypatch):
    """They are in no file in the clear, and the action runs with them."""
    monkeypatch.setenv("GRACE_KP_KEY", KEY)
    grace = runtime(tmp_path)
    pay = gate(grace, sealed=("iban",))
    with grace.run("Pay"):
        approval = pay(IBAN).approval
    grace.approvals.approve(approval.id, by="ana")
    assert grace.approvals.execute(approval.id) == IBAN
    grace.flush()
    traces = [json.dumps(trace.to_dict()) for trace in grace.store.query(limit=10)]
    assert [] == [trace for trace in traces if IBAN in trace]
    grace.close()
    assert ("iban",) == approval.sealed
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert IBAN.encode() not in kept


def test_without_a_key_it_is_refused(tmp_path, monkeypatch):
    """The message names the parameter."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    pay = gate(runtime(tmp_path), sealed=("iban",))
    with pytest.raises(gk.ActionCancelled, match="'iban' is to be sealed"):
        pay(IBAN)
