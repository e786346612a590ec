"""The canvas of every plot: two sizes with axes, rules and texts, in a figure that also holds the numbers as a table.

A plot is drawn twice, for wide and for narrow pages, and the style shows one of the two: letters that shrink with their plot cannot be read on
a phone. Colours are classes of the style. No two series differ in colour alone.
"""

from __future__ import annotations

import math
import unicodedata
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grace_kp.pages._page import safe
from grace_kp.pages._printable import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LETTER, WIDE_LETTER = 6.9, 12.5
"""Widths of a letter and of an ideograph in text of 12 units; generous, because the reader's font is not known."""
LINE = 15.0
"""Height of a line of text."""
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
    """Return an estimate of the width of a text, in units."""
    return sum(WIDE_LETTER if unicodedata.east_asian_width(each) in "WF" else LETTER for each in text)


def fitted(text: str, width: float) -> str:
    """Return a text, cut to a width with an ellipsis, and its invisible characters made visible."""
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
        """Return the place of a share of the width; what lies outside is drawn at the edge."""
        return self.left + _unit(share) * (self.size.width - self.left - self.right)

    def y(self, share: float) -> float:
        """Return the place of a share of the height, from the bottom; what lies outside is drawn at the edge."""
        return self.height - self.bottom - _unit(share) * (self.height - self.top - self.bottom)

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draw a line of a class of the style."""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> None:
        """Write a text; it is moved into the drawing where it would reach out of it, and cut where it is wider."""
        words = fitted(words, self.size.width - 2 * _EDGE)
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
        """Write a legend at the top and make room for it.

        Args:
            entries: words, and what draws a sample of 22 units from a place on.
        """
        x, y = self.left, LINE
        for words, draw in entries:
            words = fitted(words, self.size.width - self.left - 40)
            wide = 28 + text_width(words)
            if x > self.left and x + wide > self.size.width - _EDGE:
                x, y = self.left, y + LINE + 3
            draw(self, x, y - 4)
            self.text(x + 28, y, words)
            x += wide + 14
        self.top = max(self.top, y + 10)

    def drawn(self) -> str:
        """Return what was drawn."""
        return "".join(self.parts)


def widest(texts: Iterable[str]) -> float:
    """Return the width of the widest text, in units; 0 without any."""
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
    """Return a figure as HTML: what it shows, the drawing in two sizes, and its numbers.

    Args:
        title: what it shows; plain text, different for each plot of a page.
        description: what it shows in words, for people who cannot see it; plain text.
        numbers: HTML, a table.
        draw: returns the height and the parts of the drawing for a size and the beginning of its ids.
        caption: a sentence below the title; plain text.
    """
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
