"""Which functions can be gated: methods and partials; what acts piece by piece cannot."""

from __future__ import annotations

import pytest

import grace_kp as gk
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
