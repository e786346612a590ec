"""Ticks: round numbers that cover their range, and dates as a calendar names them."""

from __future__ import annotations

import itertools
import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import date_ticks, nice_ticks, tick_text

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (0, 97, (0, 20, 40, 60, 80, 100)),
        (-3, 8, (-5, 0, 5, 10)),
        (0.013, 0.027, (0.01, 0.015, 0.02, 0.025, 0.03)),
        (5, 5, (0, 1, 2, 3, 4, 5)),
        (-2, -2, (-2, -1.5, -1, -0.5, 0)),
        (0, 0, (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_ticks_are_round_numbers(low, high, ticks):
    """1, 2 or 5 times a power of ten, at equal distances; a single value is seen against 0."""
    assert ticks == nice_ticks(low, high)


def test_counts_have_whole_ticks():
    """There is no half run."""
    assert (0, 1) == nice_ticks(0, 1, whole=True)
    assert (0, 1, 2, 3) == nice_ticks(0, 3, whole=True)


@given(NUMBERS, NUMBERS, st.integers(3, 12), st.booleans())
def test_ticks_cover_any_range(one, other, most, whole):
    """They rise, are no more than asked for, and enclose the range."""
    ticks = nice_ticks(one, other, most, whole=whole)
    low, high = sorted((one, other))
    slack = 1e-9 * max(abs(low), abs(high))
    assert 2 <= len(ticks) <= most
    assert all(before < after for before, after in itertools.pairwise(ticks))
    assert ticks[0] <= max(low, -1e300) + slack
    assert ticks[-1] >= min(high, 1e300) - slack
    assert not whole or all(tick == int(tick) for tick in ticks)


@pytest.mark.parametrize("values", [(math.nan, 1, 6), (0, math.inf, 6), (0, 1, 2)])
def test_ticks_need_numbers(values):
    """Neither NaN nor infinity, and room for three."""
    with pytest.raises(ValueError, match="ticks need finite numbers and at least 3 ticks"):
        nice_ticks(*values)


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.25, 0.05, "0.25"), (0.2, 0.2, "0.2"), (1, 0.2, "1.0"), (0, 50, "0"), (1_200, 200, "1,200"), (15_000, 5_000, "15k"),
        (2_500_000, 500_000, "2.5M"), (3e9, 1e9, "3G"), (3e12, 1e12, "3T"), (3e20, 1e20, "3e+20"), (-0.5, 0.5, "−0.5"),
        (0.05, 0, "0.05"), (1e-9, 1e-9, "1e−09"),
    ],
)  # fmt: skip
def test_numbers_at_an_axis_are_short(value, step, text):
    """With as many decimals as the step has, and letters for large ones."""
    assert text == tick_text(value, step)


def every(days, count, start=date(2026, 10, 27)):
    return [start + timedelta(days=days * place) for place in range(count)]


def texts(dates, most=6):
    return [text for _, text in date_ticks(dates, most)]


def test_days_are_named_by_a_calendar():
    """Each of a few days, then Mondays; the first names its year."""
    assert ["Oct 27, 2026", "Oct 28", "Oct 29"] == texts(every(1, 3))
    assert ["Oct 27, 2026", "Oct 29", "Oct 31", "Nov 2"] == texts(every(1, 7), 5)
    assert ["Nov 2, 2026", "Nov 9", "Nov 16", "Nov 23"] == texts(every(1, 30))


def test_weeks_and_months_are_named_by_months_and_years():
    """A January names its year."""
    assert ["Nov 2026", "Dec", "Jan 2027", "Feb"] == texts(every(7, 16, date(2026, 10, 26)), 5)
    months = [date(2024 + place // 12, place % 12 + 1, 1) for place in range(29)]
    assert ["2024", "2025", "2026"] == texts(months, 4)
    assert ["Jan 2024", "Apr", "Jul", "Oct"] == texts(months[:12], 4)
    assert ["Jan 2024", "Feb", "Mar"] == texts(months[:3])
    years = [date(2_000 + place, 1, 1) for place in range(30)]
    assert ["2000", "2005", "2010", "2015", "2020", "2025"] == texts(years)


@given(
    st.dates(date(1, 1, 1), date(9_000, 1, 1)), st.sampled_from([1, 7, 30, 365]), st.integers(0, 400), st.integers(1, 9)
)
def test_dates_are_never_too_many(start, days, count, most):
    """They are places of the axis, in order; at least one where there is a bar."""
    dates = [start + timedelta(days=days * place) for place in range(count)]
    places = [place for place, _ in date_ticks(dates, most)]
    assert sorted(set(places)) == places
    assert set(places) <= set(range(count))
    assert bool(count) <= len(places) <= most
