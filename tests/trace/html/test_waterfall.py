"""The durations of a run."""

from __future__ import annotations

import re

from grace_kp.trace import Links, run_waterfall
from tests.pages.reading import Elements
from tests.trace.html.traces import document, full


def bars(page):
    """Left edge and width of each bar, in percent."""
    return [tuple(map(float, pair)) for pair in re.findall(r' x="([\d.e+-]+)" width="([\d.e+-]+)"', page)]


def test_bars_stand_where_the_calls_began():
    """In the share of the whole duration; every bar stays within it and is wide enough to be seen."""
    calls = [
        {"call_id": "c0", "name": "a", "started_ms": 0, "latency_ms": 50, "status": "ok"},
        {"call_id": "c1", "name": "b", "started_ms": 50, "latency_ms": 25, "status": "error", "parent": "c0"},
        {"call_id": "c2", "name": "c", "started_ms": 100, "latency_ms": 0, "status": "ok"},
    ]
    page = run_waterfall(document([], calls=calls, duration_ms=100.0))
    assert [(0, 50), (50, 25), (99.4, 0.6)] == bars(page)
    assert 'class="d1"' in page


def test_numbers_stand_beside_the_bars():
    """Each call with its beginning and duration, linked to its step."""
    found = Elements(run_waterfall(full(), links=Links(step=lambda name, place: f"/runs/{name}#{place}")))
    for words in ("lookup", "error", "860 ms", "1.2 s", "1 min 10 s"):
        assert words in found.text
    assert "/runs/kp:trace:1#3" in found.links


def test_what_has_no_recorded_beginning_is_said():
    """Model calls and waits for people have durations only."""
    page = run_waterfall(full())
    placed, rest = page.split("Without a recorded beginning")
    assert "gemini-3-pro" not in placed
    assert "1,204 input tokens, 88 output tokens" in rest
    assert "waited for ben" in rest


def test_a_continued_run_shows_durations_only():
    """Each part counts from its own beginning."""
    run = full()
    run["grace"]["resumed"] = 1
    page = run_waterfall(run)
    assert "suspended and continued" in page
    assert "began after" not in page


def test_many_calls_are_cut():
    """A note gives their number; a run without any says so."""
    calls = [{"name": "a", "started_ms": place, "latency_ms": 1.0} for place in range(1_200)]
    page = run_waterfall(document([], calls=calls))
    assert 1_000 == len(bars(page))
    assert "200 more rows are not shown" in page
    assert "no call and no duration" in run_waterfall(document([]))
