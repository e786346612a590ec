"""The request of a call in a program that pauses: it entitles to run together with the entry in the ledger."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.gating import LedgerEntry, ProgramAnswer

LOOK = ProgramAnswer("retry", looks=True)


def asked(program, function):
    with pytest.raises(program.pause):
        program.run(function)
    return program.asked[-1][0]


def test_the_request_states_where_the_program_waits(grace, program):
    """Its key is the call in the program, so that the program finds it again."""
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: euros)
    approval = grace.approvals.get(asked(program, lambda: pay(5)))
    assert ("fake", "interrupt", "here") == (approval.origin, approval.waits, approval.note["place"])
    assert "fake|1|pay" in approval.key


def test_what_a_process_without_the_inbox_has_run_is_not_run_again(grace, program):
    """The claim of the ledger stands beside that of the inbox, and its outcome is taken over."""
    ran = []
    pay = grace.gate(floor="confirm", name="pay")(ran.append)
    approval = asked(program, lambda: pay(5))
    grace.approvals.approve(approval, by="ana")
    entry = LedgerEntry(lambda: grace.store, "fake|1|pay")
    assert None is entry.claim()
    entry.done("paid there", keep=True)
    program.answers.append(LOOK)
    assert "paid there" == program.run(lambda: pay(5))
    assert ([], "done") == (ran, grace.approvals.get(approval).state)


def test_what_it_has_begun_is_unknown(grace, program):
    """Until somebody finds out what it did."""
    pay = grace.gate(floor="confirm", name="pay")(lambda euros: euros)
    approval = asked(program, lambda: pay(5))
    grace.approvals.approve(approval, by="ana")
    LedgerEntry(lambda: grace.store, "fake|1|pay").claim()
    program.answers.append(LOOK)
    with pytest.raises(gk.ActionOutcomeUnknown):
        program.run(lambda: pay(5))
    assert "unknown" == grace.approvals.get(approval).state
