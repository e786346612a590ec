"""Figures of a page."""

from __future__ import annotations

import importlib.util
import re

import pytest

from grace_kp.pages import FIRST, INK, can_draw, figure

pytest.importorskip("matplotlib", reason="needs the extra calibration")


def draw(axes):
    axes.plot([0, 1], [0, 1], "o-", color=FIRST)
    axes.text(0, 1, "<script>&", color=INK)
    axes.set_xlabel("$x$ share")


def test_colours_are_those_of_the_page():
    """So that the figure changes with light and dark mode."""
    found = figure("A line", draw, 2)
    assert "var(--ink)" in found
    assert "var(--first)" in found
    assert [] == re.findall("#0102..", found)


def test_a_figure_says_in_words_what_it_shows():
    """Its title and its description are its name for a screen reader, and both are text."""
    found = figure("A <line>", draw, 2, description=r"It \1 rises <b>")
    title = re.search(r'aria-labelledby="(title-\w+) (desc-\w+)"', found)
    assert f'<title id="{title[1]}">A &lt;line&gt;</title>' in found
    assert f'<desc id="{title[2]}">It \\1 rises &lt;b&gt;</desc>' in found


def test_texts_are_neither_markup_nor_formulas():
    """A dollar sign is a dollar sign."""
    found = figure("A line", draw, 2)
    assert "&lt;script&gt;&amp;" in found
    assert "$x$ share" in found


def test_no_id_occurs_twice():
    """Within a figure, and in two figures of a page; what is referred to is there."""
    found = figure("A line", draw, 2) + figure("Another", draw, 3)
    ids = re.findall(r' id="([^"]+)"', re.sub(r"<defs>.*?</defs>", "", found, flags=re.DOTALL))
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'xlink:href="#([^"]+)"', found)) <= set(re.findall(r' id="([^"]+)"', found))


def test_the_same_data_give_the_same_figure():
    """There is no date in it."""
    assert figure("A line", draw, 2) == figure("A line", draw, 2)


def test_whether_figures_can_be_drawn_is_known_beforehand(monkeypatch):
    """Without matplotlib they cannot."""
    assert can_draw()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not can_draw()
