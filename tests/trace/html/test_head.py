"""The head of a run."""

from __future__ import annotations

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
