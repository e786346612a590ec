"""What `Grace(scorers=…)` takes, and the entries that come of it."""

from __future__ import annotations

import numpy as np
import pytest

import grace_kp as gk
from grace_kp.runtime._trace_scorer import trace_scorers


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
            (2, {"score": None, "error": "2 is no score from 0 to 1"}),
            ("good", {"score": None, "error": "'good' is no score from 0 to 1"}),
        ],
    )
    def test_an_answer_becomes_an_entry(self, answer, expected):
        """A number from 0 to 1 or a truth value is a score; anything else is an error in the trace."""

        def helpful(_trace):
            return answer

        assert [{"name": "helpful", **expected}] == entries(helpful)

    def test_several_scores_have_names_of_their_own(self):
        """A mapping gives an entry for each name; None gives none."""
        assert [{"name": "a", "score": 0.1}] == entries(lambda _: {"a": 0.1, "b": None})
        assert [] == entries(lambda _: None)

    def test_a_coroutine_is_finished(self):
        """An async callable scores like a plain one."""

        async def late(_trace):
            return 0.25

        assert [{"name": "late", "score": 0.25}] == entries(late)

    def test_an_object_is_found_by_its_type(self):
        """A callable without a name of a function has that of its class."""

        class Length:
            def __call__(self, _trace):
                return 0.5

        assert "Length" == entries(Length())[0]["name"]


class TestKinds:
    def test_a_trace_scorer_is_called_as_it_is(self):
        """Anything with a name that scores traces needs no adapter."""

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
            (3, "scorers: 3 is no scorer, no suite, and cannot be called"),
            ("exact", "scorers: 'exact' is no scorer, no suite, and cannot be called"),
            (dict, "scorers: dict is a class; give an object of it"),
        ],
    )
    def test_anything_else_is_refused(self, item, message):
        """The error says what was found and what is allowed."""
        with pytest.raises(gk.SettingsError) as caught:
            trace_scorers([item])
        assert message == str(caught.value)
