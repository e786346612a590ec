"""Reasons not to rely on a profile: runs unlike those it was fitted on, and promises that are refuted."""

from __future__ import annotations

import pytest

from grace_kp.runtime._trust import Trust, recorded


def refuted(action, level):
    return (f"the promise of level silent was refuted for {action}",) if action == "pay" else ()


@pytest.mark.parametrize("tightens", [False, True])
def test_a_mismatch_is_a_gap_only_where_that_is_set(tightens):
    gaps = Trust(tightens=tightens).gaps("pay", ["the model is now b"])
    assert (("the profile was not fitted on runs like this: the model is now b",) if tightens else ()) == gaps


def test_a_doubt_is_a_gap_whatever_is_set():
    """It is asked about the action, each time."""
    trust = Trust()
    trust.doubts.append(refuted)
    assert ("the promise of level silent was refuted for pay",) == trust.gaps("pay", [])
    assert () == trust.gaps("look", [])


@pytest.mark.parametrize("failure", [ValueError("x"), SystemExit(1)])
def test_a_doubt_that_fails_is_one(failure):
    """A promise that cannot be checked is not relied on."""

    def fails(action, level):
        raise failure

    trust = Trust()
    trust.doubts.append(fails)
    kind = type(failure).__name__
    assert (f"whether its promise still holds could not be checked ({kind})",) == trust.gaps("pay", [])
    trust.doubts[:] = [lambda *_: None]
    assert ("whether its promise still holds could not be checked (TypeError)",) == trust.gaps("pay", [])


def test_an_interrupt_by_the_user_stays_one():
    def interrupted(action, level):
        raise KeyboardInterrupt

    trust = Trust()
    trust.doubts.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        trust.gaps("pay", [])


def test_each_mismatch_is_logged_once(caplog):
    """The log names no secret; the status keeps every difference, up to a bound."""
    trust = Trust()
    for _ in range(3):
        trust.found(["the model is now b", "the tool is now 'password=hunter22'"])
    messages = [record.getMessage() for record in caplog.records]
    assert 2 == len(messages)
    assert "the promise of the confidence profile does not hold: the model is now b" == messages[0]
    assert "hunter22" not in messages[1]
    for number in range(200):
        trust.found([f"the model is now {number}"])
    described = trust.describe()
    assert ("tighten", 50) == (described["on_mismatch"], len(described["mismatches"]))


def test_no_mismatch_leaves_no_field():
    assert ({}, {"mismatches": ["x"]}) == (recorded(()), recorded(("x",)))
