"""The canvas of every plot: two sizes with axes, ticks, rules and labels, in a figure that also contains the numbers as a table.

A plot is drawn twice, for wide and for narrow pages, and the style shows one of the two, because scaled letters would be unreadable on a phone.
Colours are classes of the style. No two series differ in colour alone.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.pages._parts import safe
from grace_kp.pages._words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date


LETTER, WIDE_LETTER = 6.9, 12.5
"""Widths of a letter and of an ideograph in text of 12 units; generous, because the reader's font is not known."""
LINE = 15.0
"""Height of a line of letters."""
_EDGE = 4.0


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a drawing, in units of about a pixel."""

    name: str
    width: float
    ticks: int
    """Ticks of the horizontal axis at most."""


WIDE, NARROW = Size("at-wide", 600.0, 8), Size("at-narrow", 320.0, 5)


def text_width(text: str) -> float:
    """Estimate the width of a string, in units."""
    return sum(WIDE_LETTER if unicodedata.east_asian_width(each) in "WF" else LETTER for each in text)


def fit_text(text: str, width: float) -> str:
    """Return a string with visible control characters, cut to a width with an ellipsis."""
    shown = visible(text[:500])
    if text_width(shown) <= width:
        return shown
    used, end = LETTER, 0
    while end < len(shown) and (used := used + text_width(shown[end])) <= width:
        end += 1
    return shown[:end].rstrip() + "…"


@dataclass(slots=True)
class Canvas:
    """A drawing: a plotting area within margins, onto which shares from 0 to 1 are mapped, and the parts drawn so far."""

    size: Size
    plot_id: str
    """Begins the ids of what the drawing refers to."""
    height: float
    left: float = 8.0
    right: float = 8.0
    top: float = 8.0
    bottom: float = 22.0
    parts: list[str] = field(default_factory=list)

    def x(self, share: float) -> float:
        """Return the place of a share of the width; other values are clipped."""
        return self.left + _unit(share) * (self.size.width - self.left - self.right)

    def y(self, share: float) -> float:
        """Return the place of a share of the height, from the bottom; other values are clipped."""
        return self.height - self.bottom - _unit(share) * (self.height - self.top - self.bottom)

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draw a line of a class of the style."""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> None:
        """Write a string, moved into the drawing if it would reach beyond the edge, and cut if it is wider."""
        words = fit_text(words, self.size.width - 2 * _EDGE)
        wide = text_width(words)
        before = {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        x = min(max(x, _EDGE + before), self.size.width - _EDGE - wide + before)
        named = f' class="{kind}"' if kind else ""
        placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text{named} x="{x:.1f}" y="{y:.1f}"{placed}>{safe(words)}</text>')

    def bar(
        self, kind: str, x: float, y: float, width: float, height: float, words: str, *, hatched: bool = False
    ) -> None:
        """Draw a bar with a tooltip; hatching distinguishes it without colour."""
        place = f'x="{x:.2f}" y="{y:.2f}" width="{max(0.0, width):.2f}" height="{max(0.0, height):.2f}"'
        fill = f'class="{kind} edge" fill="url(#{self.plot_id}-hatch)"' if hatched else f'class="{kind} fill"'
        self.parts.append(f"<rect {fill} {place}><title>{safe(words)}</title></rect>")

    def hatch(self, kind: str) -> None:
        """Define the pattern of hatched bars, in a colour of the style."""
        self.parts.append(
            f'<defs><pattern id="{self.plot_id}-hatch" class="{kind}" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><rect class="ground" width="5" height="5"/>'
            '<line class="stripe" x1="1.25" y1="0" x2="1.25" y2="5"/></pattern></defs>'
        )

    def legend(self, entries: Sequence[tuple[str, Callable[[Canvas, float, float], None]]]) -> None:
        """Write a legend at the top and make room for it."""
        x, y = self.left, LINE
        for words, draw in entries:
            words = fit_text(words, self.size.width - self.left - 40)
            wide = 28 + text_width(words)
            if x > self.left and x + wide > self.size.width - _EDGE:
                x, y = self.left, y + LINE + 3
            draw(self, x, y - 4)
            self.text(x + 28, y, words)
            x += wide + 14
        self.top = max(self.top, y + 10)


def widest(texts: Iterable[str]) -> float:
    """Return the width of the widest string, in units; 0 for an empty collection."""
    return max(map(text_width, texts), default=0.0)


def _unit(share: float) -> float:
    return min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0


def plot_figure(
    title: str,
    description: str,
    numbers: str,
    draw: Callable[[Size, str], tuple[float, str]],
    caption: str = "",
) -> str:
    """Return a figure as HTML: what it shows, the drawing in two sizes, and its numbers."""
    number = f"{zlib.crc32(title.encode(errors='replace')):08x}"
    pictures = []
    for size in (WIDE, NARROW):
        plot_id = f"plot-{number}-{size.name}"
        height, parts = draw(size, plot_id)
        pictures.append(
            f'<svg class="plot {size.name}" viewBox="0 0 {size.width:g} {height:g}" role="img" '
            f'aria-labelledby="{plot_id}-title" aria-describedby="{plot_id}-desc">'
            f'<title id="{plot_id}-title">{safe(title)}</title><desc id="{plot_id}-desc">{safe(description)}</desc>{parts}</svg>'
        )
    words = f"<strong>{safe(title)}</strong>" + (f" {safe(caption)}" if caption else "")
    return (
        f'<figure class="drawn"><figcaption>{words}</figcaption>{"".join(pictures)}'
        f"<details><summary>Numbers</summary>{numbers}</details></figure>"
    )


MOST = 6
LARGEST = 1e300
"""Numbers beyond it are treated as this."""
_RELATIVE = 1e-9
"""A range that is narrower than this share of its numbers counts as a single value."""
_WEEK, _MONTH, _YEAR = 7, 27, 364
"""Distances of bars in days: beyond them, bars are longer than a week, or as long as a month or a year."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def nice_ticks(low: float, high: float, most: int = MOST, *, whole: bool = False) -> tuple[float, ...]:
    """Return round numbers at equal distances, 1, 2 or 5 times a power of ten, the first at or below `low` and the last at or above `high`.

    If both are equal, the ticks reach from 0 to them, or from 0 to 1.
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
    """Format a number for an axis: `0.25`, `1,200`, `15k`, `2.5M`."""
    size = abs(value)
    for limit, unit, letter in ((1e15, 1.0, ""), (1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= limit:
            return (f"{value / unit:.6g}{letter}" if letter else f"{value:.3g}").replace("-", "−")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
    text = f"{value:,.{decimals}f}" if step and decimals <= 6 else f"{value:.6g}"
    return text.replace("-", "−")


def date_ticks(dates: Sequence[date], most: int = MOST) -> tuple[tuple[int, str], ...]:
    """Return the places and labels of the ticks below bars, given the first day of each: days, Mondays, first days of months or years.

    The first tick and the first of each year name the year.
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
