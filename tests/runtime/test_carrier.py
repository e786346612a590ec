"""`grace.approvals.execute`: an approved action whose process went on runs once, as a run of its own."""

from __future__ import annotations

import pytest

import grace_kp as gk
from tests.gating.inboxes import runtime

LATER = gk.InboxReviewer(wait="hand_over")


def test_it_is_a_run_that_names_the_approval():
    """And the run that asked."""
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=LATER)
    @grace.tool
    def pay(n: int) -> int:
        return n

    with grace.run("Pay") as run:
        approval = pay(5).approval
    grace.approvals.approve(approval.id, by="ana")
    with grace.collect() as traces:
        assert [5, 5] == [grace.approvals.execute(approval.id) for _ in range(2)]
    first, again = traces
    assert {"approval": approval.id, "requested_by_run": run.id} == first.grace["metadata"]
    assert ["executed", "executed_before"] == [trace.grace["decisions"][0]["outcome"] for trace in (first, again)]


async def test_a_coroutine_function():
    """From plain code and from a coroutine."""
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=LATER)
    async def pay(n: int, *more: int, **named: str) -> object:
        return n, more, named

    approval = (await pay(5, 6, to="bo")).approval
    await grace.approvals.aapprove(approval.id, by="ana")
    assert await grace.approvals.aexecute(approval.id) == (5, (6,), {"to": "bo"})


def test_an_ignored_parameter_is_passed():
    """Others are those that were approved."""
    grace = runtime()

    @grace.gate(floor="confirm", ignore=("token",), reviewer=LATER)
    def pay(n: int, token: str) -> str:
        return f"{n} {token}"

    grace.approvals.approve(name := pay(5, "first").approval.id, by="ana")
    with pytest.raises(gk.ApprovalError, match="token"):
        grace.approvals.execute(name)
    with pytest.raises(gk.ApprovalError, match="'n' is not among the ignored"):
        grace.approvals.execute(name, {"n": 6, "token": "second"})
    assert grace.approvals.execute(name, {"token": "second"}) == "5 second"


def test_the_default_runtime_knows_the_actions_of_the_module_verbs():
    """Also those that were defined before it was configured."""

    @gk.gate(floor="confirm", name="early")
    def early(n: int) -> int:
        return n

    grace = gk.configure(store="memory:", reviewer=LATER, evaluator=None, embedder=None)
    grace.approvals.approve(name := early(7).approval.id, by="ana")
    assert grace.approvals.execute(name) == 7


def test_what_only_its_process_can_carry_out():
    """A method."""
    grace = runtime()

    class Shop:
        @grace.gate(floor="confirm", reviewer=LATER, identity=lambda shop: "shop 1")
        def pay(self, n: int) -> int:
            return n

    grace.approvals.approve(name := Shop().pay(1).approval.id, by="ana")
    with pytest.raises(gk.ApprovalError, match="is a method"):
        grace.approvals.execute(name)


@pytest.mark.parametrize(
    ("decide", "error"),
    [
        (lambda a, name: None, gk.ActionPending),
        (lambda a, name: a.reject(name, by="ana"), gk.AlreadyDecided),
        (lambda a, name: a.withdraw(name, by="ana"), gk.AlreadyDecided),
    ],
)
def test_what_is_not_approved_does_not_run(decide, error):
    """The error says what stands in the way."""
    grace = runtime()
    ran = []

    @grace.gate(floor="confirm", reviewer=LATER)
    def pay(n: int) -> None:
        ran.append(n)

    decide(grace.approvals, name := pay(1).approval.id)
    with pytest.raises(error):
        grace.approvals.execute(name)
    assert [] == ran
