"""The verbs of gates: filing, joining and refusals that hold, and the one execution of a decision with its outcome and the policy of then."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.approvals import PolicyNow, Secret, Standing, digest, new_key
from grace_kp.errors import AlreadyDecided, ApprovalError, ChangedSinceShown, KeyReused, NotEntitled
from tests.approvals.shops import ANA, BO, GATE, Shop, asked, claim, keyed, logged_in


@pytest.fixture
def shop():
    return Shop(groups={"ana": ["finance"], "bo": ["finance"]})


def approved(shop, **fields):
    return shop.requests.approve(shop.requests.file(asked(**fields)).id, by=ANA)


def test_an_approval_is_claimed_once(shop):
    approval = approved(shop)
    first = claim(shop.requests, approval, policy=PolicyNow(version="of today"))
    facts = {"process": "p1", "policy": "of today", "version": "1"}
    assert facts.items() <= shop.entries(approval.id)[-1]["facts"].items()
    with pytest.raises(AlreadyDecided, match="is being carried out, claimed by gate") as caught:
        claim(shop.another("p2"), approval)
    assert ("claimed", "p1") == (caught.value.state, first.approval.claim.process)
    assert first.token not in repr(first)
    assert first.token.encode() not in shop.tables.row(approval.id).data


@pytest.mark.parametrize("changes", [{"digest": "sha256:00"}, {"version": "2"}])
def test_a_claim_is_for_what_was_decided(shop, changes):
    approval = approved(shop)
    with pytest.raises(ChangedSinceShown, match=next(iter(changes))):
        claim(shop.requests, approval, **changes)
    assert "claimed" == claim(shop.requests, approval).approval.state


def test_the_policy_is_compared_with_what_was_asked_not_with_the_escalation(shop):
    approval = shop.requests.file(asked(groups=("legal",), on_deadline="escalate:finance"))
    shop.clock.now += 3_600
    approval = shop.requests.approve(approval.id, by=ANA)
    assert "claimed" == claim(shop.requests, approval, policy=PolicyNow(groups=("legal",))).approval.state


def test_an_edited_claim_keeps_its_arguments_when_it_is_released(shop):
    edited = shop.requests.edit(shop.requests.file(asked()).id, {"euros": 20}, by=ANA)
    released = shop.requests.release(edited.id, claim(shop.requests, edited).token)
    assert ["requested", "edited", "claimed", "released"] == shop.kinds()
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
        ("password=hunter22hunter", False),
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
def test_what_still_runs_is_not_reconciled(shop, happened):
    """With an unknown outcome, a person can at most state that the action has happened."""
    approval_id, token = claimed(shop)
    with pytest.raises(AlreadyDecided, match="by a process that still runs"):
        shop.requests.reconcile(approval_id, by=BO, happened=happened)
    assert "unknown" == shop.requests.settle(approval_id, token, state="unknown").state
    if happened:
        assert "done" == shop.requests.reconcile(approval_id, by=BO, happened=True).state
    else:
        with pytest.raises(AlreadyDecided, match="stop the process"):
            shop.requests.reconcile(approval_id, by=BO, happened=False)


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
        with pytest.raises(NotEntitled, match="does not belong to the last claim"):
            shop.requests.release(approval_id, wrong)
    for state in ("approved", None, ["done"]):
        with pytest.raises(ApprovalError, match="done, failed or unknown"):
            shop.requests.settle(approval_id, token, state=state)
    assert "claimed" == shop.requests.get(approval_id).state
    shop.requests.settle(approval_id, token, state="done")
    with pytest.raises(AlreadyDecided, match="was carried out"):
        shop.requests.release(approval_id, token)


OTHER = {"invoice": "R-1", "euros": 7}


def test_a_request_waits_until_its_deadline(shop):
    approval = shop.requests.file(asked(objective="Refund the shoes", reason="The score is low."))
    assert ("pending", 1, 4_600.0, True) == (approval.state, approval.revision, approval.deadline, approval.is_awaited)
    assert ({"invoice": "R-1", "euros": 500}, "Refund the shoes") == (approval.arguments, approval.objective)
    (entry,) = shop.entries(approval.id)
    facts = {"level": "confirm", "quorum": 1, "groups": [], "run": "run-1"}
    assert ("requested", True) == (entry["kind"], facts.items() <= entry["facts"].items())


def test_a_job_that_asks_every_minute_does_not_fill_the_chain(shop):
    for number in range(50):
        shop.requests.file(keyed(run_id=f"run-{number}"))
    assert 20 == len(shop.kinds())


@pytest.mark.parametrize("names", [(), ("session",)])
def test_a_request_with_values_that_have_no_encoding_is_not_joined(shop, names):
    first = shop.requests.file(keyed(unencoded=("session",)))
    with pytest.raises(KeyReused, match="the digest does not cover session"):
        shop.requests.file(keyed(unencoded=names))
    shop.requests.withdraw(first.id, by=ANA)
    assert "pending" == shop.requests.file(keyed(unencoded=names)).state


def test_a_key_is_for_one_call(shop):
    approval = shop.requests.file(keyed())
    assert approval.id == shop.requests.file(keyed(run_id="run-2")).id
    with pytest.raises(KeyReused, match="needs a field in its key") as caught:
        shop.requests.file(keyed(OTHER))
    assert approval.id == caught.value.approval_id


@pytest.mark.parametrize("verb", ["reject", "skip"])
def test_a_refusal_holds_for_its_run(shop, verb):
    approval = shop.requests.file(keyed())
    shop.requests.decide_all([approval.id], verb, by=ANA, note="no receipt")
    assert {approval.id} == {shop.requests.file(keyed()).id, shop.requests.file(keyed(OTHER)).id}
    again = shop.requests.file(keyed(OTHER, run_id="run-2"))
    assert ("pending", [(approval.id, "ana", "no receipt")]) == (
        again.state,
        [(earlier.id, earlier.by, earlier.note) for earlier in again.earlier],
    )


def test_an_answer_holds_for_the_same_arguments(shop):
    approval = shop.requests.file(keyed())
    shop.requests.respond(approval.id, "only 7 euros", by=ANA)
    assert "responded" == shop.requests.file(keyed()).state
    assert "pending" == shop.requests.file(keyed(OTHER)).state


def test_a_refusal_reaches_a_caller_that_did_not_wait_for_it(shop):
    approval = shop.requests.file(keyed(waits="raise", run_id="run-1"))
    assert "pending" == shop.requests.file(keyed(waits="raise", run_id="run-2")).state
    shop.requests.reject(approval.id, by=ANA)
    assert "rejected" == shop.requests.file(keyed(waits="raise", run_id="run-3")).state
    assert "pending" == shop.requests.file(keyed(waits="raise", run_id="run-4")).state


@pytest.mark.parametrize(
    "fields",
    [
        {"deadline_seconds": float("inf")},
        {"key_fields": ("invoice",), "sealed": ("invoice",)},
    ],
)
def test_settings_that_cannot_be_used_are_refused(shop, fields):
    with pytest.raises(ValueError, match="must"):
        shop.requests.file(asked(**fields))
    assert [] == shop.entries()


SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.mark.parametrize(
    "wrong",
    [
        {"arguments": {"api_key": SECRET}},
        {"key": f"refund:{SECRET}"},
        {"sealed": ("invoice",), "encoded": {"invoice": "R-1", "euros": 500}},
    ],
    ids=["a recognised secret", "in the key", "not sealed"],
)
def test_a_request_with_a_secret_in_the_clear_is_not_written(tmp_path, wrong):
    shop = Shop(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(ValueError, match="in the clear"):
        shop.requests.file(asked(**wrong))
    assert 0 == shop.tables.head()[0]
    shop.store.close()


@pytest.mark.parametrize("rule", [{"groups": ("finance",)}, {"quorum": 2, "identity": "stated"}])
def test_the_user_of_a_run_that_joins_may_not_decide_either(shop, rule):
    first = shop.requests.file(keyed(user="cy", **rule))
    second = shop.requests.file(keyed(user="bo", run_id="run-2", **rule))
    assert first.id == second.id
    with pytest.raises(NotEntitled, match="the run acts for this person"):
        shop.requests.approve(first.id, by=BO)


def test_a_vote_no_longer_counts_once_a_run_of_its_author_joins(shop):
    first = shop.requests.file(keyed(quorum=2, identity="stated"))
    shop.requests.approve(first.id, by=BO)
    shop.requests.file(keyed(user="Bo", run_id="run-2", quorum=2, identity="stated"))
    assert "pending" == shop.requests.approve(first.id, by=ANA).state


def test_a_run_cannot_use_the_consent_of_its_own_user(shop):
    first = shop.requests.file(keyed(user="cy", groups=("finance",), waits="raise"))
    shop.requests.approve(first.id, by=BO)
    with pytest.raises(NotEntitled, match="another person must decide"):
        shop.requests.file(keyed(user="bo", groups=("finance",), waits="raise", run_id="run-2"))
    assert "approved" == shop.requests.file(keyed(user="cy", groups=("finance",), waits="raise")).state


def test_a_stricter_level_is_shown_to_whoever_decides(shop):
    levels = [
        shop.requests.file(keyed(level=level, run_id=level)).level for level in ("confirm", "escalate", "confirm")
    ]
    assert ["confirm", "escalate", "escalate"] == levels


@pytest.mark.parametrize("fields", [{"level": "escalate"}, {"facts": {"alarms": [{"name": "nowhere"}]}}])
def test_a_call_at_level_escalate_or_with_an_alarm_does_not_use_a_standing_approval(shop, fields):
    """Which does not cover it: a person is asked, and the consent that nobody has used is cancelled."""
    any_value = {"invoice": {"any": True}, "euros": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=any_value, until=9_000.0, uses=3)
    shop.requests.grant(standing, by=ANA)
    first = shop.requests.file(keyed(waits="raise"))
    second = shop.requests.file(keyed(waits="raise", **fields))
    assert ("approved", "pending", "cancelled") == (first.state, second.state, shop.requests.get(first.id).state)
    assert [first.id] == [each.id for each in second.earlier]


def test_a_request_from_before_there_was_a_key_is_joined(shop):
    """Its digest is compared in the scheme that it names. Without that key the arguments count as others."""
    first = shop.requests.file(keyed())
    secret = Secret(new_key())
    new = keyed()
    rotated = dataclasses.replace(new, digest=digest("refund", "1", new.encoded, secret=secret))
    joined = shop.another("p2", secret=secret).file(rotated)
    assert (first.id, first.digest) == (joined.id, joined.digest)


def test_another_version_is_named(shop):
    shop.requests.file(keyed())
    with pytest.raises(KeyReused, match="was asked for version 1 of the action, not 2; withdraw it if it is open"):
        shop.requests.file(keyed(version="2"))
