"""The factors of a confidence: what is refused, and how what was made is told apart from what was not."""

import copy
import dataclasses
import inspect
import math
import pickle

import numpy as np
import pytest

from grace_kp.confidence import ConfidenceFactors

COUNTS = ("search_result_count", "source_count", "tool_execution_count", "tool_success_count")
UNITS = (
    "search_avg_score",
    "search_max_score",
    "source_agreement",
    "llm_self_confidence",
    "tool_success_rate",
    "query_coverage",
)
FLAGS = ("search_made", "self_evaluated", "agreement_evaluated", "coverage_evaluated")


def test_defaults():
    """Nothing given is the defaults of the design, and nothing made."""
    assert {
        "search_result_count": 0,
        "search_avg_score": 0.0,
        "search_max_score": 0.0,
        "search_score_variance": 1.0,
        "source_agreement": 0.0,
        "source_count": 0,
        "llm_self_confidence": 0.5,
        "tool_success_rate": 1.0,
        "tool_execution_count": 0,
        "tool_success_count": 0,
        "query_coverage": 0.0,
        "is_search_step": False,
        "search_made": False,
        "self_evaluated": False,
        "agreement_evaluated": False,
        "coverage_evaluated": False,
        "search_avg_with_unusable": None,
        "search_variance_with_unusable": None,
    } == dataclasses.asdict(ConfidenceFactors())


def test_the_signature_shows_the_defaults():
    """Help and editors show the figures that stand for a factor left out."""
    shown = str(inspect.signature(ConfidenceFactors))
    assert "search_score_variance: 'float' = 1.0" in shown
    assert [field.name for field in dataclasses.fields(ConfidenceFactors)] == list(
        inspect.signature(ConfidenceFactors).parameters
    )


def test_positions_follow_the_design():
    """The twelve factors can be given by position."""
    given = (3, 0.4, 0.5, 0.1, 0.7, 2, 0.8, 0.75, 4, 3, 0.6, True)
    assert given == dataclasses.astuple(ConfidenceFactors(*given))[:12]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"search_result_count": 0}, "search_made"),
        ({"search_avg_score": 0.0}, "search_made"),
        ({"search_max_score": 0.0}, "search_made"),
        ({"search_score_variance": 1.0}, "search_made"),
        ({"is_search_step": True}, "search_made"),
        ({"llm_self_confidence": 0.5}, "self_evaluated"),
        ({"source_agreement": 0.0}, "agreement_evaluated"),
        ({"query_coverage": 0.0}, "coverage_evaluated"),
        ({"source_count": 3, "tool_execution_count": 1}, None),
        ({"is_search_step": False}, None),
    ],
)
def test_what_is_given_was_made(given, made):
    """A figure that is given was made, even if it equals the default; what is left out was not."""
    factors = ConfidenceFactors(**given)
    assert {flag: flag == made for flag in FLAGS} == {flag: getattr(factors, flag) for flag in FLAGS}


def test_a_flag_wins_over_what_is_given():
    """A fallback is given with its flag off, a figure at its default with its flag on."""
    factors = ConfidenceFactors(llm_self_confidence=0.5, self_evaluated=False, coverage_evaluated=True)
    assert (False, True) == (factors.self_evaluated, factors.coverage_evaluated)
    assert ConfidenceFactors(query_coverage=0.4, coverage_evaluated=None).coverage_evaluated is True


def test_replacing_a_factor_keeps_what_was_made():
    """dataclasses.replace changes what it names and nothing else."""
    factors = ConfidenceFactors(llm_self_confidence=0.9)
    assert ConfidenceFactors(llm_self_confidence=0.9, source_count=2) == dataclasses.replace(factors, source_count=2)
    assert not dataclasses.replace(factors, source_count=2).search_made


def test_records_compare_hash_copy_and_pickle():
    """Equal factors are equal and hash alike; what was made is part of what they are."""
    factors = ConfidenceFactors(3, llm_self_confidence=0.9)
    assert factors == ConfidenceFactors(search_result_count=3, llm_self_confidence=0.9)
    assert hash(factors) == hash(copy.copy(factors))
    assert factors == pickle.loads(pickle.dumps(factors))
    assert factors != ConfidenceFactors(3, llm_self_confidence=0.9, self_evaluated=False)
    assert "search_result_count=3" in repr(factors)
    with pytest.raises(dataclasses.FrozenInstanceError):
        factors.source_count = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("bad", [-1, 1.0, 1.5, math.nan, "1", None, True, [1], 10**3000 * -1])
def test_bad_counts_are_refused_by_name(name, bad):
    """A count is an integer from 0 on, and no truth value."""
    with pytest.raises(ValueError, match=f"^{name} must be an integer >= 0"):
        ConfidenceFactors(**{name: bad})


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("bad", [-0.001, 1.001, math.nan, math.inf, -math.inf, "0.5", None, True, 10**400, 1j])
def test_bad_rates_are_refused_by_name(name, bad):
    """Scores and rates are numbers from 0 to 1."""
    with pytest.raises(ValueError, match=f"^{name} must be a number from 0 to 1"):
        ConfidenceFactors(**{name: bad})


@pytest.mark.parametrize("bad", [-0.001, math.nan, math.inf, "0.5", None, False, 10**400])
def test_bad_variances_are_refused(bad):
    """A variance is a finite number from 0 on."""
    with pytest.raises(ValueError, match=r"^search_score_variance must be a finite number"):
        ConfidenceFactors(search_score_variance=bad)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("search_avg_with_unusable", bad) for bad in (-0.1, 1.1, math.nan, "0.5", True)),
        *(("search_variance_with_unusable", bad) for bad in (-0.1, math.inf, "0.5", True)),
    ],
)
def test_bad_figures_with_unusable_scores_are_refused(name, bad):
    """The figures that `strict` takes have the ranges of a mean and a variance."""
    with pytest.raises(ValueError, match=f"^{name} must be"):
        ConfidenceFactors(**{name: bad})


@pytest.mark.parametrize("name", ["is_search_step", *FLAGS])
@pytest.mark.parametrize("bad", [1, "yes", 0.0])
def test_bad_flags_are_refused_by_name(name, bad):
    """A flag is true or false."""
    with pytest.raises(ValueError, match=f"^{name} must be true or false"):
        ConfidenceFactors(**{name: bad})


def test_no_more_successes_than_executions():
    """Tools cannot succeed more often than they were executed."""
    with pytest.raises(ValueError, match="tool_success_count must not exceed tool_execution_count"):
        ConfidenceFactors(tool_execution_count=2, tool_success_count=3)


def test_numbers_of_numpy_are_numbers():
    """Figures from arrays are taken, and kept as plain numbers."""
    factors = ConfidenceFactors(
        search_result_count=np.int64(3), search_avg_score=np.float32(0.5), search_max_score=np.float64(0.5)
    )
    assert [int, float, float] == [
        type(value) for value in (factors.search_result_count, factors.search_avg_score, factors.search_max_score)
    ]
    assert 5.0 == ConfidenceFactors(search_score_variance=5).search_score_variance
