"""Plots of one number against another as SVG: curves with markers and bands, a diagonal or levels to compare them with, and marked points.

Curves differ in their line, their marker and their name in the legend, so that neither grey nor colour-blindness hides which is which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from grace_kp.pages._plot_canvas import LINE, Canvas, fitted, plot_figure, widest
from grace_kp.pages._plot_ticks import nice_ticks, tick_text
from grace_kp.pages._table import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grace_kp.pages._plot import Rule
    from grace_kp.pages._plot_canvas import Size

    Point = tuple[float, float]

HEIGHT = 280.0
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
    """The lower and upper end of what is plausible at each point; empty for none."""
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
    """Ends of the axes; those of the data where None."""
    diagonal: str = ""
    """Meaning of the line of equal x and y; the line is drawn where this is not empty."""
    rules: Sequence[Rule] = ()
    """Values of y that are marked."""
    note: str = ""
    """Name of the column of the notes."""


def curves(title: str, found: Sequence[Curve], plane: Plane, *, caption: str = "") -> str:
    """Return curves as a figure.

    Args:
        title: what it shows; different for each plot of a page.
        found: up to three curves.
        plane: their axes.
        caption: a sentence below the title.
    """
    places = [point for curve in found for point in curve.points]
    ends = [(x, end) for curve in found for (x, _), pair in zip(curve.points, curve.band, strict=False) for end in pair]
    ranges = (
        plane.x_range or _extent([x for x, _ in places]),
        plane.y_range or _extent([y for _, y in places + ends] + [rule.value for rule in plane.rules]),
    )

    def draw(size: Size, plot_id: str) -> tuple[float, str]:
        canvas = Canvas(size, plot_id, HEIGHT, bottom=22 + LINE)
        canvas.legend(
            [(curve.name, partial(_key, number=number)) for number, curve in enumerate(found)]
            + [(plane.diagonal, _guide)] * bool(plane.diagonal)
        )
        axes = _Axes.drawn(canvas, plane, *ranges)
        for number, curve in enumerate(found):
            axes.band(curve, number)
        for number, curve in enumerate(found):
            axes.curve(curve, number)
        return HEIGHT, canvas.drawn()

    return plot_figure(title, _in_words(found, plane), _numbers(title, found, plane), draw, caption)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Axes on a canvas, onto which values are mapped."""

    canvas: Canvas
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    @classmethod
    def drawn(cls, canvas: Canvas, plane: Plane, x_range: Point, y_range: Point) -> _Axes:
        """Draw the axes, and make room for their numbers."""
        x_ticks = nice_ticks(*x_range, canvas.size.ticks + 1, whole=plane.x_is_whole)
        y_ticks = nice_ticks(*y_range, 6)
        canvas.left = widest(_texts(y_ticks)) + 12
        canvas.top += LINE + 4  # the name of the vertical axis
        room = 0.35 * canvas.size.width
        labels = [fitted(rule.label, room) for rule in plane.rules]
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
        canvas.text(canvas.x(0.5), HEIGHT - 4, plane.x, anchor="middle", kind="tick")
        if plane.diagonal:
            axes._diagonal()
        for rule, label in zip(plane.rules, labels, strict=True):
            y = axes.y(rule.value)
            canvas.line("guide", canvas.x(0), y, canvas.x(1), y)
            canvas.text(canvas.x(1) + 5, y + 4, label)
        return axes

    def x(self, value: float) -> float:
        return self.canvas.x(_share(value, self.x_ticks))

    def y(self, value: float) -> float:
        return self.canvas.y(_share(value, self.y_ticks))

    def _diagonal(self) -> None:
        low, high = max(self.x_ticks[0], self.y_ticks[0]), min(self.x_ticks[-1], self.y_ticks[-1])
        if low < high:
            self.canvas.line("guide", self.x(low), self.y(low), self.x(high), self.y(high))

    def band(self, curve: Curve, number: int) -> None:
        """Draw the band of a curve; around a single point, a line."""
        if not curve.band:
            return
        kept = _thinned(len(curve.points))
        low = [(self.x(curve.points[each][0]), self.y(curve.band[each][0])) for each in kept]
        high = [(self.x(curve.points[each][0]), self.y(curve.band[each][1])) for each in kept]
        if len(low) == 1:
            self.canvas.line(f"c{number + 1} curve", *low[0], *high[0])
        elif low:
            self.canvas.parts.append(f'<polygon class="c{number + 1} fill band" points="{_joined(low + high[::-1])}"/>')

    def curve(self, curve: Curve, number: int) -> None:
        """Draw the line of a curve, and its points where they are few or differ in size."""
        places = [
            (self.x(curve.points[each][0]), self.y(curve.points[each][1])) for each in _thinned(len(curve.points))
        ]
        kind = f"c{number + 1} curve{_DASHES[number % len(_DASHES)]}"
        if len(places) > 1 and curve.is_joined:
            self.canvas.parts.append(f'<polyline class="{kind}" points="{_joined(places)}"/>')
        largest = max(curve.sizes, default=0.0)
        if curve.sizes or not curve.is_joined or len(places) <= FEW_POINTS:
            for each, (x, y) in enumerate(places):
                share = curve.sizes[each] / largest if curve.sizes and largest > 0 else 0.25
                self.canvas.parts.append(_mark(x, y, number, 3 + 5 * math.sqrt(min(1.0, max(0.0, share)))))


def _share(value: float, ticks: Sequence[float]) -> float:
    # Halved, because the distance of the largest numbers is infinite.
    return (value / 2 - ticks[0] / 2) / (ticks[-1] / 2 - ticks[0] / 2)


def _extent(values: Sequence[float]) -> Point:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)


def _texts(ticks: Sequence[float]) -> list[str]:
    return [tick_text(tick, ticks[1] - ticks[0]) for tick in ticks]


def _thinned(count: int, most: int = MOST_DRAWN) -> list[int]:
    """Return the places of at most so many points, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def _joined(places: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _mark(x: float, y: float, number: int, radius: float) -> str:
    """Return the marker of a curve: a disc, an open square, an open triangle."""
    kind = f"c{number + 1} mark{' open' if number else ''}"
    if number == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    if number == 1:
        side = 1.8 * radius
        return f'<rect class="{kind}" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}"/>'
    corners = [(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)]
    return f'<polygon class="{kind}" points="{_joined(corners)}"/>'


def _key(canvas: Canvas, x: float, y: float, *, number: int) -> None:
    canvas.line(f"c{number + 1} curve{_DASHES[number % len(_DASHES)]}", x, y, x + 22, y)
    canvas.parts.append(_mark(x + 11, y, number, 4))


def _guide(canvas: Canvas, x: float, y: float) -> None:
    canvas.line("guide", x, y, x + 22, y)


def _in_words(found: Sequence[Curve], plane: Plane) -> str:
    parts = []
    for curve in found:
        kept = [curve.points[each] for each in _thinned(len(curve.points), 5)]
        values = ", ".join(f"{tick_text(y)} at {tick_text(x)}" for x, y in kept)
        parts.append(f"{curve.name}: {values or 'no points'}")
    marked = [f"marked at {tick_text(rule.value)}: {rule.label}" for rule in plane.rules]
    return f"{plane.y} against {plane.x}. {'; '.join(parts + marked)}."


def _numbers(title: str, found: Sequence[Curve], plane: Plane) -> str:
    has_band, has_notes = any(curve.band for curve in found), any(curve.notes for curve in found)
    header = ["curve"] * (len(found) > 1) + [plane.x, plane.y] + ["plausible"] * has_band + [plane.note] * has_notes
    rows = []
    for curve in found:
        for each in _thinned(len(curve.points), MOST_ROWS):
            x, y = curve.points[each]
            row = [curve.name] * (len(found) > 1) + [_number(x), _number(y)]
            if has_band:
                row.append(" to ".join(map(_number, curve.band[each])) if curve.band else "–")
            if has_notes:
                row.append(curve.notes[each] if curve.notes else "–")
            rows.append(row)
    return table(header, rows, caption=title)


def _number(value: float) -> str:
    """Return a number for the table: three decimals, where these say something about it."""
    if 0.001 <= abs(value) < 1_000:
        text = f"{value:.3f}".rstrip("0").rstrip(".")
    else:
        text = f"{value:,.6g}" if abs(value) >= 1 else f"{value:.2g}"
    return text.replace("-", "−")
