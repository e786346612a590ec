"""Figures of runs as plots and tables."""

from __future__ import annotations

import math

import pytest

import grace_kp as gk
from grace_kp.store import CatalogQuery, Group, RunFigures
from grace_kp.web.figures._runs import (
    agent_rows,
    alike,
    confidence_plot,
    failure_rate,
    level_plot,
    mean_confidence,
    mean_score,
    run_bars,
)
from tests.pages.drawing import cells

GROUP = Group(name="2026-11-25", runs=4, failed=1, score=1.0, confidence=1.5, with_confidence=3)


def test_means_are_of_the_runs_that_have_a_value():
    """Without runs there is a rate of 0, and no confidence."""
    assert (0.25, 0.25, 0.5) == (failure_rate(GROUP), mean_score(GROUP), mean_confidence(GROUP))
    nothing = Group(name="nobody")
    assert (0.0, 0.0, None) == (failure_rate(nothing), mean_score(nothing), mean_confidence(nothing))


def test_days_are_stacked_bars():
    """Runs that succeeded, and runs that failed."""
    assert [["2026-11-25", "3", "1"]] == cells(run_bars([GROUP]))


def test_agents_link_to_their_runs():
    """With a name that is quoted; what the catalog sums up, and runs without a name, have no link."""
    groups = [Group(name='a&b="<x>', runs=2), Group(name="…", runs=1), Group(name="", runs=1)]
    rows = agent_rows(groups, {"since": "2026-11-01"}, "/sub")
    assert ["/sub/runs?agent=a%26b%3D%22%3Cx%3E&since=2026-11-01", "", ""] == [row.address for row in rows]


def test_thresholds_stand_in_the_distribution_of_the_confidence():
    """Those that can be reached."""
    figures = RunFigures(total=GROUP, confidence=(0,) * 14 + (3,) + (0,) * 5)
    plot = confidence_plot(figures, gk.Thresholds(math.inf, 0.7, 0.4))
    assert "notify 0.7" in plot
    assert "confirm 0.4" in plot
    assert "silent" not in plot
    assert ["0.7 to 0.75", "3", "100.0%"] == cells(plot)[14]


def test_each_level_has_a_bar():
    """From mild to strict, also those that never occurred."""
    rows = cells(level_plot(RunFigures(total=GROUP, levels={"escalate": 1, "notify": 3})))
    assert [
        ["silent", "0", "0.0%"],
        ["notify", "3", "75.0%"],
        ["confirm", "0", "0.0%"],
        ["escalate", "1", "25.0%"],
    ] == rows


@pytest.mark.parametrize(
    ("confidences", "found"),
    [
        ([0.7] * 19 + [0.1], (0.7, 0.95, 20)),
        ([0.7] * 19, None),
        ([0.70, 0.71, 0.72, 0.73] * 5, None),
        ([0.1, 0.3, 0.5, 0.7] * 5, None),
        ([0.7], None),
        ([], None),
    ],
)
def test_it_is_said_where_most_runs_have_one_confidence(confidences, found, office):
    """One and the same value, not only one bin, of enough runs."""
    for confidence in confidences:
        office.run(confidence=confidence)
    catalog = office.visit().app.state.site.catalog
    query = CatalogQuery()
    figures = (
        catalog.figures("2000-01-01", "2100-01-01") if confidences else RunFigures(total=GROUP, confidence=(0,) * 20)
    )
    same = alike(catalog, query, figures)
    assert found == (same if same is None else (same.value, same.share, same.of))
