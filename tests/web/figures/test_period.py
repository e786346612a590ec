"""The period of the figures: what an address asks for, and how days become bars."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from grace_kp.store import Group
from grace_kp.web.figures._period import LONGEST, MOST_BARS, asked_for, bars_of

TODAY = date(2026, 11, 25)
SHOWN = "The last 30 days are shown."


def asked(query, oldest=date(2026, 1, 2)):
    return asked_for(QueryParams(query), TODAY, lambda: oldest)


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("", "2026-10-27", "2026-11-25"),
        ("days=7", "2026-11-19", "2026-11-25"),
        ("days=365", "2025-11-26", "2026-11-25"),
        ("days=all", "2026-01-02", "2026-11-25"),
        ("since=2026-11-01", "2026-11-01", "2026-11-25"),
        ("until=2026-11-01", "2026-10-03", "2026-11-01"),
        ("since=2026-11-01&until=2026-11-01&days=7", "2026-11-01", "2026-11-01"),
        ("since=&until=&agent=", "2026-10-27", "2026-11-25"),
    ],
)
def test_a_period_is_a_preset_or_two_days(query, since, until):
    """30 days up to today where nothing is asked for; stated days come first, and empty fields are none."""
    found = asked(query)
    assert (since, until) == (str(found.period.since), str(found.period.until))
    assert ((), None) == (found.notes, found.agent)


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ("days=8", ["Days must be one of 7, 30, 90, 365, all, not '8'.", SHOWN]),
        ("since=yesterday", ["First day must be a day like 2026-01-02, not 'yesterday'.", SHOWN]),
        ("until=2026-02-30", ["Last day must be a time that exists, not '2026-02-30'.", SHOWN]),
        (
            "since=2026-11-02&until=2026-11-01",
            [f"First day (2026-11-02) must not be after Last day (2026-11-01). {SHOWN}"],
        ),
        ("until=9999-12-31", ["Last day (9999-12-31) is in the future. The figures end today."]),
        ("days=7&days=30", ["Days must be stated once, not 2 times.", SHOWN]),
    ],
)
def test_what_cannot_be_used_is_said(query, notes):
    """With the names of the fields, and what is shown instead."""
    found = asked(query)
    assert tuple(notes) == found.notes
    assert (date(2026, 10, 27), TODAY) == (found.period.since, found.period.until)


def test_a_period_has_a_longest_length():
    """So that a run with a wrong clock does not make a page of a thousand years."""
    found = asked("days=all", oldest=date(1970, 1, 1))
    assert LONGEST == found.period.days
    assert "so it begins on 2006-11-11 and not on 1970-01-01" in found.notes[0]
    assert date(2026, 11, 25) == asked("days=all", oldest=date(2030, 1, 1)).period.since


def test_a_period_in_seconds_ends_after_its_last_day():
    """From midnight to midnight, UTC."""
    begin, end = asked("since=2026-11-24&until=2026-11-25").period.seconds
    assert datetime(2026, 11, 24, tzinfo=UTC).timestamp() == begin
    assert 2 * 86_400 == end - begin


@given(st.dates(date(1, 1, 1), date(2_100, 1, 1)), st.integers(0, 3_000))
def test_each_day_is_in_one_bar(first, count):
    """In order, and there are never too many bars for a phone."""
    days = [Group(name=(first + timedelta(days=place)).isoformat(), runs=place) for place in range(count)]
    unit, bars = bars_of(days)
    assert days == [day for _, group in bars for day in group]
    assert len(bars) <= MOST_BARS or unit == "year"
    assert all(str(begin) == group[0].name for begin, group in bars[:1])
    assert all(str(begin) <= group[0].name for begin, group in bars)


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
