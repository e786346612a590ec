"""One step of the timeline."""

from __future__ import annotations

from grace_kp.trace import run_timeline
from tests.pages.reading import Elements
from tests.trace.html.traces import document, full


def test_a_step_shows_its_parts():
    """Tool, arguments, result, tokens, duration, sources, and what failed."""
    text = Elements(run_timeline(full())).text
    for words in ("1,204 input tokens · 88 output tokens · 812 ms", 'fields = ["total", "paid_at"]', "Refunds within 30 days", "2 results, scores 0.91, 0.70",
                  "policy.md", "error", "Recovered from lookup", "kp:trace:2", "840 characters"):  # fmt: skip
        assert words in text


def test_long_arguments_fold():
    """By name, laid out as JSON."""
    found = run_timeline(document([{"type": "tool_call", "tool": {"name": "a"}, "input": {"items": list(range(400))}}]))
    assert "<details><summary>items = [" in found
