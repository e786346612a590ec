"""The figures of a run with their parts."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.trace import run_head
from tests.pages.reading import Elements
from tests.trace.html.hostile import everything
from tests.trace.html.traces import document, full


def text_of(run):
    return " ".join(Elements(run_head(run)).text.split())


def test_the_confidence_shows_its_parts():
    """Bars for what was measured, words for what was not, and penalties in words."""
    text = text_of(full())
    for words in (
        "tool success0.750",
        "source agreementnot evaluated",
        "query coveragenot evaluated",
        "tools succeeded: 75 %",
    ):
        assert words in text


def test_a_part_that_counts_without_having_been_evaluated_shows_its_fallback():
    """Whatever stands in the breakdown."""
    run = full()
    run["grace"]["confidence"]["fallbacks"] = {"source_agreement": 0.5}
    assert "source agreementfallback 0.5" in text_of(run)


def test_a_search_without_scores_is_shown_as_not_scored():
    """In a run's head, and in a notebook, whose reason names it."""
    run = full()
    run["grace"]["confidence"] |= {"not_evaluated": ["search_quality"], "not_scored": ["search_quality"]}
    assert "search qualitynot scored" in text_of(run)
    factors = gk.ConfidenceFactors(search_result_count=3, search_made=False)
    for profile in ("grace", "strict"):
        shown = Elements(gk.ConfidenceCalculator(profile).calculate(factors)._repr_html_()).text
        assert "search qualitynot scored" in " ".join(shown.split())
        assert "the search results carry no score" in shown


def test_a_learned_profile_that_failed_is_marked():
    """With the confidence that the run stated itself, the contributions, and what does not fit."""
    text = text_of(everything())
    for words in ("a formula stands in for it", "stated by the run0.500", "steps−0.40", "does not fitlonger"):
        assert words in text
    assert "a formula stands in" not in text_of(full())


def test_the_value_score_shows_its_parts_and_rules():
    """And why novelty is only a fallback."""
    text = text_of(everything())
    for words in ("tool diversity0.900", "rulefew steps", "novelty not measuredno embedder"):
        assert words in text


def test_a_fallback_of_the_judge_is_no_measurement():
    """It is marked, and has no bar."""
    text = text_of(full())
    assert "self evaluation 0.500 fallback, not measured" in text
    assert "ReadTimeout: 20 s" in text
    assert "coverage 0.900" in text
    assert "2 calls, 900 tokens" in text


def test_scorers_show_passes_skips_and_failures():
    """Each with its diagnosis or the reason."""
    run = document(
        [{"type": "thought"}],
        scores=[
            {
                "name": "tone",
                "score": 0.4,
                "passed": False,
                "threshold": 0.5,
                "suite": "all",
                "diagnosis": ["too curt"],
            },
            {"name": "length", "skipped": "no text"},
            {"name": "facts", "error": "no model"},
        ],
    )
    text = text_of(run)
    for words in ("tone in all 0.400 of at least 0.5 not passed", "too curt", "Skipped: no text", "Failed: no model"):
        assert words in text


@pytest.mark.parametrize(
    ("correct", "words"), [(True, "right"), (1, "right"), (False, "wrong"), (0.5, "partly"), (0.7, "partly 0.7")]
)
def test_labels_are_words(correct, words):
    """With who stated them."""
    run = document([{"type": "thought"}], feedback=[{"correct": correct, "by": "ana", "source": "user"}])
    assert f"{words} ana user" in text_of(run)


def test_every_label_stays_visible():
    """Also where one person stated two, newest first."""
    run = document(
        [{"type": "thought"}],
        feedback=[{"correct": True, "by": "ana"}, {"correct": False, "by": "ana", "note": "on second thoughts"}],
    )
    text = text_of(run)
    assert text.index("wrong") < text.index("on second thoughts") < text.index("right")
