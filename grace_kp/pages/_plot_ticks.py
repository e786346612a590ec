"""Positions and labels of the ticks of a plot: round numbers, and the first days of weeks, months and years."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

MOST = 6
LARGEST = 1e300
"""Numbers beyond it are treated as this."""
_RELATIVE = 1e-9
"""A range that is narrower than this share of its numbers is a single value."""
_WEEK, _MONTH, _YEAR = 7, 27, 364
"""Bars that are further apart, in days, are longer than a week, as long as a month, as long as a year."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def nice_ticks(low: float, high: float, most: int = MOST, *, whole: bool = False) -> tuple[float, ...]:
    """Return round numbers at equal distances, 1, 2 or 5 times a power of ten, the first at or below `low` and the last at or above `high`.

    Args:
        low: the smallest value; finite.
        high: the largest value; finite. If both are equal, the ticks reach from 0 to them, or from 0 to 1.
        most: number of ticks at most, from 3.
        whole: whether only whole numbers make sense.

    Raises:
        ValueError: a value is not finite, or `most` is too small.
    """
    if not (math.isfinite(low) and math.isfinite(high)) or most < 3:
        raise ValueError(f"ticks need finite numbers and at least 3 ticks (got {low!r}, {high!r}, {most!r})")
    low, high = _spread(*(max(-LARGEST, min(LARGEST, value)) for value in sorted((low, high))))
    for exponent in itertools.count(math.floor(math.log10((high - low) / most))):
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent
            first, last = math.floor(low / step), math.ceil(high / step)
            if last - first < most and (step >= 1 or not whole):
                return tuple(float(f"{place * step:.12g}") for place in range(first, last + 1))
    raise AssertionError("unreachable: a large step needs at most three ticks")


def _spread(low: float, high: float) -> tuple[float, float]:
    if high - low > max(_RELATIVE * max(abs(low), abs(high)), 1 / LARGEST):
        return low, high
    largest = high if abs(high) > abs(low) else low
    return (min(0.0, largest), max(0.0, largest)) if abs(largest) > 1 / LARGEST else (0.0, 1.0)


def tick_text(value: float, step: float = 0.0) -> str:
    """Return a number as it stands at an axis: `0.25`, `1,200`, `15k`, `2.5M`.

    Args:
        value: the number.
        step: distance between the ticks, which decides how many decimals there are; 0 for as many as the number has.
    """
    size = abs(value)
    for limit, unit, letter in ((1e15, 1.0, ""), (1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= limit:
            return (f"{value / unit:.6g}{letter}" if letter else f"{value:.3g}").replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
    text = f"{value:,.{decimals}f}" if step and decimals <= 6 else f"{value:.6g}"
    return text.replace("-", "−")


def date_ticks(dates: Sequence[date], most: int = MOST) -> tuple[tuple[int, str], ...]:
    """Return the places of the dates that stand at an axis, and how they read: days, Mondays, first days of months or years.

    The first of a year names it, and so does the first of the axis.

    Args:
        dates: in order; the first day of each bar.
        most: number of ticks at most, from 1.
    """
    gap = min((later - day).days for day, later in itertools.pairwise(dates)) if len(dates) > 1 else 1
    name = _year if gap > _YEAR else _month if gap > _MONTH else _day
    every = max(1, math.ceil(len(dates) / most))
    places, text = list(range(0, len(dates), every)), name
    for largest_gap, starts, scale in _SCALES if every > 1 else ():
        found = [place for place, day in enumerate(dates) if starts(day, dates[place - 1] if place else None)]
        if gap <= largest_gap and 2 <= len(found) <= most:
            places, text = found, scale
            break
    return tuple((place, text(dates[place], is_first=place == places[0])) for place in places)


def _day(day: date, *, is_first: bool) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day}" + (f", {day.year}" if is_first else "")


def _month(day: date, *, is_first: bool) -> str:
    return f"{_MONTHS[day.month - 1]} {day.year}" if is_first or day.month == 1 else _MONTHS[day.month - 1]


def _year(day: date, *, is_first: bool) -> str:  # noqa: ARG001 — called as the others are
    return str(day.year)


def _begins(*, months: int) -> Callable[[date, date | None], bool]:
    """Return whether a day is the first of its axis in a month, quarter or year; the first of the axis only if it is the first there."""

    def begins(day: date, before: date | None) -> bool:
        number = (day.year * 12 + day.month - 1) // months
        if before is None:
            return day.day == 1 and (day.month - 1) % months == 0
        return number != (before.year * 12 + before.month - 1) // months

    return begins


_SCALES: tuple[tuple[float, Callable[[date, date | None], bool], Callable[..., str]], ...] = (
    (_WEEK, lambda day, before: day.weekday() == 0, _day),  # noqa: ARG005 — called as the others are
    (_WEEK, lambda day, before: day.weekday() == 0 and day.toordinal() // 7 % 2 == 0, _day),  # noqa: ARG005
    *((math.inf, _begins(months=months), _month if months < 12 else _year) for months in (1, 3, 12, 60, 240)),
)
"""Ticks from fine to coarse: the largest distance of bars, in days, for which they make sense; which bars have one; how it reads."""
