"""The object whose method is gated, in an inbox: an approval is about the method of this object, and of no other."""

from __future__ import annotations

import pytest

import grace_kp as gk
from tests.gating.inboxes import approving, deciding, runtime


def account_class(grace, **gate):
    """A class with a gated method."""

    class Account:
        def __init__(self, name):
            self.name, self.paid = name, []

        @grace.gate(floor="confirm", key="pay:{invoice}", **gate)
        def pay(self, invoice: str) -> str:
            self.paid.append(invoice)
            return self.name

    return Account


def asked(grace):
    """The one pending request."""
    (approval,) = grace.approvals.pending()
    return approval


def test_an_approval_of_one_account_is_not_claimed_by_another(tmp_path):
    """Key and arguments are the same; the account is not. The reviewer sees which one it is."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))
    first, second = map(account_class(grace, identity="name"), ("A", "B"))
    with pytest.raises(gk.ActionPending):
        first.pay("r-1")
    assert "A" == asked(grace).arguments["self"]["identity"]
    grace.approvals.approve(asked(grace).id, by="ana")
    with pytest.raises(gk.KeyReused, match="other arguments"):
        second.pay("r-1")
    assert [] == second.paid
    assert "A" == account_class(runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise")), identity="name")("A").pay(
        "r-1"
    )


def test_classes_that_share_a_method_are_told_apart(tmp_path):
    """A savings account A is not a current account A."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))
    base = account_class(grace, identity="name")
    savings, current = type("Savings", (base,), {})("A"), type("Current", (base,), {})("A")
    with pytest.raises(gk.ActionPending):
        savings.pay("r-1")
    grace.approvals.approve(asked(grace).id, by="ana")
    with pytest.raises(gk.KeyReused, match="other arguments"):
        current.pay("r-1")


@pytest.mark.parametrize("wait", ["raise", "hand_over"])
def test_an_object_that_nothing_identifies_needs_a_process_that_waits(wait, tmp_path):
    """No other process could tell it from another object."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait=wait))
    with pytest.raises(gk.ActionCancelled, match=r"self: is the object whose method is called; .*identity="):
        account_class(grace)("A").pay("r-1")
    assert [] == grace.approvals.pending()


def test_while_its_process_waits_it_needs_no_identity():
    """It is the very object."""
    grace = runtime(reviewer=gk.InboxReviewer())
    ana = approving(grace)
    assert "A" == account_class(grace)("A").pay("r-1")
    (approval,) = ana.leaves()
    assert (("self",), ()) == (approval.unencoded, approval.not_covered)


def test_what_identifies_it_cannot_be_edited():
    """An edit never makes it another action."""
    grace = runtime(reviewer=gk.InboxReviewer())
    problems = []

    def decide(approvals, name):
        try:
            approvals.edit(name, {"self": {"type": "Account", "identity": "B"}}, by="ana")
        except gk.ApprovalError as error:
            problems.append(str(error))
        approvals.approve(name, by="ana")

    ana = deciding(grace, decide)
    assert "A" == account_class(grace, identity="name")("A").pay("r-1")
    ana.leaves()
    assert "has no parameter 'self'" in problems[0]


def test_an_account_that_became_another_while_it_waited_does_not_pay():
    """What identifies it is read again for the claim."""
    grace = runtime(reviewer=gk.InboxReviewer())
    account = account_class(grace, identity="name")("A")

    def decide(approvals, name):
        account.name = "B"
        approvals.approve(name, by="ana")

    ana = deciding(grace, decide)
    with pytest.raises(gk.ActionCancelled, match="changed"):
        account.pay("r-1")
    ana.leaves()
    assert [] == account.paid


def test_a_class_is_identified_by_its_name(tmp_path):
    """The method of a class needs nothing else."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise"))

    class Bank:
        @classmethod
        @grace.gate(floor="confirm", key="close:{branch}")
        def close(cls, branch: str) -> str:
            return cls.__name__

    class Other(Bank):
        pass

    with pytest.raises(gk.ActionPending):
        Bank.close("b-1")
    grace.approvals.approve(asked(grace).id, by="ana")
    with pytest.raises(gk.KeyReused, match="other arguments"):
        Other.close("b-1")
    assert "Bank" == Bank.close("b-1")


def test_the_bound_methods_of_two_objects_are_told_apart(tmp_path):
    """Also where an approved action is carried out later: the last one that was defined is not taken for the first."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="hand_over"))

    class Account:
        def __init__(self, name):
            self.name, self.paid = name, []

        def pay(self, invoice: str) -> None:
            self.paid.append(invoice)

    first, second = Account("A"), Account("B")
    gates = [grace.gate(floor="confirm", identity="name")(account.pay) for account in (first, second)]
    gates[0]("r-1")
    grace.approvals.approve(asked(grace).id, by="ana")
    with pytest.raises(gk.GraceError, match="not the one"):
        grace.approvals.execute(grace.approvals.history()[0].id)
    assert ([], []) == (first.paid, second.paid)


def test_a_callable_object_is_carried_out_by_its_own_gate(tmp_path):
    """What identifies it is the same in every process."""
    grace = runtime(tmp_path, reviewer=gk.InboxReviewer(wait="hand_over"))

    class Pay:
        def __init__(self, name):
            self.name = name

        def __call__(self, invoice: str) -> str:
            return f"{self.name} pays {invoice}"

    pay = grace.gate(floor="confirm", name="pay", identity="name")(Pay("A"))
    pay("r-1")
    name = asked(grace).id
    grace.approvals.approve(name, by="ana")
    assert "A pays r-1" == grace.approvals.execute(name)
