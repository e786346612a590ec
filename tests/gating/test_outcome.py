"""The entry of a gated call states what happened to it, once, and the caller gets what belongs to that."""

from __future__ import annotations

import dataclasses

import pytest

import grace_kp as gk
from grace_kp.gating import Decision, GateEntry, NotRun, Raised, RanBefore, Returned
from grace_kp.gating._ledger import EarlierRun
from grace_kp.gating._outcome import raise_or_return


def entry():
    return GateEntry.new("pay", {"euros": 5})


def test_a_new_entry_holds_the_arguments():
    assert {"action": "pay", "outcome": "undecided", "arguments": {"euros": 5}} == entry().fields
    assert "e1" == GateEntry.new("pay", {}, entry_id="e1").fields["id"]


@pytest.mark.parametrize("ended", [Returned(1), Raised(OSError("x"))])
@pytest.mark.parametrize("later", ["cancelled", "executed_before", "failed_before", "waiting"])
def test_the_outcome_of_an_execution_stays(ended, later):
    """What is attempted afterwards under the same decision does not replace it."""
    it = entry()
    it.ended(ended, None)
    before = dict(it.fields)
    it.state(later, problem="again", error="no")
    assert before == it.fields


@pytest.mark.parametrize(
    ("outcome", "modified", "expected"),
    [
        (Returned("paid"), None, {"outcome": "executed"}),
        (Returned("paid"), "d2", {"outcome": "executed_modified", "executed_digest": "d2"}),
        (Raised(OSError("x")), None, {"outcome": "failed", "error": "OSError"}),
        (
            Raised(KeyboardInterrupt()),
            "d2",
            {"outcome": "failed", "error": "KeyboardInterrupt", "executed_digest": "d2"},
        ),
    ],
)
def test_an_execution_is_stated_as_it_ended(outcome, modified, expected):
    it = entry()
    it.running(None)
    it.ended(outcome, modified)
    assert {"action": "pay", "arguments": {"euros": 5}, **expected} == it.fields


def test_an_execution_after_a_failure_replaces_its_outcome():
    """The action ran after all, and its entry says so."""
    it = entry()
    it.running(None)
    it.ended(Raised(OSError("x")), None)
    it.running(None)
    assert {"action": "pay", "arguments": {"euros": 5}, "outcome": "running"} == it.fields
    it.ended(Returned("paid"), None)
    assert {"action": "pay", "arguments": {"euros": 5}, "outcome": "executed"} == it.fields


def test_arguments_that_a_reviewer_changed_are_stated_before_the_action_runs():
    """A process that dies in it leaves them."""
    it = entry()
    it.running({"euros": 1})
    assert ("running", {"euros": 1}) == (it.fields["outcome"], it.fields["executed_arguments"])


def test_a_call_that_is_left_before_a_decision_is_cancelled():
    it = entry()
    it.left(RuntimeError("crash"))
    assert ("cancelled", "RuntimeError: crash") == (it.fields["outcome"], it.fields["error"])
    it.state("denied")
    it.left(RuntimeError("later"))
    assert ("denied", "RuntimeError: crash") == (it.fields["outcome"], it.fields["error"])


def test_an_answer_is_stated_with_what_the_reviewer_changed():
    it = entry()
    assert not it.was_answered
    it.answered(gk.InterventionResponse("modify", modified={"euros": 1}, reviewer="ann", response_time_ms=3.0))
    assert it.was_answered
    assert {
        "action": "modify",
        "timeout_reached": False,
        "reviewer": "ann",
        "response_time_ms": 3.0,
        "modified": {"euros": 1},
    } == it.fields["response"]


def test_waiting_times_add_up():
    it = entry()
    it.waited(1.5)
    it.waited(2.0)
    assert 3.5 == it.fields["waited_ms"]


class TestTheCaller:
    """Gets the result, the error, or why there is neither."""

    def test_gets_results(self):
        assert "paid" == raise_or_return(Returned("paid"), "pay")
        assert raise_or_return(NotRun(), "pay") is None
        assert "paid" == raise_or_return(RanBefore(EarlierRun("done", 0.0, has_result=True, result="paid")), "pay")

    def test_gets_the_action_s_own_error(self):
        error = LookupError("no account")
        with pytest.raises(LookupError) as raised:
            raise_or_return(Raised(error), "pay")
        assert error is raised.value

    def test_learns_why_it_did_not_run(self):
        cause = OSError("disk full")
        with pytest.raises(gk.ActionCancelled, match="changed") as raised:
            raise_or_return(NotRun("the arguments were changed", cause), "pay")
        assert cause is raised.value.__cause__

    @pytest.mark.parametrize(
        "earlier", [EarlierRun("done", 0.0), EarlierRun("running", 0.0), EarlierRun("failed", 0.0, has_result=True)]
    )
    def test_learns_that_the_result_is_unknown(self, earlier):
        with pytest.raises(gk.ActionOutcomeUnknown) as raised:
            raise_or_return(RanBefore(earlier), "pay")
        assert earlier.state == raised.value.state


@pytest.mark.parametrize("gaps", [(), ("2 scores cannot be used",)])
@pytest.mark.parametrize("floor", [None, "confirm"])
def test_a_decision_is_stated_with_its_policy_and_gaps(gaps, floor):
    """A floor and gaps are named only where there are any."""
    decision = gk.ActionDecision(gk.InterventionLevel("confirm"), 0.5, "because")
    request = gk.InterventionRequest(
        id="1", action="pay", arguments={}, digest="d", level=decision.level, decision=decision, reason="because",
        policy_version="v", floor=floor, attempt=2,
    )  # fmt: skip
    it = entry()
    it.decided(request, Decision(decision, None, gaps))
    expected = {
        "level": "confirm", "score": 0.5, "reason": "because", "policy_version": "v", "digest": "d", "attempt": 2,
        **({"floor": floor} if floor else {}), **({"evidence_gaps": list(gaps)} if gaps else {}),
    }  # fmt: skip
    assert {**entry().fields, **expected} == it.fields


def test_the_facts_of_a_decision_replace_those_of_the_one_before():
    """A decision that asks was not drawn for an audit."""
    decision = gk.ActionDecision(gk.InterventionLevel("silent"), 0.95, "because")
    request = gk.InterventionRequest(
        id="1", action="pay", arguments={}, digest="d", level=decision.level, decision=decision
    )
    it = entry()
    it.decided(request, Decision(decision, None, (), {"fallback": True, "step": 1, "audit": {"rate": 1.0}}))
    assert (True, 1, {"rate": 1.0}) == tuple(it.fields[name] for name in ("fallback", "step", "audit"))
    asking = dataclasses.replace(request, level=gk.InterventionLevel("confirm"))
    it.decided(asking, Decision(decision, None, (), {"step": 4, "audit": {"rate": 1.0}}))
    assert (4, False, False) == (it.fields["step"], "fallback" in it.fields, "audit" in it.fields)
