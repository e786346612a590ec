"""Votes as entries: one each, and the decision with the last."""

from __future__ import annotations

from tests.approvals.desks import ANA, BO, Bureau, asked


def test_each_vote_is_an_entry_and_the_last_is_the_decision():
    """The entries state the count."""
    bureau = Bureau()
    approval = bureau.desk.request(asked(quorum=2, identity="stated"))
    bureau.desk.approve(approval.id, actor=ANA, note="first")
    decided = bureau.desk.approve(approval.id, actor=BO, note="second")
    assert ["requested", "voted", "decided"] == bureau.kinds()
    assert [(1, 2), (2, 2)] == [(entry["facts"]["votes"], entry["facts"]["quorum"]) for entry in bureau.entries()[1:]]
    assert (["first", "second"], "bo") == ([vote.note for vote in decided.votes], decided.decision.actor.name)
