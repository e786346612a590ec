"""The one execution that a decision entitles to: its claim, its outcome, and the policy that is in force then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import PolicyNow, Standing
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, NotEntitled
from tests.approvals.shops import ANA, BO, GATE, Shop, asked, claim, logged_in


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["finance"]})


def approved(shop, **fields):
    return shop.requests.approve(shop.requests.file(asked(**fields)).id, by=ANA)


def test_an_approval_is_claimed_once(shop):
    approval = approved(shop)
    first = claim(shop.requests, approval)
    with pytest.raises(AlreadyDecided, match="is being carried out, claimed by gate") as caught:
        claim(shop.another("p2"), approval)
    assert ("claimed", "p1") == (caught.value.state, first.approval.claim.process)
    assert first.token not in repr(first)
    assert first.token.encode() not in shop.tables.row(approval.id).data


@pytest.mark.parametrize("changes", [{"digest": "sha256:00"}, {"version": "2"}])
def test_a_claim_is_for_what_was_decided(shop, changes):
    """Other arguments and another version of the action are not; the approval stays usable."""
    approval = approved(shop)
    with pytest.raises(ChangedSinceShown, match=next(iter(changes))):
        claim(shop.requests, approval, **changes)
    assert "claimed" == claim(shop.requests, approval).approval.state


@pytest.mark.parametrize(
    "policy",
    [PolicyNow(denies=True), PolicyNow(floor="escalate"), PolicyNow(quorum=2), PolicyNow(groups=("finance",))],
)
def test_a_stricter_policy_cancels(shop, policy):
    approval = approved(shop)
    with pytest.raises(AlreadyDecided, match=r"was cancelled by gate .*: the policy .* now.*; ask again") as caught:
        claim(shop.requests, approval, policy=policy)
    assert ("cancelled", "cancelled") == (caught.value.state, shop.requests.get(approval.id).state)
    assert ["requested", "decided", "withdrawn"] == shop.kinds()


def test_the_policy_is_compared_with_what_was_asked_not_with_the_escalation(shop):
    approval = shop.requests.file(asked(groups=("legal",), on_deadline="escalate:finance"))
    shop.clock.now += 3_600
    approval = shop.requests.approve(approval.id, by=ANA)
    assert "claimed" == claim(shop.requests, approval, policy=PolicyNow(groups=("legal",))).approval.state


def test_a_claim_that_was_released_can_be_taken_again(shop):
    approval = approved(shop)
    first = claim(shop.requests, approval)
    assert "approved" == shop.requests.release(approval.id, first.token).state
    with pytest.raises(NotEntitled, match="this token does not belong"):
        shop.requests.settle(approval.id, first.token, state="done")
    second = claim(shop.requests, approval)
    with pytest.raises(NotEntitled):
        shop.requests.release(approval.id, first.token)
    shop.requests.release(approval.id, second.token)
    shop.clock.now = approval.use_by
    assert "expired" == shop.requests.get(approval.id).state
    assert ["requested", "decided", "claimed", "released", "claimed", "released", "expired"] == shop.kinds()


def test_an_edited_claim_keeps_its_arguments_when_it_is_released(shop):
    edited = shop.requests.edit(shop.requests.file(asked()).id, {"euros": 20}, by=ANA)
    released = shop.requests.release(edited.id, claim(shop.requests, edited).token)
    assert ("approved", 20, 500) == (released.state, released.arguments["euros"], released.asked["euros"])
    with pytest.raises(ChangedSinceShown):
        claim(shop.requests, released, digest=released.asked_digest)
    assert "claimed" == claim(shop.requests, released).approval.state


@pytest.mark.parametrize("waits", ["wait", "interrupt"])
def test_only_its_process_claims_objects_without_an_encoding(shop, waits):
    """A program that pauses creates them again, and its digest covers them, so that any process may claim."""
    approval = approved(shop, unencoded=("session",), waits=waits)
    if waits == "wait":
        with pytest.raises(NotEntitled, match="only the process that asked holds session"):
            claim(shop.another("p2"), approval)
    assert "claimed" == claim(shop.requests if waits == "wait" else shop.another("p2"), approval).approval.state


def test_a_quorum_is_recounted_with_the_rights_of_today():
    """A vote of somebody who has left the group does not count for the next one."""
    shop = Shop(groups={"ana": ["finance"], "bo": ["finance"], "cy": ["finance"]})
    approval = shop.requests.file(asked(quorum=2, groups=("finance",)))
    shop.requests.approve(approval.id, by=logged_in("ana"))
    later = shop.another("p2", groups={"bo": ["finance"], "cy": ["finance"]})
    assert "pending" == later.approve(approval.id, by=logged_in("bo")).state
    assert "approved" == later.approve(approval.id, by=logged_in("cy")).state


def claimed(shop, **fields):
    approval = shop.requests.approve(shop.requests.file(asked(**fields)).id, by=ANA)
    return approval.id, claim(shop.requests, approval).token


def unknown(shop, **fields):
    """An approval whose claimant died, and its token."""
    approval_id, token = claimed(shop, **fields)
    shop.alive["p1"] = False
    assert 1 == shop.another("p2").sweep()
    return approval_id, token


@pytest.mark.parametrize("state", ["done", "failed", "unknown"])
def test_a_report_is_written_once(shop, state):
    approval_id, token = claimed(shop)
    first = shop.requests.settle(approval_id, token, state=state, error="TimeoutError")
    assert (state, "TimeoutError") == (first.state, first.outcome.error)
    assert first == shop.requests.settle(approval_id, token, state=state, error="TimeoutError")
    assert 4 == len(shop.entries())


@pytest.mark.parametrize(
    ("result", "is_kept"),
    [
        ({"paid": [1, 2.5, True, None, "ok", 2**70]}, True),
        ("x" * 99_990, True),
        ("x" * 100_000, False),
        ({1: 2}, False),
        (object(), False),
        ("password=hunter22hunter", False),
        ({"api_key": "sk-proj-abcdefghijklmnopqrstuvwxyz012345"}, False),
        (None, True),
        ("\ud800", True),
    ],
)
def test_results_are_kept_if_they_come_back_the_same(shop, result, is_kept):
    approval_id, token = claimed(shop)
    outcome = shop.requests.settle(approval_id, token, state="done", result=result, has_result=True).outcome
    assert is_kept == outcome.has_result
    assert (result if is_kept else None) == outcome.result
    assert outcome == shop.requests.get(approval_id).outcome


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(JSON)
def test_a_kept_result_comes_back_as_it_was(result):
    shop = Shop()
    approval_id, token = claimed(shop)
    shop.requests.settle(approval_id, token, state="done", result=result, has_result=True)
    outcome = shop.requests.get(approval_id).outcome
    if outcome.has_result:
        assert repr(result) == repr(outcome.result)


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("report", ["done", "failed"])
def test_a_report_after_a_reconciliation_changes_nothing(shop, happened, report):
    approval_id, token = unknown(shop)
    before = shop.requests.reconcile(approval_id, by=BO, happened=happened, note="asked the bank")
    for _ in range(2):
        after = shop.requests.settle(approval_id, token, state=report, result=1, has_result=True)
        assert (before.state, before.outcome) == (after.state, after.outcome)
    late = [entry for entry in shop.entries(approval_id) if entry["kind"] == "late_report"]
    assert [report] == [entry["facts"]["reported"] for entry in late]


def test_a_reconciliation_is_idempotent_and_final(shop):
    approval_id, _ = unknown(shop)
    first = shop.requests.reconcile(approval_id, by=BO, happened=False, note="no booking")
    assert ("not_done", "bo", "no booking") == (first.state, first.outcome.actor.name, first.outcome.note)
    assert first == shop.requests.reconcile(approval_id, by=BO, happened=False)
    with pytest.raises(AlreadyDecided, match="did not happen, as reconciled by bo"):
        shop.requests.reconcile(approval_id, by=ANA, happened=True)


@pytest.mark.parametrize("happened", [True, False])
def test_nobody_reconciles_what_still_runs(shop, happened):
    approval_id, _ = claimed(shop)
    with pytest.raises(AlreadyDecided, match="by a process that still runs"):
        shop.requests.reconcile(approval_id, by=BO, happened=happened)
    assert "claimed" == shop.requests.get(approval_id).state


def test_not_done_is_refused_while_the_claimant_runs_although_its_outcome_is_unknown(shop):
    approval_id, token = claimed(shop)
    shop.requests.settle(approval_id, token, state="unknown")
    with pytest.raises(AlreadyDecided, match="stop the process"):
        shop.requests.reconcile(approval_id, by=BO, happened=False)
    assert "done" == shop.requests.reconcile(approval_id, by=BO, happened=True).state


@pytest.mark.parametrize(("happened", "state"), [(True, "done"), (False, "not_done")])
def test_a_claimant_that_nobody_can_see_is_reconciled_by_a_person(shop, happened, state):
    """Its lease has expired. That alone does not make the outcome unknown; the chain keeps that it may only be paused."""
    approval_id, _ = claimed(shop)
    shop.alive["p1"] = None
    assert (0, "claimed") == (shop.requests.sweep(), shop.requests.get(approval_id).state)
    assert state == shop.requests.reconcile(approval_id, by=BO, happened=happened).state
    assert ["settled", "reconciled"] == shop.kinds(approval_id)[-2:]
    assert "may only be paused" == shop.entries()[-1]["facts"]["claimant"]


def test_only_whom_the_gate_names_reconciles(shop):
    approval_id, _ = unknown(shop, groups=("finance",), user="bo")
    for actor in (BO, GATE):
        with pytest.raises(NotEntitled):
            shop.requests.reconcile(approval_id, by=actor, happened=False)


def test_an_outcome_is_stated_for_the_revision_that_was_shown(shop):
    """The digest is the same for every execution; repeating the statement changes nothing."""
    approval_id, _ = unknown(shop)
    revision = shop.requests.get(approval_id).revision
    for stale in (revision - 1, revision + 1):
        with pytest.raises(ChangedSinceShown, match="may have been started again"):
            shop.requests.reconcile(approval_id, by=BO, happened=True, revision=stale)
    for _ in range(2):
        done = shop.requests.reconcile(approval_id, by=BO, happened=True, revision=revision)
        assert ("done", revision + 1) == (done.state, done.revision)


def test_what_is_known_is_not_reconciled(shop):
    approval = shop.requests.file(asked())
    with pytest.raises(AlreadyDecided, match="is pending and was not started"):
        shop.requests.reconcile(approval.id, by=BO, happened=True)
    with pytest.raises(ApprovalError, match="True or False"):
        shop.requests.reconcile(approval.id, by=BO, happened="no")
    approval_id, token = claimed(shop)
    shop.requests.settle(approval_id, token, state="done")
    with pytest.raises(AlreadyDecided, match="was carried out, claimed by gate"):
        shop.requests.reconcile(approval_id, by=BO, happened=False)


def test_a_restored_store_runs_nothing_that_it_had_consented_to(shop):
    """Approved, edited and claimed become unknown; what is pending or has ended stays."""
    requests = shop.requests
    pending, approved, edited = (requests.file(asked()) for _ in range(3))
    approved = requests.approve(approved.id, by=ANA)
    edited = requests.edit(edited.id, {"euros": 20}, by=ANA)
    approval_id, token = claimed(shop)
    done_id, done_token = claimed(shop)
    requests.settle(done_id, done_token, state="done")
    any_value = {"invoice": {"any": True}, "euros": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=any_value, until=9_000.0, uses=3)
    requests.grant(standing, by=ANA)
    assert 3 == requests.restored(by=BO)
    assert [] == requests.standing()
    states = [requests.get(each).state for each in (pending.id, approved.id, edited.id, approval_id, done_id)]
    assert ["pending", "unknown", "unknown", "unknown", "done"] == states
    with pytest.raises(AlreadyDecided):
        claim(requests, approved)
    assert "not_done" == requests.reconcile(approved.id, by=BO, happened=False).state
    assert "done" == requests.settle(approval_id, token, state="done").state


@pytest.mark.parametrize(
    ("policy", "asked", "is_stricter"),
    [
        ({"denies": True}, {}, True),
        ({"floor": "confirm"}, {}, False),
        ({"floor": "escalate"}, {}, True),
        ({"floor": "escalate"}, {"level": "escalate"}, False),
        ({"quorum": 3}, {"quorum": 2}, True),
        ({"quorum": 2, "identity": "authenticated"}, {"quorum": 2, "identity": "stated"}, True),
        ({"quorum": 2, "identity": "authenticated"}, {"quorum": 2}, False),
        ({"groups": ("a",)}, {}, True),
        ({"groups": ("a",)}, {"groups": ("a", "b")}, True),
        ({"groups": ("a", "b")}, {"groups": ("a",)}, False),
        ({}, {"groups": ("a",), "quorum": 3, "level": "escalate"}, False),
    ],
)
def test_stricter_is_what_lets_fewer_actions_pass(policy, asked, is_stricter):
    usual = {"level": "confirm", "groups": (), "quorum": 1, "identity": "authenticated"}
    assert is_stricter == bool(PolicyNow(**policy).stricter_than(**{**usual, **asked}))


def test_only_the_claimant_reports_and_only_an_outcome(shop):
    approval_id, token = claimed(shop)
    for wrong in ("x" * 43, None):
        with pytest.raises(NotEntitled, match="does not belong to the last claim"):
            shop.requests.settle(approval_id, wrong, state="done")
    for state in ("approved", None, ["done"]):
        with pytest.raises(ApprovalError, match="done, failed or unknown"):
            shop.requests.settle(approval_id, token, state=state)
    assert "claimed" == shop.requests.get(approval_id).state
