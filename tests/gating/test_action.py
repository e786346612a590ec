"""Which functions can be gated: methods and partials; what acts piece by piece cannot."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import grace_kp as gk
from grace_kp.record import HOST, Framework
from grace_kp.testing import ScriptedReviewer, make_grace


def test_methods_and_what_cannot_be_gated():
    """The instance is no argument; generators and classes are refused with the reason."""
    reviewer = ScriptedReviewer("proceed", "proceed")
    grace = make_grace(reviewer=reviewer)

    class Bank:
        @grace.gate(floor="confirm")
        @grace.tool
        def pay(self, euros):
            return euros

        @grace.gate(floor="confirm")
        @staticmethod
        def fixed(euros):
            return euros

    assert Bank().pay(5) == 5
    assert Bank.fixed(6) == 6
    assert [dict(request.arguments) for request in reviewer.requests] == [{"euros": 5}, {"euros": 6}]
    with pytest.raises(gk.GateError, match="generator"):

        @grace.gate
        def stream():
            yield 1

    with pytest.raises(gk.GateError, match="class"):
        grace.gate(type("A", (), {}))
    with pytest.raises(gk.GateError, match="release"):

        @grace.agent(release=True)
        async def writer():
            yield 1


@pytest.mark.parametrize("in_program", [False, True])
def test_a_call_that_does_not_fit_fails_before_anybody_is_asked(in_program, monkeypatch):
    """In a program that may run again, the calls behind it are not kept waiting."""
    steps = []
    program = SimpleNamespace(begin=lambda: steps.append("begin"), end=lambda: steps.append("end"))
    adapter = SimpleNamespace(resumable=lambda: program if in_program else None)
    fake = Framework("fake", package="sys", load=lambda: adapter, signals={})
    monkeypatch.setattr(HOST, "frameworks", {"fake": fake})
    reviewer = ScriptedReviewer("proceed")
    pay = make_grace(reviewer=reviewer).gate(floor="confirm")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'dollars'"):
        pay(lambda euros: euros)(dollars=5)
    assert [] == steps
    with pytest.raises(TypeError, match="missing a required argument"):
        pay(math.sqrt)()
    assert [] == reviewer.requests
    assert (["begin", "end"] if in_program else []) == steps
