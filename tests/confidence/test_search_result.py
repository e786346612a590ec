"""One search result: which of its figures is the score, and what names its source."""

import math

import pytest

from grace_kp.confidence import read_results
from tests.confidence.retrieved import hits, read


def test_a_declared_distance_is_looked_for_first():
    """Where a result has both, the distance is read as the distance."""
    found = read_results([{"score": 0.9, "distance": 0.2}], "distance")
    assert (0.8,) == found.scores


def test_figures_declared_to_be_none_are_left_alone():
    """Numbers that are not scores, such as ranks or BM25, are neither evidence nor unusable."""
    found = read_results([("a", 12.5), ("b", 0.3)], "none")
    assert (2, (), 0, "none") == (found.count, found.scores, found.unusable_scores, found.kind)


@pytest.mark.parametrize("bad", [-0.1, 1.0001, math.nan, math.inf, "0.9", True, 10**400, [0.5], object(), 1j])
def test_what_is_no_score_is_counted_and_left_out(bad):
    """A score out of range, not finite or no number is never made one."""
    assert hits(1, [], "a", 1) == read([{"score": bad, "source": "a"}])


def test_the_first_usable_score_counts():
    """Where a result has several scores, one that is none does not hide one that is."""
    assert hits(1, [0.8]) == read([{"score": 12.5, "similarity": 0.8}])


def test_long_texts_do_not_become_names():
    """A long text is told from others by a short label that gives nothing of it away."""
    found = read_results(["secret " * 100_000, "secret " * 100_001])
    assert 2 == len(found.sources)
    assert all(len(source) < 30 and "secret" not in source for source in found.sources)
