"""The steps of a run under each other."""

from __future__ import annotations

from grace_kp.trace import run_timeline
from tests.pages.reading import Elements
from tests.trace.html.traces import document, full


def test_each_step_has_its_number():
    """As an id that a link can name, and never twice."""
    found = Elements(run_timeline(full()))
    assert [f"step-{place}" for place in range(10)] == found.ids
    assert [] == found.unbalanced


def test_a_long_run_is_cut_in_the_middle():
    """A note says how many steps are missing."""
    run = document([{"type": "thought", "content": f"thought {place}"} for place in range(2_500)])
    found = run_timeline(run)
    assert 2_000 == found.count('id="step-')
    assert "500 steps are not shown here" in found
    assert ("thought 1499<" in found, "thought 1500<" in found, "thought 2000<" in found) == (True, False, True)


def test_model_calls_without_a_text_are_listed():
    """They are no steps of their own."""
    text = Elements(run_timeline(full())).text
    assert "1 model call without a text" in text
    assert "gemini-3-pro, ok, 1,500 input tokens, 12 output tokens, 401 ms" in text


def test_the_end_says_how_the_run_ended():
    """With its error, or its result."""
    failed = document(
        [{"type": "thought"}], status="failed", error={"type": "ValueError", "message": "no"}, dropped_steps=3
    )
    text = Elements(run_timeline(failed)).text
    assert "ValueError: no" in text
    assert "3 steps were not recorded" in text
    assert "Refunded 45.00" in Elements(run_timeline(full())).text
