"""Plots: bars, histograms, curves, their axes and ticks."""

from __future__ import annotations

import itertools
import math
import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import (
    Curve,
    Plane,
    Rule,
    curves,
    date_ticks,
    histogram,
    named_bars,
    nice_ticks,
    tick_text,
    timeline,
)
from grace_kp.pages._plot_canvas import fit_text, text_width
from tests.pages.drawing import cells, drawings, ids, outside
from tests.pages.reading import Elements

HOSTILE = '</svg><img src=x onerror=alert(1)>"&\u202e' + "長い名前" * 20
NUMBERS = st.floats() | st.integers(0, 10**7)
DAYS = [date(2026, 11, 1) + timedelta(days=place) for place in range(30)]


def whole(figure):
    """Both drawings are XML inside of their frames, and nothing is referred to that is not there."""
    assert [[], []] == [outside(drawing) for drawing in drawings(figure)]
    assert len(set(ids(figure))) == len(ids(figure))
    assert set(re.findall(r"url\(#([^)]+)\)", figure)) <= set(ids(figure))
    return True


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_any_numbers_give_bars_over_time(values):
    series = {"good": [one for one, _ in values], "bad": [other for _, other in values]}
    assert whole(timeline("Runs", DAYS[: len(values)], series))


@given(st.lists(NUMBERS, min_size=1, max_size=25), st.lists(st.floats(), max_size=4))
def test_any_numbers_give_a_histogram(counts, marked):
    edges = [place / len(counts) for place in range(len(counts) + 1)]
    assert whole(histogram("Confidence", counts, edges=edges, rules=[Rule(value, "a rule") for value in marked]))


@given(st.dictionaries(st.text(), NUMBERS, max_size=8))
def test_any_numbers_and_names_give_named_bars(values):
    assert whole(named_bars("Levels", values))


def test_tables_hold_the_numbers_of_the_plot():
    figure = timeline("Runs", DAYS[:2], {"good": [1_234, 2], "bad": [0, 5]})
    assert [["2026-11-01", "1,234", "0"], ["2026-11-02", "2", "5"]] == cells(figure)
    figure = histogram("Confidence", [1, 3], edges=[0, 0.5, 1])
    assert [["0 to 0.5", "1", "25.0%"], ["0.5 to 1", "3", "75.0%"]] == cells(figure)
    figure = histogram("Waits", [1, 3], edges=[0, 60, 3_600], labels=["0", "1min", "1h"])
    assert ["0 to 1min", "1min to 1h"] == [row[0] for row in cells(figure)]
    assert [["silent", "1", "25.0%"], ["none", "3", "75.0%"]] == cells(named_bars("Levels", {"silent": 1, "none": 3}))
    assert [["a", "1.5"]] == cells(named_bars("Levels", {"a": 1.5}, shares=False))


def test_bars_are_as_high_as_their_numbers():
    wide = drawings(timeline("Runs", DAYS[:2], {"good": [10, 5], "bad": [0, 5]}))[0]
    bars = [bar for bar in wide.iter("rect") if bar.find("title") is not None]
    heights = {bar.find("title").text: float(bar.get("height")) for bar in bars}
    assert {"2026-11-01: 10 good", "2026-11-02: 5 good", "2026-11-02: 5 bad"} == set(heights)
    assert heights["2026-11-01: 10 good"] == pytest.approx(2 * heights["2026-11-02: 5 good"], abs=0.02)
    assert heights["2026-11-02: 5 bad"] == heights["2026-11-02: 5 good"]
    lower, upper = bars[1:]
    assert float(upper.get("y")) + float(upper.get("height")) == pytest.approx(float(lower.get("y")), abs=0.02)
    assert lower.get("fill") is None
    assert "hatch" in upper.get("fill")


def test_a_rule_stands_at_its_value():
    """0.9 of ten bins from 0 to 1 is where the last begins; labels that would overlap stand above each other."""
    figure = histogram(
        "Confidence",
        [1] * 10,
        edges=[place / 10 for place in range(11)],
        rules=[Rule(0.9, "silent"), Rule(0.89, "notify")],
    )
    narrow = drawings(figure)[1]
    bars = [float(bar.get("x")) for bar in narrow.iter("rect")]
    step = bars[1] - bars[0]
    lines = sorted(float(line.get("x1")) for line in narrow.iter("line") if line.get("class") == "guide")
    assert lines[1] - lines[0] == pytest.approx(0.1 * step, abs=0.2)
    assert 2 == len({text.get("y") for text in narrow.iter("text") if text.text in {"silent", "notify"}})


def test_bins_and_edges_belong_together():
    with pytest.raises(ValueError, match="2 bins have 3 edges"):
        histogram("Confidence", [1, 2], edges=[0, 1])


@pytest.mark.parametrize(
    "figure",
    [
        named_bars(HOSTILE, {HOSTILE: 1}, unit=HOSTILE, caption=HOSTILE),
        timeline(HOSTILE, DAYS[:1], {HOSTILE: [1], "other": [2]}, caption=HOSTILE, unit=HOSTILE),
        histogram(HOSTILE, [1], edges=[0, 1], rules=[Rule(0, HOSTILE)], unit=HOSTILE, axis=HOSTILE, caption=HOSTILE),
        curves(
            HOSTILE,
            [Curve(name=HOSTILE, points=[(0, 1)], notes=[HOSTILE])],
            Plane(x=HOSTILE, y=HOSTILE, rules=[Rule(0.5, HOSTILE)], diagonal=HOSTILE, note=HOSTILE),
            caption=HOSTILE,
        ),
    ],
    ids=["named", "timeline", "histogram", "curves"],
)
def test_texts_are_text(figure):
    assert whole(figure)
    assert "img" not in Elements(figure).tags
    assert "\u202e" not in figure


def test_nothing_is_drawn_as_nothing():
    for figure in (
        timeline("Runs", [], {"good": []}),
        named_bars("Levels", {}),
        histogram("Scores", [0], edges=[0, 1]),
    ):
        assert whole(figure)
        assert [] == [
            bar for drawing in drawings(figure) for bar in drawing.iter("rect") if bar.find("title") is not None
        ]


def test_a_plot_is_drawn_for_wide_and_for_narrow_pages():
    """The style shows one of the two, so that letters are as large on a phone."""
    wide, narrow = drawings(named_bars("Levels", {"silent": 1}))
    assert ("plot at-wide", "plot at-narrow") == (wide.get("class"), narrow.get("class"))
    assert float(wide.get("viewBox").split()[2]) > 1.5 * float(narrow.get("viewBox").split()[2])


def test_a_drawing_has_a_name_and_a_description():
    figure = named_bars("Levels", {"silent": 3}) + named_bars("Agents", {"a": 1})
    assert len(set(ids(figure))) == len(ids(figure)) == 8
    referred = re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', figure)
    assert sorted(ids(figure)) == sorted(referred)
    assert not re.search(r"style=|<script|<style|on\w+=", figure)  # the policy of the page forbids both
    assert "<desc" in figure
    assert "silent: 3 (100.0%)." in figure


@given(st.text(max_size=300), st.floats(20, 600))
def test_texts_fit(text, width):
    found = fit_text(text, width)
    assert text_width(found) <= width
    assert fit_text(found, width) == found


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
    curve = Curve(name="learned", points=[(0.25, 0.5), (0.75, 1)], band=[(0.25, 0.75), (0.5, 1)], notes=["3", "4"])
    plane = Plane(x="confidence", y="share correct", note="labels")
    assert [["0.25", "0.5", "0.25 to 0.75", "3"], ["0.75", "1", "0.5 to 1", "4"]] == cells(curves("A", [curve], plane))
    two = curves("A", [Curve(name="learned", points=[(0, 1)]), Curve(name="formula", points=[(1, 0)])], plane)
    assert [["learned", "0", "1"], ["formula", "1", "0"]] == cells(two)


def test_a_long_curve_is_thinned_in_its_table():
    rows = cells(curves("A", [Curve(name="a", points=[(x, 2 * x) for x in range(1_001)])], UNIT))
    assert 50 == len(rows)
    assert (["0", "0"], ["1,000", "2,000"]) == (rows[0], rows[-1])


def test_points_stand_where_their_numbers_are():
    wide = drawings(curves("A", [Curve(name="a", points=[(0, 0), (0.5, 0.5), (1, 1)])], UNIT))[0]
    points = next(wide.iter("polyline")).get("points")
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


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (0, 97, (0, 20, 40, 60, 80, 100)),
        (-3, 8, (-5, 0, 5, 10)),
        (0.013, 0.027, (0.01, 0.015, 0.02, 0.025, 0.03)),
        (5, 5, (0, 1, 2, 3, 4, 5)),
        (-2, -2, (-2, -1.5, -1, -0.5, 0)),
        (0, 0, (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_ticks_are_round_numbers(low, high, ticks):
    assert ticks == nice_ticks(low, high)


@given(FINITE, FINITE, st.integers(3, 12), st.booleans())
def test_ticks_cover_any_range(one, other, most, whole):
    ticks = nice_ticks(one, other, most, whole=whole)
    low, high = sorted((one, other))
    slack = 1e-9 * max(abs(low), abs(high))
    assert 2 <= len(ticks) <= most
    assert all(before < after for before, after in itertools.pairwise(ticks))
    assert ticks[0] <= max(low, -1e300) + slack
    assert ticks[-1] >= min(high, 1e300) - slack
    assert not whole or all(tick == int(tick) for tick in ticks)


@pytest.mark.parametrize("values", [(math.nan, 1, 6), (0, math.inf, 6), (0, 1, 2)])
def test_ticks_need_numbers(values):
    with pytest.raises(ValueError, match="ticks need finite numbers and at least 3 ticks"):
        nice_ticks(*values)


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.25, 0.05, "0.25"), (0.2, 0.2, "0.2"), (1, 0.2, "1.0"), (0, 50, "0"), (1_200, 200, "1,200"), (15_000, 5_000, "15k"),
        (2_500_000, 500_000, "2.5M"), (3e9, 1e9, "3G"), (3e12, 1e12, "3T"), (3e20, 1e20, "3e+20"), (-0.5, 0.5, "−0.5"),
        (0.05, 0, "0.05"), (1e-9, 1e-9, "1e−09"),
    ],
)  # fmt: skip
def test_numbers_at_an_axis_are_short(value, step, text):
    assert text == tick_text(value, step)


def every(days, count, start=date(2026, 10, 27)):
    return [start + timedelta(days=days * place) for place in range(count)]


def texts(dates, most=6):
    return [text for _, text in date_ticks(dates, most)]


def test_days_are_named_by_a_calendar():
    assert ["Oct 27, 2026", "Oct 28", "Oct 29"] == texts(every(1, 3))
    assert ["Oct 27, 2026", "Oct 29", "Oct 31", "Nov 2"] == texts(every(1, 7), 5)
    assert ["Nov 2, 2026", "Nov 9", "Nov 16", "Nov 23"] == texts(every(1, 30))


def test_weeks_and_months_are_named_by_months_and_years():
    assert ["Nov 2026", "Dec", "Jan 2027", "Feb"] == texts(every(7, 16, date(2026, 10, 26)), 5)
    months = [date(2024 + place // 12, place % 12 + 1, 1) for place in range(29)]
    assert ["2024", "2025", "2026"] == texts(months, 4)
    assert ["Jan 2024", "Apr", "Jul", "Oct"] == texts(months[:12], 4)
    assert ["Jan 2024", "Feb", "Mar"] == texts(months[:3])
    years = [date(2_000 + place, 1, 1) for place in range(30)]
    assert ["2000", "2005", "2010", "2015", "2020", "2025"] == texts(years)


@given(
    st.dates(date(1, 1, 1), date(9_000, 1, 1)), st.sampled_from([1, 7, 30, 365]), st.integers(0, 400), st.integers(1, 9)
)
def test_dates_are_never_too_many(start, days, count, most):
    dates = [start + timedelta(days=days * place) for place in range(count)]
    places = [place for place, _ in date_ticks(dates, most)]
    assert sorted(set(places)) == places
    assert set(places) <= set(range(count))
    assert bool(count) <= len(places) <= most
