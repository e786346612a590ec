"""Lines of a page are wrapped to the console, and values stay beside or below their names."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from grace_kp.cli._page import meter, put, put_field, put_text, wrapped


def written(width, write):
    file = io.StringIO()
    write(Console(file=file, width=width, highlight=False, emoji=False))
    return file.getvalue()


def test_a_line_is_written_literally():
    """Markup is text, and a long line is not wrapped."""
    line = "[red]" + "x" * 60
    assert f"{line}\n" == written(40, lambda out: put(out, line))


@pytest.mark.parametrize(
    ("width", "value", "expected"),
    [
        (40, "done", "result      done\n"),
        (40, "first\nsecond", "result      first\n            second\n"),
        (30, "word " * 8 + "end", "result\n  word word word word word\n  word word word end\n"),
    ],
)
def test_values_stand_beside_their_name_or_below_it(width, value, expected):
    """Below in a narrow terminal; each further line continues under the first."""
    assert expected == written(width, lambda out: put_field(out, "result", value))


def test_texts_keep_their_lines_and_indentation():
    """Long lines are wrapped between words."""
    assert "  a\n      b\n" == written(40, lambda out: put_text(out, "a\n    b", indent=2))


def test_long_words_are_broken():
    """No piece is wider than the room."""
    out = Console(file=io.StringIO(), width=40)
    assert ["x" * 10, "x" * 5] == wrapped(out, "x" * 15, 10)
    assert ["one two", "three"] == wrapped(out, "one two three", 8)


@pytest.mark.parametrize(("value", "filled"), [(0, 0), (0.5, 5), (1, 10), (7, 10), (-1, 0)])
def test_a_meter_has_a_constant_length(value, filled):
    """A value outside of 0 to 1 counts as the nearest of the two; a narrow console has no meter."""
    bar = meter(value, Console(file=io.StringIO(), width=40))
    assert (10, filled) == (len(bar), 10 - bar.count(bar[-1]) if filled < 10 else 10)
    assert "" == meter(value, Console(file=io.StringIO(), width=30))
