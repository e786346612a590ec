"""The claim of an action in an inbox: taken once, for what is about to run, under the policy that is in force."""

from __future__ import annotations

import math

import pytest

import grace_kp as gk
from grace_kp.gating import PolicySet
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
    """A later call asks again, and its request lists the failure."""
    grace = runtime()
    act, _ = gated(grace, error=OSError("gone"))
    grace.approvals.approve(first := pending(act, 1), by="ana")
    with pytest.raises(OSError, match="gone"):
        act(1)
    assert ("failed", "OSError") == (grace.approvals.get(first).state, grace.approvals.get(first).outcome.error)
    again = grace.approvals.get(pending(act, 1))
    assert [(first, "failed")] == [(earlier.id, earlier.state) for earlier in again.earlier]


def test_an_interruption_leaves_the_outcome_unknown():
    """It is not begun again until somebody states what happened."""
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
    """The reviewer of today's program counts authenticated people alone."""
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
    """What was decided under a stricter one runs."""
    grace = runtime(policies={"act": gk.Policy(floor="escalate", quorum=1)})
    act, ran = gated(grace)
    grace.approvals.approve(first := pending(act, 1), by="ana")
    grace._gates().policies = PolicySet()
    act(1)
    assert ("done", [1]) == (grace.approvals.get(first).state, ran)


def test_a_result_that_cannot_be_kept():
    """The action is not repeated for it."""
    grace = runtime()
    act, ran = gated(grace, object())
    grace.approvals.approve(pending(act, 1), by="ana")
    act(1)
    with pytest.raises(gk.ActionOutcomeUnknown) as error:
        act(1)
    assert ("done", [1]) == (error.value.state, ran)


def test_an_action_inside_of_itself_does_not_wait_for_itself():
    """The inner call with the same key is refused at once."""
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
        held.append(watcher._held())

    grace.approvals.approve(pending(act, 1), by="ana")
    watcher = grace.approvals._inbox().watcher
    act(1)
    assert [True, False] == [seconds is not None for seconds in (*held, watcher._held())]


def test_an_edit_from_one_to_true_runs_with_true():
    """They are equal in Python, and not in what people decide on."""
    grace, ran = runtime(), []

    @grace.gate(floor="confirm", key="x:{n}", reviewer=INBOX)
    def act(n: int, flags) -> None:
        ran.append(flags)

    grace.approvals.edit(pending(act, 1, [1, 0.0]), {"flags": [True, 0.0]}, by="ana")
    act(1, [1, 0.0])
    assert "[True, 0.0]" == repr(ran[0])
