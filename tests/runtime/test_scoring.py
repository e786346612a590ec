"""The user's scorers of finished runs: what they may be, and how they are called."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import grace_kp as gk
from grace_kp.background import may_wait
from grace_kp.runtime._scoring import ENDED, TraceScorers, trace_scorers

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
        assert scoring.is_done
        return scoring.entries


def test_every_scorer_scores_every_run_in_order():
    watched = Watched(Scorer("a", lambda trace: trace / 10), Scorer("b"))
    assert [{"name": "a", "score": 0.1}, {"name": "b", "score": 1.0}] == watched.finish(1)
    assert [{"name": "a", "score": 0.2}, {"name": "b", "score": 1.0}] == watched.finish(2)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_a_scorer_that_fails_costs_its_entry_only(error):

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
    assert watched.scored.acquire(timeout=PATIENCE)
    assert {"name": "slow", "score": None, "error": "TimeoutError: it took longer than 0 s"} == scoring.entries[0]
    later = watched.finish(2)
    assert "TimeoutError: its call for an earlier run has not ended yet" == later[0]["error"]
    release.set()


def test_runs_that_a_scorer_makes_are_not_scored():
    watched = Watched(Scorer("a", lambda _trace: watched.scorers.expect("inner") or float(not may_wait())))
    assert [{"name": "a", "score": 1.0}] == watched.finish(1)
    assert (True, False) == (watched.scorers.is_own("inner"), watched.scorers.is_own("inner"))
    watched.scorers.expect("outer")
    assert not watched.scorers.is_own("outer")


def test_giving_up_skips_what_waits_and_what_comes_later():
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
    assert ["x" * 200] == [entry["name"] for entry in Watched(Scorer("x" * 1_000)).finish(1)]


def entries(scorer):
    (found,) = trace_scorers(scorer)
    return found.score(None, str)


class TestCallables:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            (0.5, {"score": 0.5}),
            (1, {"score": 1.0}),
            (True, {"score": 1.0, "passed": True}),
            (np.float32(0.5), {"score": 0.5}),
            (np.bool_(False), {"score": 0.0, "passed": False}),
            (2, {"score": None, "error": "2 is not a score from 0 to 1"}),
            ("good", {"score": None, "error": "'good' is not a score from 0 to 1"}),
        ],
    )
    def test_an_answer_becomes_an_entry(self, answer, expected):

        def helpful(_trace):
            return answer

        assert [{"name": "helpful", **expected}] == entries(helpful)

    def test_several_scores_have_names_of_their_own(self):
        assert [{"name": "a", "score": 0.1}] == entries(lambda _: {"a": 0.1, "b": None})
        assert [] == entries(lambda _: None)

    def test_a_coroutine_is_finished(self):

        async def late(_trace):
            return 0.25

        assert [{"name": "late", "score": 0.25}] == entries(late)


class TestKinds:
    def test_a_trace_scorer_is_called_as_it_is(self):

        class Mine:
            name = "mine"

            def score(self, _trace, clean):
                return [{"name": clean("x"), "score": 1.0}]

        mine = Mine()
        assert [mine] == trace_scorers([mine])
        on_traces = gk.scorers.OnTraces(gk.scorers.ResponseTime(1_000))
        assert [on_traces] == trace_scorers(on_traces)

    def test_scorers_of_results_are_adapted(self):
        """Scorers and suites of the library, and a user's own with `score` and `type`, are found by type or name."""

        class Mine:
            type = "mine"
            threshold = 0.5

            def score(self, _actual, _expected):
                return 1.0

            def __call__(self, _trace):
                raise AssertionError("it is a scorer first")

        suite = gk.scorers.Suite([gk.scorers.Entry(gk.scorers.ResponseTime(1_000))], name="checks")
        assert ["response-time", "checks", "mine"] == [
            scorer.name for scorer in trace_scorers([gk.scorers.ResponseTime(1_000), suite, Mine()])
        ]

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            (3, "scorers: 3 is not a scorer or a suite, and cannot be called"),
            ("exact", "scorers: 'exact' is not a scorer or a suite, and cannot be called"),
            (dict, "scorers: dict is a class; give an object of it"),
        ],
    )
    def test_anything_else_is_refused(self, item, message):
        with pytest.raises(gk.SettingsError) as caught:
            trace_scorers([item])
        assert message == str(caught.value)
