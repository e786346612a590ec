"""A call keeps its input, its result and its search results unchanged, whatever happens to them later."""

from __future__ import annotations

import math

import pytest

import grace_kp as gk


def test_input_is_what_was_passed_although_the_tool_changes_it(grace):
    """Mutable arguments are rendered at once; a later change of them does not show."""

    @grace.tool
    def consume(items, options):
        items.clear()
        options["seen"] = True

    with grace.collect() as traces, grace.run("eat"):
        consume([1, 2, 3], {"fast": True})
    assert traces[0].steps[0].input == {"items": [1, 2, 3], "options": {"fast": True}}


def test_a_result_that_is_changed_later_is_recorded_as_it_was(grace):
    """Mutable results are rendered when they are returned."""

    @grace.tool
    def listing():
        return ["a"]

    with grace.collect() as traces, grace.run("list"):
        listing().append("b")
    assert traces[0].steps[1].content == '["a"]'


def test_retrievers_give_evidence(grace):
    """Number, scores and sources of the results stand with the call, and raise the confidence."""

    @grace.retriever
    def search(query):
        return [{"text": "a", "score": 0.9, "source": "x.md"}, {"text": "b", "score": 0.8, "source": "y.md"}]

    with grace.collect() as traces, grace.run("find it"):
        search("it")
    found = traces[0].grace["calls"][0]["search"]
    assert found["count"] == 2
    assert found["scores"] == [0.9, 0.8]
    assert found["sources"] == ["x.md", "y.md"]
    assert traces[0].grace["confidence"]["breakdown"]["search_quality"] == 0.9


def searched(grace, search):
    with grace.run("look it up"):
        search()
    (trace,) = grace.store.query()
    return trace.grace["calls"][0]["search"]


@pytest.mark.parametrize(
    ("bad", "value", "why"),
    [
        (math.nan, "nan", "it is not finite"),
        (-1, "-1.0", "a similarity is from 0 to 1"),
        (5, "5.0", "a similarity is from 0 to 1"),
        ("0.1", "'0.1'", "it is not a number"),
        (None, "None", "the score is None"),
    ],
)
def test_an_unusable_score_is_named_in_the_trace(grace, bad, value, why):
    """It is counted and shown with the reason, beside the scores that can be used."""
    results = [{"score": 0.5, "source": "a"}, {"score": bad, "source": "b"}]
    search = searched(grace, grace.retriever(lambda: results, name="search"))
    assert [0.5] == search["scores"]
    assert (1, [{"value": value, "why": why}]) == (search["unusable_scores"], search["unusable"])


@pytest.mark.parametrize(
    ("scores", "expected"), [("similarity", 0.02), ("distance", 0.98), ("squared_l2_distance", 0.99), (None, None)]
)
@pytest.mark.parametrize("decorator", ["retriever", "tool"])
def test_the_kind_of_scores_is_declared_on_the_retriever(grace, scores, expected, decorator):
    """A pair counts as what was declared; an undeclared pair cannot be used."""
    options = {"name": "search", "scores": scores} | ({"kind": "search"} if decorator == "tool" else {})
    search = searched(grace, getattr(grace, decorator)(**options)(lambda: [("a document", 0.02)]))
    assert ([] if expected is None else [expected]) == search["scores"]
    assert (scores, int(expected is None)) == (search.get("kind"), search.get("unusable_scores", 0))


def test_an_exact_hit_by_distance_beats_an_unrelated_one(grace):
    """A distance of 0.02 gives a higher confidence than one of 0.93, once it is declared."""
    scores = []
    for distance in (0.02, 0.93):
        search = grace.retriever(scores="distance", name="search")(lambda distance=distance: [("text", distance)])
        with grace.run("look it up") as run:
            search()
        scores.append(run.trace.outcome.confidence)
    assert scores[0] > 0.9
    assert scores[1] < 0.6


def test_a_value_of_an_unusable_score_holds_no_secret(grace):
    """What stands where a score should stand is redacted, and left out where outputs are not captured."""
    results = [{"score": "password=hunter2secret", "source": "a"}]
    search = searched(grace, grace.retriever(lambda: results, name="search"))
    assert "hunter2secret" not in str(search)
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None, capture_output=False) as quiet:
        search = searched(quiet, quiet.retriever(lambda: results, name="search"))
    assert [{"value": "[not captured]", "why": "it is not a number"}] == search["unusable"]


def test_results_that_were_not_read_say_so(grace):
    """An iterator that is not consumed leaves its results unknown, and the trace says that."""
    search = searched(grace, grace.retriever(lambda: iter([{"score": 0.2}]), name="search"))
    assert (0, True) == (search["count"], search["unreadable"])
    assert "not consumed" in search["note"]
