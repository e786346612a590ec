"""Claims: who holds the token may report the outcome."""

from __future__ import annotations

from grace_kp.approvals import Approval, ApprovalState, Claim


def test_a_token_is_not_printed():
    """A claim in a log gives nobody the right to report for it."""
    approval = Approval(
        id="ap-1",
        state=ApprovalState.CLAIMED,
        revision=3,
        action="a",
        version="1",
        domain="d",
        digest="x",
        arguments={},
    )
    assert "sesame" not in repr(Claim(token="sesame", approval=approval))
