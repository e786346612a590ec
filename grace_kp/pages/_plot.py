"""Plots of counts as SVG, drawn on the server: bars over time, a histogram, and bars with names. Each has its numbers as a table beside it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from grace_kp.pages._plot_canvas import LINE, Canvas, fitted, plot_figure, text_width, widest
from grace_kp.pages._plot_ticks import date_ticks, nice_ticks, tick_text
from grace_kp.pages._table import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from grace_kp.pages._plot_canvas import Size

HEIGHT = 210.0
WIDEST = 90.0
"""Width of a bar at most: a single day is no wall."""
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
    """Return bars over time as a figure; the series of a bar stand on each other, and the second is hatched.

    Args:
        title: what it shows; different for each plot of a page.
        dates: the first day of each bar, in order.
        series: one or two lists of numbers from 0, one number for each date.
        unit: what a bar stands for: `day`, `week`, …
        caption: a sentence below the title.
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
        return HEIGHT, canvas.drawn()

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
    """Return counts in neighbouring bins as a figure.

    Args:
        title: what it shows; different for each plot of a page.
        counts: numbers from 0, one for each bin.
        edges: where the bins begin, and where the last ends: one more than there are bins. Bins are drawn with the same width.
        labels: how the edges read; their numbers when empty.
        rules: values of the axis that are marked.
        unit: what is counted.
        axis: name of the horizontal axis.
        caption: a sentence below the title.

    Raises:
        ValueError: there are not as many edges as the bins need.
    """
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
        for place in range(0, len(edges), _every(len(counts), size.ticks)):
            x = canvas.x(place * step)
            canvas.line("axis", x, canvas.y(0), x, canvas.y(0) + 4)
            canvas.text(x, canvas.y(0) + 17, labels[place], anchor="middle", kind="tick")
        if axis:
            canvas.text(canvas.x(0.5), canvas.height - 4, axis, anchor="middle", kind="tick")
        return canvas.height, canvas.drawn()

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
    """Return a horizontal bar for each name as a figure, with its number and its share beside it.

    Args:
        title: what it shows; different for each plot of a page.
        values: numbers from 0 by name, from top to bottom.
        kind: what the names are.
        unit: what is counted.
        shares: whether the values are parts of a whole, so that their shares are shown.
        caption: a sentence below the title.
    """
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
            canvas.text(canvas.left - 8, y + 17, fitted(name, canvas.left - 10), anchor="end")
            canvas.bar("c1", canvas.left, y + 5, end - canvas.left, _ROW - 10, f"{name}: {texts[name]} {unit}")
            canvas.text(end + 6, y + 17, texts[name], kind="tick")
        canvas.line("axis", canvas.left, 4, canvas.left, height - 4)
        return height, canvas.drawn()

    header = (kind, unit, "share") if shares else (kind, unit)
    rows = [
        (name, f"{value:,.6g}", *((f"{_from_zero(value) / total:.1%}" if total else "–",) if shares else ()))
        for name, value in values.items()
    ]
    return plot_figure(title, f"{words}.", table(header, rows, caption=title), draw, caption)


def _from_zero(value: float) -> float:
    """Return a number that a bar can have: 0 for one below, and for NaN and infinity."""
    return value if math.isfinite(value) and value > 0 else 0.0


def _every(bins: int, most: int) -> int:
    """Return how many bins are between two ticks: a divisor of the number of bins, if there is one that is not much larger than necessary."""
    least = max(1, math.ceil(bins / most))
    return next((every for every in range(least, 2 * least + 1) if bins % every == 0), least)


def _place(value: float, edges: Sequence[float]) -> float:
    """Return the place of a value among bins that are drawn with the same width, as a share of all."""
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
    left, right = canvas.x(start), canvas.x(start + step)
    gap = min(4.0, 0.15 * (right - left))
    width = min(WIDEST, right - left - 2 * gap)
    top = canvas.y(base + value)
    if value > 0:
        height = max(1.0, canvas.y(base) - top)
        kind = "c2" if hatched else "c1"
        y = canvas.y(base) - height
        canvas.bar(kind, (left + right - width) / 2, y, width, height, words, hatched=hatched)


def _swatch(canvas: Canvas, x: float, y: float, *, hatched: bool) -> None:
    fill = f'class="c2 edge" fill="url(#{canvas.plot_id}-hatch)"' if hatched else 'class="c1 fill"'
    canvas.parts.append(f'<rect {fill} x="{x:.1f}" y="{y - 6:.1f}" width="20" height="11"/>')


def _rule_labels(canvas: Canvas, rules: Sequence[tuple[float, str]]) -> list[tuple[float, float]]:
    """Write the labels of rules above each other where they would overlap, make room for them, and return where each rule begins."""
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
