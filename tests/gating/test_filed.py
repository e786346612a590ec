"""A gate with an inbox: every decision of a person has the effect of its response, nothing else lets the action run, and what is kept of the call."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Annotated

import pydantic
import pytest

import grace_kp as gk
from grace_kp.gating import _inquiry
from tests.gating.inboxes import approving, deciding, runtime

INBOX = gk.InboxReviewer(deadline="1h")


def action(grace, **settings):
    ran = []

    @grace.gate(**{"floor": "confirm", "reviewer": INBOX, **settings})
    def refund(invoice: str, euros: int) -> str:
        ran.append((invoice, euros))
        return f"{invoice}: {euros}"

    return refund, ran


@pytest.mark.parametrize("place", ["memory", "file"])
def test_an_approval_lets_it_run_once(place, tmp_path):
    grace = runtime(tmp_path if place == "file" else None)
    refund, ran = action(grace)
    person = approving(grace)
    assert refund("A1", 50) == "A1: 50"
    (asked,) = person.leaves()
    done = grace.approvals.get(asked.id)
    assert [("A1", 50)] == ran
    assert ("done", "A1: 50", {"invoice": "A1", "euros": 50}) == (
        done.state,
        done.outcome.result,
        dict(asked.arguments),
    )
    grace.close()


@pytest.mark.parametrize(
    ("decide", "error", "words"),
    [
        (
            lambda a, name: a.reject(name, by="ana", reason="not ours"),
            gk.ActionCancelled,
            "ana refused refund: not ours",
        ),
        (lambda a, name: a.respond(name, "ask for it", by="ana"), gk.ActionRedirected, "ask for it"),
        (lambda a, name: a.withdraw(name, by="ana", reason="old"), gk.ActionCancelled, "was cancelled: old"),
    ],
)
def test_a_refusal_has_its_error(decide, error, words):
    grace = runtime()
    refund, ran = action(grace)
    person = deciding(grace, decide)
    with pytest.raises(error, match=words):
        refund("A1", 50)
    person.leaves()
    assert [] == ran


def test_a_skipped_action_returns_none():
    grace = runtime()
    refund, ran = action(grace)
    person = deciding(grace, lambda approvals, name: approvals.skip(name, by="ana"))
    assert refund("A1", 50) is None
    person.leaves()
    assert [] == ran


def test_an_edit_runs_with_its_arguments():
    grace = runtime()
    refund, ran = action(grace)
    person = deciding(grace, lambda approvals, name: approvals.edit(name, {"euros": 20}, by="ana"))
    with grace.collect() as traces:
        assert refund("A1", 50) == "A1: 20"
    person.leaves()
    entry = traces[0].grace["decisions"][0]
    assert [("A1", 20)] == ran
    assert ("executed_modified", 50, 20) == (
        entry["outcome"], entry["arguments"]["euros"], entry["executed_arguments"]["euros"],
    )  # fmt: skip
    assert ("ana", "stated", "python") == tuple(entry["approval"][name] for name in ("by", "identity", "channel"))


def test_retry_decides_again():
    grace = runtime()
    refund, ran = action(grace)
    person = deciding(grace, lambda approvals, name: approvals.retry(name, by="ana"), 4)
    with pytest.raises(gk.ActionCancelled, match="more than 3 times"):
        refund("A1", 50)
    assert ([], 4) == (ran, len(person.leaves()))


def test_time_is_up():
    """The deadline is that of the gate, else that of the inbox; it is no refusal."""
    grace = runtime()
    refund, ran = action(grace, timeout=0.05)
    with pytest.raises(gk.ActionTimedOut, match="no decision was made in time"):
        refund("A1", 50)
    assert ([], "expired") == (ran, grace.approvals.history()[0].state)


def test_on_deadline_skip():
    grace = runtime()
    refund, ran = action(grace, reviewer=gk.InboxReviewer(deadline=0.05, on_deadline="skip"))
    assert refund("A1", 50) is None
    assert [] == ran


def test_arguments_that_change_while_it_waits():
    grace = runtime()
    ran = []

    @grace.gate(floor="confirm", reviewer=INBOX)
    def send(items: list[int]) -> None:
        ran.append(items)

    items = [1]

    def decide(approvals, name):
        items.append(2)
        approvals.approve(name, by="ana")

    person = deciding(grace, decide)
    with pytest.raises(gk.ActionCancelled, match="changed"):
        send(items)
    person.leaves()
    assert [] == ran


def test_a_job_runs_again_later():
    grace = runtime()
    refund, ran = action(grace, key="refund:{invoice}", reviewer=gk.InboxReviewer(wait="raise"))
    with pytest.raises(gk.ActionPending) as first:
        refund("A1", 50)
    with pytest.raises(gk.ActionPending) as second:
        refund("A1", 50)
    assert first.value.approval.id == second.value.approval.id
    grace.approvals.approve(first.value.approval.id, by="ana")
    assert ["A1: 50", "A1: 50"] == [refund("A1", 50), refund("A1", 50)]
    assert [("A1", 50)] == ran


def test_the_agent_goes_on():
    """`hand_over` returns a text for the model, and the entry in the trace waits."""
    grace = runtime()
    refund, ran = action(grace, reviewer=gk.InboxReviewer(wait="hand_over"))
    with grace.collect() as traces:
        answer = refund("A1", 50)
    assert isinstance(answer, gk.PendingAnswer)
    assert answer.approval.id in answer
    assert ("waiting", []) == (traces[0].grace["decisions"][0]["outcome"], ran)


def test_callers_side_by_side_share_one_request():
    grace = runtime()
    refund, ran = action(grace, key="refund:{invoice}")
    results = []
    threads = [threading.Thread(target=lambda: results.append(refund("A1", 50))) for _ in range(4)]
    person = approving(grace)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (1, 1, ["A1: 50"] * 4) == (len(person.leaves()), len(ran), results)


async def test_a_cancelled_task_withdraws_its_request():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=INBOX)
    async def act(n: int) -> int:
        return n

    task = asyncio.create_task(act(1))
    request = await asyncio.to_thread(lambda: next(iter(grace.approvals.watch(0))))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    closed = await grace.approvals.aget(request.approval)
    assert ("cancelled", "its caller gave up") == (closed.state, closed.decision.note)


async def test_many_coroutines_wait_on_one_loop():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=INBOX)
    async def act(n: int) -> int:
        return n

    person = approving(grace, 20)
    assert list(range(20)) == await asyncio.gather(*(act(n) for n in range(20)))
    person.leaves()


def test_a_second_reviewer_is_asked_beside():
    grace = runtime()
    inbox = gk.InboxReviewer(
        ask=lambda request: gk.InterventionResponse("modify", modified={"euros": 7}, reviewer="bo")
    )
    refund, ran = action(grace, reviewer=inbox)
    assert refund("A1", 50) == "A1: 7"
    decision = grace.approvals.history()[0].decision
    assert ([("A1", 7)], "bo", "callback") == (ran, decision.actor.name, decision.actor.channel)


def test_a_second_reviewer_does_not_consent_to_an_edit_that_it_was_not_shown(monkeypatch):
    """A person edits the request while it is shown at the console. The answer there was about other arguments."""
    grace, is_read, is_answered = runtime(), threading.Event(), threading.Event()
    is_waiting, answer = _inquiry.Inquiry.is_waiting, _inquiry.Inquiry.answer

    def look(inquiry):
        waits = is_waiting(inquiry)
        if inquiry.approval.digest != inquiry.approval.asked_digest:
            is_read.set()
        return waits

    def take(inquiry, shown, response):
        answer(inquiry, shown, response)
        is_answered.set()

    monkeypatch.setattr(_inquiry.Inquiry, "is_waiting", look)
    monkeypatch.setattr(_inquiry.Inquiry, "answer", take)

    def ask(request):
        (pending,) = grace.approvals.pending()
        grace.approvals.edit(pending.id, {"euros": 5000}, by="mallory")
        assert is_read.wait(60)  # by the gate
        return gk.InterventionResponse("proceed", reviewer="bo")

    inbox = gk.InboxReviewer(ask=ask, quorum=2, identity="stated")
    refund, ran = action(grace, reviewer=inbox)

    def call():
        with pytest.raises(gk.ActionCancelled):
            refund("A1", 50)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    assert is_answered.wait(60)
    (pending,) = grace.approvals.pending()
    assert ([], ["mallory"]) == (ran, [vote.actor.name for vote in pending.votes])
    grace.approvals.withdraw(pending.id, by="ana")
    caller.join(60)


def odd(value):
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


def test_an_edit_that_cannot_run_closes_its_request():
    grace = runtime()
    ran = []

    @grace.gate(floor="confirm", reviewer=INBOX)
    def refund(euros: Annotated[int, pydantic.AfterValidator(odd)]) -> None:
        ran.append(euros)

    person = deciding(grace, lambda approvals, name: approvals.edit(name, {"euros": 20}, by="ana"))
    with pytest.raises(gk.ActionCancelled, match=r"could not be used: .*must be odd"):
        refund(51)
    closed = grace.approvals.get(person.leaves()[0].id)
    assert ("cancelled", []) == (closed.state, ran)
    assert "must be odd" in closed.decision.note


def test_arguments_without_an_encoding_stay_in_the_process():
    grace = runtime()

    class Client:
        pass

    @grace.gate(floor="confirm", reviewer=INBOX)
    def call(client: object, n: int) -> int:
        return n

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"), name="later")
    def call_later(client: object, n: int) -> int:
        return n

    person = approving(grace)
    assert call(Client(), 3) == 3
    assert ("client",) == person.leaves()[0].unencoded
    with pytest.raises(gk.ActionCancelled, match="have no encoding: client"):
        call_later(Client(), 3)


def test_a_store_without_approvals():
    class Plain:
        def put(self, records, **_):
            pass

        def get(self, trace_id):
            return None

        def query(self, **_):
            return []

    refund, ran = action(gk.Grace(store=Plain(), evaluator=None, embedder=None))
    with pytest.raises(gk.ActionCancelled, match="keeps no approvals"):
        refund("A1", 50)
    assert [] == ran


KEY = "0123456789abcdef" * 4
IBAN = "DE89 3704 0044 0532 0130 00"


def gate(grace, **settings):
    @grace.gate(**{"floor": "confirm", "reviewer": gk.InboxReviewer(wait="hand_over"), **settings})
    def pay(iban: str, euros: int = 5) -> str:
        return iban

    return pay


def test_a_request_states_what_it_rests_on():
    grace = runtime()
    policy = gk.Policy(floor="escalate", group="finance", quorum=2)
    pay = gate(
        grace,
        policy=policy,
        floor=None,
        reviewer=gk.InboxReviewer("1h", wait="hand_over", group="legal", identity="stated"),
    )
    with grace.run("Pay the bill", user="uma") as run:
        approval = pay("x").approval
    assert {"iban": "x", "euros": 5} == dict(approval.arguments)
    assert ("escalate", ("finance",), 2, run.id, "Pay the bill", "uma") == (
        approval.level, approval.groups, approval.quorum, approval.run_id, approval.objective, approval.user,
    )  # fmt: skip
    assert policy.version == approval.policy["version"]
    assert approval.run["task"]["objective"] == "Pay the bill"
    assert 3_600 == pytest.approx(approval.deadline - approval.created_at)


def test_secrets_are_sealed_with_a_key(tmp_path, monkeypatch):
    monkeypatch.setenv("GRACE_KP_KEY", KEY)
    grace = runtime(tmp_path)
    pay = gate(grace, sealed=("iban",))
    with grace.run("Pay"):
        approval = pay(IBAN).approval
    grace.approvals.approve(approval.id, by="ana")
    assert grace.approvals.execute(approval.id) == IBAN
    grace.flush()
    traces = [json.dumps(trace.to_dict()) for trace in grace.store.query(limit=10)]
    assert [] == [trace for trace in traces if IBAN in trace]
    grace.close()
    assert ("iban",) == approval.sealed
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert IBAN.encode() not in kept


def test_without_a_key_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    pay = gate(runtime(tmp_path), sealed=("iban",))
    with pytest.raises(gk.ActionCancelled, match="'iban' is to be sealed"):
        pay(IBAN)
