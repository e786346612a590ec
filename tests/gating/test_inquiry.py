"""An inbox: its configuration, the terms of a gate that uses it, the claim for what is about to run, and actions carried out in another process."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import math

import pytest

import grace_kp as gk
from grace_kp.gating import PolicySet
from grace_kp.testing import make_grace
from tests.gating.inboxes import approving, runtime

INBOX = gk.InboxReviewer(wait="raise")


def pending(call, *args):
    with pytest.raises(gk.ActionPending) as raised:
        call(*args)
    return raised.value.approval.id


def gated(grace, result=None, *, error=None, **settings):
    """An action `act` behind a gate, and what it was called with."""
    ran = []

    @grace.gate(**{"floor": "confirm", "key": "x:{n}", "reviewer": INBOX, **settings})
    def act(n: int) -> object:
        ran.append(n)
        if error is not None:
            raise error
        return result

    return act, ran


def test_a_failure_is_not_repeated_without_a_new_decision():
    grace = runtime()
    act, _ = gated(grace, error=OSError("gone"))
    grace.approvals.approve(first := pending(act, 1), by="ana")
    with pytest.raises(OSError, match="gone"):
        act(1)
    assert ("failed", "OSError") == (grace.approvals.get(first).state, grace.approvals.get(first).outcome.error)
    again = grace.approvals.get(pending(act, 1))
    assert [(first, "failed")] == [(earlier.id, earlier.state) for earlier in again.earlier]


def test_an_interruption_leaves_the_outcome_unknown():
    grace = runtime()
    act, _ = gated(grace, error=KeyboardInterrupt())
    grace.approvals.approve(first := pending(act, 1), by="ana")
    with pytest.raises(KeyboardInterrupt):
        act(1)
    assert grace.approvals.get(first).state == "unknown"
    with pytest.raises(gk.ActionOutcomeUnknown):
        act(1)
    assert grace.approvals.reconcile(first, happened=True, by="ana").state == "done"
    with pytest.raises(gk.ActionOutcomeUnknown) as error:
        act(1)
    assert error.value.state == "done"


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("deny", gk.ActionNotApproved),
        ("escalate", gk.ActionNotApproved),
        (gk.Policy(group="finance"), gk.ActionNotApproved),
        (gk.Policy(thresholds=gk.Thresholds(math.inf, math.inf, math.inf)), gk.ActionNotApproved),
        (gk.Policy(floor="confirm", quorum=2), gk.ActionCancelled),
    ],
)
@pytest.mark.parametrize("way", ["call", "execute"])
def test_a_stricter_policy_cancels(policy, error, way):
    """An approval under the policy of yesterday does not entitle under that of today; whether the action is called again or carried out."""
    grace = runtime(policies={"act": "confirm"})
    act, ran = gated(grace)
    grace.approvals.approve(first := pending(act, 1), by="ana")
    grace._gates().policies = PolicySet({"act": policy})
    with pytest.raises(error):
        act(1) if way == "call" else grace.approvals.execute(first)
    assert ("cancelled", []) == (grace.approvals.get(first).state, ran)


def test_an_approval_by_stated_names_is_cancelled_where_they_no_longer_count(tmp_path):
    ran = []
    for identity in ("stated", "authenticated"):
        with runtime(tmp_path, reviewer=gk.InboxReviewer(wait="raise", quorum=2, identity=identity)) as grace:

            @grace.gate(floor="confirm", key="x:{n}")
            def act(n: int) -> None:
                ran.append(n)

            if identity == "stated":
                first = pending(act, 1)
                for person in ("ana", "ben"):
                    grace.approvals.approve(first, by=person)
            else:
                with pytest.raises(gk.ActionCancelled, match="counts authenticated people alone now"):
                    act(1)
            state = grace.approvals.get(first).state
    assert ("cancelled", []) == (state, ran)


def test_a_request_that_waits_is_cancelled_where_the_action_is_forbidden():
    """Nobody is left to decide about what cannot run, and other keys stay."""
    grace = runtime(policies={"act": "confirm"})
    act, _ = gated(grace, floor=None)
    first, second = pending(act, 1), pending(act, 2)
    grace._gates().policies = PolicySet({"act": "deny"})
    with pytest.raises(gk.ActionDenied):
        act(1)
    assert ["cancelled", "pending"] == [grace.approvals.get(each).state for each in (first, second)]


def test_a_milder_policy_cancels_nothing():
    grace = runtime(policies={"act": gk.Policy(floor="escalate", quorum=1)})
    act, ran = gated(grace)
    grace.approvals.approve(first := pending(act, 1), by="ana")
    grace._gates().policies = PolicySet()
    act(1)
    assert ("done", [1]) == (grace.approvals.get(first).state, ran)


def test_a_result_that_cannot_be_kept():
    grace = runtime()
    act, ran = gated(grace, object())
    grace.approvals.approve(pending(act, 1), by="ana")
    act(1)
    with pytest.raises(gk.ActionOutcomeUnknown) as error:
        act(1)
    assert ("done", [1]) == (error.value.state, ran)


def test_an_action_inside_of_itself_does_not_wait_for_itself():
    grace = runtime()

    @grace.gate(floor="confirm", key="x:{n}", reviewer=gk.InboxReviewer())
    def act(n: int) -> str:
        with pytest.raises(gk.ActionOutcomeUnknown):
            act(n)
        return "once"

    person = approving(grace)
    assert act(1) == "once"
    person.leaves()


def test_the_lease_is_held_while_the_action_runs():
    """Until its outcome is written; then the process may be taken for idle again."""
    grace = runtime()
    held = []

    @grace.gate(floor="confirm", key="x:{n}", reviewer=INBOX)
    def act(n: int) -> None:
        held.append(watcher._renew_lease())

    grace.approvals.approve(pending(act, 1), by="ana")
    watcher = grace.approvals._inbox().watcher
    act(1)
    assert [True, False] == [seconds is not None for seconds in (*held, watcher._renew_lease())]


def test_an_edit_from_one_to_true_runs_with_true():
    grace, ran = runtime(), []

    @grace.gate(floor="confirm", key="x:{n}", reviewer=INBOX)
    def act(n: int, flags) -> None:
        ran.append(flags)

    grace.approvals.edit(pending(act, 1, [1, 0.0]), {"flags": [True, 0.0]}, by="ana")
    act(1, [1, 0.0])
    assert "[True, 0.0]" == repr(ran[0])


def test_durations_are_seconds():
    inbox = gk.InboxReviewer(deadline="4h", use_within=60)
    assert (14_400.0, 60.0, True) == (inbox.deadline, inbox.use_within, inbox.wait)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"deadline": "soon"}, "deadline must be"),
        ({"deadline": 0}, "deadline must be"),
        ({"use_within": "-1s"}, "use_within must be"),
        ({"on_deadline": "skip"}, "needs a deadline"),
        ({"on_deadline": "escalate:", "deadline": 1}, "on_deadline must be"),
        ({"on_deadline": "approve", "deadline": 1}, "on_deadline must be"),
        ({"wait": False}, "wait must be"),
        ({"group": []}, "group must be"),
        ({"quorum": 0}, "quorum must be"),
        ({"identity": "any"}, "identity must be"),
    ],
)
def test_what_cannot_be_used_is_named(settings, problem):
    with pytest.raises(ValueError, match=problem):
        gk.InboxReviewer(**settings)


@pytest.mark.parametrize("settings", [{"ask": 5}, {"ask": gk.InboxReviewer()}, {"notify": "https://example.org"}])
def test_other_objects_are_refused(settings):
    with pytest.raises(TypeError):
        gk.InboxReviewer(**settings)


def test_it_answers_nobody_directly():
    handler = gk.InterventionHandler(on_confirm=gk.InboxReviewer().review)
    decision = gk.ActionDecision(gk.InterventionLevel.CONFIRM, 0.5, "because")
    assert gk.InterventionAction.CANCEL == handler.handle(decision).action


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("1h",), ("2h",), (3_600, "cancel")),
        ((), ("2h", "skip"), (7_200, "cancel")),
        (("1h", "skip"), ("2h", "skip"), (3_600, "skip")),
        (("1h", "escalate:leads"), ("2h", "escalate:leads"), (7_200, "escalate:leads")),
        (("1h", "escalate:leads"), ("2h", "escalate:legal"), (3_600, "cancel")),
        (("1h", "escalate:leads"), ("2h", "skip"), (3_600, "skip")),
        (("1h", "escalate:leads"), ("2h",), (3_600, "cancel")),
    ],
)
def test_two_inboxes_at_once(first, second, expected):
    """What ends a request without running anything is stricter, and so is the shorter deadline before it and the longer one before more people may decide."""
    for one, two in ((first, second), (second, first)):
        combined = gk.InboxReviewer(*one).combined(gk.InboxReviewer(*two))
        assert expected == (combined.deadline, combined.on_deadline)


def test_who_decides_in_two_inboxes():
    one = gk.InboxReviewer(group=["a", "b"], quorum=2, identity="stated", use_within="1h", wait="raise", ask=print)
    two = gk.InboxReviewer(group=["b", "c"], use_within="2h")
    for first, second in ((one, two), (two, one)):
        combined = first.combined(second)
        assert (("b",), 2, "authenticated", 3_600) == (
            combined.groups, combined.quorum, combined.identity, combined.use_within,
        )  # fmt: skip
        assert (first.wait, first.ask) == (combined.wait, combined.ask)
    with pytest.raises(ValueError, match="none in common"):
        one.combined(gk.InboxReviewer(group="c"))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"key": "x:{nothing}"}, "nothing"),
        ({"key": "x:{n.real}"}, "without a format"),
        ({"ignore": ("nothing",)}, "ignore names 'nothing'"),
        ({"ignore": "n"}, "ignore must be"),
        ({"sealed": ("nothing",)}, "sealed names 'nothing'"),
        ({"sealed": ("n",), "ignore": ("n",)}, "in ignore and in sealed"),
        ({"key": "x:{n}", "ignore": ("n",)}, "carries no meaning"),
        ({"key": "x:{n}", "sealed": ("n",)}, "sealed"),
        ({"version": " "}, "version must be"),
        ({"reviewer": gk.InboxReviewer(wait="raise")}, "needs a key"),
        ({"policy": gk.Policy(reviewer=gk.InboxReviewer(wait="raise"))}, "needs a key"),
    ],
)
def test_what_cannot_be_used_is_an_error_at_once(settings, problem):
    with pytest.raises(gk.GateError, match=problem):
        make_grace().gate(**settings)(lambda n: n)


def test_a_reviewer_of_the_runtime_is_checked_at_the_first_call():
    act = runtime(reviewer=gk.InboxReviewer(wait="raise")).gate(lambda n: n)
    with pytest.raises(gk.GateError, match="needs a key"):
        act(1)


def test_an_ignored_parameter_may_differ():
    grace = runtime()

    @grace.gate(floor="confirm", key="x:{n}", ignore=("token",), reviewer=gk.InboxReviewer(wait="raise"))
    def act(n: int, token: str) -> str:
        return token

    with pytest.raises(gk.ActionPending) as pending:
        act(1, "first")
    approval = grace.approvals.approve(pending.value.approval.id, by="ana")
    assert (("token",), {"n": 1}) == (approval.not_covered, dict(approval.arguments))
    assert act(1, "second") == "second"


def test_another_version_does_not_run():
    grace = runtime()
    inbox = gk.InboxReviewer(wait="raise")
    first, second = (
        grace.gate(floor="confirm", key="x:{n}", version=version, name="act", reviewer=inbox)(lambda n: n)
        for version in ("1", "2")
    )
    with pytest.raises(gk.ActionPending) as pending:
        first(1)
    grace.approvals.approve(pending.value.approval.id, by="ana")
    with pytest.raises(gk.KeyReused):
        second(1)


LATER = gk.InboxReviewer(wait="hand_over")


@dataclasses.dataclass
class Order:
    number: int
    price: decimal.Decimal


def define(grace, seen):
    @grace.gate(floor="confirm", name="ship", reviewer=LATER)
    def ship(order: Order, day: dt.date, weights: tuple[float, ...], *, big: int = 2**70) -> str:
        seen.append((order, day, weights, big))
        return "sent"

    return ship


def test_another_runtime_carries_it_out(tmp_path):
    call = (Order(1, decimal.Decimal("1.10")), dt.date(2026, 1, 2), (1.0, 2.5))
    first = runtime(tmp_path)
    name = define(first, [])(*call).approval.id
    first.close()
    second, seen = runtime(tmp_path), []
    action = define(second, seen)
    second.approvals.approve(name, by="ana")
    assert second.approvals.execute(name) == "sent"
    assert [(*call, 2**70)] == seen
    assert [decimal.Decimal, float] == [type(seen[0][0].price), type(seen[0][2][0])]
    second.close()
    assert callable(action)


def test_an_unknown_action(tmp_path):
    first = runtime(tmp_path)
    name = define(first, [])(Order(1, decimal.Decimal(1)), dt.date(2026, 1, 2), ()).approval.id
    first.approvals.approve(name, by="ana")
    first.close()
    second = runtime(tmp_path)
    with pytest.raises(gk.ApprovalError, match="no gate of this runtime defines the action 'ship'"):
        second.approvals.execute(name)
    second.close()
