"""The head of a run and the parts of its scores."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.trace import run_head, run_title
from tests.pages.reading import Elements
from tests.trace.html.hostile import everything
from tests.trace.html.traces import document, full


def test_the_head_shows_how_the_run_ended_and_its_figures():
    """Status, confidence, score, duration, steps, model calls, tokens, gates with the strictest level."""
    text = " ".join(Elements(run_head(full())).text.split())
    for words in ("completed successful", "confidence0.62", "value score0.50", "duration1 min 10 s", "steps10", "model calls2",
                  "tokens3,104", "gates1 confirm"):  # fmt: skip
        assert words in text


def test_the_head_shows_where_the_run_belongs():
    """Agent, user, session, tags, metadata, parent and nested runs."""
    text = Elements(run_head(everything())).text
    for words in ("support", "ana", "chat-7", "vip", "shop", "kp:trace:0", "kp:trace:2", "2026-01-02 03:04:05 UTC"):
        assert words in text


def test_what_is_still_awaited_is_said():
    """So that nobody takes a preliminary confidence for the last word."""
    run = document([{"type": "thought"}], awaits=["judgement", "scores"])
    assert "Still awaited: judgement, scores" in Elements(run_head(run)).text
    assert "Still awaited" not in run_head(full())


def test_an_error_and_missing_steps_are_said():
    """Before the figures."""
    text = Elements(run_head(everything())).text
    assert "ValueError: no" in text
    assert "2 steps were not recorded" in text


def test_a_suspended_run_is_not_successful():
    """Nothing has failed in it, and nothing is done."""
    run = document([{"type": "thought"}], status="suspended")
    assert "successful" not in run_head(run)


def test_a_title_is_short():
    """A long objective is cut in the heading and stands as a whole in the facts; without one the agent is named."""
    run = document([{"type": "thought"}], objective="word " * 100, name="writer")
    assert 160 >= len(run_title(run))
    assert run_title(run).endswith("…")
    assert 100 <= run_head(run).count("word ")
    assert "Refund the order" == run_title(full())
    assert "writer" == run_title(document([], objective="", name="writer"))
    assert "A run" == run_title({})


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
