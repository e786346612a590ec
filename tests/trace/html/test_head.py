"""The head of a run and the parts of its scores."""

from __future__ import annotations

import pytest

import grace_kp as gk
from grace_kp.trace import run_head, run_title
from tests.pages.reading import Elements
from tests.trace.html.traces import document, everything, full


def text_of(run):
    return " ".join(Elements(run_head(run)).text.split())


THOUGHT = [{"type": "thought"}]
SCORES = [
    {"name": "tone", "score": 0.4, "passed": False, "threshold": 0.5, "suite": "all", "diagnosis": ["too curt"]},
    {"name": "length", "skipped": "no text"},
    {"name": "facts", "error": "no model"},
]
SHOWN = {
    "figures": (full, ("completed successful", "confidence0.62", "value score0.50", "duration1 min 10 s", "steps10", "model calls2", "tokens3,104", "gates1 confirm")),
    "where the run belongs": (everything, ("support", "ana", "chat-7", "vip", "shop", "kp:trace:0", "kp:trace:2", "2026-01-02 03:04:05 UTC")),
    "what is still awaited": (lambda: document(THOUGHT, awaits=["judgement", "scores"]), ("Still awaited: judgement, scores",)),
    "an error and missing steps": (everything, ("ValueError: no", "2 steps were not recorded")),
    "confidence": (full, ("tool success0.750", "source agreementnot evaluated", "query coveragenot evaluated", "tools succeeded: 75 %")),
    "a learned profile that failed": (everything, ("a formula is used instead", "stated by the run0.500", "steps−0.40", "does not fitlonger")),
    "value": (everything, ("tool diversity0.900", "rulefew steps", "novelty not measuredno embedder")),
    "a fallback of the judge": (full, ("self evaluation 0.500 fallback, not measured", "ReadTimeout: 20 s", "coverage 0.900", "2 calls, 900 tokens")),
    "scorers": (lambda: document(THOUGHT, scores=SCORES), ("tone in all 0.400 of at least 0.5 not passed", "too curt", "Skipped: no text", "Failed: no model")),
}  # fmt: skip


@pytest.mark.parametrize("part", SHOWN)
def test_the_head_shows_every_part(part):
    """Bars for what was measured, words for what was not, and where the run belongs."""
    make, words = SHOWN[part]
    assert [] == [each for each in words if each not in text_of(make())]


def test_the_head_of_a_run_claims_nothing_else():
    """Nothing is awaited, and no formula replaces a profile; a suspended run is not successful yet."""
    assert "Still awaited" not in text_of(full())
    assert "a formula is used" not in text_of(full())
    assert "successful" not in text_of(document(THOUGHT, status="suspended"))


def test_a_title_is_short():
    """A long objective is cut in the heading and stands as a whole in the facts; without one the agent is named."""
    run = document([{"type": "thought"}], objective="word " * 100, name="writer")
    assert 160 >= len(run_title(run))
    assert run_title(run).endswith("…")
    assert 100 <= run_head(run).count("word ")
    assert "Refund the order" == run_title(full())
    assert "writer" == run_title(document([], objective="", name="writer"))
    assert "A run" == run_title({})


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
