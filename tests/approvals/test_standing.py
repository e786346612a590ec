"""Standing approvals as values."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Standing
from grace_kp.errors import ApprovalError
from tests.approvals.shops import ANA, Shop


def test_a_standing_approval_holds_until_it_is_ended():
    """Nothing has used it at first."""
    standing = Standing(action="refund", domain="shop", parameters={"euros": {"to": 20}}, until=60.0, uses=3)
    assert (0, (), "") == (standing.used, standing.open, standing.ended)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": "refund*"}, "is a pattern"),
        ({"action": ""}, "needs the action"),
        ({"domain": None}, "needs the domain"),
        ({"uses": 0}, "uses must be"),
        ({"uses": True}, "uses must be"),
        ({"until": 999.0}, "until must be"),
        ({"until": 1e12}, "until must be"),
        ({"until": float("nan")}, "until must be"),
        ({"parameters": {"euros": {}}}, "'euros' is missing"),
        ({"parameters": {"euros": {"glob": "*"}}}, "unknown fields: 'glob'"),
        ({"parameters": {"euros": {"any": 1}}}, "must be true"),
    ],
)
def test_what_cannot_be_granted_is_refused(fields, message):
    """The error names the field; nothing is written."""
    shop = Shop()
    usual = {"action": "refund", "domain": "shop", "parameters": {}, "until": 2_000.0, "uses": 1}
    with pytest.raises(ApprovalError, match=message):
        shop.requests.grant(Standing(**{**usual, **fields}), actor=ANA)
    assert [] == shop.entries()
