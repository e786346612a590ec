"""ISO weeks as texts and as running numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.calibrate._monitor import name_of, number_of, week_of


@given(st.dates(date(1970, 1, 5), date(9999, 12, 20)))
def test_numbers_count_weeks(day):
    """The number of a day's week leads back to its name, and the next week has the next number."""
    week = week_of(day)
    assert week == name_of(number_of(week))
    assert number_of(week) + 1 == number_of(week_of(day + timedelta(days=7)))


def test_a_moment_belongs_to_its_week_in_utc():
    """Monday in Tokyo can be Sunday in UTC."""
    assert "2026-W01" == week_of(datetime(2026, 1, 5, 3, tzinfo=timezone(timedelta(hours=9))))
    assert "2026-W02" == week_of(datetime(2026, 1, 5, 3, tzinfo=UTC))


def test_a_week_that_does_not_exist_is_refused():
    """2026 has 53 weeks, 2025 has 52."""
    with pytest.raises(ValueError, match="53"):
        number_of("2025-W53")
