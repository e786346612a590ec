"""Filing a request: what a gate may ask, which earlier request a call joins, and which refusals hold for it."""

from __future__ import annotations

import dataclasses

import pytest

from grace_kp.approvals import Secret, Standing, digest, new_key
from grace_kp.errors import KeyReused, NotEntitled
from tests.approvals.shops import ANA, BO, Shop, asked, claim, keyed

OTHER = {"invoice": "R-1", "euros": 7}


@pytest.fixture
def shop():
    return Shop(groups=GROUPS)


def test_a_request_waits_until_its_deadline(shop):
    approval = shop.requests.file(asked(objective="Refund the shoes", reason="The score is low."))
    assert ("pending", 1, 4_600.0, True) == (approval.state, approval.revision, approval.deadline, approval.is_awaited)
    assert ({"invoice": "R-1", "euros": 500}, "Refund the shoes") == (approval.arguments, approval.objective)
    assert ["requested"] == shop.kinds(approval.id)


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


@pytest.mark.parametrize("end", ["pending", "approved", "edited", "claimed", "done", "unknown"])
def test_the_key_stays_taken_while_the_action_may_have_happened(shop, end):
    """The same call gets the same approval in this state, another call is refused."""
    approval = shop.requests.file(keyed())
    if end == "edited":
        shop.requests.edit(approval.id, {"euros": 20}, by=ANA)
    elif end != "pending":
        approval = shop.requests.approve(approval.id, by=ANA)
    if end in {"claimed", "done", "unknown"}:
        token = claim(shop.requests, approval).token
    if end in {"done", "unknown"}:
        shop.requests.settle(approval.id, token, state=end, result="ok", has_result=True)
    again = shop.requests.file(keyed(run_id="run-2"))
    assert (approval.id, end) == (again.id, again.state)
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


@pytest.mark.parametrize("end", ["failed", "expired", "cancelled", "not_done", "retried"])
def test_after_an_end_without_a_decision_against_it_a_call_asks_again(shop, end):
    approval = shop.requests.file(keyed())
    if end == "expired":
        shop.clock.now += 4_000
    elif end == "cancelled":
        shop.requests.withdraw(approval.id, by=ANA)
    elif end == "retried":
        shop.requests.retry(approval.id, by=ANA)
    else:
        token = claim(shop.requests, shop.requests.approve(approval.id, by=ANA)).token
        shop.requests.settle(approval.id, token, state="failed" if end == "failed" else "unknown", error="OSError")
        if end == "not_done":
            shop.alive["p1"] = False
            shop.requests.reconcile(approval.id, by=ANA, happened=False)
    again = shop.requests.file(keyed())
    assert ("pending", [(approval.id, end)]) == (again.state, [(each.id, each.state) for each in again.earlier])


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


GROUPS = {"ana": ["finance"], "bo": ["finance"]}


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


def test_a_call_at_level_escalate_does_not_use_a_standing_approval(shop):
    """Which does not cover it: a person is asked, and the consent that nobody has used is cancelled."""
    any_value = {"invoice": {"any": True}, "euros": {"any": True}}
    standing = Standing(action="refund", domain="shop", parameters=any_value, until=9_000.0, uses=3)
    shop.requests.grant(standing, by=ANA)
    first = shop.requests.file(keyed(waits="raise"))
    second = shop.requests.file(keyed(waits="raise", level="escalate"))
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
    """After a deployment somebody must know which of the two differs, and what to do."""
    shop.requests.file(keyed())
    with pytest.raises(KeyReused, match="was asked for version 1 of the action, not 2; withdraw it if it is open"):
        shop.requests.file(keyed(version="2"))
