"""The declared kind of a figure decides which similarity it stands for, or that it cannot be used."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.confidence import SCORE_KINDS, UNKNOWN, checked_scores, read_results
from tests.confidence.retrieved import Document

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
        ("similarity", -0.01, "a similarity is from 0 to 1"),
        ("cosine_similarity", -1.5, "a cosine similarity is from -1 to 1"),
        ("distance", -0.5, "a distance is 0 or more"),
        ("cosine_distance", 2.5, "a cosine distance is from 0 to 2"),
        ("l2_distance", 2.5, "a l2 distance is from 0 to 2"),
        ("squared_l2_distance", 40.0, "a squared l2 distance is from 0 to 4"),
        ("distance", math.nan, "it is not finite"),
        ("distance", None, "the score is None"),
        (lambda figure: 7, 1.0, "the function passed as scores gave no number from 0 to 1"),
        (lambda figure: None, 1.0, "the function passed as scores gave no number from 0 to 1"),
        (lambda figure: 1 / 0, 1.0, "the function passed as scores raised ZeroDivisionError"),
        (None, 0.02, "it may be a similarity or a distance; declare it with scores=... on the retriever or handler"),
    ],
)
def test_unusable_scores_are_named(scores, figure, why):
    """A figure that cannot be used is shown with the reason."""
    found = read_results([("text", figure)], scores)
    assert ((), 1, [why]) == (found.scores, found.unusable_scores, [item.why for item in found.unusable])
    assert [str(float(figure)) if figure is not None else "None"] == [item.value for item in found.unusable]


def test_an_undeclared_distance_is_of_unknown_metric():
    """A field by the name of a distance does not say which distance it is."""
    (item,) = read_results([{"distance": 0.1, "id": "a"}]).unusable
    assert "a distance of unknown metric" in item.why


@given(st.floats(0, 2), st.sampled_from(["cosine_distance", "l2_distance", "squared_l2_distance"]))
def test_a_distance_of_unknown_metric_is_never_overstated(figure, metric):
    """`distance` gives at most the similarity that any of the metrics gives for the same figure."""
    (plain,) = read_results([("a", figure)], "distance").scores
    (exact,) = read_results([("a", figure)], metric).scores
    assert plain <= exact + 1e-12


@given(st.floats(0, 2), st.floats(0, 2), st.sampled_from(["distance", "cosine_distance", "l2_distance"]))
def test_a_larger_distance_is_no_better(one, other, metric):
    """Similarity falls with distance."""
    (near,) = read_results([("a", min(one, other))], metric).scores
    (far,) = read_results([("a", max(one, other))], metric).scores
    assert far <= near


@pytest.mark.parametrize(
    "scores",
    [
        None,
        *SCORE_KINDS,
        len,
        "metadata.score",
        "@search.reranker_score",
        "_additional.certainty",
        "a.b c.d",
        ("sim", "similarity"),
        ("metadata.distance", "cosine_distance"),
        ("a.b", len),
    ],
)
def test_declarations(scores):
    """A kind, a path, a path with its kind or a function, a function, or nothing."""
    assert scores is checked_scores(scores)


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ("cosine", "'cosine'"),
        ("Similarity", "'Similarity'"),
        ("", "''"),
        (UNKNOWN, "'unknown'"),
        (0.5, "float"),
        (["distance"], "list"),
        (("a", "distance", 1), "tuple"),
        ((len, "distance"), "tuple"),
        ({"a": "b"}, "dict"),
    ],
)
def test_any_other_declaration_is_refused(scores, shown):
    """The message shows what was declared and what may be."""
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
    """A rounding error beyond an end is that end, and no similarity is negative."""
    assert (similarity,) == read_results([("a", figure)], kind).scores


def test_figures_of_an_unknown_kind_are_all_unusable():
    """Also where the field is called a score."""
    found = read_results([{"score": 0.5}, {"distance": 0.5}, ("a", 0.5)], UNKNOWN)
    assert ((), 3, "") == (found.scores, found.unusable_scores, found.kind)


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ("metadata..score", "a name is empty"),
        (".score", "a name is empty"),
        ("score.", "a name is empty"),
        (".", "a name is empty"),
        (("", "similarity"), "a name is empty"),
        ("metadata. score", "blanks"),
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
        (("metadata.score", None), r"got NoneType\)"),
    ],
)
@pytest.mark.parametrize("declare", [checked_scores, lambda scores: gk.Grace(store="memory:").retriever(scores=scores)])
def test_what_cannot_be_a_path_is_refused(declare, scores, problem):
    """The message says what is wrong as soon as the retriever is declared."""
    with pytest.raises(ValueError, match=problem):
        declare(scores)
