"""The policy in force now."""

from __future__ import annotations

from grace_kp.approvals import PolicyNow


def test_a_policy_requires_nothing_by_itself():
    """An action without a policy has the mildest one."""
    assert (False, None, (), 1) == (PolicyNow().denies, PolicyNow().floor, PolicyNow().groups, PolicyNow().quorum)
