"""The order in which a store in memory got its runs and labels."""

from __future__ import annotations

from grace_kp.store._run_log import RunLog


def test_a_run_that_is_stored_again_gets_a_larger_number():
    """It stands last."""
    log = RunLog()
    for name in ("a", "b", "a"):
        log.stored(name)
    assert {"b": 2, "a": 3} == log.runs
    assert ["b", "a"] == list(log.runs)


def test_what_is_dropped_leaves_nothing():
    """Runs and labels; every change is counted."""
    log = RunLog()
    log.stored("a")
    log.was_labelled("a")
    log.dropped("a")
    assert ({}, {}, 3) == (log.runs, log.labels, log.changes)
    log.stored("b")
    log.clear()
    assert ({}, {}, 5) == (log.runs, log.labels, log.changes)
