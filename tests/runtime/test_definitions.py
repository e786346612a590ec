"""The gated actions of a runtime by name and version."""

from __future__ import annotations

import gc

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime

LATER = gk.InboxReviewer(wait="hand_over")


def defined(grace, **settings):
    @grace.gate(**{"floor": "confirm", "reviewer": LATER, "name": "pay", **settings})
    def pay(n: int) -> str:
        return settings.get("version", "")

    return pay


def test_an_action_is_found_by_its_version():
    """Two versions side by side are told apart, and a third is named in the error."""
    grace = runtime()
    old, new = defined(grace, version="1"), defined(grace, version="2")
    names = [action(1).approval.id for action in (old, new)]
    for name in names:
        grace.approvals.approve(name, by="ana")
    assert ["1", "2"] == [grace.approvals.execute(name) for name in names]


def test_an_older_version_is_not_replaced_by_a_newer():
    """The approval is for the old version."""
    grace = runtime()
    old = defined(grace, version="1")
    grace.approvals.approve(name := old(1).approval.id, by="ana")
    del old
    gc.collect()
    new = defined(grace, version="2")
    with pytest.raises(gk.ApprovalError, match="is about version 1 of pay, and this runtime defines 2"):
        grace.approvals.execute(name)
    assert callable(new)


def test_two_functions_of_one_name():
    """That which asked is carried out."""
    grace = runtime()

    @grace.gate(floor="confirm", name="pay", reviewer=LATER)
    def first(n: int) -> str:
        return "first"

    @grace.gate(floor="confirm", name="pay", reviewer=LATER)
    def second(n: int) -> str:
        return "second"

    names = [first(1).approval.id, second(1).approval.id]
    for name in names:
        grace.approvals.approve(name, by="ana")
    assert ["first", "second"] == [grace.approvals.execute(name) for name in names]


def test_a_function_that_was_defined_for_another_account_does_not_run():
    """The approval does not say which of them is meant. Functions that differ in nothing are one."""
    grace, ran = runtime(reviewer=LATER), []

    def pays(account, **name):
        @grace.gate(floor="confirm", **name)
        def pay(n: int) -> str:
            ran.append(account)
            return account

        return pay

    first, _second = pays("A"), pays("B")
    grace.approvals.approve(name := first(1).approval.id, by="ana")
    with pytest.raises(gk.ApprovalError, match=r"several times.*name of its own"):
        grace.approvals.execute(name)
    assert [] == ran
    one, _same = pays("C", name="pay C"), pays("C", name="pay C")
    grace.approvals.approve(name := one(1).approval.id, by="ana")
    assert "C" == grace.approvals.execute(name)
