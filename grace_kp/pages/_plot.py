"""Plots as SVG, drawn on the server: bars over time, a histogram, bars with names, and curves. Each includes a table of its numbers.

Curves differ in their line, their marker and their name in the legend, so that they can be told apart without colour.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from grace_kp.pages._parts import table
from grace_kp.pages._plot_canvas import (
    LINE,
    Canvas,
    date_ticks,
    fit_text,
    nice_ticks,
    plot_figure,
    text_width,
    tick_text,
    widest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from grace_kp.pages._plot_canvas import Size

    Point = tuple[float, float]

HEIGHT = 210.0
WIDEST = 90.0
"""Largest width of a bar, so that a single day does not fill the plot."""
_ROW = 26.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across a plot that marks a value."""

    value: float
    label: str


def timeline(
    title: str,
    dates: Sequence[date],
    series: Mapping[str, Sequence[float]],
    *,
    unit: str = "day",
    caption: str = "",
) -> str:
    """Return bars over time as a figure; the series of a bar are stacked, and the second is hatched.

    Args:
        dates: the first day of each bar, in order.
        unit: the period of a bar: `day`, `week`, …
    """
    sums = [sum(map(_from_zero, values)) for values in zip(*series.values(), strict=True)]
    names = list(series)
    rows = [
        (day.isoformat(), *(f"{values[place]:,.6g}" for values in series.values())) for place, day in enumerate(dates)
    ]
    totals = ", ".join(f"{sum(map(_from_zero, values)):,.6g} {name}" for name, values in series.items())
    words = (
        f"{len(dates):,} bars, one for each {unit}. In all: {totals}. The highest bar is {max(sums, default=0.0):,.6g}."
    )

    def draw(size: Size, plot_id: str) -> tuple[float, str]:
        canvas = Canvas(size, plot_id, HEIGHT)
        if len(names) > 1:
            canvas.hatch("c2")
            canvas.legend([(name, partial(_swatch, hatched=place > 0)) for place, name in enumerate(names)])
        ticks = _count_axis(canvas, max(sums, default=0.0))
        step = 1 / max(1, len(dates))
        for place, day in enumerate(dates):
            base = 0.0
            for number, (name, values) in enumerate(series.items()):
                value = _from_zero(values[place])
                label = f"{day.isoformat()}: {value:,.6g} {name}"
                _column(canvas, place * step, step, base / ticks[-1], value / ticks[-1], label, hatched=number > 0)
                base += value
        for place, label in date_ticks(dates, size.ticks):
            x = canvas.x((place + 0.5) * step)
            canvas.line("axis", x, canvas.y(0), x, canvas.y(0) + 4)
            canvas.text(x, HEIGHT - 5, label, anchor="middle", kind="tick")
        return HEIGHT, "".join(canvas.parts)

    return plot_figure(title, words, table((unit, *names), rows, caption=title), draw, caption)


def histogram(
    title: str,
    counts: Sequence[float],
    *,
    edges: Sequence[float],
    labels: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    unit: str = "runs",
    axis: str = "",
    caption: str = "",
) -> str:
    """Return counts in neighbouring bins as a figure."""
    if len(edges) != len(counts) + 1:
        raise ValueError(f"{len(counts)} bins have {len(counts) + 1} edges (got {len(edges)})")
    total = sum(map(_from_zero, counts))
    labels = labels or [tick_text(edge) for edge in edges]
    spans = [f"{low} to {high}" for low, high in itertools.pairwise(labels)]
    rows = [
        (span, f"{count:,.6g}", f"{_from_zero(count) / total:.1%}" if total else "–")
        for span, count in zip(spans, counts, strict=True)
    ]
    highest = max(range(len(counts)), key=lambda place: _from_zero(counts[place]), default=None)
    words = f"{total:,.6g} {unit} in {len(counts)} bins."
    if total and highest is not None:
        words += f" Most are from {spans[highest]}: {counts[highest]:,.6g}."
    words += "".join(f" Marked at {tick_text(rule.value)}: {rule.label}." for rule in rules)
    bottom = 22 + (LINE if axis else 0)

    def draw(size: Size, plot_id: str) -> tuple[float, str]:
        canvas = Canvas(size, plot_id, HEIGHT + bottom - 22, bottom=bottom)
        canvas.left = _axis_width(nice_ticks(0, max(map(_from_zero, counts), default=0), whole=True))
        marked = _rule_labels(canvas, [(_place(rule.value, edges), rule.label) for rule in rules])
        ticks = _count_axis(canvas, max(map(_from_zero, counts), default=0))
        step = 1 / max(1, len(counts))
        for place, count in enumerate(counts):
            label = f"{spans[place]}: {count:,.6g} {unit}"
            _column(canvas, place * step, step, 0.0, _from_zero(count) / ticks[-1], label)
        for share, y in marked:
            canvas.line("guide", canvas.x(share), y, canvas.x(share), canvas.y(0))
        # A tick at every so many bins: a divisor of their number, if one is not much larger than necessary.
        least = max(1, math.ceil(len(counts) / size.ticks))
        distance = next((each for each in range(least, 2 * least + 1) if len(counts) % each == 0), least)
        for place in range(0, len(edges), distance):
            x = canvas.x(place * step)
            canvas.line("axis", x, canvas.y(0), x, canvas.y(0) + 4)
            canvas.text(x, canvas.y(0) + 17, labels[place], anchor="middle", kind="tick")
        if axis:
            canvas.text(canvas.x(0.5), canvas.height - 4, axis, anchor="middle", kind="tick")
        return canvas.height, "".join(canvas.parts)

    return plot_figure(title, words, table((axis or "from", unit, "share"), rows, caption=title), draw, caption)


def named_bars(
    title: str,
    values: Mapping[str, float],
    *,
    kind: str = "name",
    unit: str = "runs",
    shares: bool = True,
    caption: str = "",
) -> str:
    """Return a horizontal bar for each name as a figure, with its number and its share."""
    total = sum(map(_from_zero, values.values()))
    largest = max(map(_from_zero, values.values()), default=0.0) or 1.0
    texts = {
        name: f"{value:,.6g}" + (f" ({_from_zero(value) / total:.1%})" if shares and total else "")
        for name, value in values.items()
    }
    words = ", ".join(f"{name}: {text}" for name, text in texts.items()) or "nothing"

    def draw(size: Size, plot_id: str) -> tuple[float, str]:
        height = max(1, len(values)) * _ROW + 8
        widths = min(0.38 * size.width, widest(values) + 12), widest(texts.values()) + 12
        canvas = Canvas(size, plot_id, height, left=widths[0], right=widths[1], top=4, bottom=4)
        for place, (name, value) in enumerate(values.items()):
            y = 4 + place * _ROW
            end = canvas.x(_from_zero(value) / largest)
            canvas.text(canvas.left - 8, y + 17, fit_text(name, canvas.left - 10), anchor="end")
            canvas.bar("c1", canvas.left, y + 5, end - canvas.left, _ROW - 10, f"{name}: {texts[name]} {unit}")
            canvas.text(end + 6, y + 17, texts[name], kind="tick")
        canvas.line("axis", canvas.left, 4, canvas.left, height - 4)
        return height, "".join(canvas.parts)

    rows = [
        (name, f"{value:,.6g}", f"{_from_zero(value) / total:.1%}" if total else "–") for name, value in values.items()
    ]
    columns = 3 if shares else 2
    numbers = table((kind, unit, "share")[:columns], [row[:columns] for row in rows], caption=title)
    return plot_figure(title, f"{words}.", numbers, draw, caption)


def _from_zero(value: float) -> float:
    return value if math.isfinite(value) and value > 0 else 0.0


def _place(value: float, edges: Sequence[float]) -> float:
    """Return the place of a value among bins of equal width, as a share of their total width."""
    if value <= edges[0]:
        return 0.0
    for place, (low, high) in enumerate(itertools.pairwise(edges)):
        if value < high:
            return (place + (value - low) / (high - low)) / (len(edges) - 1)
    return 1.0


def _axis_width(ticks: Sequence[float]) -> float:
    return widest(tick_text(tick, ticks[1] - ticks[0]) for tick in ticks) + 12


def _count_axis(canvas: Canvas, highest: float) -> tuple[float, ...]:
    """Draw the axis of counts with its rules, make room for it, and return its ticks."""
    ticks = nice_ticks(0.0, highest, 5, whole=True)
    canvas.left = _axis_width(ticks)
    for tick in ticks:
        y = canvas.y(tick / ticks[-1])
        canvas.line("rule" if tick else "axis", canvas.left, y, canvas.x(1), y)
        canvas.text(canvas.left - 6, y + 4, tick_text(tick, ticks[1] - ticks[0]), anchor="end", kind="tick")
    return ticks


def _column(
    canvas: Canvas, start: float, step: float, base: float, value: float, words: str, *, hatched: bool = False
) -> None:
    if value <= 0:
        return
    left, right = canvas.x(start), canvas.x(start + step)
    width = min(WIDEST, right - left - 2 * min(4.0, 0.15 * (right - left)))
    height = max(1.0, canvas.y(base) - canvas.y(base + value))
    kind = "c2" if hatched else "c1"
    canvas.bar(kind, (left + right - width) / 2, canvas.y(base) - height, width, height, words, hatched=hatched)


def _swatch(canvas: Canvas, x: float, y: float, *, hatched: bool) -> None:
    fill = f'class="c2 edge" fill="url(#{canvas.plot_id}-hatch)"' if hatched else 'class="c1 fill"'
    canvas.parts.append(f'<rect {fill} x="{x:.1f}" y="{y - 6:.1f}" width="20" height="11"/>')


def _rule_labels(canvas: Canvas, rules: Sequence[tuple[float, str]]) -> list[tuple[float, float]]:
    """Write the labels of rules, stacked if they would overlap, make room for them, and return the start of each rule."""
    rows: list[float] = []
    found = []
    for share, label in sorted(rules):
        half = text_width(label) / 2
        x = min(max(canvas.x(share), canvas.left + half), canvas.size.width - 4 - half)
        row = next((row for row, end in enumerate(rows) if x - half > end), len(rows))
        rows[row : row + 1] = [x + half + 8]
        y = 13 + row * LINE
        canvas.text(x, y, label, anchor="middle")
        found.append((share, y + 4))
    canvas.top = max(canvas.top, 10 + len(rows) * LINE)
    return found


CURVES_HEIGHT = 280.0
FEW_POINTS = 12
"""A curve of at most so many points shows them."""
MOST_ROWS = 50
"""Rows of the table for one curve; a curve of more points is thinned for it."""
MOST_DRAWN = 300
_DASHES = ("", " dashed", " dotted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A curve of a plot."""

    name: str
    points: Sequence[Point]
    """In the order in which they are joined."""
    band: Sequence[tuple[float, float]] = ()
    """The plausible interval at each point; empty for no band."""
    sizes: Sequence[float] = ()
    """Weight of each point, from 0; heavier points get a larger marker. Empty for equal weights."""
    notes: Sequence[str] = ()
    """A note on each point for the column `Plane.note` of the table; empty for none."""
    is_joined: bool = True
    """Whether a line joins the points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """The axes that curves are drawn in."""

    x: str
    y: str
    """Names of the axes."""
    x_is_whole: bool = False
    """Whether only whole numbers make sense on the horizontal axis."""
    x_range: Point | None = None
    y_range: Point | None = None
    """Ends of the axes; None for the range of the data."""
    diagonal: str = ""
    """Label of the line of equal x and y; empty for no line."""
    rules: Sequence[Rule] = ()
    """Values of y that are marked."""
    note: str = ""
    """Name of the column of the notes."""


def curves(title: str, found: Sequence[Curve], plane: Plane, *, caption: str = "") -> str:
    """Return curves as a figure."""
    places = [point for curve in found for point in curve.points]
    ends = [(x, end) for curve in found for (x, _), pair in zip(curve.points, curve.band, strict=False) for end in pair]
    ranges = (
        plane.x_range or _extent([x for x, _ in places]),
        plane.y_range or _extent([y for _, y in places + ends] + [rule.value for rule in plane.rules]),
    )

    def draw_key(canvas: Canvas, x: float, y: float, *, number: int | None) -> None:
        if number is None:
            canvas.line("guide", x, y, x + 22, y)
        else:
            canvas.line(f"c{number + 1} curve{_DASHES[number % len(_DASHES)]}", x, y, x + 22, y)
            canvas.parts.append(_marker(x + 11, y, number, 4))

    def draw(size: Size, plot_id: str) -> tuple[float, str]:
        canvas = Canvas(size, plot_id, CURVES_HEIGHT, bottom=22 + LINE)
        entries = [(curve.name, partial(draw_key, number=number)) for number, curve in enumerate(found)]
        canvas.legend([*entries, *[(plane.diagonal, partial(draw_key, number=None))] * bool(plane.diagonal)])
        axes = _Axes.draw(canvas, plane, *ranges)
        for number, curve in enumerate(found):
            axes.band(curve, number)
        for number, curve in enumerate(found):
            axes.curve(curve, number)
        return CURVES_HEIGHT, "".join(canvas.parts)

    return plot_figure(title, _in_words(found, plane), _numbers(title, found, plane), draw, caption)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Axes on a canvas, onto which values are mapped."""

    canvas: Canvas
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    @classmethod
    def draw(cls, canvas: Canvas, plane: Plane, x_range: Point, y_range: Point) -> _Axes:
        """Draw the axes, and make room for their numbers."""
        x_ticks = nice_ticks(*x_range, canvas.size.ticks + 1, whole=plane.x_is_whole)
        y_ticks = nice_ticks(*y_range, 6)
        canvas.left = widest(_texts(y_ticks)) + 12
        canvas.top += LINE + 4  # the name of the vertical axis
        room = 0.35 * canvas.size.width
        labels = [fit_text(rule.label, room) for rule in plane.rules]
        canvas.right = 12.0 + widest(labels)
        axes = cls(canvas, x_ticks, y_ticks)
        for tick, text in zip(y_ticks, _texts(y_ticks), strict=True):
            y = axes.y(tick)
            canvas.line("axis" if tick == y_ticks[0] else "rule", canvas.x(0), y, canvas.x(1), y)
            canvas.text(canvas.left - 6, y + 4, text, anchor="end", kind="tick")
        for tick, text in zip(x_ticks, _texts(x_ticks), strict=True):
            x = axes.x(tick)
            canvas.line("axis", x, canvas.y(0), x, canvas.y(0) + 4)
            canvas.text(x, canvas.y(0) + 17, text, anchor="middle", kind="tick")
        canvas.text(4, canvas.top - 8, plane.y, kind="tick")
        canvas.text(canvas.x(0.5), CURVES_HEIGHT - 4, plane.x, anchor="middle", kind="tick")
        low, high = max(x_ticks[0], y_ticks[0]), min(x_ticks[-1], y_ticks[-1])
        if plane.diagonal and low < high:
            canvas.line("guide", axes.x(low), axes.y(low), axes.x(high), axes.y(high))
        for rule, label in zip(plane.rules, labels, strict=True):
            y = axes.y(rule.value)
            canvas.line("guide", canvas.x(0), y, canvas.x(1), y)
            canvas.text(canvas.x(1) + 5, y + 4, label)
        return axes

    def x(self, value: float) -> float:
        return self.canvas.x(_share(value, self.x_ticks))

    def y(self, value: float) -> float:
        return self.canvas.y(_share(value, self.y_ticks))

    def band(self, curve: Curve, number: int) -> None:
        """Draw the band of a curve; around a single point, a line."""
        if not curve.band:
            return
        kept = _spread_places(len(curve.points))
        low = [(self.x(curve.points[each][0]), self.y(curve.band[each][0])) for each in kept]
        high = [(self.x(curve.points[each][0]), self.y(curve.band[each][1])) for each in kept]
        if len(low) == 1:
            self.canvas.line(f"c{number + 1} curve", *low[0], *high[0])
        elif low:
            self.canvas.parts.append(
                f'<polygon class="c{number + 1} fill band" points="{_join_places(low + high[::-1])}"/>'
            )

    def curve(self, curve: Curve, number: int) -> None:
        """Draw the line of a curve, and its points if they are few or differ in size."""
        places = [
            (self.x(curve.points[each][0]), self.y(curve.points[each][1])) for each in _spread_places(len(curve.points))
        ]
        kind = f"c{number + 1} curve{_DASHES[number % len(_DASHES)]}"
        if len(places) > 1 and curve.is_joined:
            self.canvas.parts.append(f'<polyline class="{kind}" points="{_join_places(places)}"/>')
        largest = max(curve.sizes, default=0.0)
        if curve.sizes or not curve.is_joined or len(places) <= FEW_POINTS:
            for each, (x, y) in enumerate(places):
                share = curve.sizes[each] / largest if curve.sizes and largest > 0 else 0.25
                self.canvas.parts.append(_marker(x, y, number, 3 + 5 * math.sqrt(min(1.0, max(0.0, share)))))


def _share(value: float, ticks: Sequence[float]) -> float:
    # Halved, because the distance of the largest numbers is infinite.
    return (value / 2 - ticks[0] / 2) / (ticks[-1] / 2 - ticks[0] / 2)


def _extent(values: Sequence[float]) -> Point:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)


def _texts(ticks: Sequence[float]) -> list[str]:
    return [tick_text(tick, ticks[1] - ticks[0]) for tick in ticks]


def _spread_places(count: int, most: int = MOST_DRAWN) -> list[int]:
    """Return evenly spread places of at most `most` points, including the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def _join_places(places: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _marker(x: float, y: float, number: int, radius: float) -> str:
    """Return the marker of a curve: a disc, an open square, an open triangle."""
    kind = f"c{number + 1} mark{' open' if number else ''}"
    if number == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    if number == 1:
        side = 1.8 * radius
        return f'<rect class="{kind}" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}"/>'
    corners = [(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)]
    return f'<polygon class="{kind}" points="{_join_places(corners)}"/>'


def _in_words(found: Sequence[Curve], plane: Plane) -> str:
    parts = []
    for curve in found:
        kept = [curve.points[each] for each in _spread_places(len(curve.points), 5)]
        values = ", ".join(f"{tick_text(y)} at {tick_text(x)}" for x, y in kept)
        parts.append(f"{curve.name}: {values or 'no points'}")
    marked = [f"marked at {tick_text(rule.value)}: {rule.label}" for rule in plane.rules]
    return f"{plane.y} against {plane.x}. {'; '.join(parts + marked)}."


def _numbers(title: str, found: Sequence[Curve], plane: Plane) -> str:
    has_band, has_notes = any(curve.band for curve in found), any(curve.notes for curve in found)
    header = ["curve"] * (len(found) > 1) + [plane.x, plane.y] + ["plausible"] * has_band + [plane.note] * has_notes
    rows = []
    for curve in found:
        for each in _spread_places(len(curve.points), MOST_ROWS):
            x, y = curve.points[each]
            row = [curve.name] * (len(found) > 1) + [_number(x), _number(y)]
            if has_band:
                row.append(" to ".join(map(_number, curve.band[each])) if curve.band else "–")
            if has_notes:
                row.append(curve.notes[each] if curve.notes else "–")
            rows.append(row)
    return table(header, rows, caption=title)


def _number(value: float) -> str:
    """Return a number for the table, with at most three decimals for common sizes."""
    if 0.001 <= abs(value) < 1_000:
        text = f"{value:.3f}".rstrip("0").rstrip(".")
    else:
        text = f"{value:,.6g}" if abs(value) >= 1 else f"{value:.2g}"
    return text.replace("-", "−")
