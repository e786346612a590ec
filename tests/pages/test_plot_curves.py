"""Plots of curves: whatever the numbers, the drawing is whole, and nothing is told apart by colour alone."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import Curve, Plane, Rule, curves
from tests.pages.drawing import cells, drawings
from tests.pages.reading import Elements
from tests.pages.test_plot import HOSTILE, whole

FINITE = st.floats(allow_nan=False, allow_infinity=False)
CURVES = st.lists(
    st.lists(st.tuples(FINITE, FINITE, FINITE, FINITE), max_size=20).map(
        lambda rows: Curve(
            name="a curve",
            points=[(x, y) for x, y, _, _ in rows],
            band=[tuple(sorted(row[1:3])) for row in rows],
            sizes=[abs(row[3]) for row in rows],
        )
    ),
    max_size=3,
)
UNIT = Plane(x="confidence", y="share correct", x_range=(0, 1), y_range=(0, 1), diagonal="as stated")


@given(CURVES, st.booleans(), st.lists(FINITE, max_size=3))
def test_any_numbers_give_curves(found, fixed, rules):
    """Inside of the frame, also where values lie outside of the stated range."""
    plane = UNIT if fixed else Plane(x="x", y="y", rules=[Rule(value, "a rule") for value in rules], diagonal="equal")
    assert whole(curves("Curves", found, plane))


def test_points_need_not_be_joined():
    """Each is drawn, however many there are, and no line joins them; whole numbers on the axis have no fractions between them."""
    plane = Plane(x="round", y="score", x_is_whole=True, x_range=(0, 3))
    found = curves("Scores", [Curve(name="a run", points=[(1, 0.5)] * 20 + [(2, 1)], is_joined=False)], plane)
    assert "<polyline" not in found
    assert 2 * 22 == found.count("<circle")
    assert ">0.5<" in found
    assert ">1.5<" not in found


def test_the_table_holds_the_points():
    """With what is plausible, and notes."""
    curve = Curve(name="learned", points=[(0.25, 0.5), (0.75, 1)], band=[(0.25, 0.75), (0.5, 1)], notes=["3", "4"])
    plane = Plane(x="confidence", y="share correct", note="labels")
    assert [["0.25", "0.5", "0.25 to 0.75", "3"], ["0.75", "1", "0.5 to 1", "4"]] == cells(curves("A", [curve], plane))
    two = curves("A", [Curve(name="learned", points=[(0, 1)]), Curve(name="formula", points=[(1, 0)])], plane)
    assert [["learned", "0", "1"], ["formula", "1", "0"]] == cells(two)


def test_a_long_curve_is_thinned_in_its_table():
    """The first and the last point stay."""
    rows = cells(curves("A", [Curve(name="a", points=[(x, 2 * x) for x in range(1_001)])], UNIT))
    assert 50 == len(rows)
    assert (["0", "0"], ["1,000", "2,000"]) == (rows[0], rows[-1])


def test_points_stand_where_their_numbers_are():
    """The middle of both ranges is the middle of the axes."""
    wide = drawings(curves("A", [Curve(name="a", points=[(0, 0), (0.5, 0.5), (1, 1)])], UNIT))[0]
    points = re.search(r'points="([^"]+)"', curves("A", [Curve(name="a", points=[(0, 0), (0.5, 0.5), (1, 1)])], UNIT))[
        1
    ]
    (x0, y0), (x1, y1), (x2, y2) = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert abs(x1 - (x0 + x2) / 2) < 0.1
    assert abs(y1 - (y0 + y2) / 2) < 0.1
    assert 4 == len(list(wide.iter("circle")))  # three points, and the sample of the legend


def test_curves_differ_in_line_and_marker():
    """Not only in colour."""
    two = curves("A", [Curve(name="a", points=[(0, 0), (1, 1)]), Curve(name="b", points=[(0, 1), (1, 0)])], UNIT)
    wide = drawings(two)[0]
    assert ["c1 curve", "c2 curve dashed"] == [line.get("class") for line in wide.iter("polyline")]
    assert {"c1 mark"} == {mark.get("class") for mark in wide.iter("circle")}
    assert {"c2 mark open"} == {mark.get("class") for mark in wide.iter("rect")}


def test_a_single_point_shows_what_is_plausible():
    """As a line through it, where a band would have no width."""
    wide = drawings(curves("A", [Curve(name="a", points=[(0.5, 0.5)], band=[(0.2, 0.8)])], UNIT))[0]
    upright = [
        line for line in wide.iter("line") if line.get("class") == "c1 curve" and line.get("x1") == line.get("x2")
    ]
    assert 1 == len(upright)


def test_texts_are_text():
    """Markup in names is shown."""
    plane = Plane(x=HOSTILE, y=HOSTILE, rules=[Rule(0.5, HOSTILE)], diagonal=HOSTILE, note=HOSTILE)
    figure = curves(HOSTILE, [Curve(name=HOSTILE, points=[(0, 1)], notes=[HOSTILE])], plane, caption=HOSTILE)
    assert whole(figure)
    assert "img" not in Elements(figure).tags
