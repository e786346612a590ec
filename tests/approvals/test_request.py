"""Requests: created once per key, joined, answered by what stands for them, refused for another use of the key."""

from __future__ import annotations

import pytest

from grace_kp.approvals import NewRequest, Secret, new_key, sealed_arguments
from grace_kp.errors import KeyReused
from tests.approvals.desks import ANA, Bureau, asked, claim, keyed

OTHER = {"invoice": "R-1", "euros": 7}


@pytest.fixture
def bureau():
    return Bureau()


def test_a_request_waits_until_its_deadline(bureau):
    """It shows what would run, and that this process waits."""
    approval = bureau.desk.request(asked(objective="Refund the shoes", reason="The score is low."))
    assert ("pending", 1, 4_600.0, True) == (approval.state, approval.revision, approval.deadline, approval.is_awaited)
    assert ({"invoice": "R-1", "euros": 500}, "Refund the shoes") == (approval.arguments, approval.objective)
    assert ["requested"] == bureau.kinds(approval.id)


def test_requests_without_a_key_are_separate(bureau):
    """Each call asks; the list shows how many are alike."""
    first, second = bureau.desk.request(asked()), bureau.desk.request(asked())
    assert first.id != second.id
    assert [2, 2] == [approval.same for approval in bureau.desk.pending()]


def test_an_open_request_of_the_key_is_joined(bureau):
    """Also from another process and another run."""
    first = bureau.desk.request(keyed())
    second = bureau.another("p2").request(keyed(run_id="run-2"))
    assert first.id == second.id
    assert ["requested", "joined"] == bureau.kinds(first.id)


def test_a_job_that_asks_every_minute_does_not_fill_the_chain(bureau):
    """Only the first runs that join are recorded."""
    for number in range(50):
        bureau.desk.request(keyed(run_id=f"run-{number}"))
    assert 20 == len(bureau.kinds())


def test_the_key_with_other_arguments_is_refused(bureau):
    """The error names the request that has the key and what to do."""
    first = bureau.desk.request(keyed())
    with pytest.raises(KeyReused, match="needs a field in its key") as caught:
        bureau.desk.request(keyed(OTHER))
    assert first.id == caught.value.approval_id


@pytest.mark.parametrize("names", [(), ("session",)])
def test_a_request_with_values_that_have_no_encoding_is_not_joined(bureau, names):
    """Another call could carry out its own values under this consent."""
    first = bureau.desk.request(keyed(unencoded=("session",)))
    with pytest.raises(KeyReused, match="the digest does not cover session"):
        bureau.desk.request(keyed(unencoded=names))
    bureau.desk.withdraw(first.id, actor=ANA)
    assert "pending" == bureau.desk.request(keyed(unencoded=names)).state


@pytest.mark.parametrize("end", ["approved", "edited", "claimed", "done", "unknown"])
def test_the_key_stays_taken_while_the_action_may_have_happened(bureau, end):
    """The same call gets the same approval in this state, another call is refused."""
    approval = bureau.desk.request(keyed())
    if end == "edited":
        bureau.desk.edit(approval.id, {"euros": 20}, actor=ANA)
    else:
        approval = bureau.desk.approve(approval.id, actor=ANA)
    if end in {"claimed", "done", "unknown"}:
        token = claim(bureau.desk, approval).token
    if end in {"done", "unknown"}:
        bureau.desk.settle(approval.id, token, state=end, result="ok", has_result=True)
    again = bureau.desk.request(keyed(run_id="run-2"))
    assert (approval.id, end) == (again.id, again.state)
    with pytest.raises(KeyReused):
        bureau.desk.request(keyed(OTHER))


@pytest.mark.parametrize("verb", ["reject", "skip"])
def test_a_refusal_holds_for_its_run(bureau, verb):
    """Whatever the arguments; a new run may ask again and shows the refusal."""
    approval = bureau.desk.request(keyed())
    bureau.desk.decide_all([approval.id], verb, actor=ANA, note="no receipt")
    assert {approval.id} == {bureau.desk.request(keyed()).id, bureau.desk.request(keyed(OTHER)).id}
    again = bureau.desk.request(keyed(OTHER, run_id="run-2"))
    assert ("pending", [(approval.id, "ana", "no receipt")]) == (
        again.state,
        [(earlier.id, earlier.by, earlier.note) for earlier in again.earlier],
    )


def test_an_answer_holds_for_the_same_arguments(bureau):
    """An agent that follows the instructions asks about other arguments."""
    approval = bureau.desk.request(keyed())
    bureau.desk.respond(approval.id, "only 7 euros", actor=ANA)
    assert "responded" == bureau.desk.request(keyed()).state
    assert "pending" == bureau.desk.request(keyed(OTHER)).state


def test_a_refusal_reaches_a_caller_that_did_not_wait_for_it(bureau):
    """Its next run learns of the refusal once; the one after that asks again."""
    approval = bureau.desk.request(keyed(waits="raise", run_id="run-1"))
    assert "pending" == bureau.desk.request(keyed(waits="raise", run_id="run-2")).state
    bureau.desk.reject(approval.id, actor=ANA)
    assert "rejected" == bureau.desk.request(keyed(waits="raise", run_id="run-3")).state
    assert "pending" == bureau.desk.request(keyed(waits="raise", run_id="run-4")).state


@pytest.mark.parametrize("end", ["failed", "expired", "cancelled", "not_done", "retried"])
def test_after_an_end_without_a_decision_against_it_a_call_asks_again(bureau, end):
    """In the same run, too; the request lists the earlier ones."""
    approval = bureau.desk.request(keyed())
    if end == "expired":
        bureau.clock.now += 4_000
    elif end == "cancelled":
        bureau.desk.withdraw(approval.id, actor=ANA)
    elif end == "retried":
        bureau.desk.retry(approval.id, actor=ANA)
    else:
        token = claim(bureau.desk, bureau.desk.approve(approval.id, actor=ANA)).token
        bureau.desk.settle(approval.id, token, state="failed" if end == "failed" else "unknown", error="OSError")
        if end == "not_done":
            bureau.alive["p1"] = False
            bureau.desk.reconcile(approval.id, actor=ANA, happened=False)
    again = bureau.desk.request(keyed())
    assert ("pending", [(approval.id, end)]) == (again.state, [(each.id, each.state) for each in again.earlier])


def test_another_process_takes_over_the_waiting(bureau):
    """Once the first is known to be gone."""
    approval = bureau.desk.request(keyed())
    bureau.alive["p1"] = False
    assert bureau.desk.get(approval.id).is_awaited is False
    assert bureau.another("p2").request(keyed()).is_awaited is True


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
def test_settings_that_cannot_be_used_are_refused(bureau, fields):
    """Nothing is written."""
    with pytest.raises(ValueError, match=r"must|not a valid"):
        bureau.desk.request(asked(**fields))
    assert [] == bureau.entries()


def test_secrets_do_not_reach_the_store(bureau):
    """Neither recognised ones in texts nor sealed arguments that the run repeats."""
    bureau = Bureau(secret=Secret(new_key()))
    arguments = {"invoice": "R-1", "iban": "DE89370400440532013000"}
    plain = asked(arguments)
    stored, sealed = sealed_arguments(
        plain.encoded, ("iban",), bureau.settings["secret"], approval_id=plain.id, digest=plain.digest
    )
    new = asked(
        arguments,
        id=plain.id,
        sealed=sealed,
        objective="pay to DE89370400440532013000, password=hunter22hunter",
        run={"steps": [{"content": "DE89370400440532013000"}], "score": float("nan")},
    )
    new = NewRequest(**{**{name: getattr(new, name) for name in new.__slots__}, "stored": stored})
    approval = bureau.desk.request(new)
    approval = bureau.desk.approve(approval.id, actor=ANA, note="to DE89370400440532013000")
    token = claim(bureau.desk, approval).token
    ended = bureau.desk.settle(
        approval.id, token, state="done", result={"to": "DE89370400440532013000"}, has_result=True
    )
    everything = b"".join(link.data + (link.contents or b"") for link in bureau.tables.links())
    everything += bureau.tables.row(approval.id).data
    assert [] == [word for word in (b"DE89370400440532013000", b"hunter22") if word in everything]
    assert ("DE89370400440532013000", False) == (approval.arguments["iban"], ended.outcome.has_result)


SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@pytest.mark.parametrize(
    "wrong",
    [
        {"arguments": {"api_key": SECRET}},
        {"key": f"refund:{SECRET}"},
        {"sealed": ("invoice",), "stored": {"invoice": "R-1", "euros": 500}},
    ],
    ids=["a recognised secret", "in the key", "not sealed"],
)
def test_a_request_with_a_secret_in_the_clear_is_not_written(tmp_path, wrong):
    """Whatever the gate has missed."""
    bureau = Bureau(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(ValueError, match="in the clear"):
        bureau.desk.request(asked(**wrong))
    assert 0 == bureau.tables.head()[0]
    bureau.store.close()
