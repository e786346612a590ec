"""What was consented to runs unchanged and once, also in two processes, and the ledger and the entry agree on it."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import grace_kp as gk
from grace_kp.approvals import idempotency_key_of
from grace_kp.gating import (
    Consent,
    Decision,
    Execution,
    GateEntry,
    InMemory,
    LedgerEntry,
    NotRun,
    NotStarted,
    Raised,
    RanBefore,
    Returned,
    _ledger,
    drive,
    execution,
    raise_or_return,
)
from grace_kp.gating._ledger import EarlierRun
from grace_kp.record import HOST, Signal
from grace_kp.testing import make_grace
from tests.gating.inboxes import request_for, runtime


class Payment(Execution):
    """A call that can be told to have changed, or not to have started."""

    def __init__(self, ledger=None, *, changes=(), started=True, again=False):
        self.action = "pay"
        self.entry = GateEntry.new("pay", {"euros": 5})
        self.consent = Consent(None, "d")
        self.ledger_entry = None if ledger is None else LedgerEntry(lambda: ledger, "key")
        self.again_after_failure = again
        self.changes = list(changes)
        self.started = started
        self.ran = 0

    def is_changed(self):
        return self.changes.pop(0) if self.changes else False

    def has_started(self):
        return self.started

    def body(self, consent):
        assert consent is self.consent
        assert "running" == self.entry.fields["outcome"]
        self.ran += 1
        return "paid"


class Broken(InMemory):
    def __init__(self, good):
        super().__init__()
        self.good = good

    def put_action(self, key, data, *, only_if):
        if self.good == 0:
            raise OSError("disk full")
        self.good -= 1
        return super().put_action(key, data, only_if=only_if)


def run(payment, body=None):
    outcome = drive(execution(payment), body or payment.body)
    return outcome, payment.entry.fields["outcome"]


def raising(error):
    def body(consent):
        raise error

    return body


def state_of(ledger):
    return None if (earlier := LedgerEntry(lambda: ledger, "key").claim()) is None else earlier.state


def test_an_action_runs_and_its_result_is_kept():
    ledger = InMemory()
    assert (Returned("paid"), "executed") == run(Payment(ledger))
    second = Payment(ledger)
    outcome, stated = run(second)
    assert isinstance(outcome, RanBefore)
    assert ("executed_before", 0, "paid") == (stated, second.ran, outcome.earlier.result)


@pytest.mark.parametrize("changes", [[True], [False, True]])
def test_a_call_that_changed_before_or_during_the_claim_is_not_run(changes):
    ledger = InMemory()
    payment = Payment(ledger, changes=changes)
    outcome, stated = run(payment)
    assert isinstance(outcome, NotRun)
    assert ("cancelled", 0, None) == (stated, payment.ran, state_of(ledger))
    assert "changed while the decision was made" in payment.entry.fields["problem"]


def test_a_ledger_that_fails_never_lets_an_action_run_twice():
    ledger = Broken(1)
    payment = Payment(ledger, changes=[False, True])
    assert "cancelled" == run(payment)[1]
    assert ("OSError: disk full", 0) == (payment.entry.fields["ledger_error"], payment.ran)
    ledger.good = 9
    assert "running" == state_of(ledger)
    payment = Payment(Broken(1))
    assert (Returned("paid"), "executed") == run(payment)
    assert "OSError: disk full" == payment.entry.fields["ledger_error"]
    payment = Payment(Broken(0))
    outcome, stated = run(payment)
    assert ("cancelled", 0) == (stated, payment.ran)
    assert "the claim could not be recorded" in outcome.problem
    assert "OSError: disk full" == payment.entry.fields["error"]
    assert isinstance(outcome.error, OSError)


def test_an_action_that_did_not_start_is_cancelled():
    ledger = InMemory()
    found = run(Payment(ledger, started=False), raising(NotStarted("it was not run")))
    assert (NotRun("it was not run"), "cancelled") == found
    assert state_of(ledger) is None
    ledger = InMemory()
    assert (Returned("paid"), "cancelled") == run(Payment(ledger, started=False))
    assert "done" == state_of(ledger)


class Paused(Exception): ...


class HandedOver(Exception): ...


@pytest.mark.parametrize(
    ("error", "stated", "state"),
    [
        (OSError("down"), "failed", "failed"), (KeyboardInterrupt(), "failed", "running"), (Paused(), "waiting", None),
        (HandedOver(), "executed", "done"),
    ],
)  # fmt: skip
def test_what_an_action_raises_is_kept(monkeypatch, error, stated, state):
    """An exit leaves the outcome unknown, and signals of frameworks are not failures. Only a failure may be tried again."""
    signals = {"Paused": Signal("suspended", pauses=True), "HandedOver": Signal("completed")}
    monkeypatch.setattr(HOST, "signals", {**HOST.signals, **signals})
    ledger = InMemory()
    outcome, found = run(Payment(ledger), raising(error))
    again = run(Payment(ledger, again=True))[0]
    assert (state in {"failed", None}) == (Returned("paid") == again)
    ledger = InMemory()
    run(Payment(ledger), raising(error))
    earlier = LedgerEntry(lambda: ledger, "key").claim()
    assert (error, stated, state) == (outcome.error, found, earlier and earlier.state)
    assert earlier is None or not earlier.has_result


def test_a_framework_may_state_another_ending():
    """The caller gets what the run returned; the ledger keeps no result that is not the caller's."""
    ledger = InMemory()
    payment = Payment(ledger)
    payment.settle_outcome = lambda outcome: Returned(None)
    assert (Returned("paid"), "executed") == run(payment)
    earlier = LedgerEntry(lambda: ledger, "key").claim()
    assert ("done", False) == (earlier.state, earlier.has_result)


def entry():
    return GateEntry.new("pay", {"euros": 5})


@pytest.mark.parametrize("ended", [Returned(1), Raised(OSError("x"))])
def test_the_outcome_of_an_execution_stays(ended):
    it = entry()
    it.state_end(ended, None)
    before = dict(it.fields)
    it.state("cancelled", problem="again", error="no")
    assert before == it.fields


def test_what_replaces_an_outcome():
    it = entry()
    it.state_start(None)
    it.state_end(Raised(OSError("x")), None)
    it.state_start(None)
    stated = {name: it.fields[name] for name in ("id", "asked_at", "decided_at")}
    stated |= {"action": "pay", "arguments": {"euros": 5}}
    assert {**stated, "outcome": "running"} == it.fields
    it.state_end(Returned("paid"), None)
    assert {**stated, "outcome": "executed"} == it.fields
    it = entry()
    it.state_exit(RuntimeError("crash"))
    assert ("cancelled", "RuntimeError: crash") == (it.fields["outcome"], it.fields["error"])
    it.state("denied")
    it.state_exit(RuntimeError("later"))
    assert ("denied", "RuntimeError: crash") == (it.fields["outcome"], it.fields["error"])


def test_the_facts_of_a_decision_replace_those_of_the_one_before():
    decision = gk.ActionDecision(gk.InterventionLevel("silent"), 0.95, "because")
    request = request_for({}, "silent", decision=decision)
    it = entry()
    it.state_decision(request, Decision(decision, None, (), {"fallback": True, "step": 1, "audit": {"rate": 1.0}}))
    assert (True, 1, {"rate": 1.0}) == tuple(it.fields[name] for name in ("fallback", "step", "audit"))
    asking = dataclasses.replace(request, level=gk.InterventionLevel("confirm"))
    it.state_decision(asking, Decision(decision, None, (), {"step": 4, "audit": {"rate": 1.0}}))
    assert (4, False, False) == (it.fields["step"], "fallback" in it.fields, "audit" in it.fields)


def test_the_error_of_a_worker_reaches_the_process_that_queued_the_job():
    """With the approval, and without the real arguments, which may be live objects."""
    grace = runtime(reviewer=gk.InboxReviewer(wait="raise"))

    @grace.gate(floor="confirm", key="pay:{n}", ignore=("client",))
    def pay(n: int, client: object) -> None:
        raise AssertionError

    with pytest.raises(gk.ActionPending) as raised:
        pay(1, threading.Lock())
    again = pickle.loads(pickle.dumps(raised.value))
    assert (raised.value.approval, str(raised.value)) == (again.approval, str(again))
    assert {"n": "[left out of a pickle]", "client": "[left out of a pickle]"} == dict(again.request.arguments)
    assert copy.deepcopy(raised.value).request.arguments["client"].acquire()


DECISION = {"digest": "d", "level": "confirm"}


class Rival(InMemory):
    """A ledger in which another process writes right before each write of ours."""

    def __init__(self, writes):
        super().__init__()
        self.writes = list(writes)

    def put_action(self, key, data, *, only_if):
        if self.writes:
            super().put_action(key, self.writes.pop(0), only_if=self.action(key))
        return super().put_action(key, data, only_if=only_if)


@pytest.fixture
def ledger():
    return InMemory()


def entry_in(ledger):
    return LedgerEntry(lambda: ledger, "key")


def test_the_first_decision_holds(ledger):
    """A second one is not kept, and the caller gets the first."""
    assert entry_in(ledger).decision() is None
    assert DECISION == entry_in(ledger).decide(DECISION)
    assert DECISION == entry_in(ledger).decide({"digest": "other"})
    assert DECISION == entry_in(ledger).decision()


def test_another_process_that_writes_first_wins():
    """The compare-and-set decides, not the order of the calls."""
    ledger = Rival([json.dumps({"state": "decided", "at": 1.0, "decision": DECISION}).encode()])
    assert DECISION == entry_in(ledger).decide({"digest": "mine"})
    ledger = Rival([json.dumps({"state": "running", "at": 1.0}).encode()])
    assert "running" == entry_in(ledger).claim().state
    writes = [json.dumps({"state": "decided", "at": float(number)}).encode() for number in range(9)]
    with pytest.raises(gk.StoreError, match="two runs want to begin the same action at once"):
        entry_in(Rival(writes)).claim()


def test_claims_of_many_threads_are_given_once(ledger):
    entry_in(ledger).decide(DECISION)
    barrier = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (barrier.wait(30), entry_in(ledger).claim())[1], range(8)))
    assert 1 == found.count(None)
    assert {"running"} == {earlier.state for earlier in found if earlier is not None}


@pytest.mark.parametrize("again", [False, True])
def test_after_a_failure(ledger, again):
    """Another attempt needs a new decision, unless nobody had to be asked."""
    entry_in(ledger).claim()
    entry_in(ledger).record("failed", error="ConnectionError")
    earlier = entry_in(ledger).claim(again_after_failure=again)
    assert again == (earlier is None)
    if earlier is not None:
        assert ("failed", "failed_before", "ConnectionError") == (earlier.state, earlier.outcome, earlier.error)


@pytest.mark.parametrize(
    "result",
    [float("nan"), (1, 2), "token: ghp_0123456789abcdefghijABCDEFGHIJ012345"],
    ids=["nan", "tuple", "secret"],
)
def test_a_result_that_json_would_change_or_that_holds_a_secret_is_not_kept(ledger, result):
    """The action counts as ended all the same, and the caller learns that its result is gone."""
    entry_in(ledger).claim()
    entry_in(ledger).record("done", result, keep=True)
    earlier = entry_in(ledger).claim()
    assert ("done", False, None) == (earlier.state, earlier.has_result, earlier.result)
    with pytest.raises(gk.ActionOutcomeUnknown, match="pay has run already"):
        raise_or_return(RanBefore(earlier), "pay")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("running", "its outcome is unknown"),
        ("done", "has run already (1970-01-01T00:00:01Z)"),
        ("failed", "failed with OSError; it is not run again without a new decision"),
    ],
)
def test_what_is_known_of_an_earlier_run_is_described(state, words):
    assert words in EarlierRun(state, 1.0, error="OSError").describe("pay")


def test_entries_of_earlier_versions_are_read(ledger):
    """The bytes of the ledger are part of the contract."""
    ledger.put_action("key", b'{"state": "decided", "at": 1.5, "decision": {"digest": "d"}}', only_if=None)
    assert {"digest": "d"} == entry_in(ledger).decision()
    assert entry_in(ledger).claim() is None
    kept = json.loads(ledger.action("key"))
    assert {"state": "running", "decision": {"digest": "d"}} == {name: kept[name] for name in ("state", "decision")}
    assert {"state", "at", "decision"} == kept.keys()
    assert kept["at"] > 1.5
    assert "2c70e12b7a0646f9" == entry_in(ledger).id


def test_a_claim_in_the_memory_of_this_process_never_leaves_the_event_loop():
    """It cannot block. Later changes of a decision or a result do not reach the ledger."""
    ledger, result, decision = InMemory(), {"paid": [1]}, {"digest": "d", "args": []}
    entry = LedgerEntry(ledger, "key")
    assert (False, True) == (entry.blocks, entry_in(ledger).blocks)
    assert decision == entry.decide(decision)
    decision["args"].append(1)
    assert {"digest": "d", "args": []} == entry.decision()
    assert entry.claim() is None
    assert "running" == entry.claim().state
    entry.record("done", result, keep=True)
    result["paid"].append(2)
    assert ("done", {"paid": [1]}) == (entry.claim().state, entry.claim().result)
    plain = LedgerEntry(ledger, "plain")
    assert plain.claim() is None
    plain.record("failed", error="OSError")
    assert ("failed", "OSError") == (plain.claim().state, plain.claim().error)
    assert plain.claim(again_after_failure=True) is None


def test_memory_refuses_when_it_is_full(monkeypatch):
    """An entry that it forgot could run its action twice; entries that it holds can still change."""
    monkeypatch.setattr(_ledger, "MAX_IN_MEMORY", 2)
    ledger = InMemory()
    assert [True, True] == [ledger.put_action(name, b"{}", only_if=None) for name in "ab"]
    with pytest.raises(gk.StoreError, match="is full"):
        ledger.put_action("c", b"{}", only_if=None)
    assert ledger.put_action("a", b"[]", only_if=b"{}")
    assert [b"[]", b"{}", None] == [ledger.action(name) for name in "abc"]


def test_it_is_stable_per_approval():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> str:
        return gk.idempotency_key()

    approval = act(1).approval
    grace.approvals.approve(approval.id, by="ana")
    assert idempotency_key_of(approval.id) == grace.approvals.execute(approval.id)


def test_without_an_inbox_each_call_has_its_own():
    """Nested actions have their own, too, and the outer one is back afterwards."""
    grace = make_grace(unmeasured="notify")

    @grace.gate
    def inner() -> str:
        return gk.idempotency_key()

    @grace.gate
    def outer() -> list[str]:
        return [gk.idempotency_key(), inner(), gk.idempotency_key()]

    first, nested, again = outer()
    assert first == again
    assert len({first, nested, outer()[0]}) == 3
    with pytest.raises(gk.GraceError, match="outside of a gated action"):
        gk.idempotency_key()


def reconciled(grace, act, **edits):
    with pytest.raises(gk.ActionPending) as raised:
        act(1, 2)
    name = raised.value.approval.id
    if edits:
        grace.approvals.edit(name, edits, by="ana")
    else:
        grace.approvals.approve(name, by="ana")
    with pytest.raises((KeyboardInterrupt, OSError)):
        act(1, 2)
    grace.store.approvals.is_alive = lambda _process: None  # as another machine sees it
    if grace.approvals.get(name).state == "unknown":
        grace.approvals.reconcile(name, happened=False, by="ana")


def interrupted(grace, raises):
    keys = []

    @grace.gate(floor="confirm", key="act:{n}", reviewer=gk.InboxReviewer(wait="raise"))
    def act(n: int, m: int) -> None:
        keys.append(gk.idempotency_key())
        raise raises.pop(0)

    return act, keys


@pytest.mark.parametrize(
    ("raises", "edits", "same"),
    [
        ([KeyboardInterrupt] * 3, [{}, {}, {}], [True, True]),
        ([KeyboardInterrupt] * 3, [{}, {"m": 5}, {"m": 5}], [False, True]),
        ([KeyboardInterrupt, OSError, OSError], [{}, {}, {}], [True, False]),
    ],
    ids=["reconciled", "other arguments", "failed"],
)
def test_it_stays_after_a_reconciliation_alone(raises, edits, same):
    """The process may only have been paused; a service may answer a key that has failed with the same failure each time."""
    grace = runtime()
    act, keys = interrupted(grace, raises)
    for edit in edits:
        reconciled(grace, act, **edit)
    assert same == [keys[0] == keys[1], keys[1] == keys[2]]


def test_after_a_restored_backup_it_stays(tmp_path):
    """The approval is lost, but not what the receiving service knows the operation by."""
    keys, path, backup = [], tmp_path / "app.db", tmp_path / "backup.db"

    def program():
        grace = runtime(tmp_path)

        @grace.gate(floor="confirm", key="act:{n}", reviewer=gk.InboxReviewer(wait="raise"))
        def act(n: int) -> str:
            keys.append(gk.idempotency_key())
            return "done"

        return grace, act

    grace, act = program()
    assert not grace.approvals.pending()
    grace.close()
    backup.write_bytes(path.read_bytes())
    names = []
    for _ in range(2):
        grace, act = program()
        with pytest.raises(gk.ActionPending) as raised:
            act(1)
        names.append(raised.value.approval.id)
        grace.approvals.approve(names[-1], by="ana")
        assert act(1) == "done"
        grace.close()
        path.write_bytes(backup.read_bytes())
    assert (2, 1) == (len({*names}), len({*keys}))
