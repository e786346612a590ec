"""Standing approvals as values."""

from __future__ import annotations

from grace_kp.approvals import Standing


def test_a_standing_approval_holds_until_it_is_ended():
    """Nothing has used it at first."""
    standing = Standing(action="refund", domain="shop", parameters={"euros": {"to": 20}}, until=60.0, uses=3)
    assert (0, (), "") == (standing.used, standing.open, standing.ended)
