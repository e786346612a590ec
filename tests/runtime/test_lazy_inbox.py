"""The inbox of a runtime is opened once, when it is needed."""

from __future__ import annotations

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime


def test_there_is_one():
    """Gates and verbs share it."""
    grace = runtime()
    assert grace._gates().inbox is grace._gates().inbox


def test_groups_come_from_the_settings():
    """Who is in no group of the request may not decide it."""
    grace = runtime(reviewers={"ana": ["finance"], "bo": ["legal"]})

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over", group="finance"))
    def pay(n: int) -> int:
        return n

    name = pay(1).approval.id
    with pytest.raises(gk.NotEntitled):
        grace.approvals.approve(name, by="bo")
    assert grace.approvals.approve(name, by="ana").state == "approved"


def test_a_key_that_cannot_be_used(monkeypatch):
    """The action does not run, and the error does not show the key."""
    monkeypatch.setenv("GRACE_KP_KEY", "not a key")

    @runtime().gate(floor="confirm", reviewer=gk.InboxReviewer())
    def pay(n: int) -> int:
        return n

    with pytest.raises(gk.ActionCancelled, match="GRACE_KP_KEY") as error:
        pay(1)
    assert "not a key" not in str(error.value)
