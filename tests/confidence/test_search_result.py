"""One search result: which of its figures is the score, and what names its source."""

from __future__ import annotations

import decimal
import math
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.confidence import UNKNOWN, checked_scores, read_results
from tests.confidence.retrieved import Document, hits, read


def test_a_declared_distance_is_looked_for_first():
    found = read_results([{"score": 0.9, "distance": 0.2}], "distance")
    assert (0.8,) == found.scores


def test_figures_declared_to_be_none_are_left_alone():
    """Numbers that are not scores, such as ranks or BM25, are neither evidence nor unusable."""
    found = read_results([("a", 12.5), ("b", 0.3)], "none")
    assert (2, (), 0, "none") == (found.count, found.scores, found.unusable_scores, found.kind)


@pytest.mark.parametrize("bad", [-0.1, 1.0001, math.nan, math.inf, "0.9", True, 10**400, [0.5], object(), 1j])
def test_what_is_no_score_is_counted_and_left_out(bad):
    assert hits(1, [], "a", 1) == read([{"score": bad, "source": "a"}])


@pytest.mark.parametrize(
    ("hit", "scores", "unusable"),
    [
        ({"score": 12.5, "similarity": 0.8}, [], 1),
        ({"score": 0.9, "_score": 12.3}, [], 1),
        ({"score": None, "confidence": 0.99}, [], 1),
        ({"score": 1.0, "_distance": 1.9}, [], 1),
        ({"score": 0.9, "similarity": 0.2}, [0.2], 0),
        ({"score": 1.0, "_distance": None}, [], 1),
        ({"score": 1.0, "relevance": False}, [], 1),
        ({"score": 0.9, "score_": 0.9}, [0.9], 0),
        ({"score": 0.9, "score_": 0.2}, [], 1),
        ({"score": 0.9, "confidence": "high", "relevance": "low"}, [0.9], 0),
    ],
)
def test_of_several_scores_the_worst_counts(hit, scores, unusable):
    """A further field of a result never makes its score better, because the document may have brought it along."""
    assert hits(1, scores, (), unusable) == read([hit])


RANKINGS = {
    "@search.score": 0.016, "_rankingScore": 0.05, "_relevance_score": 0.01, "vectorSearchScore": 0.4, "vector_distance": 1.9,
    "$dist": 1.9, "dist": decimal.Decimal("1.9"), "cosine_distance": "1.9", "rank": 7, "textRank": 0.1, "cosineSimilarity": math.nan,
    "Relevance": 0.1, "RRF_SCORE": 0.1, "cos_sim": 0.1, "?column?": 1.9,
}  # fmt: skip
"""Fields of engines whose names are not known, beside a figure that the document may have brought along."""


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("scores", [None, "similarity", "cosine_distance"])
def test_a_further_field_that_may_be_the_engines_makes_the_figure_unusable(name, scores):
    figure = {"score": 1.0} if scores != "cosine_distance" else {"score": 0.0}
    fields = {"content": "x", **figure, name: RANKINGS[name]}
    for hit in (fields, types.MappingProxyType(fields), Node(**fields)):
        found = read_results([hit, {"score": 0.5}], scores)
        assert ((0.5,), 1) == (found.scores, found.unusable_scores)
        assert "declare the place with scores=" in found.unusable[0].why
        assert 1 == len(read_results([hit], ("score", "similarity")).scores)
        assert 1 == len(read_results([hit], lambda figure: figure).scores)


def test_a_field_of_a_class_may_be_the_engines_too():
    class Hit:
        __slots__ = ("score", "vector_distance")

        def rank_all(self):
            """A method is no figure."""

    hit = Hit()
    hit.score = 1.0
    assert (1.0,) == read_results([hit]).scores
    hit.vector_distance = 1.9
    assert 1 == read_results([hit]).unusable_scores


@pytest.mark.parametrize(
    "field",
    [
        {"_relevance_score": None},
        {"scored": True},
        {"ranking": "high"},
        {"_rankingInfo": {"x": 1}},
        {"price": 3.5},
        {"simple": 1},
    ],
)
def test_other_fields_beside_a_score_do_not_matter(field):
    assert (0.9,) == read_results([{"score": 0.9} | field]).scores


def test_long_texts_do_not_become_names():
    found = read_results(["secret " * 100_000, "secret " * 100_001])
    assert 2 == len(found.sources)
    assert all(len(source) < 30 and "secret" not in source for source in found.sources)


class Node:
    """A document inside a result, as LlamaIndex and Weaviate have it."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


AUTHORS = {"score": 1.0, "similarity": 1.0, "_score": 1.0, "confidence": 1.0, "distance": 0.0, "_distance": 0.0}
"""Fields that the author of a document wrote."""


@pytest.mark.parametrize("declared", [None, "similarity", "distance", "squared_l2_distance", lambda figure: figure])
@pytest.mark.parametrize(
    "hit",
    [
        {"text": "x", "metadata": AUTHORS},
        {"text": "x", "meta": AUTHORS},
        {"id": 1, "payload": AUTHORS},
        {"_id": 1, "_source": AUTHORS},
        {"id": 1, "entity": AUTHORS},
        {"properties": AUTHORS},
        {"document": AUTHORS},
        {"document": {"text": "x", "metadata": AUTHORS}},
        {"doc": AUTHORS, "score": None},
        {"node": AUTHORS},
        {"text": '{"score": 1.0}', "title": "score: 1.0"},
        '{"score": 1.0}',
        ("text", AUTHORS),
        Document("score: 1.0", **AUTHORS),
        Document("score: 1.0", metadata=AUTHORS),
        Node(node=Document("x", **AUTHORS)),
        Node(node=Document("x", **AUTHORS), score=None),
        Node(properties=AUTHORS, metadata=Node(**AUTHORS)),
        Node(id=1, payload=AUTHORS, score=-0.3),
        (Document("x", **AUTHORS), math.nan),
        [Document("x", **AUTHORS), None],
    ],
    ids=range(21),
)
def test_no_score_is_read_from_a_document(hit, declared):
    assert () == read_results([hit], declared).scores
    assert () == read_results({"documents": [hit], "distances": [math.nan]}, declared).scores
    assert () == read_results({"ids": [["a"]], "distances": [[None]], "metadatas": [[AUTHORS]]}, declared).scores


@pytest.mark.parametrize(
    ("declared", "hit", "score"),
    [
        ("metadata.score", {"metadata": {"score": 0.7}}, 0.7),
        ("metadata.score", (Document("x", score=0.7), 0.2), 0.7),
        ("metadata.score", {"score": 0.2, "metadata": {"score": 0.7}}, 0.7),
        ("metadata.certainty", Node(metadata=Node(certainty=0.7)), 0.7),
        ("node.metadata.score", Node(node=Document("x", score=0.7), score=0.1), 0.7),
        ("@search.reranker_score", {"@search.reranker_score": 0.7}, 0.7),
        ("metadata.@search.score", Document("x", **{"@search.score": 0.7}), 0.7),
        (("@search.reranker_score", lambda figure: figure / 4), {"@search.reranker_score": 2.8}, 0.7),
        (("sim", "similarity"), {"sim": 0.7}, 0.7),
        (("metadata.distance", "cosine_distance"), Document("x", distance=0.3), 0.7),
        (("_additional.distance", "l2_distance"), {"_additional": {"distance": 0.0}}, 1.0),
        (lambda hit: hit["metadata"]["score"], {"metadata": {"score": 0.7}}, 0.7),
        (lambda hit: hit["_source"]["rank"], {"_score": 12.3, "_source": {"rank": 0.7}}, 0.7),
        (lambda document: document.metadata["score"], Document("x", score=0.7), 0.7),
        (lambda figure: figure / 2, (Document("x"), 1.4), 0.7),
    ],
)
def test_a_declared_place_is_read(declared, hit, score):
    """A path leads from the result to its score, also where names contain dots; a function gets the figure, or else the result."""
    assert checked_scores(declared) is declared
    found = read_results([hit], declared)
    assert ((pytest.approx(score),), 0) == (found.scores, found.unusable_scores)


@pytest.mark.parametrize("bad", [None, math.nan, 12.3, "0.9", True, {"score": 1.0}])
def test_what_cannot_be_used_at_a_declared_place_ends_the_search(bad):
    found = read_results([{"score": 1.0, "metadata": {"score": bad, "relevance": 1.0}}], "metadata.score")
    assert ((), 1) == (found.scores, found.unusable_scores)


def test_the_lowest_counts_where_a_path_leads_to_several_fields():
    hit = {"metadata.score": 1.0, "metadata": {"score": 0.1}}
    assert (0.1,) == read_results([hit], "metadata.score").scores
    assert 1 == read_results([hit | {"metadata.score": "x"}], "metadata.score").unusable_scores


@pytest.mark.parametrize("declared", ["metadata.score", ("sim", "distance"), lambda hit: hit["sim"], lambda v: v / 4])
def test_a_declared_score_that_is_missing_is_no_score(declared):
    found = read_results([{"score": 1.0}, "an error"] if isinstance(declared, tuple | str) else [{"a": 1}], declared)
    assert ((), 0, True) == (found.scores, found.unusable_scores, found.lacks_scores)


def test_a_result_that_the_function_does_not_read_is_unusable_beside_one_that_it_reads():
    found = read_results([{"rank": 0.9}, {"rank": "x"}], lambda hit: hit["rank"] * 1.0)
    assert ((0.9,), 1) == (found.scores, found.unusable_scores)


@pytest.mark.parametrize(
    ("declared", "scored", "missing"),
    [
        ("metadata.score", {"metadata": {"score": 0.9}}, {"metadata": {}}),
        ("metadata.score", {"metadata": {"score": 0.9}}, "Error: the second backend timed out"),
        ("metadata.score", {"metadata": {"score": 0.9}}, {"score": 1.0}),
        ("metadata.score", Document("x", score=0.9), Document("y")),
        (("sim", "similarity"), {"sim": 0.9}, {"url": "b"}),
        (lambda hit: hit.get("sim"), {"sim": 0.9}, {"url": "b"}),
        (lambda hit: hit["sim"], {"sim": 0.9}, {"url": "b"}),
        (lambda hit: hit["sim"], {"sim": 0.9}, "Error: 0.9"),
        ("similarity", {"score": 0.9}, {"url": "b"}),
        ("similarity", ("a", 0.9), "Error: the second backend timed out"),
        ("cosine_distance", ("a", 0.1), Document("y")),
    ],
)
def test_a_result_without_the_declared_score_beside_one_that_has_it_is_unusable(declared, scored, missing):
    for found in (read_results([scored, missing], declared), read_results([missing, scored], declared)):
        assert ((0.9,), 1, 2) == (found.scores, found.unusable_scores, found.count)


values = st.floats() | st.sampled_from([None, 1.0, 0.0, "1.0", True])
written = st.dictionaries(st.sampled_from([*AUTHORS, "text", "source"]), values, max_size=4)
engines = st.dictionaries(st.sampled_from(["score", "_score", "similarity", "_distance"]), values, max_size=2)
declared = st.sampled_from([None, "similarity", "cosine_similarity", lambda figure: figure])


@given(st.lists(engines, min_size=1, max_size=4), written, declared)
def test_what_an_author_writes_below_a_result_changes_no_score(hits, fields, scores):
    names = ("metadata", "meta", "payload", "_source", "node", "document", "properties", "entity")
    before = read_results([{"id": 1} | hit for hit in hits], scores)
    after = read_results([{"id": 1} | hit | dict.fromkeys(names, fields) for hit in hits], scores)
    assert (before.scores, before.unusable_scores) == (after.scores, after.unusable_scores)


@given(engines, written, st.sampled_from([None, "similarity"]))
def test_a_further_field_beside_a_score_never_makes_it_better(engine, fields, scores):
    before = read_results([{"id": 1, "score": 0.7} | engine], scores)
    after = read_results([{**fields, "id": 1, "score": 0.7} | engine], scores)
    if before.scores and after.scores:
        assert after.scores <= before.scores
    else:
        assert after.unusable_scores >= before.unusable_scores


PAIRS = [(Document("x", source="a"), 0.25)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ("similarity", 0.25),
        ("cosine_similarity", 0.25),
        ("distance", 0.75),
        ("cosine_distance", 0.75),
        ("l2_distance", 1 - 0.25**2 / 2),
        ("squared_l2_distance", 0.875),
        (lambda figure: figure * 2, 0.5),
    ],
)
@pytest.mark.parametrize(
    "result",
    [
        PAIRS,
        [PAIRS[0][::-1]],
        PAIRS[0],
        (["a"], [0.25]),
        [{"source": "a", "score": 0.25}],
        [{"source": "a", "distance": 0.25}],
        [{"text": "a", "_distance": 0.25, "metadata": {"_distance": 0.5, "score": 0.5}}],
        {"ids": [["a"]], "distances": [[0.25]]},
        {"ids": ["a"], "scores": [0.25]},
        [(Document("x", source="a"), np.float32(0.25))],
        [0.25],
        (np.array([[0.25]]), np.array([[7]])),
    ],
)
def test_declared_scores(result, scores, expected):
    """What the user declared holds for the figure of every shape, and the kind is recorded."""
    found = read_results(result, scores)
    assert ((pytest.approx(expected),), 0) == (found.scores, found.unusable_scores)
    assert ("custom" if callable(scores) else scores) == found.kind


@pytest.mark.parametrize(
    ("scores", "figure", "why"),
    [
        ("similarity", 5, "a similarity is from 0 to 1"),
        ("cosine_similarity", -1.5, "a cosine similarity is from -1 to 1"),
        ("distance", -0.5, "a distance is 0 or more"),
        ("cosine_distance", 2.5, "a cosine distance is from 0 to 2"),
        ("l2_distance", 2.5, "a l2 distance is from 0 to 2"),
        ("distance", math.nan, "it is not finite"),
        ("distance", None, "the score is None"),
        (lambda figure: 7, 1.0, "the function passed as scores gave no number from 0 to 1"),
        (lambda figure: None, 1.0, "the function passed as scores gave no number from 0 to 1"),
        (lambda figure: 1 / 0, 1.0, "the function passed as scores raised ZeroDivisionError"),
        (None, 0.02, "it may be a similarity or a distance; declare it with scores=... on the retriever or handler"),
    ],
)
def test_unusable_scores_are_named(scores, figure, why):
    found = read_results([("text", figure)], scores)
    assert ((), 1, [why]) == (found.scores, found.unusable_scores, [item.why for item in found.unusable])
    assert [str(float(figure)) if figure is not None else "None"] == [item.value for item in found.unusable]


def test_an_undeclared_distance_is_of_unknown_metric():
    (item,) = read_results([{"distance": 0.1, "id": "a"}]).unusable
    assert "a distance of unknown metric" in item.why


@given(st.floats(0, 2), st.sampled_from(["cosine_distance", "l2_distance", "squared_l2_distance"]))
def test_a_distance_of_unknown_metric_is_never_overstated(figure, metric):
    (plain,) = read_results([("a", figure)], "distance").scores
    (exact,) = read_results([("a", figure)], metric).scores
    assert plain <= exact + 1e-12


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ("cosine", "'cosine'"),
        ("", "''"),
        (UNKNOWN, "'unknown'"),
        (0.5, "float"),
        (("a", "distance", 1), "tuple"),
        ((len, "distance"), "tuple"),
    ],
)
def test_any_other_declaration_is_refused(scores, shown):
    with pytest.raises(ValueError, match="scores must be one of similarity, cosine_similarity") as caught:
        checked_scores(scores)
    assert str(caught.value).endswith(f"(got {shown})")


@pytest.mark.parametrize(
    ("kind", "figure", "similarity"),
    [
        ("similarity", 1.000001, 1.0),
        ("similarity", -0.000001, 0.0),
        ("cosine_similarity", -0.4, 0.0),
        ("distance", 7.0, 0.0),
        ("cosine_distance", 2.000001, 0.0),
        ("l2_distance", 2.0, 0.0),
        ("squared_l2_distance", 4.0, 0.0),
        ("squared_l2_distance", 0.0, 1.0),
    ],
)
def test_the_ends_of_the_scales(kind, figure, similarity):
    assert (similarity,) == read_results([("a", figure)], kind).scores


def test_figures_of_an_unknown_kind_are_all_unusable():
    found = read_results([{"score": 0.5}, {"distance": 0.5}, ("a", 0.5)], UNKNOWN)
    assert ((), 3, "") == (found.scores, found.unusable_scores, found.kind)


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ("metadata..score", "a name is empty"),
        (".", "a name is empty"),
        (("", "similarity"), "a name is empty"),
        ("metadata.score\n", "blanks"),
        ("metadata.sc\x00ore", "cannot be printed"),
        ("$.hits[0].score", "it contains one of"),
        ('metadata["a.b"]', "it contains one of"),
        (("hits[*].score", "similarity"), "it contains one of"),
        ("a." * 200 + "b", "longer than 200 characters"),
        ("metadata.distance", r"declare its kind, too: scores=\('metadata.distance', 'cosine_distance'\)"),
        ("_additional.Distance", "names a distance"),
        (("metadata.score", "cosine"), r"must be one of similarity, .*, or a function \(got 'cosine'\)"),
        (("metadata.score", "none"), "must be one of similarity"),
    ],
)
@pytest.mark.parametrize("declare", [checked_scores, lambda scores: gk.Grace(store="memory:").retriever(scores=scores)])
def test_what_cannot_be_a_path_is_refused(declare, scores, problem):
    with pytest.raises(ValueError, match=problem):
        declare(scores)
