"""What a trace holds of a search: scores of a declared kind, scores that cannot be used, and results that were not read."""

import asyncio
import math

import pytest

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


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


@pytest.mark.parametrize("scores", ["l2", "Distance", 3, ["distance"], ""])
def test_unknown_kinds_are_refused(grace, scores):
    """A kind that does not exist is refused when the retriever is decorated, with those that do."""
    with pytest.raises(ValueError, match="scores must be one of similarity, cosine_similarity, distance"):
        grace.retriever(scores=scores)


def test_scores_belong_to_searches(grace):
    """A plain tool has no search results whose scores could be declared."""
    with pytest.raises(ValueError, match="scores belong to search results"):
        grace.tool(scores="distance")


def test_a_value_of_an_unusable_score_holds_no_secret(grace):
    """What stands where a score should stand is redacted, and left out where outputs are not captured."""
    results = [{"score": "password=hunter2secret", "source": "a"}]
    search = searched(grace, grace.retriever(lambda: results, name="search"))
    assert "hunter2secret" not in str(search)
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None, capture_output=False) as quiet:
        search = searched(quiet, quiet.retriever(lambda: results, name="search"))
    assert [{"value": "[not captured]", "why": "it is not a number"}] == search["unusable"]


@pytest.mark.parametrize("capture_output", [True, False])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_streaming_retriever_keeps_its_evidence(capture_output, is_async):
    """Results that are yielded one by one are read, also where they are not captured or too many to be kept."""
    results = [{"score": 0.4 if number else None, "source": str(number), "text": "x" * 500} for number in range(300)]
    grace = gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None, capture_output=capture_output)
    if is_async:

        @grace.retriever(name="search")
        async def search():
            for result in results:
                yield result

        async def main():
            return [result async for result in search()]

        found = searched(grace, lambda: asyncio.run(main()))
    else:
        found = searched(grace, lambda: list(grace.retriever(lambda: (yield from results), name="search")()))
    assert (300, 299, 1) == (found["count"], len(found["scores"]), found["unusable_scores"])
    grace.close()


def test_results_that_were_not_read_say_so(grace):
    """An iterator that is not consumed leaves its results unknown, and the trace says that."""
    search = searched(grace, grace.retriever(lambda: iter([{"score": 0.2}]), name="search"))
    assert (0, True) == (search["count"], search["unreadable"])
    assert "not consumed" in search["note"]
