"""Scorers at work on finished runs: order, deadlines, failures, and runs that a scorer makes itself."""

from __future__ import annotations

import threading

import pytest

from grace_kp.background import may_wait
from grace_kp.runtime._scoring import ENDED, TraceScorers

PATIENCE = 60.0


class Scorer:
    """Scores by a function of the trace."""

    def __init__(self, name, call=lambda _trace: 1.0):
        self.name, self.call = name, call

    def score(self, trace, _clean):
        return [{"name": self.name, "score": self.call(trace)}]


class Watched:
    """The scorers, and a signal each time that a run is scored."""

    def __init__(self, *scorers, seconds=PATIENCE):
        self.scored = threading.Semaphore(0)
        self.scorers = TraceScorers(scorers, seconds, self.scored.release)

    def finish(self, trace):
        scoring = self.scorers.begin(trace, str)
        assert self.scored.acquire(timeout=PATIENCE)
        assert self.scorers.is_done(scoring)
        return scoring.entries


def test_every_scorer_scores_every_run_in_order():
    """The entries stand in the order of the scorers."""
    watched = Watched(Scorer("a", lambda trace: trace / 10), Scorer("b"))
    assert [{"name": "a", "score": 0.1}, {"name": "b", "score": 1.0}] == watched.finish(1)
    assert [{"name": "a", "score": 0.2}, {"name": "b", "score": 1.0}] == watched.finish(2)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_a_scorer_that_fails_costs_its_entry_only(error):
    """The error stands in the trace, and the next scorer goes on."""

    def fail(_trace):
        raise error

    failed, passed = Watched(Scorer("a", fail), Scorer("b")).finish(1)
    assert (None, True) == (failed["score"], failed["error"].startswith(type(error).__name__))
    assert {"name": "b", "score": 1.0} == passed


def test_a_scorer_that_hangs_is_abandoned():
    """Its entry says so; it is not asked again before its call has ended, and other scorers go on."""
    release, inside = threading.Event(), threading.Event()

    def hang(_trace):
        inside.set()
        assert release.wait(PATIENCE)
        return 1.0

    watched = Watched(Scorer("slow", hang), Scorer("quick"), seconds=0.0)
    scoring = watched.scorers.begin(1, str)
    assert inside.wait(PATIENCE)
    watched.scorers.is_done(scoring)
    assert watched.scored.acquire(timeout=PATIENCE)
    assert {"name": "slow", "score": None, "error": "TimeoutError: it took longer than 0 s"} == scoring.entries[0]
    later = watched.finish(2)
    assert "TimeoutError: its call for an earlier run has not ended yet" == later[0]["error"]
    release.set()


def test_runs_that_a_scorer_makes_are_not_scored():
    """A scorer that runs an agent of its own would never end."""
    watched = Watched(Scorer("a", lambda _trace: watched.scorers.expect("inner") or float(not may_wait())))
    assert [{"name": "a", "score": 1.0}] == watched.finish(1)
    assert (True, False) == (watched.scorers.is_own("inner"), watched.scorers.is_own("inner"))
    watched.scorers.expect("outer")
    assert not watched.scorers.is_own("outer")


def test_giving_up_skips_what_waits_and_what_comes_later():
    """Each run has the reason instead of scores."""
    release, inside = threading.Event(), threading.Event()

    def hang(_trace):
        inside.set()
        release.wait(PATIENCE)

    scorers = TraceScorers([Scorer("a", hang), Scorer("b")], PATIENCE, lambda: None)
    first, second = scorers.begin(1, str), scorers.begin(2, str)
    assert inside.wait(PATIENCE)
    scorers.give_up()
    skipped = [{"name": name, "score": None, "skipped": ENDED} for name in "ab"]
    assert [skipped, skipped, skipped] == [first.entries, second.entries, scorers.begin(3, str).entries]
    release.set()


def test_long_names_are_cut():
    """A name is a column of the store."""
    assert ["x" * 200] == [entry["name"] for entry in Watched(Scorer("x" * 1_000)).finish(1)]
