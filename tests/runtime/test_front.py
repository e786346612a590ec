"""The decorators of a runtime check their arguments."""

import pytest

import grace_kp as gk


@pytest.fixture
def grace():
    with gk.Grace(store="memory:", evaluator=None, embedder=None, reviewer=None) as runtime:
        yield runtime


@pytest.mark.parametrize("scores", ["l2", "Distance", 3, ["distance"], ""])
def test_unknown_kinds_are_refused(grace, scores):
    """A kind that does not exist is refused when the retriever is decorated, with those that do."""
    with pytest.raises(ValueError, match="scores must be one of similarity, cosine_similarity, distance"):
        grace.retriever(scores=scores)


def test_scores_belong_to_searches(grace):
    """A plain tool has no search results whose scores could be declared."""
    with pytest.raises(ValueError, match="scores belong to search results"):
        grace.tool(scores="distance")
