"""Figures as plots and tables: runs, decisions, and what judges cost."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grace_kp as gk
from grace_kp.store import Group, RunFigures
from grace_kp.web.figures._sums import (
    MOST_BARS,
    bars_of,
    confidence_plot,
    means_of,
    money_text,
    quantile,
    run_bars,
    spending,
    spending_values,
    wait_plot,
)
from tests.pages.drawing import cells


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_a_value_that_enough_do_not_exceed(values, share):
    """And no smaller value would do."""
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    smaller = [value for value in ordered if value < found]
    assert all(sum(value <= other for value in ordered) < share * len(ordered) for other in smaller[-1:])


def test_waits_are_shown_in_times_that_people_name():
    """Each wait is in one bin; a wait beyond a week makes a bin of its own."""
    waits = (0.0, 9.9, 10.0, 3_599.0, 86_400.0, 604_800.0)
    rows = {row[0]: row[1] for row in cells(wait_plot(waits))}
    assert {"0 to 10s": "2", "10s to 1m": "1", "10m to 1h": "1", "1d to 7d": "2"} == {
        name: count for name, count in rows.items() if count != "0"
    }
    rows = [row[1] for row in cells(wait_plot((*waits, 10_000_000.0)))]
    assert (8, "2", 7) == (len(rows), rows[-1], sum(map(int, rows)))


GROUP = Group(name="2026-11-25", runs=4, failed=1, score=1.0, confidence=1.5, with_confidence=3)


def test_means_are_of_the_runs_that_have_a_value():
    """Without runs there is a rate of 0, and no confidence."""
    assert {"failed": 0.25, "score": 0.25, "confidence": 0.5} == means_of(GROUP)
    assert {"failed": 0.0, "score": 0.0, "confidence": None} == means_of(Group(name="empty"))
    assert [["2026-11-25", "3", "1"]] == cells(run_bars([GROUP]))


@given(st.dates(date(1, 1, 1), date(2_100, 1, 1)), st.integers(0, 3_000))
def test_each_day_is_in_one_bar(first, count):
    """In order, and there are never too many bars for a phone."""
    days = [Group(name=(first + timedelta(days=place)).isoformat(), runs=place) for place in range(count)]
    unit, bars = bars_of(days)
    assert days == [day for _, group in bars for day in group]
    assert len(bars) <= MOST_BARS or unit == "year"
    assert all(str(begin) == group[0].name for begin, group in bars)


@pytest.mark.parametrize(
    ("count", "unit", "second"),
    [
        (30, "day", "2026-01-02"),
        (90, "week", "2026-01-05"),
        (700, "month", "2026-02-01"),
        (3_000, "year", "2027-01-01"),
    ],
)
def test_bars_are_units_of_a_calendar(count, unit, second):
    """Days, weeks from Monday, months, years."""
    days = [Group(name=(date(2026, 1, 1) + timedelta(days=place)).isoformat()) for place in range(count)]
    found, bars = bars_of(days)
    assert (unit, ["2026-01-01", second]) == (found, [str(begin) for begin, _ in bars[:2]])


def test_reachable_thresholds_are_drawn_in_the_distribution_of_the_confidence():
    """A threshold of infinity has no line."""
    figures = RunFigures(total=GROUP, confidence=(0,) * 14 + (3,) + (0,) * 5)
    plot = confidence_plot(figures, gk.Thresholds(math.inf, 0.7, 0.4))
    assert [True, True, False] == [word in plot for word in ("notify 0.7", "confirm 0.4", "silent")]
    assert ["0.7 to 0.75", "3", "100.0%"] == cells(plot)[14]


MODELS = {"gemini-a": (10, 2_000_000, 1), "gemini-b": (1, 500_000, 0), "local": (5, 9_000_000, 0), "<b>": (3, 100, 0)}
PRICES = {"gemini-*": (0.3, "USD"), "gemini-b": (2.0, "USD"), "local": (0.0, "EUR")}


def test_money_is_tokens_times_price():
    """The most tokens stand first; an exact name comes before a glob, and what has no price has no money."""
    found = [(each.model, each.money) for each in spending(MODELS, PRICES)]
    assert [("local", 0.0), ("gemini-a", 0.6), ("gemini-b", 1.0), ("<b>", None)] == found
    shown = spending_values(MODELS, PRICES)
    assert (["0.00 EUR", "1.60 USD"], ["<b>"]) == (shown["money"], shown["unpriced"])
    assert 2 == shown["spending_table"].count(">no price set<")
    assert "&lt;b&gt;" in shown["spending_table"]


@pytest.mark.parametrize(
    ("amount", "text"), [(0.0, "0.00 USD"), (0.0004, "0.0004 USD"), (0.5, "0.50 USD"), (1_234.5, "1,234.50 USD")]
)
def test_small_amounts_do_not_read_as_nothing(amount, text):
    """Two decimals, and more where they are needed."""
    assert text == money_text(amount, "USD")
