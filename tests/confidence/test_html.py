"""A confidence in a notebook."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.confidence import ConfidenceScore
from tests.pages.reading import Elements, problems

HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'
FACTORS = gk.ConfidenceFactors(
    search_result_count=3,
    search_avg_score=0.7,
    search_max_score=0.9,
    search_score_variance=0.1,
    tool_execution_count=4,
    tool_success_count=2,
    tool_success_rate=0.5,
)


@pytest.mark.parametrize("profile", ["grace", "strict"])
def test_a_confidence_shows_what_it_is_made_of(profile):
    """The number, its level as a word, its parts, the penalties in words, the reason and the factors."""
    score = gk.ConfidenceCalculator(profile).calculate(FACTORS)
    found = score._repr_html_()
    page = Elements(found)
    for words in (f"{score.score:.3f}", score.level.replace("_", " "), "search quality", "not evaluated", "no sources", "tools succeeded: 50 %", "search avg score"):  # fmt: skip
        assert words in page.text
    assert [] == problems(found)


def test_a_part_that_counts_without_having_been_evaluated_shows_its_fallback():
    """In a notebook, as in pages and terminals."""
    score = gk.ConfidenceCalculator().calculate(
        gk.ConfidenceFactors(source_count=2, source_agreement=0.5, agreement_evaluated=False)
    )
    assert "source agreementfallback 0.5" in " ".join(Elements(score._repr_html_()).text.split())


def test_contributions_of_a_learned_profile_are_listed_strongest_first():
    """With their sign; a note gives the number of those left out."""
    weights = {"agreement": 0.1, "failures": -1.25, **{f"feature {place}": 0.01 for place in range(60)}}
    text = Elements(ConfidenceScore(0.5, FACTORS, contributions=weights)._repr_html_()).text
    assert text.index("−1.25") < text.index("+0.10")
    assert "2 weaker ones are not shown." in text


def test_every_text_is_text():
    """Names, penalties and the reason may hold markup."""
    found = ConfidenceScore(
        0.5,
        FACTORS,
        breakdown={HOSTILE: 0.5},
        penalties_applied=[HOSTILE],
        reason=HOSTILE,
        contributions={HOSTILE: 1.0},
    )._repr_html_()
    assert 4 == found.count("&lt;img src=x")
    assert [] == problems(found)


def test_factors_of_another_kind_are_left_out():
    """A profile of the user's may calculate from anything."""
    assert "factors" not in ConfidenceScore(0.5, object())._repr_html_()


def test_size_is_bounded():
    """Whatever a profile of the user's wrote."""
    score = ConfidenceScore(
        0.5,
        FACTORS,
        breakdown={"x" * 999 + str(place): 0.5 for place in range(3_000)},
        penalties_applied=["y" * 9_999] * 999,
        reason="z" * 999_999,
        contributions={"w" * 999 + str(place): 0.5 for place in range(3_000)},
    )
    assert len(score._repr_html_()) < 60_000
