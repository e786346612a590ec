"""ISO weeks as texts such as 2026-W47, and as running numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime


def number_of(week: str) -> int:
    """Return a running number for an ISO week such as 2026-W47.

    Raises:
        ValueError: there is no such week.
    """
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), 1).toordinal() // 7


def name_of(number: int) -> str:
    """Return the week with a running number."""
    return week_of(date.fromordinal(number * 7 + 1))


def week_of(day: date) -> str:
    """Return the week of a day, or of a moment in UTC."""
    year, week, _ = (day.astimezone(UTC) if isinstance(day, datetime) else day).isocalendar()
    return f"{year:04d}-W{week:02d}"
