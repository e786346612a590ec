"""What every plot stands on: two drawings with words for those who cannot see them, and texts that fit."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from grace_kp.pages import named_bars
from grace_kp.pages._plot_canvas import fitted, text_width
from tests.pages.drawing import drawings, ids


def test_a_plot_is_drawn_for_wide_and_for_narrow_pages():
    """The style shows one of the two, so that letters are as large on a phone."""
    wide, narrow = drawings(named_bars("Levels", {"silent": 1}))
    assert ("plot at-wide", "plot at-narrow") == (wide.get("class"), narrow.get("class"))
    assert float(wide.get("viewBox").split()[2]) > 1.5 * float(narrow.get("viewBox").split()[2])


def test_a_drawing_has_a_name_and_a_description():
    """They are found by their ids, which no other plot of the page has."""
    figure = named_bars("Levels", {"silent": 3}) + named_bars("Agents", {"a": 1})
    assert len(set(ids(figure))) == len(ids(figure)) == 8
    referred = re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', figure)
    assert sorted(ids(figure)) == sorted(referred)
    assert "<desc" in figure
    assert "silent: 3 (100.0%)." in figure


def test_neither_styles_nor_scripts_stand_in_a_plot():
    """The policy of the page forbids both."""
    figure = named_bars("Levels", {"silent": 1})
    assert not re.search(r"style=|<script|<style|on\w+=", figure)


@given(st.text(max_size=300), st.floats(20, 600))
def test_texts_fit(text, width):
    """They are cut with an ellipsis."""
    found = fitted(text, width)
    assert text_width(found) <= width
    assert fitted(found, width) == found
