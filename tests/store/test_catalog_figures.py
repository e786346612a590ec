"""Figures from sums that the index keeps."""

from __future__ import annotations

import re

import pytest

from grace_kp.store import Group, open_catalog, open_store
from tests.store.listed import run
from tests.store.samples import put


@pytest.fixture
def store():
    return open_store("memory:")


def figures(store, *period, **conditions):
    catalog = open_catalog(store)
    catalog.refresh()
    return catalog.figures(*period, **conditions)


def test_days_without_runs_are_included(store):
    """In order."""
    put(store, run("a", created_at="2026-02-28T23:59:59.999Z"), run("b", created_at="2026-03-02T00:00:00.000Z"))
    found = figures(store, "2026-02-28", "2026-03-02")
    assert [("2026-02-28", 1), ("2026-03-01", 0), ("2026-03-02", 1)] == [(day.name, day.runs) for day in found.days]


def test_a_store_without_runs_has_figures_of_zero(store):
    """Nothing is missing from them."""
    found = figures(store, "2026-01-01", "2026-01-01")
    assert (Group(name=""), (), {}, (0,) * 20, (0,) * 20, {}) == (
        found.total, found.agents, found.statuses, found.confidence, found.scores, found.models,
    )  # fmt: skip
    assert {"silent": 0, "notify": 0, "confirm": 0, "escalate": 0} == found.levels
    assert found == figures(store, "2026-01-01", "2026-01-01", agent="nobody") or found.total.name == ""


def test_agents_beyond_fifty_are_summed(store):
    """Under a name that no agent has."""
    put(
        store,
        *(run(f"{number}-{turn}", agent=f"a{number}") for number in range(60) for turn in range(1 + (number < 50))),
    )
    found = figures(store, "2026-01-01", "2026-01-01")
    assert (51, "…", 10, 110) == (len(found.agents), found.agents[-1].name, found.agents[-1].runs, found.total.runs)
    assert {2} == {group.runs for group in found.agents[:-1]}


@pytest.mark.parametrize(("value", "number"), [(0.0, 0), (0.0499, 0), (0.05, 1), (0.95, 19), (1.0, 19)])
def test_bins_hold_their_lower_edge(store, value, number):
    """The last holds 1 as well."""
    put(store, run("a", score=value, confidence=value))
    found = figures(store, "2026-01-01", "2026-01-01")
    assert [number] == [place for place, count in enumerate(found.scores) if count]
    assert found.scores == found.confidence


def test_a_very_long_period_is_cut_to_its_runs(store):
    """Its sums are complete."""
    put(store, run("a", created_at="2026-01-01T00:00:00.000Z"), run("b", created_at="2026-01-03T00:00:00.000Z"))
    found = figures(store, "0001-01-01", "9999-12-31")
    assert (2, ["2026-01-01", "2026-01-02", "2026-01-03"]) == (found.total.runs, [day.name for day in found.days])


@pytest.mark.parametrize(
    ("period", "message"),
    [
        (("today", "2026-01-01"), "since must be a day like 2026-11-25, not 'today'"),
        (("2026-01-01", "2026-13-01"), "until must be a day like 2026-11-25, not '2026-13-01'"),
    ],
)
def test_a_day_that_is_none_is_refused(store, period, message):
    """The message names it."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        figures(store, *period)


def test_runs_that_wait_are_counted_apart(store):
    """They are not among the failed runs, whatever success they state."""
    statuses = (("waiting", True), ("suspended", False), ("failed", False), ("completed", True))
    put(store, *(run(str(n), status=status, success=ok) for n, (status, ok) in enumerate(statuses)))
    total = figures(store, "2026-01-01", "2026-01-01").total
    assert (4, 1, 2) == (total.runs, total.failed, total.waiting)
