"""The idempotency key of the action that runs."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.testing import make_grace
from tests.gating.inboxes import runtime


def test_it_is_stable_per_approval():
    """The one execution of an approval has the key that is derived from it."""
    from grace_kp.approvals import idempotency_key_of

    grace = runtime()

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> str:
        return gk.idempotency_key()

    approval = act(1).approval
    grace.approvals.approve(approval.id, by="ana")
    assert idempotency_key_of(approval.id) == grace.approvals.execute(approval.id)


def test_without_an_inbox_each_call_has_its_own():
    """Nested actions have their own, too, and the outer one is back afterwards."""
    grace = make_grace()

    @grace.gate
    def inner() -> str:
        return gk.idempotency_key()

    @grace.gate
    def outer() -> list[str]:
        return [gk.idempotency_key(), inner(), gk.idempotency_key()]

    first, nested, again = outer()
    assert first == again
    assert len({first, nested, outer()[0]}) == 3


def test_outside_of_an_action():
    """There is none."""
    with pytest.raises(gk.GraceError, match="outside of a gated action"):
        gk.idempotency_key()
