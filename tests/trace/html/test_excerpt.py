"""A run for a cell of a notebook."""

from __future__ import annotations

import pytest
from hypothesis import given

from grace_kp.trace.html import run_excerpt
from tests.pages.reading import Elements, problems
from tests.trace.html.test_page import JSON, filled
from tests.trace.html.traces import document, full


def test_an_excerpt_shows_the_figures_and_the_steps():
    """A short run is unfolded, and no heading gets into the table of contents of a notebook."""
    found = run_excerpt(full())
    page = Elements(found)
    assert "Refunded 45.00" in page.text
    assert "<details open><summary>10 steps</summary>" in found
    assert set() == page.tags & {"h1", "h2", "h3", "h4"}
    assert [] == problems(found)


def test_every_text_is_text():
    """Whatever stands in a trace."""
    assert [] == problems(run_excerpt(filled(full())))


@pytest.mark.parametrize(("count", "size"), [(2_000, 300), (2_000, 60_000)])
def test_long_runs_stay_small(count, size):
    """Fewer steps are shown the longer they are, with a note that says where the whole run is."""
    steps = [{"type": "observation", "content": "x" * size, "output_summary": "y" * size} for _ in range(count)]
    found = run_excerpt(document(steps))
    assert len(found) < 500_000
    assert "`trace.to_html(path)` writes the whole run." in found


def test_steps_that_are_too_long_are_left_out():
    """Here the decisions between them."""
    run = document([{"type": "thought"}], decisions=[{"action": "a", "reason": "x" * 300}] * 3_000)
    found = run_excerpt(run)
    assert "The steps are too long for a notebook. `trace.to_html(path)` writes the whole run." in found
    assert len(found) < 500_000


def test_figures_that_are_too_long_are_left_out():
    """With the same note."""
    run = document([{"type": "thought"}], metadata={str(place): "z" * 9_000 for place in range(50)})
    found = run_excerpt(run)
    assert "The figures are too long for a notebook" in found
    assert len(found) < 500_000


@given(JSON)
def test_any_document_can_be_shown(value):
    """Another program may have written it."""
    for run in (
        {"metadata": value, "task": value, "steps": value, "grace": value},
        {"grace": dict.fromkeys(full()["grace"], value), "steps": [value]},
    ):
        assert [] == Elements(run_excerpt(run)).unbalanced
