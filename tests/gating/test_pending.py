"""The answer in place of an action that waits."""

from __future__ import annotations

import pickle

import grace_kp as gk
from tests.gating.inboxes import runtime


def test_it_is_a_text_with_its_approval():
    """It can be sent to another process."""
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> int:
        return n

    answer = act(1)
    copy = pickle.loads(pickle.dumps(answer))
    assert (str(answer), answer.approval.id) == (str(copy), copy.approval.id)
    assert "act has not run" in answer
