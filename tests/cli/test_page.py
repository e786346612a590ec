"""Lines and tables for a terminal: wrapped to its width, values beside or below their names, figures never cut."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from grace_kp.cli._page import TableColumn, TextTable, meter, put, put_field, put_text, wrap


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
    assert ["x" * 10, "x" * 5] == wrap(out, "x" * 15, 10)
    assert ["one two", "three"] == wrap(out, "one two three", 8)


@pytest.mark.parametrize(("value", "filled"), [(0, 0), (0.5, 5), (1, 10), (7, 10), (-1, 0)])
def test_a_meter_has_a_constant_length(value, filled):
    """A value outside of 0 to 1 counts as the nearest of the two; a narrow console has no meter."""
    bar = meter(value, Console(file=io.StringIO(), width=40))
    assert (10, filled) == (len(bar), 10 - bar.count(bar[-1]) if filled < 10 else 10)
    assert "" == meter(value, Console(file=io.StringIO(), width=30))


TEXTS = st.text(alphabet="ab 京都\x1b[]\\。é", max_size=60)
ROWS = st.lists(st.tuples(st.integers(0, 10**6), TEXTS, TEXTS, st.integers(0, 10**9)), min_size=1, max_size=5)
COLUMNS = (
    TableColumn("id", "word"), TableColumn("objective", least=10), TableColumn("why", "prose", priority=2), TableColumn("score", "figure", priority=1),
)  # fmt: skip


def printed(rows, width, columns=COLUMNS):
    table, file = TextTable(*columns), io.StringIO()
    for row in rows:
        table.add(*row)
    table.print(Console(file=file, width=width, color_system=None))
    return file.getvalue()


@given(ROWS, st.integers(20, 220))
def test_no_line_is_wider_than_the_terminal_and_what_must_be_whole_is_whole(rows, width):
    """Ids stand whole at every width; scores stand whole or their column is dropped."""
    text = printed(rows, width)
    assert [] == [line for line in text.splitlines() if cell_len(line) > width]
    words = text.split()
    assert [] == [name for name, *_ in rows if str(name) not in words]
    if "score" in words:
        assert [] == [score for *_, score in rows if str(score) not in words]


@given(ROWS)
def test_a_wide_terminal_shows_everything(rows):
    """Where there is room, nothing is shortened and no column is dropped."""
    text = printed(rows, 220)
    assert ["id", "objective", "why", "score"] == text.split()[:4]
    assert "…" not in text


def test_columns_go_by_priority():
    """The column of the highest priority number goes first."""
    rows = [(1234, "an objective of some length", "because of this", 0.123)]
    headings = [printed(rows, width).split()[: 5 - number] for number, width in enumerate((60, 34, 20), 1)]
    assert [["id", "objective", "why", "score"], ["id", "objective", "score"], ["id", "objective"]] == [
        [word for word in heading if not word.startswith("─")] for heading in headings
    ]


def test_where_the_essential_columns_do_not_fit_each_row_is_a_block():
    """Names and values below each other, each value whole."""
    columns = (TableColumn("variant"), *(TableColumn(f"figure {number}", "figure") for number in range(4)))
    text = printed([("long", *range(1_000_000, 1_000_004))], 30, columns)
    assert [f"figure {number}  {1_000_000 + number}" for number in range(4)] == text.splitlines()[1:5]


def test_wide_characters_take_two_columns():
    """A Japanese text is shortened by its width, and the columns after it stay in line."""
    lines = printed([(1, "京都の天気を教えてください", "", 5), (2, "ok", "", 77)], 30).splitlines()
    assert "…" in lines[2]
    assert 1 == len({cell_len(line) for line in lines[2:]})
