"""Votes as entries: one each, and the decision with the last."""

from __future__ import annotations

from tests.approvals.shops import ANA, BO, Shop, asked


def test_each_vote_is_an_entry_and_the_last_is_the_decision():
    """The entries state the count."""
    shop = Shop()
    approval = shop.requests.file(asked(quorum=2, identity="stated"))
    shop.requests.approve(approval.id, actor=ANA, note="first")
    decided = shop.requests.approve(approval.id, actor=BO, note="second")
    assert ["requested", "voted", "decided"] == shop.kinds()
    assert [(1, 2), (2, 2)] == [(entry["facts"]["votes"], entry["facts"]["quorum"]) for entry in shop.entries()[1:]]
    assert (["first", "second"], "bo") == ([vote.note for vote in decided.votes], decided.decision.actor.name)
