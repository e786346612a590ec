"""Labels that follow from the results of gated actions: by a check of the result, and of an action that another one undid."""

from __future__ import annotations

import asyncio
import threading

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.errors import GateError
from grace_kp.record import TROUBLES


@pytest.fixture
def grace(tmp_path):
    runtime = gk.Grace(store=f"sqlite:///{tmp_path / 't.db'}", evaluator=None, embedder=None, reviewer=None)
    yield runtime
    runtime.close()


SILENT = {"floor": "silent", "unmeasured": "silent"}


def labels_of(grace):
    grace.flush()
    return [(each.tool, each.correct, each.source, each.is_audited) for each in cal.action_labels(grace).actions]


@pytest.mark.parametrize("verdict", [True, False])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_check_labels_its_action(grace, verdict, is_async):
    """With the result and the arguments, for fitting only."""
    seen = []

    def check(result, arguments):
        seen.append((result, arguments))
        return verdict

    if is_async:

        @grace.gate(**SILENT, check=check)
        async def pay(euros, to="ana"):
            return f"{euros} to {to}"

        assert "5 to ana" == asyncio.run(pay(5))
    else:

        @grace.gate(**SILENT, check=check)
        def pay(euros, to="ana"):
            return f"{euros} to {to}"

        assert "5 to ana" == pay(5)
    assert [("pay", verdict, "check", False)] == labels_of(grace)
    assert [("5 to ana", {"euros": 5, "to": "ana"})] == seen
    assert [] == cal.labels(grace).labels


def test_a_check_may_take_the_result_alone_and_know_nothing(grace):
    """None is no label."""

    @grace.gate(**SILENT, check=lambda result: None if result == 1 else result == 2)
    def count(number):
        return number

    with grace.run("an objective"):
        for number in (1, 2, 3):
            count(number)
    assert [("count", True, "check", False), ("count", False, "check", False)] == labels_of(grace)
    assert "" == grace.gate(**SILENT, check=bool, name="find")(lambda: "")()
    assert ("find", False, "check", False) == labels_of(grace)[-1]


def test_a_check_runs_after_the_run_is_stored_and_not_in_its_thread(grace):
    """So no agent waits for it, and it can look at the world as the action has left it."""
    seen = []

    @grace.gate(**SILENT, check=lambda result: seen.append((threading.get_ident(), result.open)))
    def act():
        return run

    with grace.run("an objective") as run:
        act()
        assert [] == seen
    waiting = threading.Event()
    grace.on_complete(lambda trace: waiting.set())
    with grace.run("another"):
        pass
    assert waiting.wait(30)
    assert [False] == [is_open for _, is_open in seen]
    assert threading.get_ident() != seen[0][0]


@pytest.mark.parametrize("check", [lambda result: 1 / 0, lambda result: "right", lambda result: 1])
def test_a_failing_check_is_noted_and_changes_nothing(grace, check):
    """Neither for the agent nor for the trace."""

    @grace.gate(**SILENT, check=check)
    def act():
        return "done"

    before = TROUBLES.counts.total()
    assert "done" == act()
    assert [] == labels_of(grace)
    assert before < TROUBLES.counts.total()


def test_only_an_action_that_returned_is_checked(grace):
    """One that raised, or that was refused, has no result."""

    @grace.gate(**SILENT, check=lambda result: True)
    def fail():
        raise OSError("down")

    @grace.gate(floor="deny", check=lambda result: True)
    def forbidden():
        return 1

    for action, error in ((fail, OSError), (forbidden, gk.ActionDenied)):
        with pytest.raises(error):
            action()
    assert [] == labels_of(grace)


def test_a_check_displaces_no_other_label(grace):
    """Whoever stated it, and whenever: not even that of another program."""

    @grace.gate(**SILENT, check=lambda result: True)
    def act():
        return 1

    with grace.run("an objective") as run:
        act()
    grace.flush()
    grace.feedback(run.id, False, "test", action=1, program=True)
    assert [("act", False, "test", False)] == labels_of(grace)
    stored = grace.store.get(run.id)
    grace.feedback(run.id, True, "check", action=1)
    assert [("act", True, "check", False)] == labels_of(grace)
    assert 3 == len(grace.store.get(run.id).grace["action_feedback"]) == 1 + len(stored.grace["action_feedback"])


@pytest.mark.parametrize("check", ["x", 3, object(), lambda: 1, lambda one, two, three: True])
def test_a_check_is_a_plain_function(grace, check):
    """Anything else is refused when the gate is defined."""
    with pytest.raises(TypeError, match="check must be a plain function"):
        grace.gate(check=check)

    async def later(result):
        return True

    with pytest.raises(TypeError, match="check must be a plain function"):
        grace.gate(check=later)


def test_an_approved_action_is_checked_when_it_is_carried_out(tmp_path):
    """Its label is one of the call that the agent proposed."""
    inbox = gk.InboxReviewer(wait="raise")
    with gk.Grace(store=f"sqlite:///{tmp_path / 't.db'}", evaluator=None, embedder=None, reviewer=inbox) as grace:

        @grace.gate(floor="confirm", key="pay:{euros}", check=lambda result, arguments: result == arguments["euros"])
        def pay(euros):
            return euros + 1

        with pytest.raises(gk.ActionPending) as caught, grace.run("an objective") as run:
            pay(5)
        grace.flush()
        grace.approvals.approve(caught.value.approval.id, by="ana")
        assert 6 == grace.approvals.execute(caught.value.approval.id)
        grace.flush()
        labelled = grace.store.get(run.id).grace["action_feedback"]
        assert [(False, "check")] == [(each["correct"], each["source"]) for each in labelled]


def test_an_action_that_is_undone_was_wrong(grace):
    """The action that undoes it names it, here by the idempotency key that the service got."""

    @grace.gate(**SILENT)
    def refund(euros):
        return gk.idempotency_key()

    @grace.gate(**SILENT, undoes="refund_id")
    def cancel_refund(refund_id):
        if refund_id == "none":
            raise LookupError(refund_id)

    with grace.run("an objective") as run:
        refund(1)
        cancel_refund(refund(2))
        with pytest.raises(LookupError):
            cancel_refund("none")
    assert [("refund", False, "reversal", False)] == labels_of(grace)
    assert [run.trace.decisions[1].id] == [each.id for each in cal.action_labels(grace).actions]


def test_a_reversal_that_names_no_action_is_noted(grace):
    """It labels nothing."""

    @grace.gate(**SILENT, undoes="name")
    def undo(name):
        return None

    before = TROUBLES.counts.total()
    for name in ("no such action", "1", 1, ["x"]):
        undo(name)
    assert [] == labels_of(grace)
    assert before + 4 == TROUBLES.counts.total()
    with pytest.raises(GateError, match="undoes names 'nothing'"):
        grace.gate(undoes="nothing")(lambda name: None)


def test_a_reversal_in_a_later_run_names_an_approval(tmp_path):
    """The approval knows which run asked for it."""
    with gk.Grace(
        store=f"sqlite:///{tmp_path / 't.db'}", evaluator=None, embedder=None, reviewer=gk.InboxReviewer(wait="raise")
    ) as grace:

        @grace.gate(floor="confirm", key="pay:{euros}")
        def pay(euros):
            return euros

        @grace.gate(**SILENT, key="undo:{approval}", undoes="approval")
        def undo(approval):
            return None

        with pytest.raises(gk.ActionPending) as caught, grace.run("an objective") as run:
            pay(5)
        grace.flush()
        undo(caught.value.approval.id)
        grace.flush()
        assert ["reversal"] == [each["source"] for each in grace.store.get(run.id).grace["action_feedback"]]
