"""A gate with an inbox: its configuration, the effect of every decision, what is kept of a call, and the claim for what is about to run."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import decimal
import json
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Annotated

import pydantic
import pytest

import grace_kp as gk
from grace_kp.gating import PolicySet, _inquiry
from grace_kp.testing import make_grace
from tests.gating.inboxes import approving, deciding, gated, runtime

INBOX = gk.InboxReviewer(deadline="1h")


JOB = gk.InboxReviewer(wait="raise")


def pending(call, *args):
    with pytest.raises(gk.ActionPending) as raised:
        call(*args)
    return raised.value.approval.id


def action(grace, **settings):
    ran = []

    @grace.gate(**{"floor": "confirm", "reviewer": INBOX, **settings})
    def refund(invoice: str, euros: int) -> str:
        ran.append((invoice, euros))
        return f"{invoice}: {euros}"

    return refund, ran


def test_an_approval_lets_it_run_once(tmp_path):
    with runtime(tmp_path) as grace:
        refund, ran = action(grace)
        person = approving(grace)
        assert refund("A1", 50) == "A1: 50"
        (asked,) = person.leaves()
        done = grace.approvals.get(asked.id)
    assert ([("A1", 50)], {"invoice": "A1", "euros": 50}) == (ran, dict(asked.arguments))
    assert ("done", "A1: 50") == (done.state, done.outcome.result)


@pytest.mark.parametrize(
    ("decide", "error", "words", "count"),
    [
        (lambda a, name: a.reject(name, by="ana", reason="no"), gk.ActionCancelled, "ana refused refund: no", 1),
        (lambda a, name: a.respond(name, "ask for it", by="ana"), gk.ActionRedirected, "ask for it", 1),
        (lambda a, name: a.withdraw(name, by="ana", reason="old"), gk.ActionCancelled, "was cancelled: old", 1),
        (lambda a, name: a.retry(name, by="ana"), gk.ActionCancelled, "more than 3 times", 4),
        (lambda a, name: a.skip(name, by="ana"), None, None, 1),
    ],
)
def test_each_decision_against_it_has_its_effect(decide, error, words, count):
    grace = runtime()
    refund, ran = action(grace)
    person = deciding(grace, decide, count)
    with pytest.raises(error, match=words) if error else contextlib.nullcontext():
        assert refund("A1", 50) is None
    assert (count, []) == (len(person.leaves()), ran)


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


def test_time_is_up():
    """The deadline is that of the gate, else that of the inbox; it is no refusal."""
    grace = runtime()
    refund, ran = action(grace, timeout=0.05)
    with pytest.raises(gk.ActionTimedOut, match="no decision was made in time"):
        refund("A1", 50)
    assert ([], "expired") == (ran, grace.approvals.history()[0].state)
    refund, ran = action(runtime(), reviewer=gk.InboxReviewer(deadline=0.05, on_deadline="skip"))
    assert (None, []) == (refund("A1", 50), ran)


def test_arguments_that_change_while_it_waits():
    grace, items = runtime(), [1]
    send, ran = gated(grace, floor="confirm", reviewer=INBOX)

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
    refund, ran = action(grace, key="refund:{invoice}", reviewer=JOB)
    first, second = pending(refund, "A1", 50), pending(refund, "A1", 50)
    assert first == second
    grace.approvals.approve(first, by="ana")
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
    copy = pickle.loads(pickle.dumps(answer))
    assert (str(answer), answer.approval.id) == (str(copy), copy.approval.id)
    assert ("waiting", []) == (traces[0].grace["decisions"][0]["outcome"], ran)


def test_callers_side_by_side_share_one_request():
    grace = runtime()
    refund, ran = action(grace, key="refund:{invoice}")
    person = approving(grace)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(refund, ["A1"] * 4, [50] * 4))
    assert (1, 1, ["A1: 50"] * 4) == (len(person.leaves()), len(ran), results)


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

    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(refund, "A1", 50)
        assert is_answered.wait(60)
        (pending,) = grace.approvals.pending()
        assert ([], ["mallory"]) == (ran, [vote.actor.name for vote in pending.votes])
        grace.approvals.withdraw(pending.id, by="ana")
        with pytest.raises(gk.ActionCancelled):
            called.result(60)


def odd(value):
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


def test_an_edit_that_cannot_run_closes_its_request():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=INBOX)
    def refund(euros: Annotated[int, pydantic.AfterValidator(odd)]) -> None:
        raise AssertionError

    person = deciding(grace, lambda approvals, name: approvals.edit(name, {"euros": 20}, by="ana"))
    with pytest.raises(gk.ActionCancelled, match=r"could not be used: .*must be odd"):
        refund(51)
    closed = grace.approvals.get(person.leaves()[0].id)
    assert closed.state == "cancelled"
    assert "must be odd" in closed.decision.note


def test_arguments_without_an_encoding_stay_in_the_process():
    grace = runtime()
    act, _ = gated(grace, floor="confirm", reviewer=INBOX)
    later, _ = gated(grace, floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"), name="later")
    person = approving(grace)
    assert act(object()) == "done"
    assert ("it",) == person.leaves()[0].unencoded
    with pytest.raises(gk.ActionCancelled, match="have no encoding: it"):
        later(object())


def test_a_store_without_approvals():
    store = SimpleNamespace(put=lambda records, **_: None, get=lambda trace_id: None, query=lambda **_: [])
    refund, ran = action(gk.Grace(store=store, evaluator=None, embedder=None))
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
    inbox = gk.InboxReviewer("1h", wait="hand_over", group="legal", identity="stated")
    pay = gate(grace, policy=policy, floor=None, reviewer=inbox)
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


def job(grace, result=None, *, error=None, **settings):
    ran = []

    @grace.gate(**{"floor": "confirm", "key": "x:{n}", "reviewer": JOB, **settings})
    def act(n: int) -> object:
        ran.append(n)
        if error is not None:
            raise error
        return result

    return act, ran


def test_a_failure_is_not_repeated_without_a_new_decision():
    grace = runtime()
    act, _ = job(grace, error=OSError("gone"))
    grace.approvals.approve(first := pending(act, 1), by="ana")
    with pytest.raises(OSError, match="gone"):
        act(1)
    assert ("failed", "OSError") == (grace.approvals.get(first).state, grace.approvals.get(first).outcome.error)
    again = grace.approvals.get(pending(act, 1))
    assert [(first, "failed")] == [(earlier.id, earlier.state) for earlier in again.earlier]


def test_an_interruption_leaves_the_outcome_unknown():
    grace = runtime()
    act, _ = job(grace, error=KeyboardInterrupt())
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
    act, ran = job(grace)
    grace.approvals.approve(first := pending(act, 1), by="ana")
    grace._gates().policies = PolicySet({"act": policy})
    with pytest.raises(error):
        act(1) if way == "call" else grace.approvals.execute(first)
    assert ("cancelled", []) == (grace.approvals.get(first).state, ran)


def test_an_approval_by_stated_names_is_cancelled_where_they_no_longer_count(tmp_path):
    for identity in ("stated", "authenticated"):
        with runtime(tmp_path) as grace:
            act, ran = job(grace, reviewer=gk.InboxReviewer(wait="raise", quorum=2, identity=identity))
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
    act, _ = job(grace, floor=None)
    first, second = pending(act, 1), pending(act, 2)
    grace._gates().policies = PolicySet({"act": "deny"})
    with pytest.raises(gk.ActionDenied):
        act(1)
    assert ["cancelled", "pending"] == [grace.approvals.get(each).state for each in (first, second)]


def test_a_milder_policy_cancels_nothing():
    grace = runtime(policies={"act": gk.Policy(floor="escalate", quorum=1)})
    act, ran = job(grace)
    grace.approvals.approve(first := pending(act, 1), by="ana")
    grace._gates().policies = PolicySet()
    act(1)
    assert ("done", [1]) == (grace.approvals.get(first).state, ran)


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


def test_the_lease_is_held_until_the_outcome_is_written():
    grace = runtime()
    held = []

    @grace.gate(floor="confirm", key="x:{n}", reviewer=gk.InboxReviewer(wait="raise"))
    def act(n: int) -> None:
        held.append(watcher._renew_lease())

    grace.approvals.approve(pending(act, 1), by="ana")
    watcher = grace.approvals._inbox().watcher
    act(1)
    assert [True, False] == [seconds is not None for seconds in (*held, watcher._renew_lease())]


def test_an_edit_from_one_to_true_runs_with_true():
    grace = runtime()
    act = grace.gate(floor="confirm", key="x:{n}", reviewer=JOB)(lambda n, flags: flags)
    grace.approvals.edit(pending(act, 1, [1, 0.0]), {"flags": [True, 0.0]}, by="ana")
    assert "[True, 0.0]" == repr(act(1, [1, 0.0]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"deadline": "soon"}, "deadline must be"),
        ({"use_within": "-1s"}, "use_within must be"),
        ({"on_deadline": "skip"}, "needs a deadline"),
        ({"on_deadline": "escalate:", "deadline": 1}, "on_deadline must be"),
        ({"on_deadline": "approve", "deadline": 1}, "on_deadline must be"),
        ({"wait": False}, "wait must be"),
        ({"group": []}, "group must be"),
        ({"quorum": 0}, "quorum must be"),
        ({"identity": "any"}, "identity must be"),
        ({"ask": 5}, "a reviewer must be a callable"),
        ({"ask": gk.InboxReviewer()}, "not another inbox"),
        ({"notify": "https://example.org"}, "notify takes a Webhook"),
    ],
)
def test_what_cannot_be_used_is_named(settings, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
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

    @grace.gate(floor="confirm", key="x:{n}", ignore=("token",), reviewer=JOB)
    def act(n: int, token: str) -> str:
        return token

    approval = grace.approvals.approve(pending(act, 1, "first"), by="ana")
    assert (("token",), {"n": 1}) == (approval.not_covered, dict(approval.arguments))
    assert act(1, "second") == "second"


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
