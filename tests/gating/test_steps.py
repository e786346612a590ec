"""The steps that write the ledger leave in it what the action's outcome stands for."""

from __future__ import annotations

import pytest

from grace_kp.gating import InMemory, LedgerEntry, Raised, Returned
from grace_kp.gating._steps import Claim, Release, Settle
from grace_kp.record import HOST, Signal


class Paused(Exception):
    """A program was paused."""


class HandedOver(Exception):
    """A program was handed over to another part."""


@pytest.fixture
def entry(monkeypatch):
    signals = {"Paused": Signal("suspended", pauses=True), "HandedOver": Signal("completed")}
    monkeypatch.setattr(HOST, "signals", {**HOST.signals, **signals})
    ledger = InMemory()
    entry = LedgerEntry(lambda: ledger, "key")
    assert Claim(entry, again_after_failure=False).perform() is None
    return entry


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Returned("paid"), "done"),
        (Raised(OSError("down")), "failed"),
        (Raised(Paused()), None),
        (Raised(HandedOver()), "done"),
    ],
)
def test_an_outcome_settles_the_entry(entry, outcome, state):
    """A paused action has not run, and one that hands over has."""
    Settle(entry, outcome, ("paid", True)).perform()
    earlier = entry.claim()
    assert state == (earlier and earlier.state)
    if outcome == Returned("paid"):
        assert "paid" == earlier.result


def test_a_released_entry_can_be_claimed(entry):
    Release(entry).perform()
    assert Claim(entry, again_after_failure=False).perform() is None
    assert "running" == Claim(entry, again_after_failure=True).perform().state
