"""What was consented to runs unchanged and once, and the ledger and the entry agree on it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading

import pytest

import grace_kp as gk
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
    drive,
    execution,
)
from grace_kp.record import HOST, Signal
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
    """A ledger that fails from a certain write on."""

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


def state_of(ledger):
    return None if (earlier := LedgerEntry(lambda: ledger, "key").claim()) is None else earlier.state


def test_an_action_runs_and_its_result_is_kept():
    ledger = InMemory()
    assert (Returned("paid"), "executed") == run(Payment(ledger))
    second = Payment(ledger)
    outcome, stated = run(second)
    assert isinstance(outcome, RanBefore)
    assert ("executed_before", 0, "paid") == (stated, second.ran, outcome.earlier.result)


def test_a_call_that_changed_is_not_run_and_not_claimed():
    ledger = InMemory()
    payment = Payment(ledger, changes=[True])
    outcome, stated = run(payment)
    assert isinstance(outcome, NotRun)
    assert ("cancelled", 0) == (stated, payment.ran)
    assert "changed while the decision was made" in payment.entry.fields["problem"]
    assert state_of(ledger) is None


def test_a_call_that_changed_during_the_claim_is_taken_back():
    ledger = InMemory()
    payment = Payment(ledger, changes=[False, True])
    assert "cancelled" == run(payment)[1]
    assert (0, None) == (payment.ran, state_of(ledger))


def test_a_claim_that_cannot_be_kept_keeps_the_action_from_running():
    payment = Payment(Broken(0))
    outcome, stated = run(payment)
    assert ("cancelled", 0) == (stated, payment.ran)
    assert "the claim could not be recorded" in outcome.problem
    assert "OSError: disk full" == payment.entry.fields["error"]
    assert isinstance(outcome.error, OSError)


def test_a_claim_that_cannot_be_taken_back_counts_as_begun():
    ledger = Broken(1)
    payment = Payment(ledger, changes=[False, True])
    assert "cancelled" == run(payment)[1]
    assert ("OSError: disk full", 0) == (payment.entry.fields["ledger_error"], payment.ran)
    ledger.good = 9
    assert "running" == state_of(ledger)


def test_a_result_that_cannot_be_kept_is_returned_all_the_same():
    payment = Payment(Broken(1))
    assert (Returned("paid"), "executed") == run(payment)
    assert "OSError: disk full" == payment.entry.fields["ledger_error"]


def test_a_failure_is_kept_and_an_exit_is_not():
    for error, state in ((ConnectionError("down"), "failed"), (KeyboardInterrupt(), "running")):
        ledger = InMemory()

        def body(consent, error=error):
            raise error

        outcome, stated = run(Payment(ledger), body)
        assert (error, "failed") == (outcome.error, stated)
        assert state == state_of(ledger)
        again = Payment(ledger, again=True)
        assert (state == "failed") == (Returned("paid") == run(again)[0])


def test_an_action_that_is_kept_from_starting_is_taken_back():
    ledger = InMemory()

    def body(consent):
        raise NotStarted("`pay` is called with other arguments; it was not run")

    payment = Payment(ledger, started=False)
    outcome, stated = run(payment, body)
    assert (NotRun("`pay` is called with other arguments; it was not run"), "cancelled") == (outcome, stated)
    assert state_of(ledger) is None


def test_an_action_that_something_else_answered_is_cancelled():
    """Its answer is given to the caller, and the call is not made again."""
    ledger = InMemory()
    assert (Returned("paid"), "cancelled") == run(Payment(ledger, started=False))
    assert "done" == state_of(ledger)


class Paused(Exception):
    """A program was paused."""


class HandedOver(Exception):
    """A program was handed over to another part."""


@pytest.mark.parametrize(
    ("error", "stated", "state"),
    [(OSError("down"), "failed", "failed"), (Paused(), "waiting", None), (HandedOver(), "executed", "done")],
)
def test_the_signals_of_frameworks_are_no_failures(monkeypatch, error, stated, state):
    signals = {"Paused": Signal("suspended", pauses=True), "HandedOver": Signal("completed")}
    monkeypatch.setattr(HOST, "signals", {**HOST.signals, **signals})
    ledger = InMemory()

    def body(consent):
        raise error

    outcome, found = run(Payment(ledger), body)
    assert (error, stated, state) == (outcome.error, found, state_of(ledger))


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
@pytest.mark.parametrize("later", ["cancelled", "executed_before", "failed_before", "waiting"])
def test_the_outcome_of_an_execution_stays(ended, later):
    it = entry()
    it.state_end(ended, None)
    before = dict(it.fields)
    it.state(later, problem="again", error="no")
    assert before == it.fields


def test_an_execution_after_a_failure_replaces_its_outcome():
    it = entry()
    it.state_start(None)
    it.state_end(Raised(OSError("x")), None)
    it.state_start(None)
    assert {"action": "pay", "arguments": {"euros": 5}, "outcome": "running"} == it.fields
    it.state_end(Returned("paid"), None)
    assert {"action": "pay", "arguments": {"euros": 5}, "outcome": "executed"} == it.fields


def test_a_call_that_is_left_before_a_decision_is_cancelled():
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


def test_it_is_a_text_with_its_approval():
    grace = runtime()

    @grace.gate(floor="confirm", reviewer=gk.InboxReviewer(wait="hand_over"))
    def act(n: int) -> int:
        return n

    answer = act(1)
    copy = pickle.loads(pickle.dumps(answer))
    assert (str(answer), answer.approval.id) == (str(copy), copy.approval.id)
    assert "act has not run" in answer


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
