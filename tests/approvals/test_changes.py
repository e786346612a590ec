"""Changes as they happen, for plain loops and for coroutines."""

from __future__ import annotations

import threading

import grace_kp as gk
from tests.gating.inboxes import runtime


def act(grace):
    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> int:
        return n

    return act


def test_a_loop_sees_each_change_in_order(tmp_path):
    """From the call on, also those of another runtime at the same store."""
    grace, other = runtime(tmp_path), runtime(tmp_path)
    changes = grace.approvals.watch()
    seen = []

    def watch():
        for change in changes:
            seen.append((change.seq, change.kind, change.actor.name))
            if change.kind == "decided":
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    approval = act(other)(1).approval
    other.approvals.approve(approval.id, by="ana")
    thread.join(30)
    assert [(1, "requested", "gate"), (2, "decided", "ana")] == seen


async def test_a_coroutine_sees_them():
    """Beginning after a number that was seen before."""
    grace = runtime()
    approval = act(grace)(1).approval
    await grace.approvals.areject(approval.id, by="ana", reason="no")
    seen = []
    async for change in grace.approvals.watch(after=1):
        seen.append((change.kind, change.approval))
        break
    assert [("decided", approval.id)] == seen
