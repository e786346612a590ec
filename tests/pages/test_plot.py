"""Plots of counts: whatever the numbers, the drawing is whole, inside its frame, and beside a table of the same numbers."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import Rule, histogram, named_bars, timeline
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
    """Also NaN, infinity and numbers below 0, which have no bar."""
    series = {"good": [one for one, _ in values], "bad": [other for _, other in values]}
    assert whole(timeline("Runs", DAYS[: len(values)], series))


@given(st.lists(NUMBERS, min_size=1, max_size=25), st.lists(st.floats(), max_size=4))
def test_any_numbers_give_a_histogram(counts, marked):
    """Rules stand inside, wherever they belong."""
    edges = [place / len(counts) for place in range(len(counts) + 1)]
    assert whole(histogram("Confidence", counts, edges=edges, rules=[Rule(value, "a rule") for value in marked]))


@given(st.dictionaries(st.text(), NUMBERS, max_size=8))
def test_any_numbers_and_names_give_named_bars(values):
    """Control characters and markup in names, too."""
    assert whole(named_bars("Levels", values))


def test_tables_hold_the_numbers_of_the_plot():
    """Each bar is a row."""
    figure = timeline("Runs", DAYS[:2], {"good": [1_234, 2], "bad": [0, 5]})
    assert [["2026-11-01", "1,234", "0"], ["2026-11-02", "2", "5"]] == cells(figure)
    figure = histogram("Confidence", [1, 3], edges=[0, 0.5, 1])
    assert [["0 to 0.5", "1", "25.0%"], ["0.5 to 1", "3", "75.0%"]] == cells(figure)
    figure = histogram("Waits", [1, 3], edges=[0, 60, 3_600], labels=["0", "1min", "1h"])
    assert ["0 to 1min", "1min to 1h"] == [row[0] for row in cells(figure)]
    assert [["silent", "1", "25.0%"], ["none", "3", "75.0%"]] == cells(named_bars("Levels", {"silent": 1, "none": 3}))
    assert [["a", "1.5"]] == cells(named_bars("Levels", {"a": 1.5}, shares=False))


def test_bars_are_as_high_as_their_numbers():
    """Stacked ones stand on each other, and the second can be told from the first without colour."""
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
    """One edge more than bins."""
    with pytest.raises(ValueError, match="2 bins have 3 edges"):
        histogram("Confidence", [1, 2], edges=[0, 1])


@pytest.mark.parametrize(
    "figure",
    [
        named_bars(HOSTILE, {HOSTILE: 1}, unit=HOSTILE, caption=HOSTILE),
        timeline(HOSTILE, DAYS[:1], {HOSTILE: [1], "other": [2]}, caption=HOSTILE, unit=HOSTILE),
        histogram(HOSTILE, [1], edges=[0, 1], rules=[Rule(0, HOSTILE)], unit=HOSTILE, axis=HOSTILE, caption=HOSTILE),
    ],
    ids=["named", "timeline", "histogram"],
)
def test_texts_are_text(figure):
    """Markup is shown, characters that turn the text around are named, and long names are cut."""
    assert whole(figure)
    assert "img" not in Elements(figure).tags
    assert "\u202e" not in figure


def test_nothing_is_drawn_as_nothing():
    """Empty data give axes and an empty table."""
    for figure in (
        timeline("Runs", [], {"good": []}),
        named_bars("Levels", {}),
        histogram("Scores", [0], edges=[0, 1]),
    ):
        assert whole(figure)
        assert [] == [
            bar for drawing in drawings(figure) for bar in drawing.iter("rect") if bar.find("title") is not None
        ]
