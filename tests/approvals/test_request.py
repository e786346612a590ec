"""Requests: created once per key, joined, answered by what stands for them, refused for another use of the key."""

from __future__ import annotations

import pytest

from grace_kp.approvals import Secret, new_key
from grace_kp.errors import KeyReused
from tests.approvals.shops import ANA, Shop, asked, claim, keyed, sealing

OTHER = {"invoice": "R-1", "euros": 7}


@pytest.fixture
def shop():
    return Shop()


def test_a_request_waits_until_its_deadline(shop):
    """It shows what would run, and that this process waits."""
    approval = shop.requests.file(asked(objective="Refund the shoes", reason="The score is low."))
    assert ("pending", 1, 4_600.0, True) == (approval.state, approval.revision, approval.deadline, approval.is_awaited)
    assert ({"invoice": "R-1", "euros": 500}, "Refund the shoes") == (approval.arguments, approval.objective)
    assert ["requested"] == shop.kinds(approval.id)


def test_requests_without_a_key_are_separate(shop):
    """Each call asks; the list shows how many are alike."""
    first, second = shop.requests.file(asked()), shop.requests.file(asked())
    assert first.id != second.id
    assert [2, 2] == [approval.same for approval in shop.requests.pending()]


def test_an_open_request_of_the_key_is_joined(shop):
    """Also from another process and another run."""
    first = shop.requests.file(keyed())
    second = shop.another("p2").file(keyed(run_id="run-2"))
    assert first.id == second.id
    assert ["requested", "joined"] == shop.kinds(first.id)


def test_a_job_that_asks_every_minute_does_not_fill_the_chain(shop):
    """Only the first runs that join are recorded."""
    for number in range(50):
        shop.requests.file(keyed(run_id=f"run-{number}"))
    assert 20 == len(shop.kinds())


def test_the_key_with_other_arguments_is_refused(shop):
    """The error names the request that has the key and what to do."""
    first = shop.requests.file(keyed())
    with pytest.raises(KeyReused, match="needs a field in its key") as caught:
        shop.requests.file(keyed(OTHER))
    assert first.id == caught.value.approval_id


@pytest.mark.parametrize("names", [(), ("session",)])
def test_a_request_with_values_that_have_no_encoding_is_not_joined(shop, names):
    """Another call could carry out its own values under this consent."""
    first = shop.requests.file(keyed(unencoded=("session",)))
    with pytest.raises(KeyReused, match="the digest does not cover session"):
        shop.requests.file(keyed(unencoded=names))
    shop.requests.withdraw(first.id, actor=ANA)
    assert "pending" == shop.requests.file(keyed(unencoded=names)).state


@pytest.mark.parametrize("end", ["approved", "edited", "claimed", "done", "unknown"])
def test_the_key_stays_taken_while_the_action_may_have_happened(shop, end):
    """The same call gets the same approval in this state, another call is refused."""
    approval = shop.requests.file(keyed())
    if end == "edited":
        shop.requests.edit(approval.id, {"euros": 20}, actor=ANA)
    else:
        approval = shop.requests.approve(approval.id, actor=ANA)
    if end in {"claimed", "done", "unknown"}:
        token = claim(shop.requests, approval).token
    if end in {"done", "unknown"}:
        shop.requests.settle(approval.id, token, state=end, result="ok", has_result=True)
    again = shop.requests.file(keyed(run_id="run-2"))
    assert (approval.id, end) == (again.id, again.state)
    with pytest.raises(KeyReused):
        shop.requests.file(keyed(OTHER))


@pytest.mark.parametrize("verb", ["reject", "skip"])
def test_a_refusal_holds_for_its_run(shop, verb):
    """Whatever the arguments; a new run may ask again and shows the refusal."""
    approval = shop.requests.file(keyed())
    shop.requests.decide_all([approval.id], verb, actor=ANA, note="no receipt")
    assert {approval.id} == {shop.requests.file(keyed()).id, shop.requests.file(keyed(OTHER)).id}
    again = shop.requests.file(keyed(OTHER, run_id="run-2"))
    assert ("pending", [(approval.id, "ana", "no receipt")]) == (
        again.state,
        [(earlier.id, earlier.by, earlier.note) for earlier in again.earlier],
    )


def test_an_answer_holds_for_the_same_arguments(shop):
    """An agent that follows the instructions asks about other arguments."""
    approval = shop.requests.file(keyed())
    shop.requests.respond(approval.id, "only 7 euros", actor=ANA)
    assert "responded" == shop.requests.file(keyed()).state
    assert "pending" == shop.requests.file(keyed(OTHER)).state


def test_a_refusal_reaches_a_caller_that_did_not_wait_for_it(shop):
    """Its next run learns of the refusal once; the one after that asks again."""
    approval = shop.requests.file(keyed(waits="raise", run_id="run-1"))
    assert "pending" == shop.requests.file(keyed(waits="raise", run_id="run-2")).state
    shop.requests.reject(approval.id, actor=ANA)
    assert "rejected" == shop.requests.file(keyed(waits="raise", run_id="run-3")).state
    assert "pending" == shop.requests.file(keyed(waits="raise", run_id="run-4")).state


@pytest.mark.parametrize("end", ["failed", "expired", "cancelled", "not_done", "retried"])
def test_after_an_end_without_a_decision_against_it_a_call_asks_again(shop, end):
    """In the same run, too; the request lists the earlier ones."""
    approval = shop.requests.file(keyed())
    if end == "expired":
        shop.clock.now += 4_000
    elif end == "cancelled":
        shop.requests.withdraw(approval.id, actor=ANA)
    elif end == "retried":
        shop.requests.retry(approval.id, actor=ANA)
    else:
        token = claim(shop.requests, shop.requests.approve(approval.id, actor=ANA)).token
        shop.requests.settle(approval.id, token, state="failed" if end == "failed" else "unknown", error="OSError")
        if end == "not_done":
            shop.alive["p1"] = False
            shop.requests.reconcile(approval.id, actor=ANA, happened=False)
    again = shop.requests.file(keyed())
    assert ("pending", [(approval.id, end)]) == (again.state, [(each.id, each.state) for each in again.earlier])


def test_another_process_takes_over_the_waiting(shop):
    """Once the first is known to be gone."""
    approval = shop.requests.file(keyed())
    shop.alive["p1"] = False
    assert shop.requests.get(approval.id).is_awaited is False
    assert shop.another("p2").file(keyed()).is_awaited is True


@pytest.mark.parametrize(
    "fields",
    [
        {"level": "loud"},
        {"deadline_seconds": -1},
        {"use_within_seconds": float("nan")},
        {"on_deadline": "approve"},
        {"on_deadline": "escalate:"},
        {"quorum": 0},
        {"quorum": True},
        {"identity": "any"},
        {"groups": "finance"},
        {"key_fields": ("invoice",), "sealed": ("invoice",)},
    ],
)
def test_settings_that_cannot_be_used_are_refused(shop, fields):
    """Nothing is written."""
    with pytest.raises(ValueError, match=r"must|not a valid"):
        shop.requests.file(asked(**fields))
    assert [] == shop.entries()


def test_secrets_do_not_reach_the_store(shop):
    """Neither recognised ones in texts nor sealed arguments that the run repeats."""
    shop = Shop(secret=Secret(new_key()))
    arguments = {"invoice": "R-1", "iban": "DE89370400440532013000"}
    new, unsealed = sealing(
        shop.settings["secret"],
        arguments,
        ("iban",),
        objective="pay to DE89370400440532013000, password=hunter22hunter",
        run={"steps": [{"content": "DE89370400440532013000"}], "score": float("nan")},
    )
    with pytest.raises(ValueError, match="`unsealed` is needed"):
        shop.requests.file(new)
    approval = shop.requests.file(new, unsealed)
    approval = shop.requests.approve(approval.id, actor=ANA, note="to DE89370400440532013000")
    token = claim(shop.requests, approval).token
    ended = shop.requests.settle(
        approval.id, token, state="done", result={"to": "DE89370400440532013000"}, has_result=True
    )
    everything = b"".join(link.data + (link.contents or b"") for link in shop.tables.links())
    everything += shop.tables.row(approval.id).data
    assert [] == [word for word in (b"DE89370400440532013000", b"hunter22") if word in everything]
    assert ("DE89370400440532013000", False) == (approval.arguments["iban"], ended.outcome.has_result)


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
    """Whatever the gate has missed."""
    shop = Shop(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(ValueError, match="in the clear"):
        shop.requests.file(asked(**wrong))
    assert 0 == shop.tables.head()[0]
    shop.store.close()
