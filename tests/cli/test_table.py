"""Tables of the command line at any width: columns go, figures stay whole."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from grace_kp.cli._table import Column, Table

TEXTS = st.text(alphabet="ab 京都\x1b[]\\。é", max_size=60)
ROWS = st.lists(st.tuples(st.integers(0, 10**6), TEXTS, TEXTS, st.integers(0, 10**9)), min_size=1, max_size=5)
COLUMNS = (
    Column("id", "word"), Column("objective", least=10), Column("why", "prose", priority=2), Column("score", "figure", priority=1),
)  # fmt: skip


def printed(rows, width, columns=COLUMNS):
    table, file = Table(*columns), io.StringIO()
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
    columns = (Column("variant"), *(Column(f"figure {number}", "figure") for number in range(4)))
    text = printed([("long", *range(1_000_000, 1_000_004))], 30, columns)
    assert [f"figure {number}  {1_000_000 + number}" for number in range(4)] == text.splitlines()[1:5]


def test_wide_characters_take_two_columns():
    """A Japanese text is shortened by its width, and the columns after it stay in line."""
    lines = printed([(1, "京都の天気を教えてください", "", 5), (2, "ok", "", 77)], 30).splitlines()
    assert "…" in lines[2]
    assert 1 == len({cell_len(line) for line in lines[2:]})
