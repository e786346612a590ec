"""The one style and the style sheets of the web pages: contrast in both colour schemes (WCAG 2.2, 1.4.3 and 1.4.11), and no rule without use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grace_kp.pages import style
from grace_kp.pages._notebook import rules

PACKAGE = Path(__file__).resolve().parents[2] / "grace_kp"
SHEETS = {path.name: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.css")}
PAIR = re.compile(r"light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TOKENS = dict(re.findall(r"--([\w-]+): (light-dark\([^)]*\))", style()))
COLOURS = {name: PAIR.fullmatch(value).groups() for name, value in TOKENS.items()}
TEXT = {"ink", "soft", "first", "second", "good", "bad", "warn"}
"""Colours of texts, which also draw."""
DRAWN = {"third", "fourth"}
BEHIND = ("paper", "box")
FAINT = {"line"}
"""Lines between what is apart by its place."""
SCHEMES = {"light": 0, "dark": 1}
TEXT_CONTRAST, DRAWN_CONTRAST = 4.5, 3.0


def luminance(colour):
    """The relative luminance of `#rrggbb`."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_the_standard():
    assert 21 == pytest.approx(contrast("#000000", "#ffffff"))
    assert 1 == pytest.approx(contrast("#336699", "#336699"))
    assert 4.54 == pytest.approx(contrast("#767676", "#ffffff"), abs=0.01)


def test_every_colour_has_a_purpose():
    assert set(COLOURS) == TEXT | DRAWN | set(BEHIND) | FAINT


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_can_be_read(scheme):
    place = SCHEMES[scheme]
    pairs = [(name, behind) for name in sorted(TEXT) for behind in BEHIND] + [("paper", "bad"), ("paper", "first")]
    found = {pair: contrast(COLOURS[pair[0]][place], COLOURS[pair[1]][place]) for pair in pairs}
    assert {} == {pair: value for pair, value in found.items() if value < TEXT_CONTRAST}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_drawn_can_be_seen(scheme):
    place = SCHEMES[scheme]
    pairs = [(name, behind) for name in sorted(TEXT | DRAWN) for behind in BEHIND]
    pairs += [(name, "line") for name in ("first", "good", "warn", "bad")]
    found = {pair: contrast(COLOURS[pair[0]][place], COLOURS[pair[1]][place]) for pair in pairs}
    assert {} == {pair: value for pair, value in found.items() if value < DRAWN_CONTRAST}


@pytest.mark.parametrize("sheet", SHEETS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_other_colours_are_readable_too(sheet, scheme):
    """A background that is no token carries the ink; the border of a control stands out from both backgrounds."""
    place = SCHEMES[scheme]
    found = {}
    for rule in rules(SHEETS[sheet]):
        for declaration in rule.declarations.split(";"):
            name, _, value = declaration.partition(":")
            pair = PAIR.search(value)
            if pair is None or name.startswith("--"):
                continue
            colour = pair[1 + place]
            if name.startswith("background"):
                found[rule.selectors, name] = contrast(colour, COLOURS["ink"][place]) / TEXT_CONTRAST
            else:
                worst = min(contrast(colour, COLOURS[behind][place]) for behind in BEHIND)
                found[rule.selectors, name] = worst / (DRAWN_CONTRAST if name.startswith("border") else TEXT_CONTRAST)
    assert {} == {place: value for place, value in found.items() if value < 1}


@pytest.mark.parametrize("sheet", SHEETS)
def test_texts_have_colours_of_texts(sheet):
    found = [
        (rule.selectors, name)
        for rule in rules(SHEETS[sheet])
        for name in re.findall(r"(?:^|;)color:var\(--([\w-]+)\)", rule.declarations)
    ]
    assert [] == [(selectors, name) for selectors, name in found if name not in TEXT | {"paper"}]


@pytest.mark.parametrize("sheet", SHEETS)
def test_each_class_of_a_sheet_is_used(sheet):
    sources = "".join(
        path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*") if path.suffix in {".py", ".html", ".js"}
    )
    names = {
        name
        for rule in rules(SHEETS[sheet])
        for selector in rule.selectors
        for name in re.findall(r"\.([a-z][\w-]*)", selector)
    }
    unused = {name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", sources)}
    assert set() == {name for name in unused if not re.fullmatch(r"[a-z]\d", name)}
