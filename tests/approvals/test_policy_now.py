"""The policy in force now."""

from __future__ import annotations

import pytest

from grace_kp.approvals import PolicyNow


def test_a_policy_requires_nothing_by_itself():
    """An action without a policy has the mildest one."""
    assert (False, None, (), 1) == (PolicyNow().denies, PolicyNow().floor, PolicyNow().groups, PolicyNow().quorum)


@pytest.mark.parametrize(
    ("policy", "asked", "is_stricter"),
    [
        ({"denies": True}, {}, True),
        ({"floor": "confirm"}, {}, False),
        ({"floor": "escalate"}, {}, True),
        ({"floor": "escalate"}, {"level": "escalate"}, False),
        ({"quorum": 2}, {"quorum": 2}, False),
        ({"quorum": 3}, {"quorum": 2}, True),
        ({"quorum": 2, "identity": "authenticated"}, {"quorum": 2, "identity": "stated"}, True),
        ({"quorum": 2, "identity": "authenticated"}, {"quorum": 2}, False),
        ({"identity": "authenticated"}, {"identity": "stated"}, False),
        ({"groups": ("a",)}, {}, True),
        ({"groups": ("a",)}, {"groups": ("a", "b")}, True),
        ({"groups": ("a", "b")}, {"groups": ("a",)}, False),
        ({}, {"groups": ("a",), "quorum": 3, "level": "escalate"}, False),
    ],
)
def test_stricter_is_what_lets_fewer_actions_pass(policy, asked, is_stricter):
    """A mildening is no reason to cancel."""
    usual = {"level": "confirm", "groups": (), "quorum": 1, "identity": "authenticated"}
    assert is_stricter == bool(PolicyNow(**policy).stricter_than(**{**usual, **asked}))
