"""Reads the drawings of a figure: their places, their texts, and the numbers of their table."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
ACROSS, DOWN = {"x", "x1", "x2", "cx"}, {"y", "y1", "y2", "cy"}


def drawings(figure):
    """The two drawings of a figure as elements; an error if one is no XML."""
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", figure, re.DOTALL)]


def outside(drawing):
    """The places in a drawing that are outside of its frame, and those that are no numbers."""
    _, _, width, height = map(float, drawing.get("viewBox").split())
    found = []
    inside = {part for pattern in drawing.iter("pattern") for part in pattern.iter()}
    for element in drawing.iter():
        if element in inside:
            continue
        places = [(name, element.get(name), width) for name in ACROSS] + [
            (name, element.get(name), height) for name in DOWN
        ]
        corners = [pair.split(",") for pair in (element.get("points") or "").split()]
        places += [("points", x, width) for x, _ in corners] + [("points", y, height) for _, y in corners]
        if element.tag == "rect":
            places.append(("right", float(element.get("x")) + float(element.get("width")), width))
            places.append(("bottom", float(element.get("y")) + float(element.get("height")), height))
        found += [
            (element.tag, name, value)
            for name, value, limit in places
            if value is not None and not -0.06 <= float(value) <= limit + 0.06
        ]
    return found


def cells(figure):
    """The rows of the table of a figure, as texts."""
    body = figure[figure.index("<tbody") : figure.index("</tbody>")]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", body)]


def ids(figure):
    return re.findall(r' id="([^"]+)"', figure)
